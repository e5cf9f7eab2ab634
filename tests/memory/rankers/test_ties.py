"""How many documents share the best score: the same count from every index."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_item

from langgraft.memory.embedders import HashingEmbeddings
from langgraft.memory.model import BankContent
from langgraft.memory.providers import TrajectoryMemory, TrajectorySettings
from langgraft.memory.rankers import BM25, MMR, Dense, Hybrid, Ranker, TermOverlap

RANKERS: dict[str, Ranker] = {
    "overlap": TermOverlap(),
    "bm25": BM25(),
    "dense": Dense(HashingEmbeddings(dimensions=64)),
}
words = st.lists(st.sampled_from(["red", "door", "key", "1"]), min_size=1, max_size=3)
corpora = st.lists(words.map(" ".join), min_size=1, max_size=12)


@pytest.mark.parametrize("name", RANKERS)
@settings(deadline=None, max_examples=60)
@given(texts=corpora, query=words.map(" ".join), limit=st.integers(1, 14))
def test_tie_when_told_is_that_of_the_whole_ranking(
    name: str, texts: list[str], query: str, limit: int
) -> None:
    """However few documents are asked for; only the best one tells."""
    index = RANKERS[name].index()
    for number, text in enumerate(texts):
        index.put(number, text, (number,))
    everything = index.search(query, limit=len(texts))
    best = index.search(query, limit=limit)
    if not everything:
        assert not best
        return
    assert best[0].tied == sum(hit.score == everything[0].score for hit in everything)
    assert not any(hit.tied for hit in best[1:])


@pytest.mark.parametrize("alike", [1, 2, 40])
def test_tie_when_the_ranker_does_not_tell_is_counted_all_the_same(alike: int) -> None:
    """A ranker made of others leaves the counting to whoever wants to know."""
    content = BankContent()
    for n in range(alike + 2):
        key = "open the red door" if n < alike else f"find key {n}"
        content.items[f"i{n}"] = make_item(f"i{n}", key=key, order_index=n)
    for ranker in (BM25(), Hybrid((BM25(), TermOverlap()))):
        memory = TrajectoryMemory(InMemoryStore(), settings=TrajectorySettings(ranker=ranker))
        memory.restore(content)
        assert memory.provide("open the red door", asking()).receipt.tied == alike


@pytest.mark.parametrize("inner", [BM25(), Hybrid((BM25(), TermOverlap()))])
def test_tie_when_another_ranker_reorders_is_of_the_scores_it_gives(inner: Ranker) -> None:
    """Equals of the other ranker that are alike do not share the new score; unlike ones do."""
    content = BankContent()
    for n in range(4):
        content.items[f"i{n}"] = make_item(f"i{n}", key="open the red door", order_index=n)
    for trade_off, tied in ((0.5, 1), (1.0, 4)):
        ranker = MMR(inner, trade_off=trade_off)
        memory = TrajectoryMemory(InMemoryStore(), settings=TrajectorySettings(ranker=ranker))
        memory.restore(content)
        assert memory.provide("open the red door", asking()).receipt.tied == tied
