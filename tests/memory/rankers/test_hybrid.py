"""Reciprocal-rank fusion of exact rankings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_embeddings import TableEmbeddings

from langgraft._core.errors import SettingsError
from langgraft.memory.embedders import HashingEmbeddings
from langgraft.memory.rankers import BM25, Dense, EmbeddingIndex, Hybrid, RankerIndex, TermOverlap
from langgraft.memory.rankers.base import BoundedIndex, search_among
from langgraft.memory.settings import make_ranker

TEXTS = st.lists(st.sampled_from(["red", "blue", "key", "1", "opened"]), max_size=5).map(" ".join)
DOCUMENTS = st.dictionaries(st.integers(0, 20), TEXTS, max_size=14)
RANKERS = st.sampled_from(
    [
        (BM25(), Dense("hashing:32")),
        (Dense("hashing:32"), BM25(ties="newest"), TermOverlap()),
        (TermOverlap(), TermOverlap()),
    ]
)


def _filled(ranker: Any, documents: dict[int, str]) -> RankerIndex:
    index: RankerIndex = ranker.index()
    for key, text in documents.items():
        index.put(key, text, (key,))
    return index


def _fused(ranker: Hybrid, documents: dict[int, str], query: str) -> dict[int, float]:
    """The formula, read off the parts' rankings."""
    sums: dict[int, float] = {}
    assert ranker.weights is not None
    for part, weight in zip(ranker.rankers, ranker.weights, strict=True):
        hits = _filled(part, documents).search(query, limit=ranker.pool)
        for hit in hits:
            rank = 1 + sum(other.score > hit.score for other in hits)
            key = int(str(hit.id))
            sums[key] = sums.get(key, 0.0) + weight / (ranker.k + rank)
    return {key: round(score, 9) for key, score in sums.items()}


@given(
    documents=DOCUMENTS,
    query=TEXTS,
    rankers=RANKERS,
    pool=st.integers(1, 8),
    k=st.sampled_from([0, 1, 60.0]),
    ties=st.sampled_from(["oldest", "newest"]),
    data=st.data(),
)
def test_ranking_when_fused_then_follows_the_formula(
    *,
    documents: dict[int, str],
    query: str,
    rankers: Any,
    pool: int,
    k: float,
    ties: Any,
    data: st.DataObject,
) -> None:
    """Scores are sums of weight / (k + rank); zeros follow; every limit cuts one ranking."""
    weights = data.draw(st.tuples(*[st.sampled_from([0.5, 1.0, 2.0])] * len(rankers)))
    ranker = Hybrid(rankers, k=k, weights=weights, pool=pool, ties=ties)
    index = _filled(ranker, dict(data.draw(st.permutations(list(documents.items())))))
    full = index.search(query, limit=1000)
    expected = _fused(ranker, documents, query)
    step = 1 if ties == "oldest" else -1
    ordered = sorted(expected.items(), key=lambda pair: (-pair[1], step * pair[0]))
    assert [(hit.id, hit.score) for hit in full[: len(expected)]] == ordered
    assert all(hit.score == 0 for hit in full[len(expected) :])
    matched = {
        hit.id for part in rankers for hit in _filled(part, documents).search(query, limit=99)
    }
    assert sorted(map(str, matched)) == sorted(str(hit.id) for hit in full)
    for limit in range(len(full) + 1):
        assert index.search(query, limit=limit) == full[:limit]


