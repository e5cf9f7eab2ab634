"""Tables 1 and 5 and §4.2: medals, their standard errors and their differences."""

import math
from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.published import Cell, Finding, Pair
from langgraft.benchmarks.reporting.words import MINUS, TIMES, number
from recomputed.mle.forms import (
    LITE,
    PAPER,
    SEEDS,
    Difference,
    can_be_counts,
    counts_behind,
    difference,
    digits_of,
    is_difference,
    prints,
)

CONDITIONS: Final = ("baseline", "memory")

_MOST_SEEDS: Final = 20
"""Numbers of seeds that are tried where the stated one does not fit."""


def table_1() -> Iterator[Finding]:
    """Yield what comes of Table 1."""
    for agent in ("OpenHands", "MLAB"):
        yield from _seeds(agent)
    yield from _attempts()
    yield from _sums()


def _seeds(agent: str) -> Iterator[Finding]:
    """Yield the counts behind each cell; equal cells once."""
    seen: set[Cell] = {(0.0, 0.0)}
    for measure, pair in PAPER.table_1.outcomes[agent].items():
        for condition, (mean, sem) in zip(CONDITIONS, pair, strict=True):
            if (mean, sem) not in seen:
                seen.add((mean, sem))
                one, none = (
                    counts_behind(mean, sem, units=SEEDS[agent], of=LITE, ddof=ddof)
                    for ddof in (1, 0)
                )
                yield Finding(
                    "Table 1",
                    f"{agent}, {measure}, {condition}",
                    _cell((mean, sem)),
                    f"of {LITE} tasks, {SEEDS[agent]} seeds: ddof = 1 {_listed(one)};"
                    f" ddof = 0 {_listed(none)}",
                    bool(one),
                )


def _attempts() -> Iterator[Finding]:
    """Yield whether the means of AIDE are those of 16 runs of 22 tasks."""
    of = SEEDS["AIDE"] * LITE
    measures = {
        name: pair for name, pair in PAPER.table_1.outcomes["AIDE"].items() if name != "made"
    }
    for index, condition in enumerate(CONDITIONS):
        means = [pair[index][0] for pair in measures.values()]
        counts = [mean * of / 100 for mean in means]
        whole = [prints(100 * round(n) / of, mean) for n, mean in zip(counts, means, strict=True)]
        yield Finding(
            "Table 1",
            f"AIDE, {', '.join(measures)}, {condition}",
            ", ".join(number(mean) for mean in means),
            f"of {SEEDS['AIDE']} {TIMES} {LITE} = {of} attempts: "
            f"{', '.join(number(count) for count in counts)};"
            f" {sum(whole)} of {len(whole)} can be a count",
            all(whole),
        )


def _sums() -> Iterator[Finding]:
    for agent, measures in PAPER.table_1.outcomes.items():
        for index, condition in enumerate(CONDITIONS):
            colors = [measures[color][index][0] for color in ("bronze", "silver", "gold")]
            total, medals = math.fsum(colors), measures["any medal"][index][0]
            yield Finding(
                "Table 1",
                f"{agent}, any medal from its colors, {condition}",
                number(medals),
                f"bronze, silver and gold add up to {number(total)}",
                abs(total - medals) <= 0.015 + 1e-9,
            )


def section_4_2() -> Iterator[Finding]:
    """Yield what memory changed, with the interval that the printed errors leave."""
    for agent, measure, printed in PAPER.section_4_2:
        before, after = PAPER.table_1.outcomes[agent][measure]
        found = difference(before, after, n=SEEDS[agent])
        yield Finding(
            "§4.2",
            f"{agent}, {measure}",
            f"{number(float(printed), digits_of(printed), sign=True)} points",
            f"{number(after[0])} {MINUS} {number(before[0])} = {_change(found)}",
            is_difference(before[0], after[0], printed),
        )


def _change(found: Difference) -> str:
    ends = ", ".join(number(end, 1, sign=True) for end in (found.low, found.high))
    return f"{number(found.value, sign=True)}, 95 % [{ends}] by the printed errors"


def table_5() -> Iterator[Finding]:
    """Yield what comes of Table 5."""
    for agent, modalities in PAPER.table_5.medals.items():
        for modality, (pair, _) in modalities.items():
            for condition, cell in zip(CONDITIONS, pair, strict=True):
                if any(cell):
                    yield _over_tasks(agent, modality, condition, cell)
    yield from _weighted()
    yield _changes()


def _over_tasks(agent: str, modality: str, condition: str, cell: Cell) -> Finding:
    tasks, seeds = PAPER.table_5.tasks[modality], SEEDS[agent]
    fits = {
        ddof: [n for n in range(1, _MOST_SEEDS + 1) if _fits(cell, tasks, n, ddof)]
        for ddof in (0, 1)
    }
    return Finding(
        "Table 5",
        f"{agent}, {modality}, {condition}",
        _cell(cell),
        f"over {tasks} tasks, seeds up to {_MOST_SEEDS} that fit: ddof = 0 {_numbers(fits[0])};"
        f" ddof = 1 {_numbers(fits[1])}",
        seeds in fits[0],
    )


def _fits(cell: Cell, tasks: int, seeds: int, ddof: int) -> bool:
    return can_be_counts(*cell, units=tasks, of=seeds, ddof=ddof)


def _weighted() -> Iterator[Finding]:
    """Yield the mean over tasks that Table 5 leaves, beside that of Table 1."""
    for agent, modalities in PAPER.table_5.medals.items():
        pair: Pair = PAPER.table_1.outcomes[agent]["any medal"]
        for index, condition in enumerate(CONDITIONS):
            total = math.fsum(
                modalities[name][0][index][0] * n for name, n in PAPER.table_5.tasks.items()
            )
            mean = total / sum(PAPER.table_5.tasks.values())
            yield Finding(
                "Table 5",
                f"{agent}, any medal over all tasks, {condition}",
                f"{number(pair[index][0])} (Table 1)",
                f"weighted by tasks: {number(mean)}",
                abs(mean - pair[index][0]) <= 0.01,
            )


def _changes() -> Finding:
    cells = [cell for modalities in PAPER.table_5.medals.values() for cell in modalities.values()]
    right = sum(is_difference(before[0], after[0], told) for (before, after), told in cells)
    down = {
        name: told for name, (_, told) in PAPER.table_5.medals["AIDE"].items() if float(told) < 0
    }
    lost = ", ".join(f"{told.removeprefix('-')} in {name}" for name, told in down.items())
    return Finding(
        "Table 5",
        "the eight differences",
        "absolute and relative",
        f"{right} are differences of the two means, in points; relative ones are not printed."
        f" AIDE loses {lost}",
        right == len(cells),
    )


def _cell(cell: Cell) -> str:
    return f"{number(cell[0])} ± {number(cell[1])}"


def _numbers(found: list[int]) -> str:
    return ", ".join(map(str, found)) or "none"


def _listed(found: list[tuple[int, ...]]) -> str:
    if not found:
        return "none"
    shown = " or ".join(f"({', '.join(map(str, counts))})" for counts in found[:2])
    return f"{shown} and {len(found) - 2} more" if len(found) > 2 else shown
