"""Tables 2, 3 and 5: forward transfer as a difference, as counts, and as a sum over easy and hard."""

import math
from collections.abc import Iterator, Mapping
from typing import Final

from langgraft.benchmarks.continual.published.findings import (
    Finding,
    change,
    count_behind,
    counted,
    named,
    tested_on,
)
from langgraft.benchmarks.continual.published.printed import (
    ABOUT_ZERO,
    ROLES,
    RUNS,
    TABLE_3,
    TABLE_5,
    TASKS,
    TEST_ITEMS,
    Family,
    Forward,
    Place,
    Role,
    scratch,
    tested,
)

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
    for world, tasks in TASKS.items():
        for name, task in tasks.items():
            told = f"{task.baseline:.0f} %, n_s = {task.solved}, n_f = {task.failed}"
            found = f"{task.solved} of {task.solved + task.failed} is {task.baseline:.0f} %"
            fits = task.solved == task.baseline and task.solved + task.failed == TEST_ITEMS
            yield Finding("Table 2", tested_on(world, name), told, found, fits)


def tables_3_and_5() -> Iterator[Finding]:
    """Hold each row to its own parts, and rows that stand in both tables to each other."""
    for section, rows in (("Table 3", TABLE_3), ("Table 5", TABLE_5)):
        fresh = {
            place: row
            for place, row in rows.items()
            if section == "Table 3" or place not in TABLE_3
        }
        for place, row in fresh.items():
            yield _difference(section, place, row)
            yield _weighted(section, place, row)
    same = sum(TABLE_3[place] == row for place, row in TABLE_5.items() if place in TABLE_3)
    both = sum(place in TABLE_3 for place in TABLE_5)
    text = f"{same} of {both} rows are equal in both tables"
    yield Finding("Table 5", "Insight and Cond-Agg, forward", "one condition", text, same == both)
    whole = [
        rate / _STEP
        for row in (*TABLE_3.values(), *TABLE_5.values())
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
    rows = {**TABLE_3, **TABLE_5}
    beyond = [place for place, row in rows.items() if abs(row.transfer) > 100 * half_width(row)]
    names = "; ".join(f"{named(place)} ({change(rows[place].transfer)})" for place in beyond)
    text = f"{len(beyond)} of {len(rows)} differ from zero if unpaired: {names}"
    return Finding("Table 5", "which FWT can be told from chance", "no interval", text, None)


def subset(place: Place, direction: str) -> Family:
    """Return the family that a row is tested on."""
    return TASKS[place[1]][tested(place[0], direction)]


def _weighted(section: str, place: Place, row: Forward) -> Finding:
    """Hold FWT to its sum over easy and hard items, in whole episodes."""
    task = subset(place, "forward")
    easy = count_behind(row.delta_rr, RUNS * task.solved)
    all_of = round(row.transfer / _STEP)
    name = f"{named(place)}, ΔRR and ΔNL"
    told = "≈0" if place == ABOUT_ZERO else change(row.delta_rr)
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
    for world, tasks in TASKS.items():
        for name, task in tasks.items():
            parts = [
                f"{_SHORT[role]} {change(scratch(world, name, role) - task.baseline)}"
                for role in ROLES
            ]
            text = f"less the baseline's {task.baseline:.0f}: {', '.join(parts)}"
            yield Finding("Within a task", tested_on(world, name), "no comparison", text, None)
