"""From the log of a study to everything its report says, and nothing from anywhere else.

Each agent is analyzed by itself: whether memory helps a tree and whether it helps a chain are two
questions, each with its own family of tests. A measure that means nothing for an agent is in neither its
list nor its family; the declared family comes first in each list.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison import verdicts
from langgraft.benchmarks.comparison.contrasts import Difference
from langgraft.benchmarks.comparison.measures import (
    Measure,
    MeasureContrast,
    Measured,
    Roles,
    compare_measures,
)
from langgraft.benchmarks.comparison.outcomes import Pair, matrix_of, rows_of
from langgraft.benchmarks.comparison.verdicts import (
    NAMED,
    SIGNIFICANCE,
    Better,
    Gate,
    Hypothesis,
    HypothesisSide,
    matches,
    sides_of,
)
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.mle.behaviour.runs import MOST_OPERATORS, Share
from langgraft.benchmarks.mle.behaviour.steps import StepBehavior
from langgraft.benchmarks.mle.behaviour.trees import TreeBehavior
from langgraft.benchmarks.mle.outcomes import (
    Curve,
    Endings,
    MemoryUse,
    Outcomes,
    Used,
    curves,
    earned,
    endings,
    memory_use,
    outcomes,
    recurrences,
    used,
)
from langgraft.benchmarks.mle.plan import condition_of
from langgraft.benchmarks.mle.relations import (
    ModalityDelta,
    Relation,
    Sides,
    TaskDelta,
    modality_deltas,
    relations,
    sides,
    task_deltas,
)
from langgraft.benchmarks.mle.searches import (
    ROLES,
    RUNS,
    TREE,
    Kind,
    Search,
    Searches,
    agents_of,
    read_searches,
)
from langgraft.benchmarks.reporting import findings
from langgraft.benchmarks.reporting.words import measured_change

Value = Callable[[Search], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasure(Measure):
    """A number of a run, and where it is found."""

    value: Value
    """`None` where a run has no such number; its pair is then left out."""
    most: Callable[[Searches], float]
    """The largest value there can be in a study; the least is 0, or there is none of either."""


def measured(searches: Searches) -> dict[str, Measured]:
    """Return all measures of an agent's runs by name; an item is a competition, a run a seed."""
    planned = {name: searches.planned_pairs(name) for name in searches.conditions}
    return {
        measure.name: Measured(
            measure,
            {
                name: {run.pair: measure.value(run) for run in searches.of(name)}
                for name in searches.conditions
            },
            planned,
            measure.most(searches),
            searches.roles,
        )
        for measure in MEASURES[searches.kind]
    }


def _number(
    name: str,
    label: str,
    unit: str,
    value: Value,
    most: Callable[[Searches], float],
    *,
    better: Better | None = None,
    confirmatory: bool = True,
    digits: int = 2,
) -> RunMeasure:
    return RunMeasure(
        name, label, unit, better, confirmatory, digits=digits, value=value, most=most
    )


def _share(
    name: str,
    label: str,
    value: Value,
    better: Better | None = None,
    *,
    unit: str = "%",
    confirmatory: bool = True,
) -> RunMeasure:
    """Return a measure from 0 to 1 that is written in percent."""
    return RunMeasure(
        *(name, label, unit, better, confirmatory),
        scale=100,
        digits=1,
        value=value,
        most=lambda _: 1.0,
    )


def _longest(searches: Searches) -> float:
    return float(searches.longest)


def _late_steps(searches: Searches) -> float:
    return float(max(searches.longest - searches.split, 0))


def _all_operators(_: Searches) -> float:
    return float(MOST_OPERATORS)


def _all_packages(searches: Searches) -> float:
    """Count the packages that any valid program of the study imports."""
    return float(len({name for search in searches.done for name in search.behavior.package_steps}))


def _all_tools(searches: Searches) -> float:
    """Count the actions that any run of the study took."""
    return float(len({name for run in searches.step_runs for name in run.behavior.tools}))


def _most_commands(searches: Searches) -> float:
    """Return the commands of the run that issued most: no run has more kinds than commands."""
    return float(max((run.behavior.commands for run in searches.step_runs), default=0))


