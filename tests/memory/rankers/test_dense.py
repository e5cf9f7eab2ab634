"""Ranking by vectors is exact."""

import math
import tracemalloc
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_embeddings import TableEmbeddings

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft.memory.embedders import EmbeddingRequest, HashingEmbeddings, make_embedder
from langgraft.memory.rankers import Dense, EmbeddingIndex, RankerIndex, Scored
from langgraft.memory.settings import make_ranker

Vector: TypeAlias = tuple[float, ...]
Write: TypeAlias = tuple[int, Vector | None]

WHOLE = st.integers(-3, 3).map(float)
FINE = st.floats(-1e3, 1e3, width=32)
HUGE_AND_TINY = st.sampled_from(
    [float(np.float32(n)) for n in (0.0, 3.4e38, -3.4e38, 1e-45, -1e-45, 1.2e-38, 1.0)]
)


def _vectors(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[Vector]:
    return st.tuples(numbers, numbers, numbers)


VECTORS = _vectors(WHOLE) | _vectors(FINE) | _vectors(HUGE_AND_TINY)
WRITES = st.lists(st.tuples(st.integers(0, 9), st.none() | VECTORS), max_size=40)


def _text(vector: Vector) -> str:
    return " ".join(number.hex() for number in vector)


def _vector(text: str) -> list[float]:
    return [float.fromhex(number) for number in text.split()]


def _play(writes: list[Write], **settings: Any) -> RankerIndex:
    index = Dense(TableEmbeddings(_vector), **settings).index()
    for key, vector in writes:
        if vector is None:
            index.remove(key)
        else:
            index.put(key, _text(vector), (key,))
    return index


def _present(writes: list[Write]) -> list[Write]:
    return [(key, vector) for key, vector in dict(writes).items() if vector is not None]


def _cosine(left: Vector, right: Vector) -> float | None:
    """The cosine, with no rounding before the last two roots."""
    a, b = ([Fraction(number) for number in vector] for vector in (left, right))
    product = sum(x * y for x, y in zip(a, b, strict=True))
    squares = sum(x * x for x in a) * sum(y * y for y in b)
    if not squares:
        return None
    return (1 if product > 0 else -1) * math.sqrt(product * product / squares)


@given(writes=WRITES, query=VECTORS, limit=st.integers(0, 12))
def test_ranking_when_searched_then_is_that_of_exact_cosines(
    writes: list[Write], query: Vector, limit: int
) -> None:
    """Scores are cosines to 1e-9, whatever the numbers' size; best first, then by order."""
    hits = _play(writes).search(_text(query), limit=limit)
    cosines = {key: _cosine(vector, query) for key, vector in _present(writes) if vector}
    expected = {key: cosine for key, cosine in cosines.items() if cosine is not None}
    assert len(hits) == min(limit, len(expected))
    scores = {hit.id: hit.score for hit in hits}
    assert scores == pytest.approx({key: expected[key] for key in scores}, abs=1.1e-9)  # type: ignore[index]
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id))
    for key in expected.keys() - scores.keys():
        assert not hits or expected[key] <= hits[-1].score + 1.1e-9


@given(writes=WRITES, query=VECTORS, limit=st.integers(0, 12), data=st.data())
def test_ranking_when_documents_are_the_same_then_history_does_not_show(
    writes: list[Write], query: Vector, limit: int, data: st.DataObject
) -> None:
    """Overwrites, removals, searches in between and any order of arrival give one ranking."""
    expected = _play(data.draw(st.permutations(_present(writes)))).search(_text(query), limit=limit)
    live = Dense(TableEmbeddings(_vector)).index()
    for key, vector in writes:
        if vector is None:
            live.remove(key)
        else:
            live.put(key, _text(vector), (key,))
        if data.draw(st.booleans()):
            live.search(_text(query), limit=3)
    assert live.search(_text(query), limit=limit) == expected
    assert len(live) == len(_present(writes))


@given(
    vectors=st.lists(
        st.sampled_from([(1.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.0, 1.0, 0.0)]), max_size=30
    )
)
def test_ranking_when_many_tie_then_order_decides_within_every_limit(vectors: list[Vector]) -> None:
    """Multiples of one vector tie exactly; a shorter list is the head of a longer one."""
    writes: list[Write] = list(enumerate(vectors))
    for ties, step in (("oldest", 1), ("newest", -1)):
        index = _play(writes, ties=ties)
        full = index.search(_text((3.0, 1.0, 0.0)), limit=100)
        assert full == sorted(full, key=lambda hit: (-hit.score, step * int(str(hit.id))))
        for limit in range(len(full)):
            assert index.search(_text((3.0, 1.0, 0.0)), limit=limit) == full[:limit]


