"""Exact, deterministic search over any LangGraph store."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self, cast

from langgraph.store.base import BaseStore, GetOp, Op, PutOp, Result, SearchOp

from langgraft._core.arguments import checked
from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import DurableIndex, Ranker
from langgraft.memory.stores.corpora import Corpora
from langgraft.memory.stores.drive import Program, adrive, drive
from langgraft.memory.stores.index_directory import IndexDirectory
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

    * A record is a document if `field` holds a string. The corpus of a search is every document
      under its namespace prefix: document frequencies and mean lengths are taken over all of
      them, `filter` then says which may be returned, and `offset` and `limit` count those.
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
      the time of the search. `PutOp.index` goes to the wrapped store and does not affect ranking.
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
        field: Dotted path of the text in a record's value.
        order_field: Dotted path of an integer. Equal scores are ordered by it and then by key;
            records without it come after, by namespace and key. The ranker's `ties` says from
            which end.
        max_indexes: How many prefixes stay indexed; the least recently searched is dropped.
        directory: A directory for the indexes, which one open store has at a time; `close` it
            or use it as a context manager. The ranker's changing index is used for frozen
            contents as well.

    Attributes:
        store: The wrapped store.
        ranker: The ranker.
        field: As given.
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
        field: str = "text",
        order_field: str | None = None,
        max_indexes: int = 128,
        directory: Path | str | None = None,
    ) -> None:
        if max_indexes < 1:
            msg = f"max_indexes must be at least 1, got {max_indexes}"
            raise SettingsError(msg)
        if not field or order_field == "":
            msg = f"paths must not be empty, got field={field!r}, order_field={order_field!r}"
            raise SettingsError(msg)
        self.store = store
        self.ranker = ranker
        self.field = field
        self.order_field = order_field
        self.supports_ttl = store.supports_ttl
        self.ttl_config = store.ttl_config
        self._corpora = Corpora(
            max_indexes, None if directory is None else self._kept(Path(directory))
        )
        self._searching = Searching(
            self._corpora,
            ranker,
            Reading(field, order_field),
            frozen=isinstance(store, ReadOnlyStore) and directory is None,
            refreshing=store.supports_ttl,
        )

    def _kept(self, directory: Path) -> IndexDirectory:
        ranker = self.ranker.describe()
        if not isinstance(self.ranker.index(frozen=False), DurableIndex):
            msg = f"the index of ranker {ranker} cannot be kept in a directory; give none"
            raise SettingsError(msg)
        identity = {"ranker": ranker, "field": self.field, "order_field": self.order_field}
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
            InputError: A filter beside a query uses an unknown operator.
            InfrastructureError: The wrapped store caps searches and did not list all records.
        """
        return drive(self._batch(ops), self.store)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; results come in their order.

        Raises:
            InputError: A filter beside a query uses an unknown operator.
            InfrastructureError: The wrapped store caps searches and did not list all records.
        """
        return await adrive(self._batch(ops), self.store)

    def refresh(self) -> None:
        """Forget all indexes; the next search of each prefix reads the wrapped store again."""
        self._corpora.clear()

    def _batch(self, ops: Iterable[Op]) -> Program[list[Result]]:
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
        if not touched:
            return (yield ops)
        with self._corpora.writing(touched):
            return (yield ops)


def _with_tuples(op: Op) -> Op:
    """Return `op` with a namespace that compares equal to stored ones, if it came as a list."""
    match op:
        case SearchOp():
            return op._replace(namespace_prefix=tuple(op.namespace_prefix))
        case GetOp() | PutOp():
            return op._replace(namespace=tuple(op.namespace))
        case _:
            return op
