"""A ranking reordered so that each result says something new."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import SettingsError
from langgraft.memory.embedders import HashingEmbeddings
from langgraft.memory.rankers import BM25, MMR, Dense, Hybrid, RankerIndex, TermOverlap, TfIdf
from langgraft.memory.settings import make_ranker

TEXTS = st.lists(st.sampled_from(["red", "blue", "key", "1", "opened"]), max_size=5).map(" ".join)
DOCUMENTS = st.dictionaries(st.integers(0, 20), TEXTS, max_size=12)
INNER = st.sampled_from([BM25(), Dense("hashing:32"), TermOverlap(ties="newest"), Hybrid(pool=4)])


def _filled(ranker: Any, documents: dict[int, str]) -> RankerIndex:
    index: RankerIndex = ranker.index()
    for key, text in documents.items():
        index.put(key, text, (key,))
    return index


@given(
    documents=DOCUMENTS,
    query=TEXTS,
    inner=INNER,
    trade_off=st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
    candidates=st.integers(1, 8),
    data=st.data(),
)
def test_ranking_when_reordered_then_scores_fall_and_limits_cut_one_ranking(
    *,
    documents: dict[int, str],
    query: str,
    inner: Any,
    trade_off: float,
    candidates: int,
    data: st.DataObject,
) -> None:
    """The same documents as before, the first one first; nothing depends on who came when."""
    ranker = MMR(inner, trade_off=trade_off, candidates=candidates)
    index = _filled(ranker, dict(data.draw(st.permutations(list(documents.items())))))
    before = _filled(inner, documents).search(query, limit=100)
    full = index.search(query, limit=100)
    assert [hit.id for hit in full[:1]] == [hit.id for hit in before[:1]]
    assert {hit.id for hit in full[:candidates]} == {hit.id for hit in before[:candidates]}
    assert [hit.id for hit in full[candidates:]] == [hit.id for hit in before[candidates:]]
    scores = [hit.score for hit in full]
    assert scores == sorted(scores, reverse=True)
    assert {hit.id: hit.parts["relevance"] for hit in full} == {hit.id: hit.score for hit in before}
    for limit in range(len(full) + 1):
        assert index.search(query, limit=limit) == full[:limit]
    assert len(index) == len(documents)


@given(documents=DOCUMENTS, query=TEXTS, trade_off=st.sampled_from([0.2, 0.5, 0.8]))
def test_score_when_reordered_then_is_the_marginal_relevance(
    documents: dict[int, str], query: str, trade_off: float
) -> None:
    """Each score weighs relevance against the largest likeness with those before, recomputed."""
    embeddings = HashingEmbeddings(32)
    hits = _filled(MMR(Dense(embeddings), trade_off), documents).search(query, limit=100)
    rows = embeddings.vectors([documents[int(str(hit.id))] for hit in hits]).astype(np.float64)
    best = max([hit.parts["relevance"] for hit in hits], default=0.0)
    for i, hit in enumerate(hits):
        worth = max(hit.parts["relevance"], 0.0) / best if best > 0 else 0.0
        likeness = float((rows[:i] @ rows[i]).max(initial=0.0))
        expected = trade_off * worth - (1 - trade_off) * likeness
        assert hit.score == hit.parts["mmr"] == pytest.approx(expected, abs=1e-6)


def test_ranking_when_near_duplicates_lead_then_others_come_forward() -> None:
    """Five near-duplicates fill the first three places, and leave two of them to others."""
    texts = {i: f"open the red door with the red key {i}" for i in range(5)}
    texts |= {5: "which blue key opens the blue door", 6: "no red door here: look for a key"}
    for inner in (BM25(), Dense(), Hybrid()):
        query = "open the red door with the red key"
        plain = [hit.id for hit in _filled(inner, texts).search(query, limit=3)]
        diverse = [hit.id for hit in _filled(MMR(inner, 0.3), texts).search(query, limit=3)]
        assert set(plain) < {0, 1, 2, 3, 4}
        assert set(diverse[1:]) == {5, 6}


def test_likeness_when_inner_ranker_is_lexical_then_is_that_of_tfidf() -> None:
    """TF-IDF over the candidates decides, with their words as the corpus."""
    texts = {0: "red key", 1: "red key box", 2: "key", 3: "red"}
    hits = _filled(MMR(TermOverlap(), trade_off=0), texts).search("red key", limit=4)
    similarities = TfIdf.of([texts[0], texts[1], texts[2], texts[3]]).similarities(0)
    assert hits[1].score == pytest.approx(-min(similarities[1:]))


def test_index_when_documents_change_then_follows() -> None:
    """Removing and replacing reach the inner index and the texts compared."""
    index = _filled(MMR(Dense()), {1: "red", 2: "blue"})
    index.remove(1)
    index.remove(9)
    index.put(2, "green", (2,))
    hits = index.search("green", limit=9)
    assert [(hit.id, hit.parts["relevance"]) for hit in hits] == [(2, 1.0)]
    assert index.search("green", limit=0) == []


@pytest.mark.parametrize(
    "of", ["bm25", "dense", {"ranker": "hybrid", "rankers": ["bm25", "dense"]}]
)
def test_ranker_when_described_then_the_description_makes_it_again(of: Any) -> None:
    """`describe` and `make_ranker` are inverse, the inner ranker included."""
    ranker = make_ranker({"ranker": "mmr", "of": of, "trade_off": 0.7, "candidates": 9})
    assert make_ranker(ranker.describe()) == ranker
    assert hash(make_ranker(ranker.describe())) == hash(ranker)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "MMR needs `of`"),
        ({"of": 5}, "`of` of MMR must be a Ranker, such as .*, got 5"),
        ({"of": "nothing"}, "unknown ranker 'nothing'"),
        ({"of": "bm25", "trade_off": 1.1}, "trade_off must be between 0 and 1"),
        ({"of": "bm25", "trade_off": "x"}, "`trade_off` of MMR must be a number"),
        ({"of": "bm25", "trade_off": float("nan")}, "trade_off must be between 0 and 1"),
        ({"of": "bm25", "candidates": 0}, "candidates must be an integer"),
        ({"of": "bm25", "candidates": 2.5}, "`candidates` of MMR must be a whole number"),
    ],
)
def test_ranker_when_settings_are_impossible_then_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    """There must be a ranker to reorder, and every number has its range."""
    with pytest.raises(SettingsError, match=message):
        make_ranker({"ranker": "mmr", **settings})
