"""Published figures of continual-memory, recomputed: what comes out of the others, what does not.

`docs/published-continual.md` sets them beside our definitions.
"""

import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from langgraft.benchmarks.published import (
    ROLES,
    Backward,
    Family,
    Finding,
    Forward,
    Place,
    Role,
    Task,
    World,
    continual_memory,
)
from langgraft.benchmarks.reporting.words import change

PAPER: Final = continual_memory()
_COLLAPSE: Final = PAPER.appendix_d.collapse
TASKS: Final[tuple[Task, ...]] = ("A", "B")
RUNS, TEST_ITEMS = PAPER.table_8.runs, PAPER.table_8.test_items


@cache
def findings() -> tuple[Finding, ...]:
    """Recompute the published figures, in the paper's order."""
    return (
        *table_2(),
        *tables_3_and_5(),
        *tables_4_and_6(),
        *beyond_baseline(),
        *appendix_c(),
        *appendix_d(),
        *figure_13(),
    )


_TINY = 1e-9
_HALF_DIGIT = 0.05
"""Figures are printed with one digit after the point."""


def counted(value: int) -> str:
    """Write a difference of counts with its sign."""
    return change(value, 0)


def named(place: Place) -> str:
    """Name a row: world, sequence, condition."""
    sequence, world, role = place
    return f"{world}, {sequence.replace('>', '→')}, {ROLES[role]}"


def tested_on(world: World, task: str) -> str:
    """Name a task."""
    return f"{world}, task {task}"


def count_behind(printed: float, items: int) -> int | None:
    """Return the count of episodes that a printed change of some items' success can come from.

    Args:
        printed: In percentage points, with one digit.
        items: Episodes it is of: test items by runs.

    Returns:
        The count, or `None` where no whole number prints so.
    """
    whole = round(printed * items / 100)
    near = (count for count in (whole - 1, whole, whole + 1) if prints(count, items, printed))
    return next(near, None)


def prints(count: int, items: int, printed: float) -> bool:
    """Say whether a count of some items prints so, in percent with one digit."""
    return abs(100 * count / items - printed) <= _HALF_DIGIT + _TINY


def tested(sequence: str, direction: str) -> Task:
    """Return the task that a transfer is measured on: forward the later one, backward the other."""
    name = sequence[-1] if direction == "forward" else sequence[0]
    return "A" if name == "A" else "B"


def scratch(world: World, task: Task, role: Role) -> float:
    """Return success within a task, from Tables 3 and 5."""
    found = {**PAPER.table_3, **PAPER.table_5}
    return found["A>B" if task == "B" else "B>A", world, role].scratch


EPISODES = RUNS * TEST_ITEMS
"""Episodes behind a success rate."""

_STEP = 100 / EPISODES
_SHORT: Final[Mapping[Role, str]] = {
    "raw": "Raw",
    "agg": "Insight",
    "ind": "Ind",
    "step": "Step",
}
_Z = 1.959964
"""Quantile of an interval of 95 %."""


def table_2() -> Iterator[Finding]:
    """Hold baselines to the subsets they are said to make."""
    for (world, name), task in PAPER.table_2.items():
        told = f"{task.baseline:.0f} %, n_s = {task.solved}, n_f = {task.failed}"
        found = f"{task.solved} of {task.solved + task.failed} is {task.baseline:.0f} %"
        fits = task.solved == task.baseline and task.solved + task.failed == TEST_ITEMS
        yield Finding("Table 2", tested_on(world, name), told, found, fits)


def tables_3_and_5() -> Iterator[Finding]:
    """Hold each row to its own parts, and rows that stand in both tables to each other."""
    for section, rows in (("Table 3", PAPER.table_3), ("Table 5", PAPER.table_5)):
        fresh = {
            place: row
            for place, row in rows.items()
            if section == "Table 3" or place not in PAPER.table_3
        }
        for place, row in fresh.items():
            yield _difference(section, place, row)
            yield _weighted(section, place, row)
    same = sum(
        PAPER.table_3[place] == row
        for place, row in PAPER.table_5.items()
        if place in PAPER.table_3
    )
    both = sum(place in PAPER.table_3 for place in PAPER.table_5)
    text = f"{same} of {both} rows are equal in both tables"
    yield Finding("Table 5", "Insight and Cond-Agg, forward", "one condition", text, same == both)
    whole = [
        rate / _STEP
        for row in (*PAPER.table_3.values(), *PAPER.table_5.values())
        for rate in (row.scratch, row.crossed)
    ]
    fit = sum(rate.is_integer() for rate in whole)
    yield Finding(
        "Table 5",
        "success rates, Tables 3 and 5",
        f"{RUNS} runs of {TEST_ITEMS} items",
        f"{fit} of {len(whole)} are whole episodes of {EPISODES}",
        fit == len(whole),
    )
    yield _told_apart()


