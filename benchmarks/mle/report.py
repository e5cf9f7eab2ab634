"""The report of a study: one HTML file that needs nothing else, with CSV, SVG and trees.

    <out>/index.html      the page to open, send or print: a section for each agent
    <out>/trees/*.html    the tree of every search, of a tree agent

Tables and figures lie beside the page; see `langgraft.benchmarks.reporting.pages`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import text_digest
from langgraft.benchmarks.comparison.measures import MeasureContrast, Roles
from langgraft.benchmarks.harness.progress import Spent, spending
from langgraft.benchmarks.harness.study import Plan, PlanLogReader, Report, is_simulated
from langgraft.benchmarks.mle.analysis import Analysis, analyze_agents, hypothesis_difference
from langgraft.benchmarks.mle.behaviour.steps import timeline_text
from langgraft.benchmarks.mle.interactions import Crossing, crossings
from langgraft.benchmarks.mle.outcomes import OUTCOMES, earned, most_common
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.relations import SHOWN
from langgraft.benchmarks.mle.searches import ROLES, RUNS, TREE, Kind, Search, TreeSearch
from langgraft.benchmarks.mle.tables import MEANINGS, tables
from langgraft.benchmarks.mle.tree_page import render_tree_page
from langgraft.benchmarks.published import mle_agent_memory
from langgraft.benchmarks.reporting.findings import Registration, registration
from langgraft.benchmarks.reporting.pages import (
    check_extra,
    environment,
    trusted,
    write_folder,
    write_pages,
)
from langgraft.benchmarks.reporting.tables import registered_tables, spending_tables
from langgraft.benchmarks.reporting.words import (
    DASH,
    TIMES,
    flat,
    listing,
    mean_error,
    measured_change,
    measured_interval,
    number,
    several,
)

TREES: Final = "trees"
MOST_SHOWN: Final = 15
"""Packages and classes of exceptions on the page; the tables have all of them."""

_TITLE: Final = "Tree search with memory"
_TITLE_OF_AGENTS: Final = "Agents with memory"
AGENTS: Final = {
    "tree": "tree search",
    "tree-uct": "tree search by UCT",
    "tree-evolution": "tree search by evolution",
    "chain": "chain agent",
    "mlab": "MLAB",
}
"""What agents are called in titles; of a variant what follows is its own."""
_NOTHING: Final = Registration()
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def write_report(plan: Plan, log: PlanLogReader, out: Path) -> Report:
    """Write the report of a study, finished or under way.

    Args:
        plan: The plan, for its title, model and settings.
        log: What has been committed so far.
        out: Folder for the report; made where it is missing, overwritten where it is not.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
        InputError: A tree's page cannot be written.
    """
    check_extra()
    from langgraft.benchmarks.mle.figures import draw  # noqa: PLC0415  ([bench], slow to load)

    analyses, simulated = analyze_agents(log, roles_of(plan)), is_simulated(plan, log)
    registered = registration(
        plan.hypotheses, log.manifest, lambda each: hypothesis_difference(each, analyses)
    )
    spent = spending(log)
    found = (*registered_tables(registered), *tables(analyses), *spending_tables(spent))
    drawn = {each.agent: draw(each, prefix_of(each, analyses)) for each in analyses}
    trees = [run for each in analyses for run in each.searches.trees]
    write_pages(out / TREES, _trees(trees, simulated=simulated))
    page = write_folder(
        out,
        tables=(*found, MEANINGS.table(found)),
        figures={name: svg for figures in drawn.values() for name, svg in figures.items()},
        page=render(plan, analyses, drawn, simulated=simulated, registered=registered, spent=spent),
    )
    return _short(plan, analyses, registered, page, simulated=simulated)


def roles_of(plan: Plan) -> Roles:
    """Return what the conditions of a plan are to each other."""
    if not isinstance(plan, MlePlan):
        return ROLES
    bare = [each.name for each in plan.memory if each.start == "off" and not each.resampled]
    return Roles(
        baseline=bare[0] if bare else ROLES.baseline,
        # A second one without memory has nothing to tell it from the first but its samples.
        reruns=(*bare[1:], *(each.name for each in plan.memory if each.resampled)),
        placebos=tuple(each.name for each in plan.memory if each.control == "placebo"),
        others=tuple(each.name for each in plan.memory if each.control in {"shuffled", "random"}),
        margin=plan.margin,
    )


def prefix_of(analysis: Analysis, analyses: Sequence[Analysis]) -> str:
    """Return what names of an agent's figures and places of the page begin with."""
    return f"{analysis.agent}-" if len(analyses) > 1 else ""


