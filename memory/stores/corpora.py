"""The indexes of a ranked store, and what in them may be out of date.

An index is never written when a record is. A write announces the records it touches, and whoever
searches next reads those records again from the store. So nothing depends on the order in which
threads and tasks happen to run, and no lock is held while a store works.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Literal, TypeAlias, TypeVar
from weakref import WeakSet

from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft.memory.rankers.base import DurableIndex, RankerIndex
from langgraft.memory.stores.corpus import Corpus, Filling, Watched
from langgraft.memory.stores.fields import FieldIndex
from langgraft.memory.stores.index_directory import IndexDirectory
from langgraft.memory.stores.records import Address, Entry, Namespace

T = TypeVar("T")

Versions: TypeAlias = Mapping[Address, int]
"""Records to read again, each with the version its reading will have."""

_Fate: TypeAlias = Literal["refused", "done", "unknown"]
"""What became of a write: a store that gave no answer may still carry it out."""


class SharedIndexes:
    """Which indexes there are over the same records, so that each hears of every write.

    Ranked stores that are given the same object share what they have indexed, and none of them
    misses what is written through another one.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.version = 0
        self._writing: list[frozenset[Address]] = []
        self._unsettled: set[Address] = set()
        self._made: dict[Hashable, Corpora] = {}
        self._all: WeakSet[Corpora] = WeakSet()

    def corpora(self, kind: Hashable, capacity: int) -> "Corpora":
        """Return the indexes of a kind; those of equal rankers over equal fields are of one."""
        with self.lock:
            found = self._made.get(kind)
        return found or self._made.setdefault(kind, Corpora(capacity, shared=self))

    def enter(self, corpora: "Corpora") -> None:
        """Let indexes hear of writes."""
        with self.lock:
            self._all.add(corpora)

    def leave(self, corpora: "Corpora") -> None:
        """Let indexes hear of writes no more; under the lock."""
        self._all.discard(corpora)

    @contextmanager
    def writing(self, addresses: Iterable[Address]) -> Iterator[None]:
        """Do as `Corpora.writing` does."""
        touched = frozenset(addresses)
        self._begin(touched)
        fate: _Fate = "refused"
        try:
            # After they count as being written: an index saved at this moment says so.
            for corpora in self._listed():
                corpora.announce(touched)
            fate = "unknown"
            yield
            fate = "done"
        except (InputError, ReadOnlyStoreError):
            fate = "refused"
            raise
        finally:
            self._end(touched, fate)

    def mark(self, addresses: Iterable[Address]) -> None:
        """Have records read again at the next search."""
        with self.lock:
            self._mark(addresses)

    def clear(self) -> None:
        """Forget all indexes, those that are being built included."""
        listed = self._listed()
        with self.lock:
            self._unsettled.clear()
            for corpora in listed:
                corpora.forget()

    def in_flight(self) -> Iterator[Address]:
        """Yield what is being written, or may be; under the lock."""
        for touched in self._writing:
            yield from touched
        yield from self._unsettled

    def _listed(self) -> "list[Corpora]":
        with self.lock:
            return list(self._all)

    def _begin(self, touched: frozenset[Address]) -> None:
        with self.lock:
            self._writing.append(touched)
            self._mark(touched)

    def _end(self, touched: frozenset[Address], fate: _Fate) -> None:
        with self.lock:
            self._writing.remove(touched)
            self._mark(touched)
            if fate == "done":
                self._unsettled -= touched
            elif fate == "unknown":
                self._unsettled |= touched

    def _mark(self, addresses: Iterable[Address]) -> None:
        self.version += 1
        listed = list(addresses)
        for corpora in self._all:
            corpora.mark_as_of(self.version, listed)


