"""BM25: ours over bm25s, which cannot add or delete, and what a search and an addition cost.

Every function may be called as `alone(function, size)`, which is how figures are meant.
"""

from typing import Any

import bm25s
from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.performance.texts import documents, queries
from langgraft.benchmarks.performance.timing import Compared, compared
from langgraft.memory.rankers import BM25, tokenize
from langgraft.memory.rankers.base import Document, put_all
from langgraft.memory.stores import RankedStore

_LIMIT = 10
_NAMESPACE = ("bank",)


def search_over_bm25s(size: int, *, rounds: int = 5) -> Compared:
    """Compare a search: exact scores over bm25s' own `retrieve`.

    Args:
        size: Number of documents.
        rounds: How often each of 40 queries is asked.
    """
    corpus = documents(size)
    index = BM25().index()
    put_all(index, [Document(i, text, (i,)) for i, text in enumerate(corpus)])
    peer = _peer([tokenize(text) for text in corpus])
    return compared(
        lambda query: index.search(query, limit=_LIMIT),
        lambda query: _retrieve(peer, query),
        queries(40),
        rounds=rounds,
    )


def changing_over_bm25s(size: int, *, rounds: int = 2) -> Compared:
    """Compare adding one document and searching, over what bm25s needs: building anew.

    Args:
        size: Number of documents, tokenized beforehand for bm25s.
        rounds: How often each of 3 documents is added.
    """
    corpus = documents(size)
    store = RankedStore(InMemoryStore(), BM25(), field="text")
    for i, text in enumerate(corpus):
        store.put(_NAMESPACE, str(i), {"text": text})
    tokens = [tokenize(text) for text in corpus]

    def ours(query: str) -> None:
        store.put(_NAMESPACE, query, {"text": query})
        store.search(_NAMESPACE, query=query, limit=_LIMIT)

    def theirs(query: str) -> None:
        _retrieve(_peer([*tokens, tokenize(query)]), query)

    return compared(ours, theirs, queries(3), rounds=rounds)


def _peer(tokens: list[list[str]]) -> Any:
    peer = bm25s.BM25(k1=1.5, b=0.75, method="lucene", backend="numpy")
    peer.index(tokens, show_progress=False)
    return peer


def _retrieve(peer: Any, query: str) -> object:
    return peer.retrieve([tokenize(query)], k=_LIMIT, show_progress=False, n_threads=1)