def test_ranking_when_float32_cannot_tell_documents_apart_then_float64_does() -> None:
    """3,000 vectors closer to each other than float32's sums are exact come in the exact order."""
    draw = np.random.default_rng(0)
    base = draw.standard_normal(384)
    rows = (base + 1e-4 * draw.standard_normal((3000, 384))).astype(np.float32)
    table = TableEmbeddings(lambda text: rows[int(text)].tolist(), {"q": base.tolist()})
    index = Dense(table).index()
    for i in draw.permutation(3000).tolist():
        index.put(i, str(i), (i,))
    query = base.astype(np.float32).astype(np.float64)
    wide = rows.astype(np.float64)
    exact = wide @ query / np.sqrt((wide**2).sum(axis=1) * (query**2).sum())
    expected = sorted(range(3000), key=lambda i: (-round(exact[i], 9), i))
    hits = index.search("q", limit=50)
    assert [hit.id for hit in hits] == expected[:50]
    estimated = np.argsort(-(rows @ base.astype(np.float32)), kind="stable")[:50]
    assert estimated.tolist() != expected[:50], "or float32 would have been enough"


def test_search_when_a_vector_is_zero_then_never_matches() -> None:
    """A document without direction counts and is not returned; a query without one finds none."""
    index = Dense().index()
    for i, text in enumerate(["red", "", "?!"]):
        index.put(i, text, (i,))
    assert [hit.id for hit in index.search("red", limit=9)] == [0]
    assert [hit.id for hit in index.search("blue", limit=9)] == [0], "unlike, but the best there is"
    assert index.search("...", limit=9) == []
    assert len(index) == 3
    index.put(0, "", (0,))
    assert index.search("red", limit=9) == []
    index.put(1, "red", (1,))
    assert index.search("red", limit=9) == [Scored(1, 1.0)]


def test_index_when_empty_then_asks_nobody() -> None:
    """Without documents no vector is needed, not even the query's."""
    table = TableEmbeddings(_vector)
    index = Dense(table).index()
    assert index.search("1 1 1", limit=5) == []
    index.remove("nobody")
    index.put(1, "1 1 1", (1,))
    index.remove(1)
    assert index.search("1 1 1", limit=5) == []
    assert table.calls == []


def test_text_when_blank_then_is_not_embedded() -> None:
    """Models that refuse an empty text are never given one, as a document or as a query."""
    table = TableEmbeddings(_vector)
    index = Dense(table).index()
    for i, text in enumerate(["", " \n", "1 0 0"]):
        index.put(i, text, (i,))
    assert index.search(" ", limit=5) == index.search("", limit=5) == []
    assert [hit.id for hit in index.search("1 1 1", limit=5)] == [2]
    index.put(2, "", (2,))
    assert index.search("1 1 1", limit=5) == []
    assert table.calls == [("embed_documents", ["1 0 0"]), ("embed_query", ["1 1 1"])]
    assert len(index) == 3


def test_index_when_texts_stay_then_their_vectors_are_not_asked_for_again() -> None:
    """Putting a document again, in another place among equals, needs no embedder."""
    table = TableEmbeddings(_vector)
    index = Dense(make_embedder(table)).index()
    index.put("a", "1 2 3", (1,))
    index.put("b", "1 2 3", (2,))
    assert [hit.id for hit in index.search("1 2 3", limit=2)] == ["a", "b"]
    index.put("a", "1 2 3", (3,))
    assert [hit.id for hit in index.search("1 2 3", limit=2)] == ["b", "a"]
    assert table.calls == [("embed_documents", ["1 2 3"]), ("embed_query", ["1 2 3"])]


def test_index_when_it_says_what_is_lacking_then_search_asks_nobody() -> None:
    """Answers may come from elsewhere, in pieces of 1,000 and for texts that are gone meanwhile."""
    table = TableEmbeddings(lambda text: [1.0, float(text)])
    embedder = make_embedder(table)
    index = Dense(embedder).index()
    assert isinstance(index, EmbeddingIndex)
    for i in range(1500):
        index.put(i, str(i), (i,))
    requests = index.lacking("7")
    assert [(len(request.texts), request.role) for request in requests] == [
        (1000, "document"),
        (500, "document"),
        (1, "query"),
    ]
    index.remove(3)
    index.put(4, "5", (4,))
    for request in requests:
        rows = np.array([[1.0, float(text)] for text in request.texts], dtype=np.float32)
        index.learn(request, rows)
    stranger = EmbeddingRequest(make_embedder("hashing:2"), ("9",), "query")
    index.learn(stranger, np.ones((1, 2), np.float32))
    assert index.lacking("7") == [], "4 has its text of 5, whose vector came before 4's was dropped"
    assert [hit.id for hit in index.search("7", limit=3)] == [7, 8, 6]
    assert [hit.id for hit in index.search("7", limit=2000) if hit.id in (3, 4, 5)] == [4, 5]
    assert table.calls == []


