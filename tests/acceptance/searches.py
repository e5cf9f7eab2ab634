"""Speed of searches, as ratios against named peers, each in a process of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from acceptance.figure import Figure, Setting
from langgraft.benchmarks.performance.dense_search import (
    dense_over_in_memory_store,
    dense_over_matrix_product,
    filtered_over_chroma,
)
from langgraft.benchmarks.performance.lexical_search import (
    changing_over_bm25s,
    opening_over_building,
    recall_opened_over_built,
    recall_over_ranker,
    search_over_bm25s,
)
from langgraft.benchmarks.performance.timing import Compared, alone

RECORDS: Final = 100_000

_PROVIDER_MS: Final = 0.3
_FIRST_MS: Final = 30


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One thing that is to cost at most so much of what another one costs."""

    promise: str
    peer: str
    measure: Callable[[int], Compared]
    bound: float
    """Largest ratio of ours to the peer's."""
    reduced: int | None = None
    """Records at reduced size; without a number, the ratio is the promised one only at full size."""


_COMPARISONS: Final = (
    _Comparison(
        "Exact dense search is at least 50 times as fast as `InMemoryStore.search`",
        "InMemoryStore with the same vectors of 384 numbers",
        dense_over_in_memory_store,
        1 / 50,
    ),
    _Comparison(
        "Exact dense search costs at most 1.5 times one matrix product",
        "numpy's product in float32 and argpartition, one thread",
        dense_over_matrix_product,
        1.5,
    ),
    _Comparison(
        "A filter that passes 5 % leaves exact dense search at least 5 times as fast as Chroma",
        "`collection.query` of a persistent Chroma with the same vectors and filter",
        filtered_over_chroma,
        1 / 5,
    ),
    _Comparison(
        "BM25 adds and searches at least 50 times as fast as bm25s",
        "bm25s built anew and asked",
        changing_over_bm25s,
        1 / 50,
    ),
    _Comparison(
        "A search by BM25 costs at most 1.2 times what bm25s does",
        "`retrieve` of bm25s, numpy backend",
        search_over_bm25s,
        1.2,
        reduced=10_000,
    ),
    _Comparison(
        "Opening a bank's index costs at most a tenth of building it",
        "building the index anew; each up to the first answer, 100 writes after the last save",
        opening_over_building,
        1 / 10,
        reduced=30_000,
    ),
)


def measure(setting: Setting) -> list[Figure]:
    """Compare every search with its peer; at reduced size, only where the promise shows there."""
    found = []
    for comparison in _COMPARISONS:
        size = comparison.reduced if setting.reduced else RECORDS
        if size is not None:
            setting.say(f"{comparison.promise}: {size:,} records")
            found.append(_figure(comparison, alone(comparison.measure, size), size))
    return found if setting.reduced else [*found, _provider(), _first_recall()]


def _figure(comparison: _Comparison, found: Compared, size: int) -> Figure:
    return Figure(
        comparison.promise,
        f"CPU time over {comparison.peer}; {size:,} records",
        f"{_times(found.ratio)} ({found.ours:.2f} against {found.floor:.2f} ms)",
        f"≤ {_times(comparison.bound)}",
        found.ratio <= comparison.bound,
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio >= 1 / 2 else f"1/{1 / ratio:.1f}"


def _provider() -> Figure:
    items = 1_000
    found = alone(recall_over_ranker, items)
    above = found.ours - found.floor
    return Figure(
        f"A provider costs at most {_PROVIDER_MS} ms above its ranker",
        f"CPU of `provide` less that of its ranker's own search; {items:,} items",
        f"{above:.3f} ms ({found.ours:.3f} and {found.floor:.3f} ms)",
        f"≤ {_PROVIDER_MS} ms",
        above <= _PROVIDER_MS,
    )


def _first_recall() -> Figure:
    items = 10_000
    found = alone(recall_opened_over_built, items)
    return Figure(
        f"A provider's first recall takes {_FIRST_MS} ms at most where its index was saved",
        f"CPU from its making on; {items:,} items; beside it, without the saved index",
        f"{found.ours:.1f} ms (without: {found.floor:.1f} ms)",
        f"≤ {_FIRST_MS} ms",
        found.ours <= _FIRST_MS,
    )