def _best(searches: Searches) -> float:
    """Return 1 where all final scores are fractions; other scores have no bound."""
    found = [search.behavior.final for search in searches.done]
    inside = all(0 <= value <= 1 for value in found if value is not None)
    return 1.0 if inside else math.inf


def _recurrence(search: Search) -> float | None:
    found = search.behavior.errors_recur
    return None if found is None else float(found)


def _tree(search: Search) -> TreeBehavior:
    assert isinstance(search.behavior, TreeBehavior)
    return search.behavior


def _steps(search: Search) -> StepBehavior:
    assert isinstance(search.behavior, StepBehavior)
    return search.behavior


def _first_valid(label: str) -> RunMeasure:
    """Return when a run first had something that works, under the agent's word for it."""
    return _number(
        "first_valid",
        label,
        "steps",
        lambda s: s.behavior.first_valid.step,
        _longest,
        better="lower",
    )


# What all agents have; each agent's list says where it stands.
_BUG_RATE = _share("bug_rate", "bug rate", lambda s: s.behavior.bug_rate, "lower")
_OPERATORS = _number(
    "operators",
    "N_eff of operators",
    "operators",
    lambda s: s.behavior.operators_pooled,
    _all_operators,
)
_PACKAGES = _number(
    "packages",
    "N_eff of packages",
    "packages",
    lambda s: s.behavior.package_imports_pooled,
    _all_packages,
)
_EFFECTS = (
    _number(
        "late_errors",
        "late-phase errors",
        "steps",
        lambda s: s.behavior.late_errors,
        _late_steps,
        better="lower",
    ),
    _number(
        "best_metric",
        "best validation metric",
        "",
        lambda s: s.behavior.final,
        _best,
        better="higher",
        digits=4,
    ),
    _share("any_medal", "any medal", lambda s: earned(s, "any_medal"), "higher"),
)
_BESIDE = (
    _share(
        "above_median",
        "above median",
        lambda s: earned(s, "above_median"),
        "higher",
        confirmatory=False,
    ),
    _share(
        "valid_submission",
        "valid submission",
        lambda s: earned(s, "valid_submission"),
        "higher",
        confirmatory=False,
    ),
    _share(
        "error_recurrence",
        "error recurrence",
        _recurrence,
        "lower",
        unit="% of runs",
        confirmatory=False,
    ),
)

_TREE: Final = (
    _BUG_RATE,
    _first_valid("first valid node"),
    _OPERATORS,
    _PACKAGES,
    _share("code_distance", "valid code distance", lambda s: _tree(s).token_distance),
    *_EFFECTS,
    *_BESIDE,
    _number(
        "operators_per_program",
        "N_eff of operators, per program",
        "operators",
        lambda s: _tree(s).operators_per_program,
        _all_operators,
        confirmatory=False,
    ),
    _number(
        "packages_per_program",
        "N_eff of packages, per program",
        "packages",
        lambda s: _tree(s).package_imports_per_program,
        _all_packages,
        confirmatory=False,
    ),
    _number(
        "package_sets",
        "N_eff of packages, once a program",
        "packages",
        lambda s: _tree(s).packages_pooled,
        _all_packages,
        confirmatory=False,
    ),
    _share(
        "name_distance",
        "valid code distance, names",
        lambda s: _tree(s).name_distance,
        confirmatory=False,
    ),
)
"""Of a tree (mle-agent-memory Table 2)."""

_CHAIN: Final = (
    _BUG_RATE,
    _first_valid("first valid step"),
    _number("tools", "N_eff of tools", "actions", lambda s: _steps(s).tools_number, _all_tools),
    _number(
        "commands",
        "N_eff of commands",
        "commands",
        lambda s: _steps(s).commands_number,
        _most_commands,
    ),
    _OPERATORS,
    _PACKAGES,
    *_EFFECTS,
    *_BESIDE,
    _share(
        "execution_bug_rate",
        "bug rate of executions",
        lambda s: _steps(s).execution_bug_rate,
        "lower",
        confirmatory=False,
    ),
    _share(
        "failed_steps",
        "failed steps",
        lambda s: _steps(s).failed_step_rate,
        "lower",
        confirmatory=False,
    ),
    _share(
        "late_error_rate",
        "late-phase errors, of late steps",
        lambda s: _steps(s).late_error_rate,
        "lower",
        confirmatory=False,
    ),
    _number(
        "steps_used",
        "steps used",
        "steps",
        lambda s: s.behavior.steps,
        _longest,
        confirmatory=False,
    ),
    _number(
        "normalized_commands",
        "N_eff of commands, normalized",
        "commands",
        lambda s: _steps(s).normalized_commands_number,
        _most_commands,
        confirmatory=False,
    ),
)
"""Of agents that work step by step (Tables 3 and 9)."""