@given(
    documents=DOCUMENTS,
    query=TEXTS,
    rankers=RANKERS,
    pool=st.integers(1, 8),
    ties=st.sampled_from(["oldest", "newest"]),
    data=st.data(),
)
def test_ranking_when_scores_are_fused_then_follows_the_formula(
    *,
    documents: dict[int, str],
    query: str,
    rankers: Any,
    pool: int,
    ties: Any,
    data: st.DataObject,
) -> None:
    """Scores are sums of weight · score / highest over the pools; every limit cuts one ranking."""
    weights = data.draw(st.tuples(*[st.sampled_from([0.5, 1.0, 2.0])] * len(rankers)))
    ranker = Hybrid(rankers, weights=weights, pool=pool, ties=ties, fusion="scores")
    index = _filled(ranker, dict(data.draw(st.permutations(list(documents.items())))))
    full = index.search(query, limit=1000)
    parts = [_filled(part, documents) for part in rankers]
    pooled = {hit.id for part in parts for hit in part.search(query, limit=pool)}
    sums = dict.fromkeys(pooled, 0.0)
    for part, weight in zip(parts, weights, strict=True):
        highest = part.highest(query) if isinstance(part, BoundedIndex) else 1.0
        for hit in part.search(query, limit=1000):
            assert hit.score <= highest + 1e-9
            if hit.id in pooled:
                sums[hit.id] += weight * max(hit.score, 0.0) / highest
    assert {hit.id for hit in full[: len(pooled)]} == pooled
    for hit in full[: len(pooled)]:
        assert hit.score == pytest.approx(sums[hit.id], abs=1e-8)
    step = 1 if ties == "oldest" else -1
    order = [(-hit.score, step * int(str(hit.id))) for hit in full[: len(pooled)]]
    assert order == sorted(order)
    for limit in range(len(full) + 1):
        assert index.search(query, limit=limit) == full[:limit]
        among = {hit.id for hit in full[limit:]}
        assert search_among(index, query, among, limit=99) == full[limit:]


def test_scores_when_only_common_words_match_then_meaning_decides() -> None:
    """Words that no text holds count in what BM25 could reach, so a match of "the" adds little."""
    table = {"where is the car": [1.0, 0.0], "an automobile": [0.6, 0.8], "the sea": [0.0, 1.0]}
    texts = {1: "an automobile", 2: "the sea"}
    for fusion, first in (("reciprocal ranks", 2), ("scores", 1)):
        dense = Dense(TableEmbeddings(table))
        ranker = Hybrid((BM25(), dense), weights=(2, 1), fusion=fusion)  # type: ignore[arg-type]
        (best, *_) = _filled(ranker, texts).search("where is the car", limit=2)
        assert best.id == first


def test_scores_when_a_text_is_in_one_pool_only_then_the_other_ranker_scores_it_too() -> None:
    """A pool says which texts are ranked, not which figures count."""
    table = {"red key": [1.0, 0.0], "a red red key": [0.8, 0.6], "the red box": [1.0, 0.1]}
    dense = Dense(TableEmbeddings(table))
    texts = {1: "a red red key", 2: "the red box"}
    narrow, wide = (
        _filled(Hybrid((BM25(), dense), pool=pool, fusion="scores"), texts).search(
            "red key", limit=2
        )
        for pool in (1, 2)
    )
    assert narrow == wide
    assert all({"bm25_share", "dense_share"} <= hit.parts.keys() for hit in narrow)


def test_hit_when_scores_are_fused_then_carries_every_score_and_share() -> None:
    """The parts are the rankers' own scores, and their shares of what is possible."""
    ranker = Hybrid((TermOverlap(), Dense("hashing:32")), fusion="scores")
    (hit, *_) = _filled(ranker, {1: "red key", 2: "red box"}).search("red unseen", limit=1)
    assert (hit.parts["term_overlap"], hit.parts["term_overlap_share"]) == (1.0, 0.5)
    assert hit.parts["dense"] == hit.parts["dense_share"]
    assert hit.score == round(0.5 + hit.parts["dense"], 9)


def test_hit_when_fused_then_carries_every_score_and_rank() -> None:
    """The parts are the rankers' own scores and shared ranks, also where a name comes twice."""
    ranker = Hybrid((TermOverlap(), Dense("hashing:32"), Dense("hashing:64")))
    index = _filled(ranker, {1: "red key", 2: "red box", 3: "blue"})
    first, second = index.search("red key", limit=2)
    assert first.parts == {
        "term_overlap": 2.0,
        "term_overlap_rank": 1,
        "dense": 1.0,
        "dense_rank": 1,
        "dense_2": 1.0,
        "dense_2_rank": 1,
    }
    assert first.score == round(3 / 61, 9)
    assert (second.id, second.parts["term_overlap_rank"]) == (2, 2)
    third = index.search("red key", limit=3)[2]
    assert "term_overlap" not in third.parts