def tree_name(search: Search) -> str:
    """Return the file name of a search's tree page; distinct for distinct runs."""
    name = search.spec.name
    return f"{_UNSAFE.sub('-', name)[:80]}-{text_digest(name)[:6]}.html"


def _trees(searches: Sequence[TreeSearch], *, simulated: bool) -> Iterator[tuple[str, str]]:
    """Render the tree of every search, by file name."""
    for search in searches:
        known = {node.id for node in search.journal.nodes}
        yield (
            tree_name(search),
            render_tree_page(
                search.journal,
                title=f"{search.competition}: {search.condition}, seed {search.seed}",
                lower_is_better=search.lower_is_better,
                chosen=search.chosen if search.chosen in known else "",
                report=search.report,
                simulated=simulated,
            ),
        )


def render(
    plan: Plan,
    analyses: Sequence[Analysis],
    drawn: Mapping[str, Mapping[str, str]],
    *,
    simulated: bool,
    registered: Registration = _NOTHING,
    spent: Sequence[Spent] = (),
) -> str:
    """Return the page as HTML; `drawn` are SVG figures of ours by agent and name."""
    pages = environment(
        __package__ or "",
        interval=measured_interval,
        mean=mean_error,
    )
    alone = is_tree_alone(analyses)
    page: str = pages.get_template("report.html.jinja").render(
        plan=plan,
        registration=registered,
        spent=spent,
        title=title_of(plan, analyses),
        alone=alone,
        simulated=simulated,
        analyses=analyses,
        a=analyses[0],
        s=analyses[0].searches,
        conditions=list(dict.fromkeys(c for each in analyses for c in each.searches.conditions)),
        competitions=len({c for each in analyses for c in each.searches.competitions}),
        called=called,
        crossings=crossings(analyses),
        agents_listed=_capitalized(listing([called(each.agent) for each in analyses])),
        own_models=_own_models(plan),
        sentences=named_sentences(analyses),
        outcomes=OUTCOMES,
        parts=[trusted(_part(pages, each, analyses, drawn[each.agent])) for each in analyses],
        published=mle_agent_memory().recomputed,
        settings=flat(plan.model_dump(mode="json")),
        provenance=flat(dict(analyses[0].manifest)),
    )
    return page


def _part(
    pages: Any,
    analysis: Analysis,
    analyses: Sequence[Analysis],
    drawn: Mapping[str, str],
) -> str:
    """Return what the page says of one agent."""
    searches, prefix = analysis.searches, prefix_of(analysis, analyses)
    part: str = pages.get_template("agent.jinja").render(
        a=analysis,
        s=searches,
        at=prefix,
        several_agents=len(analyses) > 1,
        alone=is_tree_alone(analyses),
        agent_name=called(analysis.agent),
        agent_title=_capitalized(called(analysis.agent)),
        run_word=RUNS[searches.kind][0],
        runs_word=RUNS[searches.kind][1],
        sentences=sentences(analysis),
        figures={name.removeprefix(prefix): trusted(svg) for name, svg in drawn.items()},
        outcomes=OUTCOMES,
        family=[each for each in analysis.contrasts if each.in_family],
        shown=[analysis.measured[name].measure for name in SHOWN],
        packages=most_common((each.packages for each in analysis.used), MOST_SHOWN),
        errors=most_common((each.errors for each in analysis.used), MOST_SHOWN),
        tools=most_common((each.tools for each in analysis.endings), MOST_SHOWN),
        reasons=most_common((each.reasons for each in analysis.endings), MOST_SHOWN),
        timeline=timeline_text,
        runs=sorted(searches.done, key=lambda run: (run.competition, run.seed)),
        tree=lambda run: f"{TREES}/{tree_name(run)}",
    )
    return part


def title_of(plan: Plan, analyses: Sequence[Analysis]) -> str:
    """Return the page's title: the plan's, or one that says which agents there are."""
    if plan.title:
        return plan.title
    if is_tree_alone(analyses):
        return _TITLE
    if len(analyses) > 1:
        return _TITLE_OF_AGENTS
    return f"{_capitalized(called(analyses[0].agent))} with memory"