MEASURES: Final[Mapping[Kind, tuple[RunMeasure, ...]]] = {
    "tree": _TREE,
    "chain": _CHAIN,
    # The same but for commands: MLAB's tools take names of files, and no code.
    "mlab": tuple(each for each in _CHAIN if each.unit != "commands"),
}


@dataclass(frozen=True)
class Analysis:
    """What the runs of one agent show."""

    searches: Searches
    manifest: Mapping[str, JSON]
    outcomes: tuple[Outcomes, ...]
    measured: Mapping[str, Measured]
    """Measures by name; those of the declared family first."""
    contrasts: tuple[MeasureContrast, ...]
    curves: tuple[Curve, ...]
    relations: tuple[Relation, ...]
    tasks: tuple[TaskDelta, ...]
    modalities: tuple[ModalityDelta, ...]
    sides: tuple[Sides, ...]
    memory: tuple[MemoryUse, ...]
    endings: tuple[Endings, ...]
    """Of a step agent; empty for others."""
    used: tuple[Used, ...]
    recurrences: Mapping[tuple[str, str], Share]
    gates: tuple[Gate, ...]

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.searches.agent

    def contrast(self, condition: str, measure: str) -> MeasureContrast:
        """Return one contrast."""
        return next(
            each
            for each in self.contrasts
            if (each.condition, each.measure.name) == (condition, measure)
        )


def analyze(log: PlanLogReader, roles: Roles = ROLES, *, agent: str | None = None) -> Analysis:
    """Analyze the runs of one agent in a log, finished or under way.

    Args:
        log: What has been committed.
        roles: Which condition is without memory, and which are controls.
        agent: Whose runs; `None`: those of the only agent there is.

    Raises:
        InputError: No agent is named, and there are several.
        MissingExtraError: The extra `bench` is not installed.
    """
    searches = read_searches(log, roles, agent=agent)
    by = measured(searches)
    compared = compare_measures(list(by.values()))
    return Analysis(
        searches=searches,
        manifest=log.manifest,
        outcomes=outcomes(searches),
        measured=by,
        contrasts=compared,
        curves=curves(searches),
        relations=relations(searches, by),
        tasks=task_deltas(searches, by),
        modalities=modality_deltas(searches, by),
        sides=sides(searches, by),
        memory=memory_use(searches, log),
        endings=endings(searches),
        used=used(searches),
        recurrences=recurrences(searches),
        gates=gates(searches, log, by, compared),
    )


def analyze_agents(log: PlanLogReader, roles: Roles = ROLES) -> tuple[Analysis, ...]:
    """Analyze every agent of a log by itself, in the plan's order.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    found = tuple(analyze(log, roles, agent=agent) for agent in agents_of(log))
    return found or (analyze(log, roles),)


def hypothesis_difference(hypothesis: Hypothesis, analyses: Sequence[Analysis]) -> Difference:
    """Return what a registered hypothesis is judged by: the pairs that `Measured.differences` has.

    Without memory is the mean of its own number and that of the re-runs.
    """
    known = {each.name: each for a in analyses for each in MEASURES[a.searches.kind]}
    measure = known.get(hypothesis.measure)
    if measure is None:
        return Difference(None, complete=True, runs=0, why="no agent of the plan has this measure")
    ours = _side(hypothesis.measure, hypothesis.treated, analyses, again=False)
    theirs = _side(hypothesis.measure, hypothesis.baseline, analyses, again=True)
    values = {
        pair: value - other
        for pair, value in ours.values.items()
        if value is not None and (other := theirs.values.get(pair)) is not None
    }
    matrix, planned = matrix_of(values), ours.planned & theirs.planned
    return Difference(
        matrix,
        complete=planned <= ours.values.keys() & theirs.values.keys(),
        runs=0 if matrix is None else matrix.shape[1],
        rows=[*rows_of(values).values()],
        most=max(measure.most(each.searches) for each in analyses),
        better=measure.better,
        scale=measure.scale,
        digits=measure.digits,
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a hypothesis."""

    values: Mapping[Pair, float | None]
    """Of the pairs that ended in all its cells; `None` where none has such a number."""
    planned: frozenset[Pair]


