"""The verdict: a sentence a memory, the page, the tables, a summary for a pull request."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import JSON
from langgraft.benchmarks.ablation.analysis import Analysis, ArmFound, MemoryFound, analyze
from langgraft.benchmarks.ablation.credit import VARIANTS, credit_json
from langgraft.benchmarks.ablation.experiment import CONDITIONS
from langgraft.benchmarks.ablation.plan import AblationPlan
from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.harness.study import PlanLogReader, Report, is_simulated
from langgraft.benchmarks.reporting.findings import gate_findings, sentence
from langgraft.benchmarks.reporting.pages import check_extra, environment, write_folder
from langgraft.benchmarks.reporting.tables import (
    COLUMNS,
    METRIC,
    PARTS,
    Meanings,
    Number,
    Table,
    contrast_table,
    gate_table,
    metric_fields,
    registered_tables,
    spending_tables,
)
from langgraft.benchmarks.reporting.words import (
    change,
    flat,
    listing,
    number,
    plain,
    points,
    several,
    shortened,
    signed,
)

SIMULATED_NOTICE: Final = "The model is simulated: these numbers say nothing of a language model."
_DIFFERENCE: Final = ("value", "low", "high", "p")
_SIZE: Final = ("n_items", "n_replicates")


def verdict_of(found: MemoryFound) -> str:
    """Say in one sentence whether a memory helps."""
    name = found.name
    if found.word == "not tested":
        return f"{name}: not tested, as nothing was recalled in any attempt."
    told = sentence(found.contrast)
    if found.word in ("helps", "harms"):
        numbers = told.partition(": ")[2]
        return f"{name} {found.word}: {numbers}{_content(found)}"
    return f"{name}: {found.word}. {told}"


def _content(found: MemoryFound) -> str:
    """Say whether a placebo does as much: then it is not what is remembered that helps."""
    estimate = found.against.get("placebo")
    if estimate is None or estimate.low > 0:
        return ""
    return (
        f" But it is not shown to do more than filler of the same length ({points(estimate)} against"
        " the placebo): that it is the content that helps is open."
    )


def sentences(found: Analysis) -> list[str]:
    """Say what came of it, verdicts first."""
    if found.guard is not None:
        return [guard_sentence(found), gate_findings(found.gates)]
    said = [*found.registration.lines, *map(verdict_of, found.memories)]
    said += [_apart(each) for each in found.memories if each.transitions is not None]
    said += [_treated(each) for each in found.memories]
    said += [_uptake(each) for each in found.memories if each.credits]
    said.append(gate_findings(found.gates))
    said += [f"{each.name}: {each.detail}" for each in found.gates if each.state == "failed"]
    return said


def guard_sentence(found: Analysis) -> str:
    """Say how a change stands against what was there."""
    decision = found.guard
    assert decision is not None
    after = f"after {several(decision.pairs, 'pair')} of task and replicate"
    mean = f"{signed(decision.difference)} points on these"
    margin = f"{100 * found.plan.margin:.0f} points"
    match decision.verdict:
        case "regressed":
            return f"Regressed: the change loses about {margin} or more, {after} ({mean})."
        case "passed":
            return f"Passed: no loss of {margin}, {after} ({mean})."
        case _:
            return f"Open: {after} ({mean}) more are needed."


def _apart(found: MemoryFound) -> str:
    """Tell help and harm apart."""
    seen = found.transitions
    assert seen is not None
    told = (
        f"{found.name}, help and harm apart: {plain(seen.gained.value)} % of attempts were solved with"
        f" it alone and {plain(seen.lost.value)} % without it alone"
    )
    if seen.chance is not None and seen.helped is not None and seen.harmed is not None:
        told += (
            f" ({plain(seen.chance)} % go each way by chance); beyond chance it helps by"
            f" {points(seen.helped).removeprefix('+')} and harms by {points(seen.harmed).removeprefix('+')}"
        )
    return (
        f"{told}. {_tasks(found.gained, 'gained')} and {_tasks(found.lost, 'lost')} by most runs."
    )


def _tasks(count: int, verb: str) -> str:
    return f"{several(count, 'task')} {'was' if count == 1 else 'were'} {verb}"


def _treated(found: MemoryFound) -> str:
    attempts = len(found.found.attempts)
    if found.treated is None:
        return f"{found.name} recalled nothing in {attempts:,} attempts."
    return (
        f"{found.name} recalled something in {found.treated_pairs:,} of {attempts:,} attempts; in these"
        f" alone (as treated) the difference is {points(found.treated)}."
    )


def _uptake(found: MemoryFound) -> str:
    counts = {
        word: [each.id for each in found.credits if each.verdict == word]
        for word in ("helps", "harms", "ignored", "no effect seen", "not tried")
    }
    told = [f"{len(ids)} {word}" for word, ids in counts.items() if ids]
    replays = sum(each.replays for each in found.credits)
    return f"Items of {found.name}, by {several(replays, 'attempt')} with one left out: {listing(told)}."


# Written ------------------------------------------------------------------------------------


HEADINGS: Final = (
    *("condition", "success, %", "difference, pp", "verdict"),
    *("tokens sent", "replied"),
)
"""What `rows_of` shows of each condition; tokens are means of an attempt."""


def write_report(plan: AblationPlan, log: PlanLogReader, out: Path) -> Report:
    """Write the verdict page and its tables.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    check_extra()
    found, simulated = analyze(plan, log), is_simulated(plan, log)
    tables = tables_of(found)
    page = write_folder(
        out,
        tables=(*tables, MEANINGS.table(tables)),
        figures={},
        page=render(found, simulated=simulated),
    )
    notice = (SIMULATED_NOTICE,) if simulated else ()
    return Report(
        page, title_of(plan), HEADINGS, tuple(rows_of(found)), (*notice, *sentences(found))
    )