def test_index_when_it_fails_to_embed_then_keeps_what_it_knows() -> None:
    """A failing embedder fails the search; the next one asks for the same and goes on."""
    table = TableEmbeddings(_vector)
    index = Dense(table).index()
    index.put("a", "1 0 0", (1,))
    index.search("1 0 0", limit=1)
    index.put("b", "0 1 0", (2,))
    table.error = ConnectionError("down")
    for _ in range(2):
        with pytest.raises(ConnectionError):
            index.search("1 0 0", limit=5)
    table.error = None
    assert [hit.id for hit in index.search("1 0 0", limit=5)] == ["a", "b"]
    assert table.asked() == ["1 0 0", "0 1 0", "0 1 0", "0 1 0"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"embeddings": "hashing:256"},
        {"embeddings": "hashing", "dimensions": 256, "ties": "newest"},
        {"embeddings": "openai:text-embedding-3-small"},
        {"embeddings": "openai:text-embedding-3-small", "dimensions": 512},
    ],
)
def test_ranker_when_described_then_the_description_makes_it_again(
    settings: dict[str, Any],
) -> None:
    """`describe` and `make_ranker` are inverse; equal rankers hash alike."""
    ranker = Dense(**settings)
    assert make_ranker(ranker.describe()) == make_ranker({"ranker": "dense", **settings}) == ranker
    assert hash(make_ranker(ranker.describe())) == hash(ranker)


def test_ranker_when_embeddings_are_the_same_then_is_equal() -> None:
    """What counts is the fingerprint: a name, the object it makes, and a cached embedder agree."""
    assert Dense("hashing:64") == Dense(HashingEmbeddings(64)) == Dense(make_embedder("hashing:64"))
    assert Dense("hashing:64") != Dense("hashing:65")
    assert Dense("hashing:64") != Dense("hashing:64", ties="newest")
    assert repr(Dense("hashing:64")) == "Dense(embeddings='hashing', dimensions=64, ties='oldest')"


@pytest.mark.parametrize(
    "settings",
    [
        {"embeddings": "nothing"},
        {"embeddings": 5},
        {"embeddings": {"class": "some.Embeddings", "settings": {}}},
        {"dimensions": 0},
        {"dimensions": "many"},
        {"ties": "random"},
        {"similarity": "dot product"},
        {"features": "other ones"},
    ],
)
def test_ranker_when_settings_are_impossible_then_is_refused(settings: dict[str, Any]) -> None:
    """Bad settings, and descriptions of rankers we cannot make, are errors of the settings."""
    with pytest.raises(SettingsError):
        make_ranker({"ranker": "dense", **settings})


@pytest.mark.parametrize("role", ["query", "document"])
def test_vectors_when_of_another_length_than_those_of_the_index_are_refused(role: str) -> None:
    """A model that changed behind its fingerprint is named, and nothing is taken in."""
    index = Dense("hashing:8").index()
    index.put("a", "red", (0,))
    before = index.search("red", limit=1)
    index.put("b", "blue", (1,))
    assert isinstance(index, EmbeddingIndex)
    (request,) = [each for each in index.lacking("blue") if each.role == role]
    with pytest.raises(InfrastructureError, match=r"vectors of 9 numbers.*index have 8"):
        index.learn(request, np.ones((1, 9), dtype=np.float32))
    assert request in index.lacking("blue")
    assert index.search("red", limit=1) == before


@given(writes=WRITES, looked=st.sets(st.integers(0, 40)))
def test_vectors_when_documents_came_and_went_are_those_of_the_embedder(
    writes: list[Write], looked: set[int]
) -> None:
    """What the cache shares with an index stays what it was, and nothing is embedded twice."""
    asked: list[str] = []

    def embed(text: str) -> list[float]:
        asked.append(text)
        return _vector(text)

    ranker = Dense(TableEmbeddings(embed))
    index = ranker.index()
    for number, (key, vector) in enumerate([*writes, (0, (1.0, 2.0, 3.0))]):
        if vector is None:
            index.remove(key)
        else:
            index.put(key, _text(vector), (key,))
        if number in looked:
            index.search(_text((1.0, 0.0, 0.0)), limit=3)
    texts = list(dict.fromkeys(text for text in asked if text != _text((1.0, 0.0, 0.0))))
    asked.clear()
    if texts:
        expected = np.array(list(map(_vector, texts)), dtype=np.float32)
        assert np.array_equal(ranker.embedder.vectors(texts, "document"), expected)
    assert asked == []


@pytest.mark.parametrize("together", [True, False])
def test_vectors_when_documents_are_indexed_are_in_memory_once(together: bool) -> None:
    """Neither the index nor the cache has copies of the other's, also after the index grew and shrank."""
    count, dimensions = 400, 1_000
    ranker = Dense(HashingEmbeddings(dimensions))
    index = ranker.index()
    index.put(-1, "red door", (-1,))
    index.search("door", limit=1)
    tracemalloc.start()
    try:
        for number in range(count):
            index.put(number, f"door {number}", (number,))
            if not together:
                index.search("door", limit=1)
        for number in range(0, count, 4):
            index.remove(number)
        index.search("door", limit=1)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    matrix = count * dimensions * 4
    assert held < (1.3 if together else 1.8) * matrix, (
        "a quarter was removed; a matrix has room for half more"
    )
