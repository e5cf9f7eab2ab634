"""The first answer of a bank: with an index that is kept in a directory, over building the index."""

import shutil
import tempfile
from pathlib import Path

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.performance.texts import documents, queries
from langgraft.benchmarks.performance.timing import Compared, compared
from langgraft.memory import BankContent, MemoryItem, RecallContext
from langgraft.memory.providers import TrajectoryMemory, TrajectorySettings
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


def recall_opened_over_built(size: int, *, rounds: int = 2) -> Compared:
    """Compare a provider's first recall, its making included, with and without a saved index.

    Args:
        size: Items in the bank.
        rounds: How often each of 3 queries is the first one.
    """
    store, settings = InMemoryStore(), TrajectorySettings(ranker=BM25())
    context = RecallContext(domain="synthetic", task_id="t", episode_id="e")
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "index"
        first = TrajectoryMemory(store, settings=settings, index_directory=saved)
        first.restore(_bank(size))
        first.provide("w0", context)
        first.close()

        def opened(query: str) -> None:
            provider = TrajectoryMemory(store, settings=settings, index_directory=saved)
            provider.provide(query, context)
            provider.close()

        def built(query: str) -> None:
            provider = TrajectoryMemory(store, settings=settings)
            provider.refresh()  # or the index of the one before it would do
            provider.provide(query, context)

        return compared(opened, built, queries(_FIRSTS), rounds=rounds)


def _bank(size: int) -> BankContent:
    items = (
        MemoryItem(
            id=str(i),
            text=f"Task: {text}",
            type="operational",
            source_domain="synthetic",
            episode_id=str(i),
            success=True,
            order_index=i,
            key=text,
        )
        for i, text in enumerate(documents(size))
    )
    return BankContent({item.id: item for item in items})


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
