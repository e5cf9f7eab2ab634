"""A LangGraph `BaseStore` whose records are kept in Chroma."""

import asyncio
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft._core.effects import close_at_exit
from langgraft._core.errors import InputError
from langgraft._core.forks import at_fork, renewed
from langgraft.memory.stores.chroma.client import (
    INDEXES,
    Connection,
    adopt,
    blank_unused,
    connect,
    forked,
    open_folder,
)
from langgraft.memory.stores.chroma.rows import (
    Index,
    Matrix,
    Row,
    nearest,
    pack,
    row_id,
)
from langgraft.memory.stores.chroma.table import Directory, Fresh, Held, ListedRecord, Table
from langgraft.memory.stores.filters import check_filter, passes
from langgraft.memory.stores.kept_indexes import Changes, IndexFolder
from langgraft.memory.stores.programs import (
    Address,
    Namespace,
    check_address,
    check_conditions,
    check_labels,
    encode,
    listed,
)

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

_FETCH = 100
"""Records read at a time when a filter decides which of them count."""


@dataclass(frozen=True, slots=True)
class Write:
    """A record to be written.

    Attributes:
        address: Of the record.
        value: Its value in JSON, or `None` to delete it.
        texts: What its vectors are made of.
    """

    address: Address
    value: str | None
    texts: tuple[str, ...] = ()


@dataclass(slots=True)
class Plan:
    """A batch.

    Attributes:
        ops: Its operations; namespaces are tuples.
        ids: The row id of each that reads a record, "" of the others.
        writes: The last write of each record, by row id.
        queries: Queries to embed, each once.
    """

    ops: list[Op] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    writes: dict[str, Write] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """Texts to embed, each once."""
        return list(dict.fromkeys(t for write in self.writes.values() for t in write.texts))


@dataclass(slots=True, eq=False)
class _Call:
    """A batch, with what was embedded for it and what comes of it."""

    made: Plan
    vectors: Mapping[str, Matrix]
    queries: Mapping[str, Matrix]
    answer: Future[list[Result]] = field(default_factory=Future)


