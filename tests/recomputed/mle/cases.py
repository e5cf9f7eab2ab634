"""§4.6: the two tasks that the paper looks into, by their counts."""

from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.published import Finding
from langgraft.benchmarks.reporting.words import number
from recomputed.mle.forms import PAPER, SEEDS, STEPS, prints

_NODES: Final = SEEDS["AIDE"] * STEPS
"""Nodes of a task under one condition."""

_CASES: Final = PAPER.section_4_6


def section_4_6() -> Iterator[Finding]:
    """Yield what comes of both cases."""
    for name, count, printed in _CASES.leaf:
        yield _share(f"leaf, bug rate, {name}", count, _NODES, printed)
    yield _gate()
    for name, rate, sklearn, torch in _CASES.dogs:
        yield _steps(name, rate, sklearn, torch)
    yield _share("dog-breed, entries that are timeouts", *_CASES.entries)
    yield _share("dog-breed, retrievals with timeouts", *_CASES.retrievals)
    yield _entries()
    yield _losses()


def _share(figure: str, count: int, of: int, printed: float) -> Finding:
    return Finding(
        "§4.6",
        figure,
        f"{number(printed, 1)} %",
        f"{number(count, 0)} of {number(of, 0)} are {number(100 * count / of)} %",
        prints(100 * count / of, printed, digits=1),
    )


def _gate() -> Finding:
    (_, base, _), (_, memory, _) = _CASES.leaf
    fits = [
        n for n in range(memory + 1) if prints(100 * n / memory, _CASES.leaf_retrievals, digits=0)
    ]
    return Finding(
        "§4.6",
        "leaf, buggy nodes with a retrieval",
        f"{_CASES.leaf_retrievals} %",
        f"{' or '.join(map(str, fits))} of {memory} buggy nodes with memory ({base} without)",
        bool(fits),
    )


def _failed(rate: float) -> list[int]:
    return [n for n in range(_NODES + 1) if prints(100 * n / _NODES, rate, digits=1)]


def _steps(name: str, rate: float, sklearn: int, torch: int) -> Finding:
    """Hold the steps that import sklearn beside those that succeeded."""
    left = [_NODES - n for n in _failed(rate)]
    return Finding(
        "§4.6",
        f"dog-breed, {name}, sklearn on successful steps",
        str(sklearn),
        f"a bug rate of {number(rate, 1)} % leaves {' or '.join(map(str, left))} of {_NODES} steps:"
        f" as many as import sklearn, so a step counts once; {torch} that import torch are"
        f" {number(100 * torch / sklearn, 0)} % of them",
        sklearn in left,
    )


def _entries() -> Finding:
    _, entries, _ = _CASES.entries
    buggy = [max(_failed(rate)) for _, rate, _, _ in _CASES.dogs]
    return Finding(
        "§4.6",
        "dog-breed, entries of the store",
        number(entries, 0),
        f"{buggy[1]} nodes are buggy with memory and {buggy[0]} without, of {2 * _NODES} in all:"
        " one entry a failure cannot fill the store",
        entries <= sum(buggy),
    )


def _losses() -> Finding:
    losses = [number(1 / score - 1) for score in _CASES.scores]
    return Finding(
        "§4.6",
        "dog-breed, best so far",
        f"{number(_CASES.scores[0], 3)} to {number(_CASES.scores[1], 3)}, which is worse",
        f"of a log-loss that is so only as 1 / (1 + loss): losses of {losses[0]} and {losses[1]}",
        holds=None,
    )
