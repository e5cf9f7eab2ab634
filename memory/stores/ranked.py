"""Exact, deterministic search over any LangGraph store."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Self, cast

from langgraph.store.base import BaseStore, GetOp, IndexConfig, Op, PutOp, Result, SearchOp

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import DurableIndex, Ranker
from langgraft.memory.stores.corpora import Corpora, SharedIndexes
from langgraft.memory.stores.drive import Program, adrive, drive
from langgraft.memory.stores.index_directory import IndexDirectory
from langgraft.memory.stores.put_index import PutIndexes
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.stores.records import Reading, check_filter
from langgraft.memory.stores.searching import Searching


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
      for, where a condition other than equality meets more than 10,000 different values, and
      beyond 16 fields; then ranked records are read until enough of them pass.
    * Where a ranker needs vectors, they are fetched by the embedder's asynchronous methods under
      `abatch`, and never while anything waits for an index. If the embedder fails, the search
      does; the next one asks again for what is still lacking.
    * Within a batch, reads see the state before it. Values are read from the wrapped store at
      the time of the search. `PutOp.index` goes to the wrapped store as well.
    * An index is built at the first search of a prefix and follows every write made through this
      object, from any thread or task. Call `refresh` after records were written past it, or
      expired; of those, a search only notices which of its own results are gone.
    * With a `directory`, indexes are kept there: saved when the store is closed and whenever a
      quarter of an index changed, during a search or a write, which takes a moment then. Opened
      again, they cost a fraction of what building them does; filter fields are not kept, and
      read again at the first search that names them. The wrapped store remains the
      truth: whatever was written through this object is found, however the process ended, and
      what is damaged is built anew. Records written past it are not seen, as above, so the
      directory belongs to this store's records alone.

    Args:
        store: Where records are kept: any `BaseStore`. If it is a `ReadOnlyStore`, the ranker's
            index for frozen contents is used.
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
            or use it as a context manager. The ranker's changing index is used for frozen
            contents as well.
        indexes: Those that other ranked stores over the same records have, which then see one
            another's writes; without them, this one has its own.

    Attributes:
        store: The wrapped store.
        ranker: The ranker.
        fields: Paths of the texts that are ranked where a put says nothing.
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
        self._corpora = self._opened(max_indexes, directory, indexes)
        self._searching = Searching(
            self._corpora,
            ranker,
            Reading(self.fields, order_field),
            frozen=isinstance(store, ReadOnlyStore) and directory is None,
            refreshing=store.supports_ttl,
            put_indexes=self._put_indexes,
        )

    def _opened(
        self, capacity: int, directory: Path | str | None, indexes: SharedIndexes | None
    ) -> Corpora:
        if directory is not None:
            return Corpora(capacity, self._kept(Path(directory)), indexes)
        if indexes is None:
            return Corpora(capacity)
        frozen = isinstance(self.store, ReadOnlyStore)
        fields = self.fields, self._put_indexes is not None, self.order_field, frozen, capacity
        ranker = type(self.ranker), digest(self.ranker.describe())
        return indexes.corpora((*ranker, *fields), capacity)

    def _kept(self, directory: Path) -> IndexDirectory:
        ranker = self.ranker.describe()
        if not isinstance(self.ranker.index(frozen=False), DurableIndex):
            msg = f"the index of ranker {ranker} cannot be kept in a directory; give none"
            raise SettingsError(msg)
        identity: JSON = {
            "ranker": ranker,
            "fields": self.fields,
            "heed_index": self._put_indexes is not None,
            "order_field": self.order_field,
        }
        return IndexDirectory(directory, identity)

    def close(self) -> None:
        """Save the indexes and leave the directory, if there is one; writes are refused then."""
        self._corpora.close()

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
        self._corpora.clear()
        if self._put_indexes is not None:
            self._put_indexes.forget()

    def program(self, ops: Iterable[Op]) -> Program[list[Result]]:
        """Return what `batch` does as a program, for whoever answers its reads otherwise."""
        operations = [_with_tuples(op) for op in ops]
        ranked = [i for i, op in enumerate(operations) if isinstance(op, SearchOp) and op.query]
        searches = {i: cast("SearchOp", operations[i]) for i in ranked}
        for op in searches.values():
            check_filter(op.filter)
        results: dict[int, Result] = {}
        # Searches go first, so that they cannot see what this batch writes.
        for i, op in searches.items():
            results[i] = yield from self._searching.search(op)
        others = [i for i in range(len(operations)) if i not in searches]
        if others:
            passed = yield from self._pass([operations[i] for i in others])
            results.update(zip(others, passed, strict=True))
        return [results[i] for i in range(len(operations))]

    def _pass(self, ops: Sequence[Op]) -> Program[list[Result]]:
        """Hand operations on, announcing what they write."""
        touched = [(op.namespace, op.key) for op in ops if isinstance(op, PutOp)]
        with self._corpora.writing(touched) if touched else nullcontext():
            if self._put_indexes is None:
                return (yield ops)
            return (yield from self._put_indexes.carry_out(ops))


def _default_fields(store: BaseStore) -> tuple[str, ...]:
    """Return the fields that a store of LangGraph's was told to embed, or the whole record."""
    config: IndexConfig | None = getattr(store, "index_config", None)
    return tuple((config or {}).get("fields") or ("$",))


def _with_tuples(op: Op) -> Op:
    """Return `op` with a namespace that compares equal to stored ones, if it came as a list."""
    match op:
        case SearchOp():
            return op._replace(namespace_prefix=tuple(op.namespace_prefix))
        case GetOp() | PutOp():
            return op._replace(namespace=tuple(op.namespace))
        case _:
            return op
