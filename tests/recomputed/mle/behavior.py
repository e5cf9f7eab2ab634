"""Tables 2, 3 and 6, Figure 3 and §4.3 to 4.4: differences, their units, and what bounds them."""

import math
from collections.abc import Iterator, Mapping
from typing import Final

from langgraft.benchmarks.published import Cell, Finding
from langgraft.benchmarks.reporting.words import MINUS, TIMES, number
from langgraft.environments.competitions.registry import Registry
from recomputed.mle.forms import (
    LITE,
    PAPER,
    SEEDS,
    STEPS,
    difference,
    digits_of,
    is_difference,
    t_tail,
)
from recomputed.mle.timelines import RUNS

_DRAFTS: Final = PAPER.table_6["drafts"]
_SECONDS: Final = PAPER.table_6["execution_seconds"]
_HOURS: Final = PAPER.section_4_1["budget_hours"]
_R: Final = PAPER.section_4_3["r"]
_UP: Final = int(PAPER.section_4_3["up"])
_DOWN: Final = int(PAPER.section_4_3["down"])
_FEWER_BUGS: Final = PAPER.section_4_3["fewer_bugs"]

UNITS: Final = {
    "bug rate": "points",
    "N_eff": "categories",
    "first valid node": "steps",
    "valid code distance": "points",
    "N_eff (tool)": "categories",
    "N_eff (command)": "categories",
    "N_eff (ops)": "categories",
}
"""What differences of Tables 2 and 3 are counted in."""

_CALLED_REGRESSION: Final = "tabular-playground-series-may-2022"
"""Table 8: of the group whose losses Figure 3 transforms."""

_UNSAID: Final = frozenset({"N_eff (ops)"})
"""What the text leaves out."""

_FRACTIONS: Final = frozenset({"valid code distance"})
"""Measures of Tables 2 and 3 whose means are percent and whose differences are fractions."""


def table_2() -> Iterator[Finding]:
    """Yield what comes of Table 2."""
    yield from _differences("Table 2", PAPER.table_2)
    yield _drafts()


def table_3() -> Iterator[Finding]:
    """Yield what comes of Table 3."""
    yield from _differences("Table 3", PAPER.table_3)
    yield from _independent()
    yield from _empty()
    yield _lengths()


def section_4_4() -> Iterator[Finding]:
    """Yield what the text makes of the differences of both tables: it adds percent signs."""
    for agent, rows in (("AIDE", PAPER.table_2), ("OpenHands", PAPER.table_3)):
        for name, (before, after, printed) in rows.items():
            if name in _UNSAID:
                continue
            change = after[0] - before[0]
            relative = 100 * change / before[0]
            yield Finding(
                "§4.4",
                f"{agent}, {name}",
                f"{_delta(printed)} %",
                f"{number(change, sign=True)} {UNITS[name]}; relative"
                f" {number(relative, 1, sign=True)} %",
                UNITS[name] == "points" and is_difference(before[0], after[0], printed),
            )


def _differences(section: str, rows: Mapping[str, tuple[Cell, Cell, str]]) -> Iterator[Finding]:
    for name, ((before, _), (after, _), printed) in rows.items():
        scale = 0.01 if name in _FRACTIONS else 1.0
        found = f"{number(after)} {MINUS} {number(before)} = {number(after - before, sign=True)}"
        found = f"{found} {UNITS[name]}"
        if name in _FRACTIONS:
            found = f"{found}, {number(scale * (after - before), sign=True)} as a fraction"
        holds = is_difference(before, after, printed, scale=scale)
        yield Finding(section, f"difference of {name}", _delta(printed), found, holds)


def _delta(printed: str) -> str:
    return number(float(printed), digits_of(printed), sign=True)


def _drafts() -> Finding:
    before, after, _ = PAPER.table_2["first valid node"]
    least = (before[0] - after[0]) / (STEPS - _DRAFTS)
    invalid = [100 - cell[0] for cell in PAPER.table_1.outcomes["AIDE"]["valid"]]
    return Finding(
        "Table 2",
        "first valid node, were drafts written without memory",
        "",
        f"the first {_DRAFTS} of {STEPS} steps are drafts: at least {number(100 * least, 1)} % of"
        f" runs would have to come from no valid node at all to one right after them;"
        f" {number(invalid[0])} % had no valid submission without memory,"
        f" {number(invalid[1])} % with it",
        holds=None,
    )