def test_documents_when_outside_all_pools_then_follow_as_the_parts_have_them() -> None:
    """What the first ranker matches comes next in its order, then what only later ones match."""
    texts = {1: "b b b b", 2: "a", 3: "a c", 4: "a c c", 5: "b", 6: "zzz"}
    index = _filled(Hybrid((BM25(), TermOverlap(ties="newest")), pool=1), texts)
    assert [hit.id for hit in index.search("a", limit=9)] == [2, 4, 3]
    index = _filled(Hybrid((TermOverlap(), Dense(HashingEmbeddings(512))), pool=1), texts)
    ids = [hit.id for hit in index.search("a", limit=9)]
    assert ids[:3] == [2, 3, 4]
    assert sorted(ids[3:]) == [1, 5, 6]  # type: ignore[type-var]


def test_index_when_documents_go_then_they_are_in_no_part() -> None:
    """Removing and replacing reach every part."""
    index = _filled(Hybrid(), {1: "red", 2: "blue"})
    index.remove(1)
    index.remove(7)
    index.put(2, "green", (2,))
    assert [hit.id for hit in index.search("red blue green", limit=9)] == [2]
    assert index.search("green", limit=0) == []
    assert len(index) == 1


def test_index_when_parts_share_an_embedder_then_it_is_asked_once() -> None:
    """Equal requests of several parts are one, and its answer reaches all."""
    table = TableEmbeddings(lambda text: [float(len(text)), 1.0])
    dense = Dense(table)
    index = Hybrid((dense, TermOverlap(), Dense(dense.embedder, ties="newest"))).index()
    assert isinstance(index, EmbeddingIndex)
    index.put(1, "red", (1,))
    requests = index.lacking("red")
    assert [request.role for request in requests] == ["document", "query"]
    for request in requests:
        index.learn(request, request.do())
    assert index.lacking("red") == []
    assert [hit.id for hit in index.search("red", limit=1)] == [1]
    assert len(table.calls) == 2


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rankers": ["term_overlap", {"ranker": "dense", "dimensions": 64}]},
        {"rankers": ["bm25", {"ranker": "hybrid", "pool": 5}], "weights": [1, 0.5], "k": 1},
        {"rankers": [{"ranker": "mmr", "of": "bm25"}, "dense"], "pool": 7, "ties": "newest"},
        {"fusion": "scores"},
        {"ranker": "semantic", "pool": 50},
    ],
)
def test_ranker_when_described_then_the_description_makes_it_again(
    settings: dict[str, Any],
) -> None:
    """`describe` and `make_ranker` are inverse, also for what a hybrid is made of."""
    ranker = make_ranker({"ranker": "hybrid"} | settings)
    assert make_ranker(ranker.describe()) == ranker
    assert hash(make_ranker(ranker.describe())) == hash(ranker)
    assert Hybrid() == Hybrid([BM25(), Dense()], weights=[1, 1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rankers": ["bm25"]}, "two rankers or more"),
        ({"rankers": ["bm25", "bm26"]}, "unknown ranker 'bm26'"),
        ({"rankers": ["bm25", 5]}, "two rankers or more, got"),
        ({"rankers": 5}, "`rankers` of Hybrid must be a list, got 5"),
        ({"weights": [1]}, "2 rankers need as many weights"),
        ({"weights": [1, -1]}, "at least 0 and not all 0"),
        ({"weights": [0, 0]}, "at least 0 and not all 0"),
        ({"weights": [1, float("nan")]}, "must be finite"),
        ({"weights": "ab"}, "weights must be made of numbers"),
        ({"k": -1}, "k must be a finite number"),
        ({"k": "x"}, "k must be made of numbers"),
        ({"pool": 0}, "pool must be an integer"),
        ({"pool": 1.5}, "pool must be an integer"),
        ({"ties": "random"}, "ties must be"),
        ({"fusion": "sums"}, "fusion must be 'reciprocal ranks' or 'scores', got 'sums'"),
    ],
)
def test_ranker_when_settings_are_impossible_then_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    """Every number has its range, and every ranker must be one."""
    with pytest.raises(SettingsError, match=message):
        make_ranker({"ranker": "hybrid", **settings})