def called(agent: str) -> str:
    """Return what an agent is called in titles, by its label: of a variant, with its word."""
    known = [name for name in AGENTS if f"{agent}-".startswith(f"{name}-")]
    name = max(known, key=len, default="")
    words = AGENTS.get(name, agent)
    return words if name in {agent, ""} else f"{words}, {agent.removeprefix(f'{name}-')}"


def _capitalized(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def _own_models(plan: Plan) -> list[str]:
    """Name the models that agents have other than the plan's."""
    if not isinstance(plan, MlePlan):
        return []
    return [f"{each.label}: {each.model}" for each in plan.agents if each.model is not None]


def _short(
    plan: Plan,
    analyses: Sequence[Analysis],
    registered: Registration,
    page: Path,
    *,
    simulated: bool,
) -> Report:
    """Return what a terminal shows of the report."""
    columns, rows = summary_rows(analyses)
    notice = ("The model is simulated.",) if simulated else ()
    trees = sum(len(each.searches.trees) for each in analyses)
    lines = [*notice, *registered.lines, INTERVALS, *named_sentences(analyses)]
    if trees or is_tree_alone(analyses):
        lines.append(f"{several(trees, 'tree')} beside the page, in {TREES}.")
    return Report(page, title_of(plan, analyses), columns, rows, tuple(lines))


# Sentences of the first page -------------------------------------------------------------

_TOLD: Final[Mapping[Kind, tuple[str, ...]]] = {
    "tree": ("bug_rate", "first_valid", "operators", "packages"),
    "chain": ("bug_rate", "first_valid", "late_errors", "tools", "commands"),
    "mlab": ("bug_rate", "first_valid", "late_errors", "tools"),
}
_EARNED: Final = {"valid_submission": "valid", "any_medal": "medal"}
_UNITS: Final = {"%": " points", "% of runs": " points"}
_OTHER_SEEDS: Final = "other seeds of these competitions"
_OTHER_TASKS: Final = "other competitions and seeds"


def sentences(analysis: Analysis) -> tuple[str, ...]:
    """Return the findings on one agent, a sentence each."""
    return (_extent(analysis), *_differences(analysis), *_gates(analysis))


def named_sentences(analyses: Sequence[Analysis]) -> tuple[str, ...]:
    """Return the findings on all agents; each names its agent, unless there is the tree alone.

    Those on what depends on the agent come first.
    """
    if is_tree_alone(analyses):
        return sentences(analyses[0])
    crossed = [said for each in crossings(analyses) for said in crossing_sentences(each)]
    return (*crossed, *(f"{each.agent}: {said}" for each in analyses for said in sentences(each)))


def crossing_sentences(crossing: Crossing) -> Iterator[str]:
    """Say of each memory where it trades diversity for fewer failures, and whether agents differ."""
    for condition in crossing.conditions:
        if condition in crossing.controls:
            continue
        rows = [row for row in crossing.of(condition) if row.in_question]
        if judged := crossing.judged(condition):
            trading = listing(crossing.trading(condition)) or "none"
            yield (
                f"{condition}: fewer failures together with less diversity, both beyond chance, in"
                f" {trading} of {listing(judged)}."
            )
        for agent in crossing.agents[1:]:
            found = [row.between[agent] for row in rows]
            told = [_told(each) for each in found if each.sharpest is not None]
            if told:
                part = "" if all(each.complete for each in found) else " (incomplete)"
                yield (
                    f"{condition}, its effect in {agent} less that in {crossing.reference}{part}:"
                    f" {'; '.join(told)}."
                )


def is_tree_alone(analyses: Sequence[Analysis]) -> bool:
    """Say whether a study has no agent but the tree."""
    return [each.searches.kind for each in analyses] == [TREE]


def _extent(analysis: Analysis) -> str:
    searches = analysis.searches
    medals = sum(earned(run, "any_medal") for run in searches.done)
    graded = sum(earned(run, "valid_submission") for run in searches.done)
    extent = f"{several(len(searches.competitions), 'competition')} {TIMES} "
    extent += several(len(searches.conditions), "condition")
    return (
        f"{len(searches.done)} of {several(len(searches.planned), *RUNS[searches.kind])} ended"
        f" ({extent}): {graded:.0f} with a valid submission, {medals:.0f} with a medal."
    )


def _differences(analysis: Analysis) -> Iterator[str]:
    """Say what each memory changed, for these competitions where seeds tell, else for all."""
    told_of = _TOLD[analysis.searches.kind]
    for condition in analysis.searches.memories:
        found = [analysis.contrast(condition, name) for name in told_of]
        for same in (True, False):
            of_kind = [each for each in found if (each.same_items is not None) == same]
            told = [
                _told(each, _censored(analysis, condition), *RUNS[analysis.searches.kind])
                for each in of_kind
                if each.sharpest is not None
            ]
            if told:
                of = _OTHER_SEEDS if same else _OTHER_TASKS
                part = "" if all(each.complete for each in of_kind) else ", incomplete"
                yield (
                    f"{condition} against {analysis.searches.baseline}, {of}{part}:"
                    f" {'; '.join(told)}."
                )


def _told(contrast: MeasureContrast, censored: int = 0, *runs: str) -> str:
    estimate, measure = contrast.sharpest, contrast.measure
    assert estimate is not None
    notes = [f"n = {contrast.pairs}"]
    if not estimate.excludes_zero:
        notes.append("holds 0")
    elif contrast.sharpest_verdict == "unclear":
        notes.append("not after correction")
    if measure.name == "first_valid" and censored:
        notes.append(f"none valid in {several(censored, *runs)}")
    unit = _UNITS.get(measure.unit, "")
    return f"{measure.label} {measured_change(estimate, measure, runs='seeds')}{unit} ({', '.join(notes)})"


def _censored(analysis: Analysis, condition: str) -> int:
    """Count the runs without a valid program, of a condition and of what it is compared with."""
    return sum(map(analysis.searches.censored, {condition, analysis.searches.baseline}))


def _gates(analysis: Analysis) -> Iterator[str]:
    """Name gates that did not pass, in quotes: what one checks is no finding while it is open."""
    failed = [f"“{gate.name}”" for gate in analysis.gates if gate.state == "failed"]
    unmade = [f"“{gate.name}”" for gate in analysis.gates if gate.state == "open"]
    if failed:
        yield f"Gates that failed: {listing(failed)}."
    if unmade:
        yield f"Gates that are open: {listing(unmade)}."


INTERVALS: Final = f"Intervals of 95 %: (these) {_OTHER_SEEDS}, (all) {_OTHER_TASKS}."
"""What the marks in the terminal's table mean."""


def summary_rows(
    analyses: Sequence[Analysis],
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return columns and rows of the terminal's table; of a tree alone without its name."""
    alone = is_tree_alone(analyses)
    columns = (
        *(() if alone else ("agent",)),
        *("condition", "searches" if alone else "runs"),
        *("bugs, %", f"against {analyses[0].searches.baseline}"),
        *("first valid", *(f"{name}, %" for name in _EARNED.values())),
    )
    rows = tuple(
        (*(() if alone else (each.agent,)), *_row(each, name))
        for each in analyses
        for name in each.searches.conditions
    )
    return columns, rows


def _row(analysis: Analysis, condition: str) -> tuple[str, ...]:
    searches = analysis.searches
    bugs, first = (
        next(level for level in analysis.measured[name].levels if level.condition == condition)
        for name in ("bug_rate", "first_valid")
    )
    compared = condition != searches.baseline
    shares = dict(next(o for o in analysis.outcomes if o.condition == condition).shares)
    return (
        condition,
        f"{len(searches.of(condition))}/{len(searches.planned_pairs(condition))}",
        number(bugs.estimate.value if bugs.estimate else None, 1, scale=100),
        _against(analysis.contrast(condition, "bug_rate")) if compared else DASH,
        # A run without a valid program counts as its length: the mean is a lower bound.
        f"{'≥ ' * bool(searches.censored(condition))}{number(first.estimate.value if first.estimate else None)}",
        *(mean_error(shares[name], 1, scale=100) for name in _EARNED),
    )


def _against(contrast: MeasureContrast) -> str:
    """Write a difference, and which of the two questions its interval answers."""
    if contrast.sharpest is None:
        return DASH
    which = "all" if contrast.same_items is None else "these"
    return f"{measured_change(contrast.sharpest, contrast.measure, runs='seeds')} ({which})"
