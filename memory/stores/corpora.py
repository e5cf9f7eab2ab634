"""The indexes of a ranked store: what they hold of a record, what they are asked, what may be out of date.

An index is never written when a record is. A write announces the records it touches, and whoever
searches next reads those records again from the store. So nothing depends on the order in which
threads and tasks happen to run, and no lock is held while a store works.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, cast
from weakref import WeakSet

from langgraph.store.base import get_text_at_path

from langgraft._core.canonical import JSON, at_path
from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft._core.forks import at_fork, renewed
from langgraft.memory.embedders.base import EmbeddingRequest, Vectors
from langgraft.memory.rankers.base import (
    Document,
    DurableIndex,
    EmbeddingIndex,
    Order,
    RankerIndex,
    Scored,
    put_all,
    search_among,
    without_tie_count,
)
from langgraft.memory.stores.filters import FieldIndex
from langgraft.memory.stores.index_directory import UNSAVED_SHARE, IndexDirectory
from langgraft.memory.stores.kept_indexes import ChangeLog, Changes, KeptIndexes
from langgraft.memory.stores.programs import Address, Namespace
from langgraft.memory.stores.put_indexes import INDEX

_FIELDS: Final = "filter-fields.json"
"""File beside those that an index writes."""

_ESCAPED: Final = re.compile(r"[\x00-\x1f]")
"""What JSON writes as a letter behind a backslash, which would become a part of a word."""


class IndexedRecord(NamedTuple):
    """A record that is a document."""

    document: Document
    """As an index takes it, under the record's address."""
    value: Mapping[str, Any]
    """The whole record: filters may name any field of it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a record's text and position are."""

    fields: tuple[str, ...]
    """Paths of the texts, as LangGraph's `IndexConfig` has them; `$` is the whole record."""
    order_field: str | None

    def entry(
        self,
        address: Address,
        value: Mapping[str, Any] | None,
        index: bool | Sequence[str] | None = None,
    ) -> IndexedRecord | None:
        """Return a record as a document, or `None` if it is none, gone, or kept for puts.

        Args:
            address: Of the record.
            value: What it holds; `None`: it is gone.
            index: What its put said: `False`, or paths in the place of `fields`.
        """
        if value is None or address[0][:1] == (INDEX,):
            return None
        text = self.text(value, index)
        if text is None:
            return None
        return IndexedRecord(Document(address, text, self.order(address, value)), value)

    def text(
        self, value: Mapping[str, Any], index: bool | Sequence[str] | None = None
    ) -> str | None:
        """Return the text to rank by, or `None` for a record that is no document.

        A text is taken as it is. Anything else at a path is written as LangGraph writes it for
        an embedder: numbers as digits, lists and mappings as JSON.
        """
        if isinstance(index, bool):
            return None
        texts: list[str] = []
        for path in self.fields if index is None else index:
            found = at_path(value, path)
            texts += [found] if isinstance(found, str) else get_text_at_path(_plain(value), path)
        return "\n".join(texts) if texts else None

    def order(self, address: Address, value: Mapping[str, Any]) -> Order:
        """Return the record's place among equal scores; no two records share one.

        Records with an integer in `order_field` come by (integer, key), then namespace; all
        others after them by (namespace, key).
        """
        namespace, key = address
        number = None if self.order_field is None else at_path(value, self.order_field)
        if isinstance(number, int) and not isinstance(number, bool):
            return (0, number, key, *namespace)
        # No label is empty, so "" puts a namespace before those that it is a prefix of.
        return (1, *namespace, "", key)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold, and whose texts JSON does not escape."""
    match value:
        case str():
            return _ESCAPED.sub(" ", value)
        case Mapping():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case int() | float():
            return value
    return None


@dataclass(slots=True, eq=False)
class Watched:
    """A prefix whose records are being read."""

    prefix: Namespace

    disturbed: bool = field(default=False, kw_only=True)
    """A write was under way meanwhile; see `Corpora.undisturbed`."""

    def covers(self, address: Address) -> bool:
        """Say whether a record lies under the prefix."""
        return self.spans(address[0])

    def spans(self, namespace: Namespace) -> bool:
        """Say whether the records of a namespace lie under the prefix."""
        return namespace[: len(self.prefix)] == self.prefix


@dataclass(slots=True, eq=False)
class Filling(Watched):
    """A reading of fields that an indexed corpus lacks."""

    updates: dict[Address, IndexedRecord | None] = field(default_factory=dict)
    """What was entered in the corpus since it began."""


@dataclass(slots=True, eq=False)
class Corpus(Watched):
    """One index over all documents under a namespace prefix."""

    index: RankerIndex

    fields: FieldIndex = field(default_factory=FieldIndex)
    """Of the same documents: the filter keys that searches have named."""

    fillings: list[Filling] = field(default_factory=list)
    """Readings of further fields that are under way."""

    dirty: dict[Address, int] = field(default_factory=dict)
    """Records written since they were read, with the version of the last write."""

    read: dict[Address, int] = field(default_factory=dict)
    """Versions as of which changed records were read; an older reading never replaces one."""

    as_of: JSON = None
    """The moment of the store as of which it is, but for `dirty`; `None`: the store knows none."""

    unsaved: int = 0
    """Documents entered since it was kept beside the store."""

    grown: bool = False
    """Fields were added since it was saved: opened again, it would have all records read for them."""

    embeddings: EmbeddingIndex | None = field(init=False)
    """The index, if it ranks by vectors: known once, for asking takes as long as a short search."""

    def __post_init__(self) -> None:
        self.embeddings = self.index if isinstance(self.index, EmbeddingIndex) else None

    def enter(self, address: Address, entry: IndexedRecord | None) -> None:
        """Bring one record up to date, given what the store has; `None`: no document."""
        self.unsaved += 1
        if entry is None:
            self.index.remove(address)
        else:
            document = entry.document
            self.index.put(address, document.text, document.order)
        if self.fields.keys:
            enter_fields(self.fields, address, entry)
        for filling in self.fillings:
            filling.updates[address] = entry

    def enter_all(self, records: Iterable[IndexedRecord]) -> None:
        """Enter the records of a corpus that is still empty."""
        documents = []
        fields = self.fields
        for document, value in records:
            documents.append(document)
            if fields.keys:
                fields.put(cast("Address", document.id), value)
        put_all(self.index, documents)
        self.unsaved += len(documents)

    def adopt(self, fields: FieldIndex, updates: Mapping[Address, IndexedRecord | None]) -> None:
        """Take over fields that were read, after bringing them up to date."""
        for address, entry in updates.items():
            enter_fields(fields, address, entry)
        self.fields.adopt(fields)
        self.grown = True

    def save(self, folder: Path) -> None:
        """Write the index and the fields into an empty folder."""
        assert isinstance(self.index, DurableIndex)
        self.index.save(folder)
        self.fields.save(folder / _FIELDS)

    def load(self, folder: Path) -> None:
        """Become what `save` wrote; the index is still empty."""
        cast("DurableIndex", self.index).load(folder)
        self.fields = FieldIndex.load(folder / _FIELDS)


def enter_fields(fields: FieldIndex, address: Address, entry: IndexedRecord | None) -> None:
    """Bring the fields of one record up to date; only documents have any."""
    if entry is None:
        fields.remove(address)
    else:
        fields.put(address, entry.value)


LEAST_KEPT: Final = 100
"""Documents entered that are not worth keeping an index for by themselves."""

FEWEST_KEPT: Final = 5
"""Documents an index must have to be kept beside a store: building so few is faster than opening it."""

_FIRST_LOOK: Final = 320
"""Documents ranked at first, at least, where only records can tell which of them pass: ranking
them again costs more than that, and among as many are ten, nearly always, of one in twenty."""

Learned: TypeAlias = tuple[EmbeddingRequest, Vectors]


@dataclass(frozen=True, slots=True)
class Ranking:
    """An answer."""

    hits: Sequence[Scored]
    """Best first. Those that cannot pass the filter are left out, as far as the corpus knows."""

    whole: bool
    """Nothing that could pass comes after them."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """No answer is possible before this is known."""

    requests: Sequence[EmbeddingRequest] = ()
    fields: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """A query, and which documents may answer it.

    With a filter, `Scored.tied` counts those that pass; it is 0 where that is not known.
    """

    query: str
    conditions: Mapping[str, Any] | None

    def ask(
        self, corpus: Corpus, *, limit: int, learned: Sequence[Learned] = ()
    ) -> Ranking | Lacking:
        """Return the best `limit` or more, or say what is lacking."""
        index = corpus.index
        fields = corpus.fields.unread(self.conditions) if self.conditions else ()
        requests: Sequence[EmbeddingRequest] = ()
        if corpus.embeddings is not None:
            for request, vectors in learned:
                corpus.embeddings.learn(request, vectors)
            requests = corpus.embeddings.lacking(self.query)
        if requests or fields:
            return Lacking(requests, fields)
        if not self.conditions:
            return _ranking(index.search(self.query, limit=limit), limit)
        documents = corpus.fields.matching(self.conditions)
        if documents is None:
            limit = max(limit, _FIRST_LOOK)
            return _ranking(without_tie_count(index.search(self.query, limit=limit)), limit)
        return _ranking(search_among(index, self.query, documents, limit=limit), limit)


def _ranking(hits: Sequence[Scored], limit: int) -> Ranking:
    return Ranking(hits, whole=len(hits) < limit)


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
        self.lock = renewed(Lock())
        self.version = 0
        self._writing: list[frozenset[Address]] = []
        self._unsettled: set[Address] = set()
        self._made: dict[Hashable, Corpora] = {}
        self._all: WeakSet[Corpora] = WeakSet()
        at_fork("in_child", self._in_child)

    def _in_child(self) -> None:
        for corpora in self._all:
            corpora.leave_to_parent()

    def corpora(self, kind: Hashable, capacity: int, kept: KeptIndexes | None = None) -> "Corpora":
        """Return the indexes of a kind; those of equal rankers over equal fields are of one."""
        with self.lock:
            found = self._made.get(kind)
        return found or self._made.setdefault(kind, Corpora(capacity, shared=self, kept=kept))

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
        touched = frozenset(addresses)
        for corpora in self._all:
            corpora.mark_as_of(self.version, touched)


class Corpora:
    """The indexes of one store by one ranker, for any number of threads and tasks.

    Args:
        capacity: How many indexes are kept; the least recently searched go first.
        directory: Where they are kept beyond this object's life, if at all.
        shared: Other indexes over the same records.
        kept: Where they are kept beside a store that tells what was written, in the place of
            `directory`.
    """

    def __init__(
        self,
        capacity: int,
        directory: IndexDirectory | None = None,
        shared: SharedIndexes | None = None,
        kept: KeptIndexes | None = None,
    ) -> None:
        self._capacity = capacity
        self._directory = directory
        self._kept = kept
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

    @property
    def kept_in(self) -> Path | None:
        """Where indexes are kept that follow a store's log, if they are."""
        return None if self._kept is None else self._kept.path

    def clear(self) -> None:
        """Forget all indexes over the records, those that are being built included."""
        self._shared.clear()

    def announce(self, touched: frozenset[Address]) -> None:
        """Note in the directory, if there is one, what is about to be written."""
        if self._directory is not None:
            self._directory.announce(touched)

    def forget(self) -> None:
        """Forget these indexes; under the lock."""
        if self._kept is not None:
            for prefix in (*self._ready, *(corpus.prefix for corpus in self._building)):
                self._kept.drop(prefix)
        self._ready.clear()
        self._building.clear()
        if self._directory is not None:
            self._directory.clear()

    def leave_to_parent(self) -> None:
        """Forget, in a forked child, what threads of the parent were changing; what is saved stays."""
        if self._lock.locked() or self._building or self._filling:
            self._ready, self._building, self._filling = {}, [], []

    def mark_as_of(self, version: int, addresses: frozenset[Address]) -> None:
        """Have records read again as of a version; under the lock."""
        namespaces = {namespace for namespace, _ in addresses}
        groups: Iterable[tuple[Namespace, Iterable[Address]]] = groupby(addresses, itemgetter(0))
        if len(namespaces) == 1:  # members of a set are taken over without being hashed
            groups = [(namespaces.pop(), addresses)]
        for namespace, among in groups:
            written = dict.fromkeys(among, version)
            for corpus in (*self._ready.values(), *self._building):
                if corpus.spans(namespace):
                    corpus.dirty.update(written)
            for watched in (*self._building, *self._filling):
                watched.disturbed |= watched.spans(namespace)

    def close(self) -> None:
        """Save what changed and leave the directory; without one, do nothing."""
        if (directory := self._directory) is not None:
            with self._lock:
                for corpus in self._ready.values():
                    if directory.behind(corpus.prefix, len(corpus.index), anew=corpus.grown):
                        self._save(corpus, directory)
                self._shared.leave(self)
                directory.close()

    def as_of(self, prefix: Namespace) -> tuple[JSON] | None:
        """Return the moment as of which a prefix is indexed; `None`: it is not indexed."""
        with self._lock:
            corpus = self._ready.get(prefix)
            return None if corpus is None else (corpus.as_of,)

    def follow(self, prefix: Namespace, told: Changes) -> None:
        """Have read again what a store says was written, or all if it cannot tell."""
        with self._lock:
            corpus = self._ready.get(prefix)
            if corpus is None:
                return
            if told.addresses is None:
                self._drop(corpus)
                return
            if told.addresses:
                self._shared.version += 1
                corpus.dirty.update(dict.fromkeys(told.addresses, self._shared.version))
            corpus.as_of = told.as_of

    def flush(self, log: ChangeLog) -> None:
        """Keep what changed since it was kept, unless the store has forgotten what happened since."""
        with self._lock:
            unsaved = [each for each in self._ready.values() if each.unsaved or each.grown]
        for corpus in unsaved if self._kept is not None else ():
            told = log.changes(corpus.prefix, corpus.as_of)
            with self._lock:
                if self._ready.get(corpus.prefix) is not corpus:
                    continue
                if told.addresses is None:
                    self._drop(corpus)
                else:
                    self._keep(corpus)

    def reopen(self, prefix: Namespace, index: RankerIndex) -> bool:
        """Offer a prefix for searching as it was kept, if it was.

        Args:
            prefix: The prefix.
            index: An empty index. If there is nothing usable it must not be used any more.
        """
        if not isinstance(index, DurableIndex):
            return False
        corpus = Corpus(prefix, index)
        with self._lock:
            dirty: Collection[Address] | None = None
            if self._directory is not None:
                dirty = self._directory.load(prefix, corpus)
            elif self._kept is not None and (kept := self._kept.load(prefix, corpus)) is not None:
                dirty, corpus.as_of = kept
            if dirty is None:
                return False
            # Other threads may have come first; theirs is as good.
            if prefix not in self._ready:
                corpus.dirty = dict.fromkeys(dirty, self._shared.version)
                self._enter(corpus)
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

    def has(self, prefix: Namespace) -> bool:
        """Say whether a prefix is indexed."""
        with self._lock:
            return prefix in self._ready

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
        entries: Mapping[Address, IndexedRecord | None],
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
            return query(corpus)

    def due(self, corpus: Corpus) -> bool:
        """Say whether so much has changed that an index is to be saved."""
        with self._lock:
            return self._is_due(corpus)

    def save(self, corpus: Corpus) -> None:
        """Save an index, unless another thread was faster."""
        with self._lock:
            if not self._is_due(corpus):
                return
            if self._directory is not None:
                self._save(corpus, self._directory)
            else:
                self._keep(corpus)

    def _enter(self, corpus: Corpus) -> None:
        self._ready.pop(corpus.prefix, None)
        self._ready[corpus.prefix] = corpus
        while len(self._ready) > self._capacity:
            del self._ready[next(iter(self._ready))]

    def _drop(self, corpus: Corpus) -> None:
        """Have a corpus built anew."""
        del self._ready[corpus.prefix]
        if self._kept is not None:
            self._kept.drop(corpus.prefix)

    def _is_due(self, corpus: Corpus) -> bool:
        if self._ready.get(corpus.prefix) is not corpus:
            return False
        documents = len(corpus.index)
        if self._directory is not None:
            return self._directory.due(corpus.prefix, documents, anew=corpus.grown)
        return corpus.grown or corpus.unsaved > max(LEAST_KEPT, documents // UNSAVED_SHARE)

    def _keep(self, corpus: Corpus) -> None:
        few = len(corpus.index) < FEWEST_KEPT
        if self._kept is not None and isinstance(corpus.index, DurableIndex) and not few:
            dirty = corpus.dirty.keys() | set(filter(corpus.covers, self._shared.in_flight()))
            self._kept.save(corpus.prefix, corpus, dirty, corpus.as_of)
        corpus.unsaved, corpus.grown = 0, False

    def _save(self, corpus: Corpus, directory: IndexDirectory) -> None:
        in_flight = set(filter(corpus.covers, self._shared.in_flight()))
        directory.save(corpus.prefix, corpus, corpus.dirty.keys() | in_flight)
        corpus.grown = False

    def _watch(self, watched: Watched) -> None:
        watched.disturbed = any(map(watched.covers, self._shared.in_flight()))
