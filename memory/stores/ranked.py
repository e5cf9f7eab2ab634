"""Exact, deterministic search over any LangGraph store: rank, fetch, filter, cut."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Self, cast
from weakref import WeakKeyDictionary

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON, digest
from langgraft._core.effects import adrive, drive, in_thread
from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import (
    DurableIndex,
    Ranker,
    Scored,
    ranker_name,
    wider,
)
from langgraft.memory.stores.corpora import (
    Corpora,
    Corpus,
    IndexedRecord,
    Lacking,
    Learned,
    RankedQuery,
    Ranking,
    Reading,
    SharedIndexes,
    Watched,
)
from langgraft.memory.stores.filters import FieldIndex, check_filter, passes
from langgraft.memory.stores.index_directory import IndexDirectory
from langgraft.memory.stores.kept_indexes import KeptIndexes, change_log, changes
from langgraft.memory.stores.programs import Address, Namespace, Program, embed, read_all
from langgraft.memory.stores.put_indexes import (
    PutIndex,
    PutIndexes,
    read_indexes,
    read_with_indexes,
)

_FETCH = 300
"""Ranked records fetched at a time when only they can tell which of them pass a filter: what is
read beyond the last one needed costs a database less than being asked again."""

_READ = 1_000
"""Changed records read at a time."""


class _Turn:
    """An effect: waits until no other task of the event loop builds an index; threads do not wait."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def do(self) -> None:
        """Go on."""

    async def ado(self) -> asyncio.Lock:
        """Take the turn; who gets it gives it back."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        await lock.acquire()
        return lock


class RankedItem(SearchItem):
    """A LangGraph `SearchItem` with the parts of its score, and whether it is alone with it.

    It is equal to, and has the same `dict()` as, the plain one.

    Attributes:
        parts: Name → figure, such as `{"bm25": 3.21, "bm25_rank": 1, "dense": 0.83,
            "dense_rank": 4}` of a hybrid ranker; of any other, its name and the score.
        tied: How many documents of the corpus that pass the filter share the score: told with
            the best of a ranking, where they are counted; 0 elsewhere.
    """

    __slots__ = ("parts", "tied")

    def __init__(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        created_at: datetime,
        updated_at: datetime,
        *,
        score: float | None,
        parts: Mapping[str, float],
        tied: int = 0,
    ) -> None:
        super().__init__(namespace, key, value, created_at, updated_at, score)
        self.parts = parts
        self.tied = tied


class RankedStore(BaseStore):
    """Answer searches that have a query with a ranker; pass everything else to another store.

    ```python
    store = RankedStore(InMemoryStore(), BM25())
    store.put(("ada",), "m1", {"text": "the red door opens with the red key"})
    store.search(("ada",), query="red key")  # SearchItem.score is the ranker's
    ```

    * What is ranked is LangGraph's to say: the whole record, names of fields included, unless
      `field`, or the wrapped store's own `IndexConfig`, says which fields, or the put did:
      `index=["title"]`. With `index=False` a record is not found by queries. Where there are
      several texts, they are one document; a record in which there is none is no document.
    * The corpus of a search is every document under its namespace prefix: document frequencies
      and mean lengths are taken over all of them, `filter` then says which may be returned, and
      `offset` and `limit` count those.
    * What a put said is kept in the wrapped store, in namespaces that begin with
      `langgraft-index`, which no search or listing through this object shows and no put may
      touch. Of records written past it, only those whose key was never put with an `index` are
      sure to be ranked as the default says.
    * Records that do not match the query are not returned, whatever `limit` is.
    * Results are `RankedItem`s: `parts` says what a score is made of.
    * The fields that filters name are kept beside an index, from the first search on that names
      them, for which all records under its prefix are read unless the index is being built. So
      a search reads about as many records as it returns, and few that pass are found faster
      than many. Only records themselves can tell where a field holds what JSON has no type
      for, where a condition other than a plain value or `$ne` meets more than 10,000 different values, and
      beyond 16 fields; then ranked records are read until enough of them pass.
    * Where a ranker needs vectors, they are fetched by the embedder's asynchronous methods under
      `abatch`, and never while anything waits for an index. If the embedder fails, the search
      does; the next one asks again for what is still lacking.
    * Within a batch, reads see the state before it. Values are read from the wrapped store at
      the time of the search. `PutOp.index` goes to the wrapped store as well.
    * An index is built at the first search of a prefix and follows every write made through this
      object, from any thread or task. Call `refresh` after records were written past it, or
      expired; of those, a search only notices which of its own results are gone.
    * Over a store that tells what was written (`SQLiteFileStore`, `ChromaStore.open`), and with
      `heed_index=False`, what others wrote is found too, and indexes are kept beside the store by
      themselves: saved when the store is closed and when much has changed.
    * Over others, with a `directory`, indexes are kept there: saved when the store is closed and whenever a
      quarter of an index changed, during a search or a write, which takes a moment then. Opened
      again, they cost a fraction of what building them does, filter fields included, but for those
      with values that JSON does not give back. The wrapped store remains the
      truth: whatever was written through this object is found, however the process ended, and
      what is damaged is built anew. Records written past it are not seen, as above, so the
      directory belongs to this store's records alone.

    Args:
        store: Where records are kept: any `BaseStore`.
        ranker: How documents are ordered.
        field: Path of the text in a record's value, as LangGraph writes it: `text`,
            `lesson.key`, `notes[*].body`, `$` for the whole value. `None`: the fields of the
            wrapped store's `IndexConfig`, if it has one, or else the whole value.
        heed_index: Let `index` of puts decide about their records. Without it, `field` alone
            does, and `index` is for the wrapped store only: so with banks, whose records must
            not be embedded there.
        order_field: Dotted path of an integer. Equal scores are ordered by it and then by key;
            records without it come after, by namespace and key. The ranker's `ties` says from
            which end.
        max_indexes: How many prefixes stay indexed; the least recently searched is dropped.
        directory: A directory for the indexes, which one open store has at a time; `close` it
            or use it as a context manager.
        indexes: Those that other ranked stores over the same records have, which then see one
            another's writes; without them, this one has its own.

    Attributes:
        store: The wrapped store.
        ranker: The ranker.
        fields: Paths of the texts that are ranked where a put says nothing.
        corpora: What is indexed.
        order_field: As given.

    Raises:
        SettingsError: There is no store or no ranker, `max_indexes` is below 1, a path is empty,
            or the ranker's index cannot be kept in a directory.
        StorePathError: The directory cannot be used, or another open store has it.
    """

    @checked
    def __init__(
        self,
        store: BaseStore,
        ranker: Ranker,
        *,
        field: str | None = None,
        heed_index: bool = True,
        order_field: str | None = None,
        max_indexes: int = 128,
        directory: Path | str | None = None,
        indexes: SharedIndexes | None = None,
    ) -> None:
        if max_indexes < 1:
            msg = f"max_indexes must be at least 1, got {max_indexes}"
            raise SettingsError(msg)
        if field == "" or order_field == "":
            msg = f"paths must not be empty, got field={field!r}, order_field={order_field!r}"
            raise SettingsError(msg)
        self.store = store
        self.ranker = ranker
        self.fields = _default_fields(store) if field is None else (field,)
        self.order_field = order_field
        self.supports_ttl = store.supports_ttl
        self.ttl_config = store.ttl_config
        self._put_indexes = PutIndexes() if heed_index else None
        # What puts said lies elsewhere, so that who heeds it is not told all by a log of a prefix.
        self._log = None if heed_index else change_log(store)
        self.corpora = self._opened(max_indexes, directory, indexes)
        self._turn = _Turn()
        self._reading = Reading(self.fields, order_field)
        self._ranker_name = ranker_name(ranker)

    def _opened(
        self, capacity: int, directory: Path | str | None, indexes: SharedIndexes | None
    ) -> Corpora:
        durable = isinstance(self.ranker.index(), DurableIndex)
        if directory is not None and not durable:
            ranked = self.ranker.describe()
            msg = f"the index of ranker {ranked} cannot be kept in a directory; give none"
            raise SettingsError(msg)
        identity: JSON = {
            "ranker": self.ranker.describe(),
            "fields": self.fields,
            "heed_index": self._put_indexes is not None,
            "order_field": self.order_field,
        }
        if directory is not None and self._log is None:
            return Corpora(capacity, IndexDirectory(Path(directory), identity), indexes)
        kept = None
        if self._log is not None and durable:
            kept = KeptIndexes(Path(directory or self._log.indexes.path), identity)
        if indexes is None:
            corpora = Corpora(capacity, kept=kept)
        else:
            kind = type(self.ranker), digest(identity), capacity, kept and kept.path
            corpora = indexes.corpora(kind, capacity, kept)
        if self._log is not None:
            self._log.indexes.enter(corpora)
        return corpora

    def close(self) -> None:
        """Save the indexes and leave the directory, if there is one; writes are refused then."""
        if self._log is not None:
            self.corpora.flush(self._log)
        self.corpora.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; results come in their order.

        Raises:
            InputError: A filter beside a query uses an unknown operator, or a put has an `index`
                that is neither `False` nor paths; nothing was done.
            InfrastructureError: The wrapped store caps searches and did not list all records.
        """
        return drive(self.program(ops), self.store)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; results come in their order.

        Raises:
            InputError: A filter beside a query uses an unknown operator, or a put has an `index`
                that is neither `False` nor paths; nothing was done.
            InfrastructureError: The wrapped store caps searches and did not list all records.
        """
        return await adrive(self.program(ops), self.store)

    def refresh(self) -> None:
        """Forget all indexes; the next search of each prefix reads the wrapped store again."""
        self.corpora.clear()
        if self._put_indexes is not None:
            self._put_indexes.forget()

    def program(self, ops: Iterable[Op]) -> Program[list[Result]]:
        """Return what `batch` does as a program, for whoever answers its reads otherwise."""
        operations = [op if _has_tuple(op) else _with_tuples(op) for op in ops]
        searches = {
            i: op for i, op in enumerate(operations) if isinstance(op, SearchOp) and op.query
        }
        if not searches and operations:
            return (yield from self._pass(operations))
        for op in searches.values():
            if op.filter:
                check_filter(op.filter)
        results: dict[int, Result] = {}
        # Searches go first, so that they cannot see what this batch writes.
        for i, op in searches.items():
            results[i] = yield from self._search(op)
        others = [i for i in range(len(operations)) if i not in searches]
        if others:
            passed = yield from self._pass([operations[i] for i in others])
            results.update(zip(others, passed, strict=True))
        return [results[i] for i in range(len(operations))]

    def _pass(self, ops: Sequence[Op]) -> Program[list[Result]]:
        """Hand operations on, announcing what they write."""
        touched = [(op.namespace, op.key) for op in ops if isinstance(op, PutOp)]
        with self.corpora.writing(touched) if touched else nullcontext():
            if self._put_indexes is None:
                return (yield ops)
            return (yield from self._put_indexes.carry_out(ops))

    # How a query is answered --------------------------------------------------------------

    def _search(self, op: SearchOp) -> Program[list[SearchItem]]:
        """Answer a query, looking down no further than needed."""
        start = max(op.offset, 0)
        stop = width = start + max(op.limit, 0)
        if stop == start:
            return []
        read: dict[Address, Item | None] = {}
        while True:
            ranking = yield from self._rank(op, limit=width)
            found = yield from self._fetch(ranking.hits, op, stop, read)
            if len(found) >= stop or ranking.whole:
                break
            width = wider(len(ranking.hits), found=len(found), wanted=stop)
        found = found[start:stop]
        if op.refresh_ttl and self.supports_ttl and found:
            yield [GetOp(item.namespace, item.key, refresh_ttl=True) for item in found]
        return found

    def _fetch(
        self,
        hits: Sequence[Scored],
        op: SearchOp,
        enough: int,
        read: dict[Address, Item | None],
    ) -> Program[list[SearchItem]]:
        """Read ranked records, unless they are in `read`, until `enough` pass the filter."""
        found: list[SearchItem] = []
        for i in range(0, len(hits), max(_FETCH, enough)):
            block = hits[i : i + max(_FETCH, enough)]
            yield from self._read([cast("Address", hit.id) for hit in block], read)
            for hit in block:
                item = read[cast("Address", hit.id)]
                if item is not None and (not op.filter or passes(item.value, op.filter)):
                    found.append(self._scored(item, hit))
            if len(found) >= enough:
                break
        return found

    def _read(
        self, addresses: Sequence[Address], read: dict[Address, Item | None]
    ) -> Program[None]:
        """Add the records at `addresses` to `read`; those that are gone leave the indexes."""
        unread = [address for address in addresses if address not in read]
        if not unread:
            return
        items = yield [GetOp(*address, refresh_ttl=False) for address in unread]
        read.update(zip(unread, cast("list[Item | None]", items), strict=True))
        gone = [address for address in unread if read[address] is None]
        if gone:
            self.corpora.mark(gone)

    def _rank(self, op: SearchOp, *, limit: int) -> Program[Ranking]:
        """Rank the documents under a prefix after bringing its index up to date."""
        asked = RankedQuery(op.query or "", op.filter)
        yield from self._catch_up(op.namespace_prefix)
        while (opened := self.corpora.open(op.namespace_prefix)) is None:
            yield from self._build(op.namespace_prefix, asked)
            yield from self._catch_up(op.namespace_prefix)
        corpus, versions = opened
        addresses = list(versions)
        entries: dict[Address, IndexedRecord | None] = {}
        for i in range(0, len(addresses), _READ):
            entries |= yield from self._changed(addresses[i : i + _READ])
        ask = partial(asked.ask, limit=limit)
        answer = self.corpora.search(corpus, entries, versions, ask)
        # Others may enter documents while what is lacking is fetched.
        while isinstance(answer, Lacking):
            learned: list[Learned] = []
            for request in answer.requests:
                vectors = yield from embed(request)
                learned.append((request, vectors))
            if answer.fields:
                yield from self._fill(corpus, answer.fields)
            answer = self.corpora.search(corpus, {}, {}, partial(ask, learned=learned))
        if self.corpora.due(corpus):
            yield in_thread(self.corpora.save, corpus)
        return answer

    def _catch_up(self, prefix: Namespace) -> Program[None]:
        """Learn what was written, by whomever, since a prefix was indexed."""
        if self._log is not None and (since := self.corpora.as_of(prefix)) is not None:
            told = yield from changes(self._log, prefix, *since)
            if told.addresses is None:  # what was kept is deleted
                yield in_thread(self.corpora.follow, prefix, told)
            else:
                self.corpora.follow(prefix, told)

    def _build(self, prefix: Namespace, asked: RankedQuery) -> Program[None]:
        """Index a prefix, or take its index from the directory."""
        # Of a thousand tasks that find no index, one builds it and the others wait.
        turn: object = yield self._turn
        try:
            if not self.corpora.has(prefix):
                yield from self._build_in_turn(prefix, asked)
        finally:
            if isinstance(turn, asyncio.Lock):
                turn.release()

    def _build_in_turn(self, prefix: Namespace, asked: RankedQuery) -> Program[None]:
        reopened: object = yield in_thread(self.corpora.reopen, prefix, self.ranker.index())
        if reopened:
            return
        index = self.ranker.index()
        with self.corpora.building(prefix, index) as corpus:
            if self._log is not None:  # before anything is read
                corpus.as_of = (yield from changes(self._log, prefix, None)).as_of
            corpus.fields = FieldIndex(FieldIndex().unread(asked.conditions or {}))
            records = yield from self._all(corpus)
            if self.corpora.has(prefix):
                return  # another thread or task was faster; its index follows every write as well
            yield in_thread(corpus.enter_all, records)  # takes a second for some 15,000
            if corpus.embeddings is not None:
                for request in corpus.embeddings.lacking(None):
                    corpus.embeddings.learn(request, (yield from embed(request)))
            self.corpora.install(corpus)

    def _fill(self, corpus: Corpus, keys: Sequence[str]) -> Program[None]:
        """Read fields that a corpus lacks."""
        fields = FieldIndex(keys)
        with self.corpora.filling(corpus) as filling:
            for document, value in (yield from self._all(filling)):
                fields.put(cast("Address", document.id), value)
            self.corpora.fill(corpus, filling, fields)

    def _all(self, watched: Watched) -> Program[Iterable[IndexedRecord]]:
        """Read all documents under a prefix."""
        undisturbed = partial(self.corpora.undisturbed, watched)
        items = yield from read_all(watched.prefix, undisturbed=undisturbed)
        said: Mapping[Address, PutIndex] = {}
        if self._put_indexes is not None:
            said = yield from read_indexes(watched.prefix, undisturbed)
        entries = (
            self._reading.entry(address, item.value, said.get(address))
            for address, item in items.items()
        )
        return filter(None, entries)

    def _changed(
        self, addresses: Sequence[Address]
    ) -> Program[dict[Address, IndexedRecord | None]]:
        """Read records again."""
        if self._put_indexes is not None and not self._put_indexes.none:
            read = yield from read_with_indexes(addresses)
        else:
            items = yield [GetOp(*address, refresh_ttl=False) for address in addresses]
            read = [(cast("Item | None", item), None) for item in items]
        return {
            address: self._reading.entry(address, None if item is None else item.value, said)
            for address, (item, said) in zip(addresses, read, strict=True)
        }

    def _scored(self, item: Item, hit: Scored) -> RankedItem:
        """Return a search result that carries our score."""
        return RankedItem(
            namespace=item.namespace,
            key=item.key,
            value=item.value,
            created_at=item.created_at,
            updated_at=item.updated_at,
            score=hit.score,
            parts=hit.parts or {self._ranker_name: hit.score},
            tied=hit.tied,
        )


def _default_fields(store: BaseStore) -> tuple[str, ...]:
    """Return the fields that a store of LangGraph's was told to embed, or the whole record."""
    config: IndexConfig | None = getattr(store, "index_config", None)
    return tuple((config or {}).get("fields") or ("$",))


def _has_tuple(op: Op) -> bool:
    """Say of a put whether its namespace is a tuple, as nearly all are."""
    return isinstance(op, PutOp) and isinstance(op.namespace, tuple)


def _with_tuples(op: Op) -> Op:
    """Return `op` with a namespace that compares equal to stored ones, if it came as a list."""
    match op:
        case SearchOp():
            return op._replace(namespace_prefix=tuple(op.namespace_prefix))
        case GetOp() | PutOp() if not isinstance(op.namespace, tuple):
            return op._replace(namespace=tuple(op.namespace))
        case _:
            return op
