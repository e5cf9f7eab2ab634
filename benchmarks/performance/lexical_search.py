"""What searching by words costs: ours over bm25s, an opened index over a built one, a provider's recall.

Every function may be called as `alone(function, size)`, which is how figures are meant. The texts
are short and synthetic: words drawn by Zipf's law, as in the figures of BM25 libraries.
"""

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.performance.timing import Compared, alone, compared, cpu_seconds
from langgraft.memory import (
    BankContent,
    Episode,
    MemoryItem,
    MemoryProvider,
    Outcome,
    RecallContext,
    Step,
    open_memory,
)
from langgraft.memory.providers import TrajectoryMemory, TrajectorySettings
from langgraft.memory.rankers import BM25, tokenize
from langgraft.memory.rankers.base import Document, put_all
from langgraft.memory.stores import RankedStore

VOCABULARY = 20_000
DOCUMENT_WORDS = (15, 45)
QUERY_WORDS = (6, 13)


def texts(count: int, words: tuple[int, int], *, seed: int) -> list[str]:
    """Draw texts of a length between two bounds, both possible."""
    draw = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, VOCABULARY + 1)
    lengths = draw.integers(words[0], words[1] + 1, size=count)
    numbers = draw.choice(VOCABULARY, size=int(lengths.sum()), p=weights / weights.sum())
    return list(_joined(numbers.tolist(), lengths.tolist()))


def documents(count: int) -> list[str]:
    """Draw documents of 15 to 45 words."""
    return texts(count, DOCUMENT_WORDS, seed=0)


def queries(count: int) -> list[str]:
    """Draw queries of 6 to 13 words."""
    return texts(count, QUERY_WORDS, seed=1)


def _joined(numbers: list[int], lengths: list[int]) -> Iterator[str]:
    start = 0
    for length in lengths:
        yield " ".join(f"w{number}" for number in numbers[start : start + length])
        start += length


_LIMIT = 10
_NAMESPACE = ("bank",)
_OTHER_TASKS = {"same_task": "exclude"}
_ASKING = RecallContext(domain="synthetic", task_id="t", episode_id="e")


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
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "index"
        first = TrajectoryMemory(store, settings=settings, index_directory=saved)
        first.restore(bank(size))
        first.provide("w0", _ASKING)
        first.close()

        def opened(query: str) -> None:
            provider = TrajectoryMemory(store, settings=settings, index_directory=saved)
            provider.provide(query, _ASKING)
            provider.close()

        def built(query: str) -> None:
            provider = TrajectoryMemory(store, settings=settings)
            provider.refresh()  # or the index of the one before it would do
            provider.provide(query, _ASKING)

        return compared(opened, built, queries(_FIRSTS), rounds=rounds)


def first_recall_of_process(size: int, *, rounds: int = 3) -> Compared:
    """Compare a process's first recall from a SQLite file with and without an index beside it.

    Opening the file is part of it, importing is not. Items of the task that asks are left out, as
    agents with memory have it.

    Args:
        size: Items in the bank.
        rounds: How often each is done, in a process of its own each time.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "memory.sqlite"
        with open_memory(place, settings=_OTHER_TASKS) as memory:
            memory.restore(bank(size))
            memory.provide("w0", _ASKING)
        bare = Path(folder) / "bare"
        bare.mkdir()
        shutil.copy(place, bare / place.name)
        opened, built = [], []
        for _ in range(rounds):
            opened.append(alone(_first_recall, place))
            built.append(alone(_first_recall, bare / place.name))
            shutil.rmtree(f"{bare / place.name}.indexes")
        ours, floor = min(opened), min(built)
        return Compared(ours / floor, ours * 1e3, floor * 1e3)


def _first_recall(place: Path) -> float:
    """Open a memory and ask it; everything is imported, and nothing of it was used yet."""
    opened: list[MemoryProvider[Any]] = []

    def first() -> None:
        opened.append(open_memory(place, settings=_OTHER_TASKS))
        assert opened[0].provide(queries(1)[0], _ASKING).items

    seconds = cpu_seconds(first)
    opened[0].close()
    return seconds


def bank(size: int) -> BankContent:
    """Return a bank of so many items, each of a task of its own."""
    items = (
        MemoryItem(
            id=str(i),
            text=f"Task: {text}",
            type="operational",
            source_domain="synthetic",
            episode_id=str(i),
            task_id=str(i),
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


def recall_over_ranker(items: int = 1_000, *, rounds: int = 7) -> Compared:
    """Compare a recall over a search of the ranker's own index with the same contents.

    Args:
        items: Items in the bank.
        rounds: How often each of 40 queries is asked.
    """
    ranker = BM25()
    provider = TrajectoryMemory(InMemoryStore(), settings=TrajectorySettings(ranker=ranker))
    index = ranker.index()
    for i, text in enumerate(documents(items)):
        provider.file(_episode(str(i), text))
    for item in provider.content().items.values():
        index.put(item.id, item.retrieval_key, (item.order_index,))
    limit = provider.settings.top_k
    return compared(
        lambda query: provider.provide(query, _ASKING),
        lambda query: index.search(query, limit=limit),
        queries(40),
        rounds=rounds,
    )


def take_in_over_put(items: int = 1_000, *, rounds: int = 3) -> Compared:
    """Compare filing an episode over putting one record of the same text into the store itself.

    Args:
        items: Items in the bank.
        rounds: How often each of 40 is filed, under a new id each time.
    """
    store, numbers = InMemoryStore(), count(items)
    provider = TrajectoryMemory(store, settings=TrajectorySettings(ranker=BM25()))
    provider.restore(bank(items))

    def floor(text: str) -> None:
        store.put(("plain",), str(next(numbers)), {"text": text})

    return compared(
        lambda text: provider.file(_episode(str(next(numbers)), text)),
        floor,
        documents(40),
        rounds=rounds,
    )


def _episode(identity: str, task: str) -> Episode:
    return Episode(
        id=identity,
        domain="synthetic",
        task_id=identity,
        task=task,
        steps=(Step(thought="", action="go", observation="a door"),),
        outcome=Outcome(success=True),
    )
