"""§4.6: the two tasks that the paper looks into, by their counts."""

from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.mle.published.forms import Finding, prints
from langgraft.benchmarks.mle.published.printed import SEEDS, STEPS
from langgraft.benchmarks.mle.wording import number

_NODES: Final = SEEDS["AIDE"] * STEPS
"""Nodes of a task under one condition."""

_LEAF: Final = (("baseline", 440, 91.7), ("memory", 102, 21.2))
"""Buggy nodes of leaf, and their printed share."""
_LEAF_RETRIEVALS: Final = 74
_DOGS: Final = (("baseline", 39.8, 289, 280), ("memory", 34.6, 314, 107))
"""Bug rate of dog-breed, and successful steps that import sklearn and torch."""
_ENTRIES: Final = (548, 1348, 40.7)
_RETRIEVALS: Final = (55, 95, 57.9)
_SCORES: Final = (0.622, 0.294)


def section_4_6() -> Iterator[Finding]:
    """Yield what comes of both cases."""
    for name, count, printed in _LEAF:
        yield _share(f"leaf, bug rate, {name}", count, _NODES, printed)
    yield _gate()
    for name, rate, sklearn, torch in _DOGS:
        yield _steps(name, rate, sklearn, torch)
    yield _share("dog-breed, entries that are timeouts", *_ENTRIES)
    yield _share("dog-breed, retrievals with timeouts", *_RETRIEVALS)
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
    (_, base, _), (_, memory, _) = _LEAF
    fits = [n for n in range(memory + 1) if prints(100 * n / memory, _LEAF_RETRIEVALS, digits=0)]
    return Finding(
        "§4.6",
        "leaf, buggy nodes with a retrieval",
        f"{_LEAF_RETRIEVALS} %",
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
    _, entries, _ = _ENTRIES
    buggy = [max(_failed(rate)) for _, rate, _, _ in _DOGS]
    return Finding(
        "§4.6",
        "dog-breed, entries of the store",
        number(entries, 0),
        f"{buggy[1]} nodes are buggy with memory and {buggy[0]} without, of {2 * _NODES} in all:"
        " one entry a failure cannot fill the store",
        entries <= sum(buggy),
    )


def _losses() -> Finding:
    losses = [number(1 / score - 1) for score in _SCORES]
    return Finding(
        "§4.6",
        "dog-breed, best so far",
        f"{number(_SCORES[0], 3)} to {number(_SCORES[1], 3)}, which is worse",
        f"of a log-loss that is so only as 1 / (1 + loss): losses of {losses[0]} and {losses[1]}",
        holds=None,
    )