def _independent() -> Iterator[Finding]:
    n = SEEDS["OpenHands"] * LITE
    for name, (before, after, _) in PAPER.table_3.items():
        found = difference(before, after, n=n)
        zero = "includes" if found.low <= 0 <= found.high else "excludes"
        yield Finding(
            "Table 3",
            f"interval of the difference of {name}",
            "",
            f"95 % [{number(found.low, sign=True)}, {number(found.high, sign=True)}] if the means"
            f" are independent, n = {n}: it {zero} 0",
            holds=None,
        )


def _empty() -> Iterator[Finding]:
    for cell, condition in zip(
        PAPER.table_3["N_eff (ops)"][:2], ("baseline", "memory"), strict=True
    ):
        yield Finding(
            "Table 3",
            f"N_eff (ops), {condition}",
            number(cell[0]),
            f"exp(H) is at least 1: at least {number(100 * (1 - cell[0]), 0)} % of what is averaged"
            " was empty and counted 0",
            holds=None,
        )


def _lengths() -> Finding:
    means = []
    for condition in ("Baseline", "Memory"):
        steps = [run.steps for run in RUNS if run.condition == condition]
        means.append(math.fsum(steps) / len(steps))
    runs = len(RUNS) // 2
    commands = PAPER.table_3["N_eff (command)"]
    return Finding(
        "Table 3",
        "N_eff (command), beside the lengths of runs",
        f"{number(commands[0][0])} and {number(commands[1][0])}",
        f"the {runs} runs that appendix C prints of each have {number(means[0], 1)} and"
        f" {number(means[1], 1)} steps in the mean",
        holds=None,
    )


def section_4_3() -> Iterator[Finding]:
    """Yield what comes of Figure 3 and the text about it."""
    before, after, _ = PAPER.table_2["bug rate"]
    points, relative = before[0] - after[0], 100 * (1 - after[0] / before[0])
    ends = [number(STEPS * cell[0] / 100, 1) for cell in (before, after)]
    yield Finding(
        "Figure 3",
        "reduction of bugs so far",
        f"{number(_FEWER_BUGS, 0)} %",
        f"Table 2 leaves {ends[0]} and {ends[1]} bugs after {STEPS} steps: {number(relative, 1)} %"
        f" fewer; {number(points, 1)} are points of the bug rate",
        round(relative) == _FEWER_BUGS,
    )
    yield Finding(
        "§4.3",
        "tasks that gain and decline",
        f"{_UP} and {_DOWN} of {LITE}",
        f"{LITE - _UP - _DOWN} is neither",
        holds=None,
    )
    yield _correlation()
    yield _direction()


def _correlation() -> Finding:
    t = _R * math.sqrt((LITE - 2) / (1 - _R**2))
    middle, half = math.atanh(_R), 1.959964 / math.sqrt(LITE - 3)
    ends = [number(math.tanh(end), sign=True) for end in (middle - half, middle + half)]
    return Finding(
        "§4.3",
        "correlation of fewer bugs and better metrics",
        f"r = {number(_R)}",
        f"over {LITE} tasks 95 % [{', '.join(ends)}], p = {number(t_tail(t, LITE - 2))}",
        holds=None,
    )


def _direction() -> Finding:
    competition = Registry().get_competition(_CALLED_REGRESSION)
    lower = competition.board.thresholds.lower_is_better
    return Finding(
        "Table 8",
        f"metric group of {_CALLED_REGRESSION}",
        "Regression",
        f"its grader is {competition.grader.name}, {'lower' if lower else 'higher'} is better:"
        " 1 / (1 + loss) would turn it upside down",
        lower,
    )


def table_6() -> Iterator[Finding]:
    """Yield whether the limits of Table 6 and §4.1 fit each other."""
    hours = STEPS * _SECONDS / 3600
    yield Finding(
        "Table 6",
        "AIDE, steps and time of an execution",
        f"{STEPS} {TIMES} {number(_SECONDS, 0)} s within {_HOURS} h",
        f"executions alone may take {number(hours, 0)} h: runs may end before their steps do",
        holds=None,
    )
