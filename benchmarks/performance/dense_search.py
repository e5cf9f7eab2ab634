"""Exact search among vectors, over LangGraph's store, one matrix product and Chroma's search; its writes.

Every function may be called as `alone(function, size)`, which is how figures are meant.
"""

import itertools
import json
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import chromadb
import numpy as np
from chromadb.config import Settings
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray
from typing_extensions import override

from langgraft.benchmarks.performance.lexical_search import documents
from langgraft.benchmarks.performance.timing import Compared, compared
from langgraft.memory.rankers import Dense
from langgraft.memory.stores import ChromaStore, RankedStore

DIMENSIONS = 384
GROUPS = 20
"""A filter on one group passes 5 %."""

_LIMIT = 10
_QUERIES = 12
_NAMESPACE = ("bank",)


class DrawnEmbeddings(Embeddings):
    """Random directions, the same for the same text: `17` is the vector number 17.

    Any other text has the vector of a number that is computed from it.
    """

    def __init__(self, size: int) -> None:
        drawn = np.random.default_rng(0).standard_normal((size + _QUERIES, DIMENSIONS))
        self.matrix: NDArray[np.float32] = (
            drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        ).astype(np.float32)

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self.matrix[[self._row(text) for text in texts]].tolist()
        return vectors

    def _row(self, text: str) -> int:
        return int(text) if text.isdigit() else crc32(text.encode()) % len(self.matrix)

    @override
    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def dense_over_in_memory_store(size: int, *, rounds: int = 2) -> Compared:
    """Compare a search of our store over one of LangGraph's `InMemoryStore`.

    Args:
        size: Number of records.
        rounds: How often each of 12 queries is asked.
    """
    embeddings = DrawnEmbeddings(size)
    peer = InMemoryStore(index={"dims": DIMENSIONS, "embed": embeddings, "fields": ["text"]})
    # One at a time: it cannot embed a batch that holds a text twice, and needs no larger ones.
    for op in _records(size):
        peer.batch([op])
    ours = _ours(embeddings, size)
    return compared(
        lambda query: ours.search(_NAMESPACE, query=query, limit=_LIMIT),
        lambda query: peer.search(_NAMESPACE, query=query, limit=_LIMIT),
        _queries(size),
        rounds=rounds,
    )


def dense_over_matrix_product(size: int, *, rounds: int = 7) -> Compared:
    """Compare a search of our store over a bare matrix product and `argpartition`.

    Args:
        size: Number of records.
        rounds: How often each of 12 queries is asked.
    """
    embeddings = DrawnEmbeddings(size)
    ours, matrix = _ours(embeddings, size), embeddings.matrix[:size].copy()

    def theirs(query: str) -> NDArray[np.intp]:
        return np.argpartition(matrix @ embeddings.matrix[int(query)], -_LIMIT)[-_LIMIT:]

    return compared(
        lambda query: ours.search(_NAMESPACE, query=query, limit=_LIMIT),
        theirs,
        _queries(size),
        rounds=rounds,
    )


def filtered_over_chroma(size: int, *, rounds: int = 3) -> Compared:
    """Compare a search under a filter that passes 5 % over Chroma's own query.

    Chroma keeps its collection in a temporary directory and is given the vector of the query.

    Args:
        size: Number of records; Chroma takes some minutes to take in 100,000.
        rounds: How often each of 12 queries is asked.
    """
    embeddings = DrawnEmbeddings(size)
    ours = _ours(embeddings, size)
    vectors: dict[str, Any] = {
        query: embeddings.matrix[int(query)][np.newaxis] for query in _queries(size)
    }
    with TemporaryDirectory() as folder, closing(_client(folder)) as client:
        peer = _collection(client, embeddings, size)
        return compared(
            lambda query: ours.search(_NAMESPACE, query=query, filter={"group": 3}, limit=_LIMIT),
            lambda query: peer.query(vectors[query], n_results=_LIMIT, where={"group": 3}),
            _queries(size),
            rounds=rounds,
        )


def _ours(embeddings: DrawnEmbeddings, size: int) -> RankedStore:
    store = InMemoryStore()
    store.batch(_records(size))
    return RankedStore(store, Dense(embeddings), field="text")


def _records(size: int) -> list[PutOp]:
    return [PutOp(_NAMESPACE, str(i), {"text": str(i), "group": i % GROUPS}) for i in range(size)]


def _queries(size: int) -> list[str]:
    return [str(size + i) for i in range(_QUERIES)]


def _client(folder: str) -> Any:
    # Its type hides that it can be closed.
    return chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))


def _collection(client: Any, embeddings: DrawnEmbeddings, size: int) -> Any:
    collection = client.create_collection("floor", embedding_function=None)
    step = client.get_max_batch_size()
    for start in range(0, size, step):
        numbers = range(start, min(start + step, size))
        collection.add(
            ids=[str(i) for i in numbers],
            embeddings=embeddings.matrix[numbers.start : numbers.stop],
            metadatas=[{"group": i % GROUPS} for i in numbers],
        )
    return collection


_WRITES = 6


def write_over_chroma(size: int, *, rounds: int = 3) -> Compared:
    """Compare a batch of new records over an `upsert` of as many rows.

    A row of Chroma's has what the record needs and no more: its id, its text as metadata, and a
    vector of one number. Both are persistent, in a temporary directory each.

    Args:
        size: Records of a batch; a provider writes a handful when it files an episode.
        rounds: How often each of 6 batches is written, under new keys each time.
    """
    numbers = itertools.count()
    texts = documents(size)
    with (
        TemporaryDirectory() as mine,
        TemporaryDirectory() as theirs,
        ChromaStore.open(mine) as store,
        closing(_client(theirs)) as client,
    ):
        collection = client.create_collection("floor", embedding_function=None)

        def ours(_: int) -> None:
            store.batch([PutOp(_NAMESPACE, str(next(numbers)), {"text": t}) for t in texts])

        def floor(_: int) -> None:
            collection.upsert(
                ids=[str(next(numbers)) for _ in texts],
                embeddings=[[1.0]] * size,
                metadatas=[{"value": json.dumps({"text": text})} for text in texts],
            )

        return compared(ours, floor, range(_WRITES), rounds=rounds)
