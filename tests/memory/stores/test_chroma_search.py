"""Exact search by vectors that are kept in Chroma, and the order of listings."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, PutOp, SearchOp

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft.memory.stores import ChromaStore
from langgraft.testing import ReferenceStore

DIMS = 6


class Vectors(Embeddings):
    """Makes small vectors of letters, zero for a text without any, and counts its calls."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Count the letters a to f."""
        self.asked += texts
        return [[float(text.count(letter)) for letter in "abcdef"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Count the letters a to f."""
        return self.embed_documents([text])[0]


def config(fields: list[str] | None = None) -> IndexConfig:
    """Return an index of letters."""
    index: IndexConfig = {"dims": DIMS, "embed": Vectors()}
    if fields is not None:
        index["fields"] = fields
    return index


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    """One store for all examples; each takes a namespace of its own."""
    path = tmp_path_factory.mktemp("chroma") / "store"
    with ChromaStore.open(path, index=config(["text", "tags[*]"])) as store:
        yield store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Folder of a store."""
    return tmp_path / "store"


_numbers = itertools.count()
_texts = st.text("abcdef ", max_size=5)
_values = st.fixed_dictionaries(
    {"n": st.integers(0, 3)}, optional={"text": _texts, "tags": st.lists(_texts, max_size=3)}
)
_writes = st.tuples(
    st.sampled_from([("x",), ("x", "y"), ("xy",)]),
    st.sampled_from("klm"),
    st.none() | _values,
    st.none() | st.just(False) | st.just(["text"]),
)


@settings(max_examples=15, deadline=None)
@given(
    batches=st.lists(st.lists(_writes, max_size=4), max_size=4), query=st.text("abcdef", min_size=1)
)
def test_search_when_compared_with_the_reference_scores_alike(
    shared: ChromaStore, batches: list[list[Any]], query: str
) -> None:
    """Same scores, and the order is that of scores, then of first writing."""
    root = f"example-{next(_numbers)}"
    oracle = ReferenceStore(index=config(["text", "tags[*]"]))
    for batch in batches:
        ops = [PutOp((root, *ns), key, value, index=index) for ns, key, value, index in batch]
        shared.batch(ops)
        oracle.batch(ops)
    for prefix, passing in itertools.product(((root,), (root, "x")), (None, {"n": {"$gte": 2}})):
        expected = oracle.search(prefix, query=query, filter=passing, limit=100)
        found = shared.search(prefix, query=query, filter=passing, limit=100)
        scores = {(i.namespace, i.key): i.score for i in found}
        assert scores.keys() == {(i.namespace, i.key) for i in expected}
        for item in expected:
            assert scores[item.namespace, item.key] == pytest.approx(item.score, abs=1e-6)
        listed = [(i.namespace, i.key) for i in shared.search(prefix, filter=passing, limit=100)]
        ordered = sorted(
            listed, key=lambda at: -1.0 if (s := scores[at]) is None else s, reverse=True
        )
        assert [(i.namespace, i.key) for i in found] == ordered
        pages = [
            shared.search(prefix, query=query, filter=passing, limit=2, offset=start)
            for start in range(0, len(found) + 1, 2)
        ]
        assert [item for page in pages for item in page] == found


def test_listing_when_records_are_rewritten_keeps_their_places(shared: ChromaStore) -> None:
    """Records come in the order they were first written, across namespaces and batches."""
    shared.batch([PutOp(("places", n), key, {}) for key in "ba" for n in "yx"])
    shared.put(("places", "y"), "b", {"again": True})
    shared.put(("places", "x"), "new", {})
    shared.delete(("places", "y"), "a")
    shared.put(("places", "y"), "a", {})
    found = [(item.namespace[1], item.key) for item in shared.search(("places",))]
    assert found == [("y", "b"), ("x", "b"), ("x", "a"), ("x", "new"), ("y", "a")]


def test_listing_when_reopened_is_as_before(path: Path) -> None:
    """Order, times and vectors are kept in Chroma, not in the object."""
    with ChromaStore.open(path, index=config()) as store:
        for key in "cab":
            store.put(("n",), key, {"text": key * 2})
        store.put(("n",), "c", {"text": "ccc"})
        before = store.search(()), store.search((), query="a c")
    with ChromaStore.open(path, index=config()) as store:
        assert (store.search(()), store.search((), query="a c")) == before
        assert [item.key for item in before[0]] == ["c", "a", "b"]


def test_search_when_chroma_lost_its_own_index_is_the_same(path: Path) -> None:
    """Chroma's approximate index answers nothing."""
    with ChromaStore.open(path, index=config()) as store:
        store.batch([PutOp(("n",), f"{n}", {"t": "abcdef"[: n % 7]}) for n in range(200)])
        before = store.search((), query="abc", limit=200)
        rows = store._table._rows.get(include=["embeddings"])
    assert rows["embeddings"] is not None
    assert np.asarray(rows["embeddings"]).shape == (200, 1)
    with ChromaStore.open(path, index=config()) as store:
        assert store.search((), query="abc", limit=200) == before


def test_texts_when_equal_in_a_batch_are_embedded_once(path: Path) -> None:
    """An embedder is paid for each text once a batch."""
    vectors = Vectors()
    with ChromaStore.open(path, index={"dims": DIMS, "embed": vectors, "fields": ["t"]}) as store:
        store.batch([PutOp(("n",), key, {"t": "same"}) for key in "abc"])
        store.batch([SearchOp((), query="a"), SearchOp(("n",), query="a")])
    assert vectors.asked == ["same", "a"]


def test_search_when_query_or_record_has_a_zero_vector_scores_zero(path: Path) -> None:
    """No division by zero; nothing is near to nothing."""
    with ChromaStore.open(path, index=config(["t"])) as store:
        store.put(("n",), "zero", {"t": "xyz"})
        store.put(("n",), "a", {"t": "a"})
        store.put(("n",), "none", {})
        found = {item.key: item.score for item in store.search((), query="a")}
        assert found == {"a": 1.0, "zero": 0.0, "none": None}
        found = {item.key: item.score for item in store.search((), query="!")}
        assert found == {"a": 0.0, "zero": 0.0, "none": None}


def test_query_when_there_is_no_index_is_ignored(path: Path) -> None:
    """As in `InMemoryStore`, a query then lists."""
    with ChromaStore.open(path) as store:
        store.put(("n",), "b", {"t": "b"}, index=["t"])
        store.put(("n",), "a", {"t": "a"})
        found = store.search(("n",), query="a")
        assert [(item.key, item.score) for item in found] == [("b", None), ("a", None)]


def test_vectors_when_of_another_length_are_named(path: Path) -> None:
    """Records of another embedder are not compared with this one's."""
    with ChromaStore.open(path, index=config()) as store:
        store.put(("n",), "k", {"t": "a"})
    other: IndexConfig = {"dims": 2, "embed": lambda texts: [[1.0, 0.0] for _ in texts]}
    with ChromaStore.open(path, index=other) as store:
        with pytest.raises(SettingsError, match="vectors of 6 numbers, and index"):
            store.search(("n",), query="a")
        store.put(("n",), "k", {"t": "a"})
        assert store.search(("n",), query="a")[0].score == 1.0


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"dims": 0, "embed": Vectors()}, "index\\['dims'\\] must be"),
        ({"dims": "8", "embed": Vectors()}, "index\\['dims'\\] must be"),
        ({"dims": 8}, "index\\['embed'\\] is missing"),
    ],
)
def test_index_when_not_usable_is_refused_before_anything_is_opened(
    path: Path, index: Any, message: str
) -> None:
    """A wrong setting leaves no folder behind."""
    with pytest.raises(SettingsError, match=message):
        ChromaStore.open(path, index=index)
    assert not path.exists()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([[1.0] * (DIMS + 1)], "asks for 6"),
        ([[float("nan")] * DIMS], "not finite in float32"),
        ([], r"shape \(0,\) for 1 texts"),
        (None, r"shape \(\) for 1 texts"),
        (["no vector"], "no numbers"),
    ],
)
def test_put_when_the_embedder_fails_writes_nothing(path: Path, made: Any, message: str) -> None:
    """A record is never kept without the vectors it should have."""
    with ChromaStore.open(path, index={"dims": DIMS, "embed": lambda texts: made}) as store:
        with pytest.raises(InfrastructureError, match=message):
            store.batch([PutOp(("n",), "gone", None), PutOp(("n",), "k", {"t": "a"})])
        assert store.get(("n",), "k") is None


async def test_embedder_when_asynchronous_serves_asynchronous_calls(path: Path) -> None:
    """Texts and queries go to the asynchronous embedder, in the caller's loop."""

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[byte / 255 for byte in hashlib.sha256(t.encode()).digest()[:4]] for t in texts]

    index: IndexConfig = {"dims": 4, "embed": embed, "fields": ["t"]}
    with ChromaStore.open(path, index=index) as store:
        await store.aput(("n",), "k", {"t": "a"})
        await store.aput(("n",), "l", {"t": "b"})
        found = await store.asearch(("n",), query="b")
        assert [item.key for item in found] == ["l", "k"]
        assert found[0].score == pytest.approx(1.0)
