"""Opening a bank whose index is kept in a directory, over building the index."""

import shutil
import tempfile
from pathlib import Path

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.performance.texts import documents, queries
from langgraft.benchmarks.performance.timing import Compared, compared
from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore

_NAMESPACE = ("bank",)
_FIRSTS = 3


def opening_over_building(size: int, *, written: int = 100, rounds: int = 2) -> Compared:
    """Compare opening a store up to the answer to its first query, with and without a directory.

    Args:
        size: Number of records.
        written: Records written after the index was saved, as before a crash; they are read
            again.
        rounds: How often each of 3 queries is the first one.
    """
    store = InMemoryStore()
    store.batch([PutOp(_NAMESPACE, str(i), {"text": t}) for i, t in enumerate(documents(size))])
    with tempfile.TemporaryDirectory() as folder:
        left = _left_behind(store, Path(folder), written)
        copies = iter([_copy(left, i) for i in range(1 + _FIRSTS * rounds)])
        opened: list[RankedStore] = []

        def reopened(query: str) -> None:
            opened.append(RankedStore(store, BM25(), field="text", directory=next(copies)))
            opened[-1].search(_NAMESPACE, query=query)

        def built(query: str) -> None:
            RankedStore(store, BM25(), field="text").search(_NAMESPACE, query=query)

        measured = compared(reopened, built, queries(_FIRSTS), rounds=rounds)
        for ranked in opened:
            ranked.close()
        return measured


def _left_behind(store: InMemoryStore, folder: Path, written: int) -> Path:
    """Return the directory of a store that saved its index, wrote records, and was not closed."""
    with RankedStore(store, BM25(), field="text", directory=folder / "index") as ranked:
        ranked.search(_NAMESPACE, query="w0")
    with RankedStore(store, BM25(), field="text", directory=folder / "index") as ranked:
        for i, text in enumerate(queries(written)):
            ranked.put(_NAMESPACE, str(i), {"text": text})
        return _copy(folder / "index", 0)


def _copy(directory: Path, number: int) -> Path:
    return Path(shutil.copytree(directory, directory.with_name(f"{directory.name}-{number}")))