def _side(name: str, sides: HypothesisSide, analyses: Sequence[Analysis], *, again: bool) -> _Side:
    """Average a measure over the cells of a side; with `again` over re-runs of no memory, too."""
    found: dict[Pair, list[float | None]] = {}
    planned: dict[Pair, int] = {}
    ended: Counter[Pair] = Counter()
    for part, analysis in product(sides_of(sides), analyses):
        if name not in analysis.measured:
            continue
        measured, roles = analysis.measured[name], analysis.searches.roles
        for condition, pairs in measured.planned.items():
            extra = again and condition in roles.reruns
            levels = {"agent": analysis.agent, "condition": roles.baseline if extra else condition}
            for pair in pairs:
                if matches(part, {**levels, "competition": pair[0]}):
                    values = measured.values[condition]
                    if pair in values:
                        found.setdefault(pair, []).append(values[pair])
                    if not extra:
                        planned[pair] = planned.get(pair, 0) + 1
                        ended[pair] += pair in values
    means = {}
    for pair, count in planned.items():
        if ended[pair] == count:
            told = [each for each in found[pair] if each is not None]
            means[pair] = math.fsum(told) / len(told) if told else None
    return _Side(means, frozenset(planned))


# Checks that only this study can make --------------------------------------------------------


WATCHED: Final = ("bug_rate", "first_valid", "best_metric", "any_medal")
"""Measures by which a control must not look like a memory."""

RATES: Final = ("bug_rate", "any_medal")
"""Those of them of which equivalence is asked: rates, whose margin is the plan's."""


def gates(
    searches: Searches,
    log: PlanLogReader,
    by: Mapping[str, Measured],
    found: Sequence[MeasureContrast],
) -> tuple[Gate, ...]:
    """Make all checks of one agent.

    Whether lengths are equal is a question for trees: other agents end their runs themselves, and
    how long these were is one of their findings.
    """
    roles = searches.roles
    seeds = {seed for name in searches.memories for _, seed in searches.planned_pairs(name)}
    built = {
        f"{spec.factors['competition']}, {item}"
        for spec in searches.builds
        for item in spec.item_ids
    }
    tested = {
        f"{spec.factors['competition']}, {item}"
        for spec in searches.planned
        for item in spec.item_ids
    }
    bare: dict[int, dict[str, float]] = {}
    for (competition, seed), value in by["bug_rate"].values.get(searches.baseline, {}).items():
        if value is not None:
            bare.setdefault(seed, {})[competition] = value
    return findings.study_gates(
        log,
        completeness(searches),
        splits=findings.disjoint(built, tested, "runs"),
        prompts=findings.constant_prompts(log.manifest),
        grader="Submissions are graded by the competitions' own graders, whose digests are held.",
        orders=findings.enough_orders(len(seeds), "seed"),
        budgets="There is one room for recalled text, the same in all conditions.",
        utility="Memory is written while a run goes on, so that there is no frozen bank.",
        replicates=[
            _control(f"A/A: {name}", name, searches, found, wrong="either") for name in roles.reruns
        ]
        or (findings.halves(f"{searches.baseline}, bug rate", bare, roles.margin),),
        reading=_read_backwards(searches, found),
        controls=[
            _control(f"{name} does not help", name, searches, found, wrong="better")
            for name in roles.placebos
        ]
        or "The plan has no placebo.",
        own=(equal_lengths(searches),) if searches.kind == TREE else (),
    )


