"""Tables 7 and 9 and appendix B: errors that recur, late errors, and similarities."""

import math
from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.mle.published.forms import Finding, prints, sign_test, t_tail
from langgraft.benchmarks.mle.published.printed import LATE, LITE, RECURRENCE, SEEDS
from langgraft.benchmarks.mle.wording import number

_RUNS: Final = SEEDS["OpenHands"]

_INTRA: Final = (0.032, 0.009)
_CROSS: Final = (0.013, 0.003)
_T: Final = 10.69
_P: Final = 1e-9
_D: Final = 2.28
"""Appendix B: mean similarity ± something within a task and across tasks, and their test."""

_FEWER: Final = 11
"""Tasks with fewer late errors, as appendix B counts them."""

_BIGGEST: Final = 2


def table_7() -> Iterator[Finding]:
    """Yield what comes of Table 7."""
    base, memory = zip(*RECURRENCE.values(), strict=True)
    wins, losses, ties, p = sign_test(RECURRENCE.values())
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
    return tuple((round(base * _RUNS), round(memory * _RUNS)) for base, memory, _ in LATE.values())


def table_9() -> Iterator[Finding]:
    """Yield what comes of Table 9."""
    yield _whole()
    wins, losses, ties, p = sign_test(thirds())
    yield Finding(
        "Table 9",
        "tasks with fewer late errors",
        f"{_FEWER} of {LITE}",
        f"{wins} fewer, {losses} more, {ties} same: sign test p = {number(p)}",
        wins == _FEWER,
    )
    yield _totals()
    yield from _largest()


def _whole() -> Finding:
    right = sum(
        prints(a / _RUNS, before, digits=1)
        and prints(b / _RUNS, after, digits=1)
        and abs((a - b) / _RUNS - change) <= 0.05 + 1e-9
        for (before, after, change), (a, b) in zip(LATE.values(), thirds(), strict=True)
    )
    return Finding(
        "Table 9",
        "means of 3 runs and their differences",
        "",
        f"{right} of {LITE} rows are whole numbers of errors by {_RUNS}, and their difference",
        right == LITE,
    )


def _totals() -> Finding:
    printed = [math.fsum(column) for column in zip(*LATE.values(), strict=True)]
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
        task: (base - memory) / _RUNS for task, (base, memory) in zip(LATE, thirds(), strict=True)
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
    n = (_T / _D) ** 2
    yield Finding(
        "Appendix B",
        "what the test is over",
        f"t = {number(_T)}, d = {number(_D)}",
        f"(t / d)² = {number(n, 1)}: pairs of {LITE} tasks",
        round(n) == LITE,
    )
    p = t_tail(_T, LITE - 1)
    yield Finding(
        "Appendix B", "p value", "p < 1e-9", f"{LITE - 1} degrees of freedom: p = {p:.0e}", p < _P
    )
    yield _spread_of_similarities()
    yield Finding(
        "Appendix B",
        "gap of the mean similarities",
        "2.0 to 4.9 times",
        f"{number(_INTRA[0], 3)} / {number(_CROSS[0], 3)} = {number(_INTRA[0] / _CROSS[0], 1)}",
        holds=None,
    )


def _spread_of_similarities() -> Finding:
    """Tell a standard deviation from a standard error by the correlation each would need."""
    gap = (_INTRA[0] - _CROSS[0]) / _D
    needed = []
    for scale in (1.0, math.sqrt(LITE)):
        one, other = (scale * sem for _, sem in (_INTRA, _CROSS))
        needed.append((one**2 + other**2 - gap**2) / (2 * one * other))
    return Finding(
        "Appendix B",
        "what stands behind ±",
        f"{number(_INTRA[0], 3)} ± {number(_INTRA[1], 3)},"
        f" {number(_CROSS[0], 3)} ± {number(_CROSS[1], 3)}",
        f"with d, tasks would be correlated by {number(needed[0], 1)} if it is a standard deviation,"
        f" by {number(needed[1], 1)} if it is an error, which cannot be",
        holds=None,
    )
