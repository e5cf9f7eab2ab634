"""Searching some documents gives the whole ranking without the others."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langgraft.memory.embedders import HashingEmbeddings
from langgraft.memory.rankers import (
    BM25,
    MMR,
    Dense,
    DurableIndex,
    Hybrid,
    Ranker,
    RankerIndex,
    SelectiveIndex,
    TermOverlap,
)
from langgraft.memory.rankers.composite import HybridIndex

RANKERS: dict[str, Ranker] = {
    "overlap": TermOverlap(ties="newest"),
    "bm25": BM25(),
    "distinct": BM25(query_counts=False),
    "okapi": BM25(idf="okapi"),
    "dense": Dense(HashingEmbeddings(dimensions=64)),
    "hybrid": Hybrid((BM25(), Dense(HashingEmbeddings(dimensions=64)), MMR(BM25())), pool=3),
}
words = st.lists(st.sampled_from(["red", "door", "key", "1"]), max_size=3).map(" ".join)
corpora = st.lists(words, min_size=1, max_size=12)
some = st.sets(st.integers(0, 14))


def _assert_is_the_ranking_without_the_others(
    index: RankerIndex, query: str, among: set[int], limit: int
) -> None:
    assert isinstance(index, SelectiveIndex)
    whole = [hit for hit in index.search(query, limit=20) if hit.id in among]
    found = index.search_among(query, among, limit=limit)
    assert found == whole[:limit]
    assert not any(hit.tied for hit in found[1:])
    if found and (found[0].tied or not isinstance(index, HybridIndex)):
        assert found[0].tied == sum(hit.score == whole[0].score for hit in whole)


@pytest.mark.parametrize("name", RANKERS)
@settings(deadline=None, max_examples=60)
@given(texts=corpora, gone=some, query=words, asked=st.tuples(some, st.integers(0, 14)))
def test_search_among_when_given_any_documents_then_is_the_ranking_without_the_others(
    *,
    name: str,
    texts: list[str],
    gone: set[int],
    query: str,
    asked: tuple[set[int], int],
) -> None:
    """Scores, order and ties agree; unknown documents are ignored; the best tells its ties."""
    index = RANKERS[name].index()
    for number, text in enumerate(texts):
        index.put(number, text, (number,))
    for number in gone:
        index.remove(number)
    _assert_is_the_ranking_without_the_others(index, query, *asked)


@pytest.mark.parametrize("name", RANKERS)
@settings(deadline=None, max_examples=20)
@given(texts=corpora, query=words, among=some, limit=st.integers(0, 14))
def test_search_among_when_the_index_was_loaded_then_reads_what_it_needs(
    name: str, texts: list[str], query: str, among: set[int], limit: int
) -> None:
    """Documents that are still in files only are found there."""
    saved, loaded = (RANKERS[name].index() for _ in range(2))
    assert isinstance(saved, DurableIndex)
    assert isinstance(loaded, DurableIndex)
    for number, text in enumerate(texts):
        saved.put(number, text, (number,))
    with TemporaryDirectory() as folder:
        saved.save(Path(folder))
        loaded.load(Path(folder))
        _assert_is_the_ranking_without_the_others(loaded, query, among, limit)


def test_search_among_when_documents_are_many_then_nominates_with_a_margin() -> None:
    """Of 3,000 texts that nearly tie, any thousand rank as they do among all."""
    ranker = Dense(HashingEmbeddings(dimensions=64))
    index = ranker.index()
    for number in range(3_000):
        index.put(number, f"red door {number % 40} key {number % 7}", (number,))
    among = set(range(5, 3_000, 3))
    assert isinstance(index, SelectiveIndex)
    whole = [hit for hit in index.search("red key 3", limit=3_000) if hit.id in among]
    assert index.search_among("red key 3", among, limit=50) == whole[:50]