def title_of(plan: AblationPlan) -> str:
    """Return the page's title."""
    if plan.title:
        return plan.title
    return "Did the change regress?" if plan.guard else "Does memory help this agent?"


def _short(found: Estimate) -> str:
    return f"{signed(found.value)} [{signed(found.low)}, {signed(found.high)}]"


def rows_of(found: Analysis) -> Iterator[tuple[str, ...]]:
    """Yield what a terminal shows of each condition."""
    words = {each.name: each.word for each in found.memories}
    for each in found.arms:
        name = each.arm.name
        contrast = None
        if found.comparison is not None and name != "none":
            contrast = found.comparison[name]
        estimate = None if contrast is None else contrast.estimate
        yield (
            name,
            plain(each.mean("score")),
            "" if estimate is None else _short(estimate),
            words.get(name, ""),
            number(each.mean("prompt_tokens"), 0),
            number(each.mean("completion_tokens"), 0),
        )


def _difference(name: str) -> Number:
    def fields(found: Estimate) -> tuple[float | int, ...]:
        shown = (100 * found.value, 100 * found.low, 100 * found.high, found.p)
        return (*shown, found.n_items, found.n_replicates)

    return Number(name, (*_DIFFERENCE, *_SIZE), fields)


def tables_of(found: Analysis) -> tuple[Table, ...]:
    """Return every number as tables."""
    gates = gate_table(found.gates)
    if found.comparison is None:
        return (gates,)
    memories = found.memories
    arms = Table.of(
        "conditions",
        (
            *("condition", Number("success", METRIC, metric_fields), "attempts", "recalled"),
            *("memory_tokens", "replies", "prompt_tokens", "completion_tokens", "errors"),
        ),
        (_arm_row(found, each) for each in found.arms),
    )
    parts = Table.of(
        "help_and_harm",
        (
            *("condition", _difference("gained"), _difference("lost"), "chance"),
            *(_difference("helped"), _difference("harmed"), _difference("as_treated")),
            *("treated_pairs", "verdict"),
        ),
        (_parts_row(each) for each in memories),
    )
    splits = Table.of(
        "splits",
        (
            *("condition", "split_by", "group", "pairs", _difference("difference"), "p_holm"),
            *("gained", "lost"),
        ),
        (
            (
                *(each.name, by, s.name, s.pairs, s.difference, s.p_adjusted),
                *(100 * s.gained, 100 * s.lost),
            )
            for each in memories
            for by, some in (("kind", each.by_kind), ("recall", each.by_recall))
            for s in some
        ),
    )
    against = Table.of(
        "against_controls",
        ("condition", "control", _difference("difference")),
        ((each.name, name, e) for each in memories for name, e in each.against.items()),
    )
    credit = Table.of(
        "item_credit",
        ("condition", "item", "verdict", "credit", "error", "uses", "replays", "changed"),
        (
            (
                *(each.name, c.id, c.verdict, c.credit, c.error if c.lost else None),
                *(c.uses, c.replays, c.changed),
            )
            for each in memories
            for c in each.credits
        ),
    )
    harm = Table.of(
        "harm_suite",
        ("condition", "variant", "pairs", "as_is", "success", _difference("difference")),
        (
            (h.memory, h.variant, h.pairs, 100 * h.as_is, 100 * h.success, h.difference)
            for h in found.harm
        ),
    )
    harm_items = Table(
        "harm_items",
        ("condition", "item", "as_is", *VARIANTS),
        tuple(
            (*at, by.get("as is"), *(by.get(variant) for variant in VARIANTS))
            for at, by in found.harm_items.items()
        ),
    )
    return (
        *registered_tables(found.registration),
        *(arms, contrast_table(found.comparison), parts, splits, against),
        *(credit, harm, harm_items, gates),
        *spending_tables(found.spent),
    )