class Corpora:
    """The indexes of one store by one ranker, for any number of threads and tasks.

    Args:
        capacity: How many indexes are kept; the least recently searched go first.
        directory: Where they are kept beyond this object's life, if at all.
        shared: Other indexes over the same records.
    """

    def __init__(
        self,
        capacity: int,
        directory: IndexDirectory | None = None,
        shared: SharedIndexes | None = None,
    ) -> None:
        self._capacity = capacity
        self._directory = directory
        self._shared = shared or SharedIndexes()
        self._lock = self._shared.lock
        self._ready: dict[Namespace, Corpus] = {}
        self._building: list[Corpus] = []
        self._filling: list[Filling] = []
        self._shared.enter(self)

    def writing(self, addresses: Iterable[Address]) -> AbstractContextManager[None]:
        """Announce a write for as long as the block runs.

        A store may carry out a write later that was cancelled, or that it did not answer. Its
        records are therefore read again at every search, until a later write of theirs succeeds
        or `clear` is called. What was refused was not written.

        Raises:
            InputError: The directory was closed.
            InfrastructureError: The directory can be neither written nor cleared.
        """
        self.announce(frozenset())  # refused where the directory was closed
        return self._shared.writing(addresses)

    def mark(self, addresses: Iterable[Address]) -> None:
        """Have records read again at the next search."""
        self._shared.mark(addresses)

    def clear(self) -> None:
        """Forget all indexes over the records, those that are being built included."""
        self._shared.clear()

    def announce(self, touched: frozenset[Address]) -> None:
        """Note in the directory, if there is one, what is about to be written."""
        if self._directory is not None:
            self._directory.announce(touched)

    def forget(self) -> None:
        """Forget these indexes; under the lock."""
        self._ready.clear()
        self._building.clear()
        if self._directory is not None:
            self._directory.clear()

    def mark_as_of(self, version: int, addresses: Iterable[Address]) -> None:
        """Have records read again as of a version; under the lock."""
        for address in addresses:
            for corpus in (*self._ready.values(), *self._building):
                if corpus.covers(address):
                    corpus.dirty[address] = version
            for watched in (*self._building, *self._filling):
                watched.disturbed |= watched.covers(address)

    def close(self) -> None:
        """Save what changed and leave the directory; without one, do nothing."""
        if self._directory is None:
            return
        with self._lock:
            for corpus in self._ready.values():
                if self._directory.behind(corpus.prefix, len(corpus.index)):
                    self._save(corpus, self._directory)
            self._shared.leave(self)
            self._directory.close()

    def reopen(self, prefix: Namespace, index: RankerIndex) -> bool:
        """Offer a prefix for searching as the directory has it, if it does.

        Args:
            prefix: The prefix.
            index: An empty index. If there is nothing usable it must not be used any more.
        """
        if self._directory is None or not isinstance(index, DurableIndex):
            return False
        with self._lock:
            dirty = self._directory.load(prefix, index)
            if dirty is None:
                return False
            # Other threads may have come first; theirs is as good.
            if prefix not in self._ready:
                version = self._shared.version
                self._enter(Corpus(prefix, index, dirty=dict.fromkeys(dirty, version)))
            return True

    @contextmanager
    def building(self, prefix: Namespace, index: RankerIndex) -> Iterator[Corpus]:
        """Return a corpus to fill: until the block ends nobody else sees its index."""
        corpus = Corpus(prefix, index)
        with self._lock:
            self._building.append(corpus)
            self._watch(corpus)
        try:
            yield corpus
        finally:
            with self._lock:
                if corpus in self._building:
                    self._building.remove(corpus)

    @contextmanager
    def filling(self, corpus: Corpus) -> Iterator[Filling]:
        """Note what is entered in a corpus for as long as the block reads fields it lacks."""
        filling = Filling(corpus.prefix)
        with self._lock:
            corpus.fillings.append(filling)
            self._filling.append(filling)
            self._watch(filling)
        try:
            yield filling
        finally:
            with self._lock:
                corpus.fillings.remove(filling)
                self._filling.remove(filling)

    def undisturbed(self, watched: Watched) -> bool:
        """Say whether no write could move records that are being read.

        Asked of the time since the reading began, or since this was last asked.
        """
        with self._lock:
            disturbed = watched.disturbed
            self._watch(watched)
            return not disturbed

    def fill(self, corpus: Corpus, filling: Filling, fields: FieldIndex) -> None:
        """Add fields to a corpus, as read during `filling`; later updates replace readings."""
        with self._lock:
            corpus.adopt(fields, filling.updates)

    def install(self, corpus: Corpus) -> None:
        """Offer a filled corpus for searching, unless `clear` was called meanwhile."""
        with self._lock:
            if corpus not in self._building:
                return
            self._building.remove(corpus)
            self._enter(corpus)
            self._save_if_due(corpus)

    def open(self, prefix: Namespace) -> tuple[Corpus, Versions] | None:
        """Return the corpus of a prefix and what must be read again before it is searched."""
        with self._lock:
            corpus = self._ready.pop(prefix, None)
            if corpus is None:
                return None
            self._ready[prefix] = corpus
            versions = dict(corpus.dirty)
            for address in self._shared.in_flight():
                if corpus.covers(address):
                    versions.setdefault(address, self._shared.version)
            return corpus, versions

    def search(
        self,
        corpus: Corpus,
        entries: Mapping[Address, Entry | None],
        versions: Versions,
        query: Callable[[Corpus], T],
    ) -> T:
        """Enter fresh readings and query, with no other thread in between.

        `query` must not wait for anything: all other searches wait for it.
        """
        with self._lock:
            for address, entry in entries.items():
                version = versions[address]
                if version >= corpus.read.get(address, 0):
                    corpus.enter(address, entry)
                    corpus.read[address] = version
                if corpus.dirty.get(address) == version:
                    del corpus.dirty[address]
            answer = query(corpus)
            self._save_if_due(corpus)
            return answer

    def _enter(self, corpus: Corpus) -> None:
        self._ready.pop(corpus.prefix, None)
        self._ready[corpus.prefix] = corpus
        while len(self._ready) > self._capacity:
            del self._ready[next(iter(self._ready))]

    def _save_if_due(self, corpus: Corpus) -> None:
        directory = self._directory
        if (
            directory is not None
            and self._ready.get(corpus.prefix) is corpus
            and directory.due(corpus.prefix, len(corpus.index))
        ):
            self._save(corpus, directory)

    def _save(self, corpus: Corpus, directory: IndexDirectory) -> None:
        assert isinstance(corpus.index, DurableIndex)
        in_flight = set(filter(corpus.covers, self._shared.in_flight()))
        directory.save(corpus.prefix, corpus.index, corpus.dirty.keys() | in_flight)

    def _watch(self, watched: Watched) -> None:
        watched.disturbed = any(map(watched.covers, self._shared.in_flight()))