class ChromaStore(BaseStore):
    """Keep records in Chroma: in a folder of this process's own, on a server, or by a client of yours.

    `indexes` is the folder where rankers keep theirs, if there is one.

    ```python
    with ChromaStore.open("memories") as store:
        store.put(("ada",), "m1", {"text": "the red door opens with the red key"})
        store.search(("ada",), filter={"text": {"$ne": ""}})

    # chroma run --path memories
    store = ChromaStore.connect("http://localhost:8000", index={"dims": 64, "embed": embeddings})
    store.search(("ada",), query="red key")  # exact, by cosine

    store = ChromaStore.from_client(chromadb.EphemeralClient())
    ```

    * It behaves as LangGraph's `InMemoryStore`, but keeps `created_at` when a record is written
      again, forgets empty namespaces, gives out copies, drops the vectors of texts that are
      gone, and takes a filter's missing or unlike value for one that does not pass. Filters may
      name dotted paths.
    * Searches without a query list records in the order they were first written, and so do
      searches with one where scores are equal; records without a vector come last, unscored.
    * Values are JSON and come back as they were, but for tuples, which become lists. What JSON
      cannot give back is refused before anything is written.
    * What was acknowledged survives `kill -9`. Of a batch that was not, each record is as it was
      or as it was to be, never in between. Several rows are written at once up to Chroma's
      largest batch (5,461 rows) and 8 MB; a larger batch takes several steps.
    * Batches of one store object exclude one another, from any thread or task. Those that wait at
      the same time are read for and written together, so that a thousand gathered calls cost
      little more than one. Asynchronous ones run in a thread of the store's own.
    * `open` holds namespaces and vectors in memory from the first search on. `connect` and
      `from_client` read the rows under a search's prefix each time, so that they see what others
      wrote; put a `RankedStore` before them where that is too slow.
    * Vectors are ours, as `index` says; Chroma embeds, downloads and reports nothing. With an
      `index` of other `dims` than records were written with, searches raise.

    Attributes:
        alone: Whether nobody else can write to it.
        where: Its folder or address.
    """

    @checked
    def __init__(self, connection: Connection, *, collection: str, index: Index | None) -> None:
        self._connection = connection
        self._index = index
        self._table = Table(connection.client, collection, connection.where, alone=connection.alone)
        self._directory: Directory = (Held if connection.alone else Fresh)(self._table, index)
        self._lock = renewed(Lock())
        self._queue = renewed(Lock())
        self._inherited = False
        self._begin()
        self._stamp = 0
        self._closed = False
        self.alone = connection.alone
        self.where = connection.where
        if connection.changes is not None:  # or others write unseen: it is no `ChangeLog` then
            folder = Path(connection.where) / INDEXES
            self.indexes = IndexFolder(folder / row_id(((), collection))[:16])
        at_fork("in_child", self._in_child)
        close_at_exit(self)

    def _begin(self) -> None:
        self._waiting: list[_Call] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="langgraft-chroma")

    def _in_child(self) -> None:
        self._begin()
        self._inherited = True
        self._connection.abandon()

    @classmethod
    def open(
        cls, path: str | Path, *, collection: str = "langgraft", index: IndexConfig | None = None
    ) -> Self:
        """Open a store in a folder, which is made where it is not there yet.

        The folder has one owner at a time: a lock file beside it is held until `close` or the end
        of the process. A Chroma server on the same folder does not know of the lock: use one or
        the other.

        Args:
            path: The folder.
            collection: Name of the Chroma collection.
            index: What to embed, for searches with a query; without it, `query` is ignored.

        Raises:
            StorePathError: The folder is open already, here or in another process, or cannot be
                written to.
            SettingsError: `index` is not usable, or `path` is empty or a server's address.
            InfrastructureError: Chroma cannot open what is there.
        """
        checked = None if index is None else Index.from_config(index)
        return cls._made(open_folder(path), collection, checked)

    @classmethod
    def connect(
        cls,
        url: str = "http://localhost:8000",
        *,
        collection: str = "langgraft",
        index: IndexConfig | None = None,
    ) -> Self:
        """Open a store on a server that `chroma run` started.

        Args:
            url: Address of the server.
            collection: Name of the Chroma collection.
            index: What to embed, for searches with a query; without it, `query` is ignored.

        Raises:
            SettingsError: `url` or `index` is not usable.
            InfrastructureError: No Chroma server answers there.
        """
        checked = None if index is None else Index.from_config(index)
        return cls._made(connect(url), collection, checked)

    @classmethod
    def from_client(
        cls,
        client: "ClientAPI",
        *,
        collection: str = "langgraft",
        index: IndexConfig | None = None,
    ) -> Self:
        """Make a store over a client that is open, in the tenant and database it is set to.

        The client stays yours: `close` leaves it open, and its settings, telemetry among them, as
        they are. Others may write through it, or through another one: that is seen, and a bank
        with two writers is told (`BankConflictError`). No lock is taken on a `PersistentClient`'s
        folder: keep it to one process, and do not `open` it at the same time. All
        `EphemeralClient`s of a process share their collections: name one for each store.

        Args:
            client: As `chromadb.EphemeralClient`, `PersistentClient`, `HttpClient` or `CloudClient`
                makes it; not an asynchronous one.
            collection: Name of the Chroma collection.
            index: What to embed, for searches with a query; without it, `query` is ignored.

        Raises:
            SettingsError: `client` is none, or asynchronous, or `index` is not usable.
            InfrastructureError: The client is closed, or Chroma failed.
        """
        checked = None if index is None else Index.from_config(index)
        return cls._made(adopt(client), collection, checked)

    @classmethod
    def _made(cls, connection: Connection, collection: str, index: Index | None) -> Self:
        try:
            return cls(connection, collection=collection, index=index)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close Chroma and release the folder; what is under way is finished first.

        Indexes are saved before. A client that was given (`from_client`) is left open.
        """
        if self._connection.changes is not None and not (self._closed or self._inherited):
            self.indexes.flush(self)
        with self._lock, self._queue:
            if not (self._closed or self._inherited):
                self._connection.close()
            self._closed = True
        self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; results come in their order, and reads precede writes.

        Raises:
            InputError: An operation cannot be used, or the store is closed; nothing was changed.
            SettingsError: Records were written with vectors of another length.
            InfrastructureError: Chroma failed, or the embedder's answer is of no use. What the
                embedder itself raises is raised as it is.
        """
        made = plan(ops, self._index)
        vectors = queries = {}
        if index := self._index:
            if texts := made.texts:
                vectors = index.checked(texts, index.embeddings.embed_documents(texts))
            found = [index.embeddings.embed_query(query) for query in made.queries]
            queries = index.checked(made.queries, found)
        call = _Call(made, vectors, queries)
        with self._queue:
            self._check_open()
            self._waiting.append(call)
        self._carry_out_waiting()
        return call.answer.result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; results come in their order, and reads precede writes.

        Raises:
            InputError: An operation cannot be used, or the store is closed; nothing was changed.
            SettingsError: Records were written with vectors of another length.
            InfrastructureError: Chroma failed, or the embedder's answer is of no use. What the
                embedder itself raises is raised as it is.
        """
        made = plan(ops, self._index)
        vectors = queries = {}
        if index := self._index:
            if texts := made.texts:
                vectors = index.checked(texts, await index.embeddings.aembed_documents(texts))
            asked = [index.embeddings.aembed_query(query) for query in made.queries]
            queries = index.checked(made.queries, await asyncio.gather(*asked))
        call = _Call(made, vectors, queries)
        with self._queue:
            self._check_open()
            self._waiting.append(call)
            self._thread.submit(self._carry_out_waiting)
        return await asyncio.wrap_future(call.answer)

    def put_new(self, op: PutOp) -> bool:
        """Write a record unless there is one, also where others write; say whether it was written.

        Args:
            op: The write; its value must differ from what any other writer would write.

        Raises:
            InputError: The operation cannot be used, or the store is closed.
            InfrastructureError: Chroma failed.
        """
        write = _write(op, None)
        with self._lock:
            self._check_open()
            self._stamp = max(time.time_ns(), self._stamp + 1)
            moments = self._stamp, self._stamp
            value = write.value or "{}"
            row = Row(*write.address, *moments, value, pack([]), row_id(write.address))
            return self._table.add(row)

    def changes(self, prefix: Namespace, since: JSON) -> Changes:
        """Tell which records under a prefix were written since a moment; for `open` only."""
        self._check_open()
        assert self._connection.changes is not None
        return self._connection.changes.changes(prefix, since)

    async def achanges(self, prefix: Namespace, since: JSON) -> Changes:
        """Do as `changes` does, which waits for nothing."""
        return self.changes(prefix, since)

    def forget_deleted(self, prefix: Namespace) -> None:
        """Keep no trace of what was deleted under a prefix, beside what Chroma keeps; for `open` only."""
        self._check_open()
        assert self._connection.changes is not None
        self._connection.changes.forget(prefix)

    def scrub(self) -> bool:
        """Rewrite Chroma's file, so that no byte of what was deleted is left in it; batches wait meanwhile.

        Returns:
            Whether that was done: not on a server, nor through a client that somebody else made.

        Raises:
            InfrastructureError: The file cannot be written, or Chroma cannot open it again.
        """
        connection = self._connection
        if connection.scrub is None:
            return False
        with self._lock:
            self._check_open()
            connection.scrub(self._use)
            self._directory.under(())  # the first read has Chroma write its files of vectors
            blank_unused(Path(connection.where))
        return True

    def _use(self, client: "ClientAPI") -> None:
        alone = self._connection.alone
        self._table = Table(client, self._table.name, self._connection.where, alone=alone)
        self._directory = (Held if alone else Fresh)(self._table, self._index)

    def _connect_again(self) -> None:
        """Connect a forked child to the server; under the lock."""
        assert self._connection.again is not None
        made = self._connection.again()
        try:
            self._use(made.client)
        except BaseException:
            made.close()
            raise
        self._connection, self._inherited = made, False

    def _carry_out_waiting(self) -> None:
        """Carry out all batches that wait: to write many records costs little more than one.

        None of them was answered yet, so those that only read may go first.
        """
        with self._lock:
            with self._queue:
                waiting, self._waiting = self._waiting, []
            calls = [call for call in waiting if call.answer.set_running_or_notify_cancel()]
            reading = [call for call in calls if not call.made.writes]
            for group in (reading, *_groups([call for call in calls if call.made.writes])):
                if group:
                    self._carry_out(group)

    def _carry_out(self, calls: "Sequence[_Call]") -> None:
        """Read, then write, as if one batch came after the other; texts are embedded already."""
        done: list[tuple[_Call, list[Result]]] = []
        try:
            self._check_open()
            if self._inherited:
                self._connect_again()
            rows, created = self._named(calls)
            changed: dict[str, Row | None] = {}
            for call in calls:
                try:
                    asked = zip(call.made.ops, call.made.ids, strict=True)
                    results = [self._answer(op, rows.get(i), call.queries) for op, i in asked]
                except Exception as error:  # noqa: BLE001  (of one search, not of the others)
                    call.answer.set_exception(error)
                    continue
                changes = self._changes(call, created)
                changed |= changes
                rows |= changes
                done.append((call, results))
            if changed:
                try:
                    self._write(changed)
                finally:
                    if self._connection.changes is not None:
                        self._connection.changes.note(
                            write.address for call in calls for write in call.made.writes.values()
                        )
        except BaseException as error:  # noqa: BLE001  (raised where the answer is awaited)
            for call in calls:
                if not call.answer.done():
                    call.answer.set_exception(error)
            return
        for call, results in done:
            call.answer.set_result(results)

    def _check_open(self) -> None:
        if self._closed:
            msg = f"the ChromaStore at {self._connection.where} is closed; open it again"
            raise InputError(msg)
        if self._inherited and self._connection.again is None:
            raise forked(self._connection.where)

    def _named(self, calls: "Sequence[_Call]") -> tuple[dict[str, Row | None], dict[str, int]]:
        """Read the records that batches name, and when those that they write were created."""
        got = dict.fromkeys(i for call in calls for i in call.made.ids if i)
        rows = self._table.read(list(got))
        put = dict.fromkeys(
            identifier
            for call in calls
            for identifier, write in call.made.writes.items()
            if write.value is not None and identifier not in got
        )
        known = {identifier: row.created for identifier, row in rows.items()}
        return {**rows}, self._directory.created(list(put)) | known if put else known

    def _answer(self, op: Op, row: Row | None, queries: Mapping[str, Matrix]) -> Result:
        match op:
            case GetOp():
                return None if row is None else row.item()
            case SearchOp():
                return self._search(op, queries.get(op.query or ""))
            case ListNamespacesOp():
                return self._namespaces(op)
            case _:
                return None

    def _changes(self, call: "_Call", created: dict[str, int]) -> dict[str, Row | None]:
        """Return the rows that a batch makes, and `None` for those that it removes.

        Args:
            call: The batch.
            created: When records were created; it is kept up to date.
        """
        changes: dict[str, Row | None] = {}
        for identifier, write in call.made.writes.items():
            if write.value is None:
                changes[identifier] = None
                created.pop(identifier, None)
                continue
            self._stamp = max(time.time_ns(), self._stamp + 1)
            first = created.setdefault(identifier, self._stamp)
            packed = pack([call.vectors[text] for text in write.texts])
            changes[identifier] = Row(
                *write.address, first, self._stamp, write.value, packed, identifier
            )
        return changes

    def _write(self, changed: Mapping[str, Row | None]) -> None:
        written = [row for row in changed.values() if row is not None]
        removed = [identifier for identifier, row in changed.items() if row is None]
        try:
            self._table.write(written)
            self._table.remove(removed)
        except BaseException:
            self._directory.forget()
            raise
        self._directory.note(written, removed)

    def _search(self, op: SearchOp, query: Matrix | None) -> list[SearchItem]:
        start = max(op.offset, 0)
        stop = start + max(op.limit, 0)
        if start == stop:
            return []
        hits = _ranked(self._directory.under(op.namespace_prefix), query)
        if op.filter:
            return list(islice(self._passing(hits, op, stop), start, stop))
        return list(self._passing(hits[start:stop], op, stop))

    def _passing(
        self, hits: Sequence[tuple[ListedRecord, float | None]], op: SearchOp, enough: int
    ) -> Iterator[SearchItem]:
        """Read records and yield those that pass the filter."""
        size = max(_FETCH, enough)
        for i in range(0, len(hits), size):
            page = hits[i : i + size]
            rows = self._directory.rows([entry for entry, _ in page])
            for row, (_, score) in zip(rows, page, strict=True):
                item = row.item()
                if passes(item.value, op.filter):
                    yield SearchItem(
                        namespace=item.namespace,
                        key=item.key,
                        value=item.value,
                        created_at=item.created_at,
                        updated_at=item.updated_at,
                        score=score,
                    )

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        return listed((entry.namespace for entry in self._directory.under(())), op)


def _groups(calls: Sequence[_Call]) -> Iterator[list[_Call]]:
    """Put batches that write together; one that searches must find what came before it written."""
    group: list[_Call] = []
    for call in calls:
        if group and any(isinstance(op, SearchOp | ListNamespacesOp) for op in call.made.ops):
            yield group
            group = []
        group.append(call)
    if group:
        yield group


def _ranked(
    entries: Sequence[ListedRecord], query: Matrix | None
) -> list[tuple[ListedRecord, float | None]]:
    """Order records by their score, best first, those without one last; else leave them."""
    if query is None:
        return [(entry, None) for entry in entries]
    scores = nearest([entry.vectors for entry in entries if entry.vectors is not None], query)
    order = np.argsort(-scores, kind="stable")  # NaN comes last
    found = zip(order.tolist(), scores[order].tolist(), strict=True)
    return [(entries[i], None if math.isnan(score) else score) for i, score in found]


def plan(ops: Iterable[Op], index: Index | None) -> Plan:
    """Check a batch and say what it needs.

    Raises:
        InputError: An address, a value, a filter or an operation cannot be used.
    """
    made = Plan()
    for op in ops:
        identifier = ""
        match op:
            case PutOp():
                write = _write(op, index)
                made.writes[row_id(write.address)] = write
                made.ops.append(op)
            case GetOp():
                namespace, key = check_address(op.namespace, op.key)
                identifier = row_id((namespace, key))
                made.ops.append(op._replace(namespace=namespace, key=key))
            case SearchOp():
                check_filter(op.filter)
                prefix = check_labels(op.namespace_prefix)
                made.ops.append(op._replace(namespace_prefix=prefix))
                if op.query and index and op.query not in made.queries:
                    made.queries.append(op.query)
            case ListNamespacesOp():
                check_conditions(op)
                made.ops.append(op)
            case _:
                msg = f"a store carries out GetOp, PutOp, SearchOp, ListNamespacesOp; got {op!r}"
                raise InputError(msg)
        made.ids.append(identifier)
    return made


def _write(op: PutOp, index: Index | None) -> Write:
    address = check_address(op.namespace, op.key)
    if op.value is None:
        return Write(address, None)
    value = encode(op.value, address)
    if index is None or op.index is False:
        return Write(address, value)
    return Write(address, value, index.texts(op.value, op.index))