def _difference(section: str, place: Place, row: Forward) -> Finding:
    found = row.crossed - row.scratch
    half = 100 * half_width(row)
    text = f"{row.crossed:.1f} less {row.scratch:.1f} is {change(found)}; ± {half:.1f} if unpaired"
    return Finding(
        section, f"{named(place)}, FWT", change(row.transfer), text, found == row.transfer
    )


def half_width(row: Forward) -> float:
    """Return half an interval of 95 % of a difference, as if all episodes were independent."""
    rates = (row.scratch / 100, row.crossed / 100)
    return _Z * math.sqrt(sum(p * (1 - p) / EPISODES for p in rates))


def _told_apart() -> Finding:
    rows = {**PAPER.table_3, **PAPER.table_5}
    beyond = [place for place, row in rows.items() if abs(row.transfer) > 100 * half_width(row)]
    names = "; ".join(f"{named(place)} ({change(rows[place].transfer)})" for place in beyond)
    text = f"{len(beyond)} of {len(rows)} differ from zero if unpaired: {names}"
    return Finding("Table 5", "which FWT can be told from chance", "no interval", text, None)


def subset(place: Place, direction: str) -> Family:
    """Return the family that a row is tested on."""
    return PAPER.table_2[place[1], tested(place[0], direction)]


def _weighted(section: str, place: Place, row: Forward) -> Finding:
    """Hold FWT to its sum over easy and hard items, in whole episodes."""
    task = subset(place, "forward")
    easy = count_behind(row.delta_rr, RUNS * task.solved)
    all_of = round(row.transfer / _STEP)
    name = f"{named(place)}, ΔRR and ΔNL"
    told = "≈0" if row.about else change(row.delta_rr)
    printed = f"{told}, {'left out' if row.delta_nl is None else change(row.delta_nl)}"
    if row.delta_nl is None:
        text, fits = _left_out(easy, all_of, task)
        return Finding(section, name, printed, text, fits)
    total = (task.solved * row.delta_rr + task.failed * row.delta_nl) / TEST_ITEMS
    hard = count_behind(row.delta_nl, RUNS * task.failed)
    weighted = f"weighted {change(total, 2)}"
    if easy is not None and hard is not None and easy + hard == all_of:
        text = f"{weighted}: {counted(easy)} of {RUNS * task.solved}, {counted(hard)} of {RUNS * task.failed}"
        return Finding(section, name, printed, text, True)
    why = (
        f"no count of {RUNS * task.failed}"
        if hard is None
        else f"FWT needs {_needed(row, hard, task)}"
    )
    return Finding(section, name, printed, f"{weighted}; {why}", False)


def _needed(row: Forward, hard: int, task: Family) -> str:
    """Say which ΔRR would make FWT, with the ΔNL that is printed."""
    easy = round(row.transfer / _STEP) - hard
    items = RUNS * task.solved
    return f"ΔRR {change(100 * easy / items)}: {counted(easy)} of {items}"


def _left_out(easy: int | None, all_of: int, task: Family) -> tuple[str, bool]:
    """Work out the ΔNL that is not printed, and say whether the ΔRR that is can be had."""
    if easy is None:
        return f"no count of {RUNS * task.solved}", False
    hard, items = all_of - easy, RUNS * task.failed
    delta = change(100 * hard / items)
    told = (
        f"{counted(easy)} of {RUNS * task.solved}; leaves {counted(hard)} of {items}, ΔNL {delta}"
    )
    return told, True


def beyond_baseline() -> Iterator[Finding]:
    """Hold memory to none at all, within a task: what transfer does not say."""
    for (world, name), task in PAPER.table_2.items():
        parts = [
            f"{_SHORT[role]} {change(scratch(world, name, role) - task.baseline)}" for role in ROLES
        ]
        text = f"less the baseline's {task.baseline:.0f}: {', '.join(parts)}"
        yield Finding("Within a task", tested_on(world, name), "no comparison", text, None)


def tables_4_and_6() -> Iterator[Finding]:
    """Hold each cell to counts, and cells that stand in both tables to each other."""
    for section, rows in (("Table 4", PAPER.table_4), ("Table 6", PAPER.table_6)):
        for place, row in rows.items():
            if section == "Table 4" or place not in PAPER.table_4:
                yield _counts(section, place, row)
    for place, row in PAPER.table_6.items():
        if place in PAPER.table_4:
            other = PAPER.table_4[place]
            told = f"{_both(other)} and {_both(row)}"
            text = "equal" if row == other else "differ, though the condition is one"
            yield Finding("Table 6", f"{named(place)}, in Tables 4 and 6", told, text, row == other)


def _both(row: Backward) -> str:
    return f"{change(row.transfer)} (ΔRR {change(row.delta_rr)})"


