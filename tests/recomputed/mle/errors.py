"""Tables 7 and 9 and appendix B: errors that recur, late errors, and similarities."""

import math
from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.published import Finding
from langgraft.benchmarks.reporting.words import number
from recomputed.mle.forms import LITE, PAPER, SEEDS, prints, sign_test, t_tail

_RUNS: Final = SEEDS["OpenHands"]

_TOLD: Final = PAPER.appendix_b

_BIGGEST: Final = 2


def table_7() -> Iterator[Finding]:
    """Yield what comes of Table 7."""
    base, memory = zip(*PAPER.table_7.values(), strict=True)
    wins, losses, ties, p = sign_test(PAPER.table_7.values())
    counts = [sum(_runs(share) for share in column) for column in (base, memory)]
    yield Finding(
        "Table 7",
        "shares of all tasks added up",
        "",
        f"{number(math.fsum(base))} without memory, {number(math.fsum(memory))} with it:"
        f" {counts[0]} and {counts[1]} of {LITE * _RUNS} runs",
        holds=None,
    )
    yield Finding(
        "Table 7",
        "tasks by direction",
        "",
        f"{wins} better with memory, {losses} worse, {ties} same of those listed; sign test"
        f" p = {number(p)}",
        holds=None,
    )


def _runs(share: float) -> int:
    """Return of how many of three runs a printed share is."""
    return round(share * _RUNS)


def thirds() -> tuple[tuple[int, int], ...]:
    """Return the late errors of a task's three runs together, which Table 9's means leave."""
    return tuple(
        (round(base * _RUNS), round(memory * _RUNS)) for base, memory, _ in PAPER.table_9.values()
    )


def table_9() -> Iterator[Finding]:
    """Yield what comes of Table 9."""
    yield _whole()
    wins, losses, ties, p = sign_test(thirds())
    yield Finding(
        "Table 9",
        "tasks with fewer late errors",
        f"{_TOLD.fewer} of {LITE}",
        f"{wins} fewer, {losses} more, {ties} same: sign test p = {number(p)}",
        wins == _TOLD.fewer,
    )
    yield _totals()
    yield from _largest()


def _whole() -> Finding:
    right = sum(
        prints(a / _RUNS, before, digits=1)
        and prints(b / _RUNS, after, digits=1)
        and abs((a - b) / _RUNS - change) <= 0.05 + 1e-9
        for (before, after, change), (a, b) in zip(PAPER.table_9.values(), thirds(), strict=True)
    )
    return Finding(
        "Table 9",
        "means of 3 runs and their differences",
        "",
        f"{right} of {LITE} rows are whole numbers of errors by {_RUNS}, and their difference",
        right == LITE,
    )


def _totals() -> Finding:
    printed = [math.fsum(column) for column in zip(*PAPER.table_9.values(), strict=True)]
    base, memory = (sum(column) for column in zip(*thirds(), strict=True))
    return Finding(
        "Table 9",
        "all tasks added up",
        "",
        f"as printed {number(printed[0], 1)} and {number(printed[1], 1)}, a mean of"
        f" {number(printed[0] / LITE)} without and {number(printed[1] / LITE)} with memory, net"
        f" {number(printed[0] - printed[1], 1, sign=True)}; in whole errors {base} and {memory} of"
        f" {LITE * _RUNS} runs, a mean of {number(base / LITE / _RUNS)} and"
        f" {number(memory / LITE / _RUNS)}",
        holds=None,
    )


def _largest() -> Iterator[Finding]:
    drops = {
        task: (base - memory) / _RUNS
        for task, (base, memory) in zip(PAPER.table_9, thirds(), strict=True)
    }
    ordered = sorted(drops.items(), key=lambda item: -item[1])
    largest, rest = ordered[:_BIGGEST], [drop for _, drop in ordered[_BIGGEST:]]
    names = " and ".join(f"{task} ({number(drop, 1, sign=True)})" for task, drop in largest)
    yield Finding(
        "Table 9",
        "without the two largest drops",
        "",
        f"{names} give {number(math.fsum(drop for _, drop in largest), 1, sign=True)} of"
        f" {number(math.fsum(drops.values()), 1, sign=True)}; the other {len(rest)} have"
        f" {number(math.fsum(rest) / len(rest), sign=True)} in the mean: more errors with memory",
        holds=None,
    )


def appendix_b() -> Iterator[Finding]:
    """Yield what comes of the comparison of similarities."""
    n = (_TOLD.t / _TOLD.d) ** 2
    yield Finding(
        "Appendix B",
        "what the test is over",
        f"t = {number(_TOLD.t)}, d = {number(_TOLD.d)}",
        f"(t / d)² = {number(n, 1)}: pairs of {LITE} tasks",
        round(n) == LITE,
    )
    p = t_tail(_TOLD.t, LITE - 1)
    yield Finding(
        "Appendix B",
        "p value",
        "p < 1e-9",
        f"{LITE - 1} degrees of freedom: p = {p:.0e}",
        p < _TOLD.p,
    )
    yield _spread_of_similarities()
    yield Finding(
        "Appendix B",
        "gap of the mean similarities",
        "2.0 to 4.9 times",
        f"{number(_TOLD.within[0], 3)} / {number(_TOLD.across[0], 3)} = {number(_TOLD.within[0] / _TOLD.across[0], 1)}",
        holds=None,
    )


def _spread_of_similarities() -> Finding:
    """Tell a standard deviation from a standard error by the correlation each would need."""
    gap = (_TOLD.within[0] - _TOLD.across[0]) / _TOLD.d
    needed = []
    for scale in (1.0, math.sqrt(LITE)):
        one, other = (scale * sem for _, sem in (_TOLD.within, _TOLD.across))
        needed.append((one**2 + other**2 - gap**2) / (2 * one * other))
    return Finding(
        "Appendix B",
        "what stands behind ±",
        f"{number(_TOLD.within[0], 3)} ± {number(_TOLD.within[1], 3)},"
        f" {number(_TOLD.across[0], 3)} ± {number(_TOLD.across[1], 3)}",
        f"with d, tasks would be correlated by {number(needed[0], 1)} if it is a standard deviation,"
        f" by {number(needed[1], 1)} if it is an error, which cannot be",
        holds=None,
    )