def _arm_row(found: Analysis, each: ArmFound) -> tuple[Any, ...]:
    assert found.comparison is not None
    name = each.arm.name
    some = next(iter((*found.comparison.family, *found.comparison.beside)), None)
    if name == "none":
        success = None if some is None else some.baseline
    else:
        success = found.comparison[name].success
    return (
        *(name, success, len(each.attempts), each.recalled, each.mean("tokens")),
        *(each.mean("replies"), each.mean("prompt_tokens"), each.mean("completion_tokens")),
        each.errors.total(),
    )


def _parts_row(each: MemoryFound) -> tuple[Any, ...]:
    seen = each.transitions
    parts: tuple[Any, ...] = (None,) * 5
    if seen is not None:
        chance = None if seen.chance is None else 100 * seen.chance
        parts = (seen.gained, seen.lost, chance, seen.helped, seen.harmed)
    return (each.name, *parts, each.treated, each.treated_pairs, each.word)


MEANINGS: Final = Meanings(
    {
        **COLUMNS,
        "condition": "what the agent was given",
        "success": "mean score, percent",
        "attempts": "attempts with a result",
        "recalled": "attempts in which something was recalled",
        "memory_tokens": "mean tokens of the recalled block in an attempt",
        "replies": "mean model replies an attempt took",
        "prompt_tokens": "mean tokens sent in an attempt, as the model's provider counts them",
        "completion_tokens": "mean tokens replied in an attempt",
        "errors": "attempts that ended in an error of the agent, scored 0",
        "gained": "share of pairs that failed without memory and succeeded with it, percent",
        "lost": "share of pairs that succeeded without memory and failed with it, percent",
        "chance": "share of pairs that go either way between two samples without memory, percent",
        "helped": "mean gain of tasks that gain beyond chance, points",
        "harmed": "mean loss of tasks that lose beyond chance, points",
        "as_treated": "difference where something was recalled, points",
        "treated_pairs": "attempts in which something was recalled",
        "split_by": "kind: of task; recall: what was recalled",
        "group": "which kind, or what was recalled",
        "pairs": "pairs of task and run",
        "difference": "difference, percentage points",
        "control": "what the memory is compared with",
        "item": "the item's id in the bank",
        "credit": "mean change of the score that the item makes, 0 to 1",
        "error": "standard error of the credit",
        "uses": "attempts in which the item was recalled",
        "replays": "attempts made once more without it",
        "changed": "of these, attempts with another answer",
        "variant": "what became of the item recalled first",
        "as_is": "mean score with the item as it is",
        **{name: f"mean score with the item {name}, 0 to 1" for name in VARIANTS},
        "verdict": "helps, harms, no detectable difference, cannot tell or not tested; of an item: helps,"
        " harms, ignored, no effect seen or not tried",
    },
    {**PARTS, "p": "two-sided p value, uncorrected"},
)