def _counts(section: str, place: Place, row: Backward) -> Finding:
    """Say what success after the sequence is, and which ΔNL is left."""
    task = subset(place, "backward")
    sequence, world, role = place
    after = scratch(world, tested(sequence, "backward"), role) + row.transfer
    easy = count_behind(row.delta_rr, RUNS * task.solved)
    items = RUNS * task.failed
    text = f"success {after:.1f}; "
    if easy is None:
        text += f"ΔRR is no count of {RUNS * task.solved}"
    else:
        hard = round(row.transfer * EPISODES / 100) - easy
        text += (
            f"{counted(easy)} of {RUNS * task.solved}, leaves {counted(hard)} of {items}:"
            f" ΔNL {change(100 * hard / items)}"
        )
    return Finding(section, f"{named(place)}, BWT", _both(row), text, easy is not None)


TOP_K = 3
"""Items per retrieval of Cond-Ind, Table 8."""

LESSONS = 3
"""Lessons per episode, about (§A.1.4)."""


def appendix_c() -> Iterator[Finding]:
    """Hold what the text repeats to Table 5."""
    for (world, task, role), printed in PAPER.appendix_c.scratch.items():
        found = scratch(world, task, role)
        name = f"{tested_on(world, task)}, {role}"
        yield Finding(
            "Appendix C", name, f"{printed:.1f}", f"Table 5: {found:.1f}", found == printed
        )
    lead = scratch("ALFWorld", "B", "step") - scratch("ALFWorld", "B", "ind")
    text = f"difference {change(lead)}"
    yield Finding(
        "Appendix C",
        "Step over Ind, ALFWorld B",
        change(PAPER.appendix_c.step_lead),
        text,
        lead == PAPER.appendix_c.step_lead,
    )
    for task in TASKS:
        ind, step, agg = (scratch("BabyAI", task, role) for role in ("ind", "step", "agg"))
        text = f"Ind {ind:.1f}, Step {step:.1f}, Agg {agg:.1f}"
        holds = min(ind, agg) < step < max(ind, agg)
        yield Finding(
            "Appendix C", f"{tested_on('BabyAI', task)}, Step", "between Ind and Agg", text, holds
        )


def appendix_d() -> Iterator[Finding]:
    """Hold the collapse of Cond-Ind on task B of BabyAI to itself."""
    unique, retrieved = _COLLAPSE.unique, _COLLAPSE.retrieved
    share = 100 * unique / retrieved
    yield Finding(
        "Appendix D",
        "coverage, Figure 11b",
        f"{unique:.0f} of {retrieved:.0f}, {_COLLAPSE.coverage} %",
        f"{share:.2f} %",
        abs(share - _COLLAPSE.coverage) <= _HALF_DIGIT,
    )
    slots = TOP_K * _COLLAPSE.queries
    text = f"{_COLLAPSE.queries:.0f} queries of {TOP_K} items are {slots:.0f}; {retrieved / TOP_K:.0f} queries fit"
    yield Finding("Appendix D", "items retrieved", f"{retrieved:.0f}", text, slots == retrieved)
    pool = LESSONS * PAPER.table_8.train_items
    text = f"{PAPER.table_8.train_items} episodes of about {LESSONS} lessons are {pool}"
    yield Finding("Appendix D", "or items in the bank", f"{retrieved:.0f}", text, pool == retrieved)
    yield from _top1()
    yield from _loss()
    ind, agg = (PAPER.appendix_d.context_diversity["B", role] for role in ("ind", "agg"))
    text = f"less by {agg - ind:.2f}; in task A more by {PAPER.appendix_d.context_diversity['A', 'ind'] - PAPER.appendix_d.context_diversity['A', 'agg']:.2f}"
    yield Finding(
        "Appendix D", "context diversity of B, Ind and Agg", f"{ind} and {agg}", text, ind < agg
    )


def _top1() -> Iterator[Finding]:
    queries, printed = _COLLAPSE.queries, _COLLAPSE.top1
    for asked in (queries, _COLLAPSE.retrieved / TOP_K):
        whole = printed * asked / 100
        text = f"{whole:.1f} of {asked:.0f} queries"
        yield Finding("Appendix D", "top-1 concentration", f"{printed} %", text, whole.is_integer())
    share = 100 * _COLLAPSE.top1_queries / queries
    told = f"{_COLLAPSE.top1_queries:.0f} of {queries:.0f}"
    text = f"{share:.1f} %, not {printed} %"
    yield Finding("Appendix F", "top-1 entry of case 4", told, text, share == printed)


def _loss() -> Iterator[Finding]:
    ind, agg = (scratch("BabyAI", "B", role) for role in ("ind", "agg"))
    for name, base in (("Cond-Agg", agg), ("the baseline", PAPER.table_2["BabyAI", "B"].baseline)):
        text = f"{ind:.1f} less {base:.1f} is {change(ind - base)}"
        loss = _COLLAPSE.loss
        yield Finding(
            "Appendix D",
            f"loss within task B, against {name}",
            change(loss, 0),
            text,
            ind - base == loss,
        )


def figure_13() -> Iterator[Finding]:
    """Hold the dynamics of RR and NL to the evaluations there are."""
    text = f"{PAPER.table_8.milestones} evaluation a phase (Table 8) is one point"
    yield Finding("Figure 13", "RR and NL over training", "curves", text, False)
