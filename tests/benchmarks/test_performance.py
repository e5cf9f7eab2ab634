"""What figures of speed are made of works at any size; the figures themselves are measured."""

from collections.abc import Callable

import pytest
from warm_python import CONTEXT, begin_server

from langgraft.benchmarks.performance import dense_search, lexical_search, timing
from langgraft.benchmarks.performance.timing import Compared, alone, compared

pytestmark = pytest.mark.matrix  # programs that measure


@pytest.mark.parametrize(
    "measure",
    [
        lexical_search.search_over_bm25s,
        lexical_search.changing_over_bm25s,
        dense_search.dense_over_in_memory_store,
        dense_search.dense_over_matrix_product,
        lexical_search.opening_over_building,
        lexical_search.recall_opened_over_built,
        lexical_search.recall_over_ranker,
    ],
)
def test_comparison_when_measured_then_both_sides_took_time(
    measure: Callable[[int], Compared],
) -> None:
    """Each comparison runs at a small size and gives times, not guesses."""
    found = measure(60)
    assert found.ours > 0
    assert found.floor > 0
    assert found.ratio > 0


def test_comparison_when_measured_alone_then_runs_in_one_thread_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chroma is timed in a process that ends with it: one as it is started, one with all loaded."""
    assert alone(dense_search.write_over_chroma, 3).ratio > 0
    begin_server()
    monkeypatch.setattr(timing, "get_context", lambda _: CONTEXT)
    assert alone(dense_search.filtered_over_chroma, 60).ratio > 0


def test_compared_when_asking_then_takes_turns_after_a_first_asking() -> None:
    """Each question is asked of both in turns, and the first asking does not count."""
    asked: list[tuple[str, int]] = []

    def ask(who: str) -> Callable[[int], None]:
        return lambda question: asked.append((who, question))

    compared(ask("ours"), ask("floor"), [1, 2], rounds=2)
    turns = [("ours", 1), ("floor", 1), ("ours", 2), ("floor", 2)]
    assert asked == [("ours", 1), ("floor", 1), *turns, *turns]