def render(found: Analysis, *, simulated: bool) -> str:
    """Return the page as HTML."""
    page: str = (
        environment(__package__ or "", points=points, change=change, shortened=shortened)
        .get_template("verdict.html.jinja")
        .render(
            title=title_of(found.plan),
            plan=found.plan,
            a=found,
            simulated=simulated,
            sentences=sentences(found)[len(found.registration.lines) :],
            conditions=CONDITIONS,
            variants=tuple(VARIANTS),
            provenance=flat(dict(found.manifest)),
            settings=flat(found.plan.model_dump(mode="json")),
        )
    )
    return page


def summary(found: Analysis, *, simulated: bool, page: Path | None = None) -> str:
    """Return the verdict as GitHub-flavored Markdown, for a comment on a pull request."""
    lines = [f"### {_escaped(title_of(found.plan))}", ""]
    if simulated:
        lines += [f"> {SIMULATED_NOTICE}", ""]
    lines += [f"- {_escaped(each)}" for each in sentences(found)]
    if found.arms:
        lines += ["", f"| {' | '.join(HEADINGS)} |", f"| {' | '.join(['---'] * len(HEADINGS))} |"]
        lines += [f"| {' | '.join(map(_escaped, row))} |" for row in rows_of(found)]
    failed = [gate for gate in found.gates if gate.state in {"failed", "open"}]
    if failed:
        lines += ["", *(f"- **{g.name}** {g.state}: {_escaped(g.detail)}" for g in failed)]
    if page is not None:
        lines += ["", f"Page: `{page}`"]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    for sign in "\\`*_[]<>|~#&":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def to_json(found: Analysis, *, simulated: bool) -> dict[str, JSON]:
    """Return the verdict as JSON; what is infinite or missing is `None`."""
    verdicts: dict[str, JSON] = {
        each.name: {
            "verdict": each.word,
            "sentence": verdict_of(each),
            "difference": _number_json(each.contrast.estimate),
            "as_treated": _number_json(each.treated),
            "gained_tasks": each.gained,
            "lost_tasks": each.lost,
            "credit": [credit_json(c) for c in each.credits],
        }
        for each in found.memories
    }
    guard: JSON = None
    if found.guard is not None:
        guard = {
            "verdict": found.guard.verdict,
            "pairs": found.guard.pairs,
            "difference": found.guard.difference,
        }
    return {
        "simulated": simulated,
        "verdicts": verdicts,
        "guard": guard,
        "gates": [{"name": g.name, "state": g.state, "detail": g.detail} for g in found.gates],
    }


def _number_json(estimate: Estimate | None) -> JSON:
    if estimate is None:
        return None
    low, high = estimate.these_orders
    numbers = (estimate.value, estimate.low, estimate.high, low, high, estimate.p)
    names = ("value", "low", "high", "low_orders", "high_orders", "p")
    told: Mapping[str, JSON] = {
        name: each if math.isfinite(each) else None
        for name, each in zip(names, numbers, strict=True)
    }
    return {**told, "tasks": estimate.n_items, "replicates": estimate.n_replicates}