def _read_backwards(searches: Searches, found: Sequence[MeasureContrast]) -> Gate:
    """Check that no difference depends on the order in which runs are read."""
    backwards = replace(searches, done=searches.done[::-1], planned=searches.planned[::-1])
    by = measured(backwards)
    forward: dict[str, float | None] = {}
    again: dict[str, float | None] = {}
    for each in found:
        if each.in_family:
            name = f"{each.condition} {each.measure.label}"
            values = by[each.measure.name].differences(each.condition)
            matrix = matrix_of({at: v for at, v in values.items() if v is not None})
            forward[name] = None if each.estimate is None else each.estimate.value
            again[name] = None if matrix is None else float(matrix.mean())
    return verdicts.alike("Order of reading", forward, again)


def completeness(searches: Searches) -> Gate:
    """Check that every planned search ended, and every bank is made; losses are named by condition."""
    done = Counter(search.spec.name for search in searches.done)
    lost: dict[str, list[str]] = {}
    for spec in searches.planned:
        if not done[spec.name]:
            lost.setdefault(condition_of(spec), []).append(spec.name)
    detail = (
        f"{len(searches.done)} of {len(searches.planned)} {RUNS[searches.kind][1]} ended;"
        f" {searches.builds_done} of {len(searches.builds)} banks are made."
    )
    if twice := [name for name, count in done.items() if count > 1]:
        return Gate("Completeness", "failed", f"{detail} Not exactly once: {twice[0]}.")
    missing = [f"{name} {len(runs)}, such as {runs[0]}" for name, runs in lost.items()]
    return verdicts.completeness(detail, missing)


def equal_lengths(searches: Searches) -> Gate:
    """Check that paired searches have equally many steps, without which totals do not compare."""
    name = "Equal lengths"
    steps: dict[tuple[str, int], set[int]] = {}
    for each in searches.done:
        steps.setdefault(each.pair, set()).add(each.behavior.steps)
    if not steps:
        return Gate(name, "open", "No search ended yet.")
    unequal = [f"{task}, seed {seed}" for (task, seed), found in steps.items() if len(found) > 1]
    if not unequal:
        return Gate(name, "passed", f"Equally many steps within each of {len(steps)} pairings.")
    named = "; ".join(unequal[:NAMED])
    return Gate(name, "failed", f"Steps differ in {len(unequal)} of {len(steps)}: {named}.")


def _control(
    name: str,
    condition: str,
    searches: Searches,
    found: Sequence[MeasureContrast],
    *,
    wrong: Literal["better", "either"],
) -> Gate:
    """Check that a control is equivalent to no memory, or at least does not help.

    Each measure is tested on these competitions with other seeds where that is possible, which
    is the sharper test. A difference fails the gate, by Bonferroni, as one false alarm in the gate is one
    too many; it is passed where rates are equivalent within the plan's margin (two one-sided tests),
    or the same in every pair.
    """
    own = [each for each in found if each.condition == condition and each.measure.name in WATCHED]
    known = [(each, each.sharpest) for each in own if each.sharpest is not None]
    if not known:
        return Gate(
            name, "open", "The plan has no such condition, or nothing to pair it with ended yet."
        )
    told = "; ".join(
        f"{each.measure.label} {measured_change(estimate, each.measure, runs='seeds')}, n = {each.pairs}"
        for each, estimate in known
    )
    if not all(each.complete for each in own):
        return Gate(name, "open", f"{told}. Incomplete.")
    bad = [
        each.measure.label
        for each, estimate in known
        if estimate.p * len(known) < SIGNIFICANCE
        and (wrong == "either" or each.measure.improves(estimate))
    ]
    if bad:
        return Gate(name, "failed", f"{told}. Beyond chance: {', '.join(bad)}.")
    margin = searches.roles.margin
    loose = [
        each.measure.label
        for each, estimate in known
        if each.measure.name in RATES
        and not (estimate.method == "exact" and not estimate.value)
        and estimate.p_beyond(margin) >= SIGNIFICANCE
    ]
    if loose:
        words = f"Not shown to be equivalent within ±{100 * margin:.0f} points: {', '.join(loose)}."
        return Gate(name, "open", f"{told}. {words}")
    return Gate(name, "passed", f"{told}. Equivalent within ±{100 * margin:.0f} points.")
