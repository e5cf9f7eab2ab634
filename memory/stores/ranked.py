"""Exact, deterministic search over any LangGraph store."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import Order, Ranker, RankerIndex, Scored
from langgraft.memory.stores.corpora import Corpora, Update
from langgraft.memory.stores.drive import Program, adrive, drive
from langgraft.memory.stores.paging import read_all
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.stores.records import Address, Namespace, Reading, check_filter, passes

_FETCH = 100
"""Ranked records fetched at a time when a filter decides which of them count."""

_WIDENING = 4


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
    * Within a batch, reads see the state before it. Values are read from the wrapped store at
      the time of the search. `PutOp.index` goes to the wrapped store and does not affect ranking.
    * An index is built at the first search of a prefix and follows every write made through this
      object, from any thread or task. Call `refresh` after records were written past it, or
      expired; of those, a search only notices which of its own results are gone.

    Args:
        store: Where records are kept: any `BaseStore`. If it is a `ReadOnlyStore`, the ranker's
            index for frozen contents is used.
        ranker: How documents are ordered.
        field: Dotted path of the text in a record's value.
        order_field: Dotted path of an integer. Equal scores are ordered by it and then by key;
            records without it come after, by namespace and key. The ranker's `ties` says from
            which end.
        max_indexes: How many prefixes stay indexed; the least recently searched is dropped.

    Attributes:
        store: The wrapped store.
        ranker: The ranker.
        field: As given.
        order_field: As given.

    Raises:
        SettingsError: `max_indexes` is below 1, or a path is empty.
    """

    def __init__(
        self,
        store: BaseStore,
        ranker: Ranker,
        *,
        field: str = "text",
        order_field: str | None = None,
        max_indexes: int = 128,
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
        self._reading = Reading(field, order_field)
        self._corpora = Corpora(max_indexes)

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
            results[i] = yield from self._search(op)
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

    def _search(self, op: SearchOp) -> Program[list[SearchItem]]:
        """Answer a query: rank, fetch, filter, cut."""
        start = max(op.offset, 0)
        stop = start + max(op.limit, 0)
        if stop == start:
            return []
        # A guess at how far down a filtered ranking one must look.
        width = stop if op.filter is None else stop * _WIDENING
        ranking = yield from self._rank(op, limit=width)
        found = yield from self._fetch(ranking, op, stop)
        if len(found) < stop and len(ranking) == width:
            ranking = yield from self._rank(op, limit=None)
            found = yield from self._fetch(ranking, op, stop)
        found = found[start:stop]
        if op.refresh_ttl and self.supports_ttl and found:
            yield [GetOp(item.namespace, item.key, refresh_ttl=True) for item in found]
        return found

    def _fetch(
        self, ranking: Sequence[Scored], op: SearchOp, enough: int
    ) -> Program[list[SearchItem]]:
        """Read ranked records until `enough` of them pass the filter."""
        found: list[SearchItem] = []
        for i in range(0, len(ranking), max(_FETCH, enough)):
            hits = ranking[i : i + max(_FETCH, enough)]
            addresses = [cast("Address", hit.id) for hit in hits]
            items = yield [GetOp(*address, refresh_ttl=False) for address in addresses]
            for address, hit, item in zip(addresses, hits, items, strict=True):
                if item is None:
                    self._corpora.mark([address])
                elif passes((entry := cast("Item", item)).value, op.filter):
                    found.append(_scored(entry, hit.score))
            if len(found) >= enough:
                break
        return found

    def _rank(self, op: SearchOp, *, limit: int | None) -> Program[list[Scored]]:
        """Rank the documents under a prefix after bringing its index up to date."""
        query = op.query or ""
        while (opened := self._corpora.open(op.namespace_prefix)) is None:
            yield from self._build(op.namespace_prefix)
        corpus, versions = opened
        items: list[Result] = []
        if versions:
            items = yield [GetOp(*address, refresh_ttl=False) for address in versions]
        updates = {
            address: self._update(address, cast("Item | None", item))
            for address, item in zip(versions, items, strict=True)
        }
        return self._corpora.search(
            corpus,
            updates,
            versions,
            lambda index: index.search(query, limit=len(index) if limit is None else limit),
        )

    def _build(self, prefix: Namespace) -> Program[None]:
        """Index a prefix."""
        index = self.ranker.index(frozen=isinstance(self.store, ReadOnlyStore))
        with self._corpora.building(prefix, index) as corpus:
            undisturbed = partial(self._corpora.undisturbed, corpus)
            items = yield from read_all(prefix, undisturbed=undisturbed)
            for item in items:
                self._update((item.namespace, item.key), item)(index)
            self._corpora.install(corpus)

    def _update(self, address: Address, item: Item | None) -> Update:
        """Return what brings a record in an index up to date, given how the store has it."""
        text = None if item is None else self._reading.text(item.value)
        if item is None or text is None:
            return partial(_remove, address=address)
        order = self._reading.order(address, item.value)
        return partial(_put, address=address, text=text, order=order)


def _put(index: RankerIndex, *, address: Address, text: str, order: Order) -> None:
    index.put(address, text, order)


def _remove(index: RankerIndex, *, address: Address) -> None:
    index.remove(address)


def _with_tuples(op: Op) -> Op:
    """Return `op` with a namespace that compares equal to stored ones, if it came as a list."""
    match op:
        case SearchOp():
            return op._replace(namespace_prefix=tuple(op.namespace_prefix))
        case GetOp() | PutOp():
            return op._replace(namespace=tuple(op.namespace))
        case _:
            return op


def _scored(item: Item, score: float) -> SearchItem:
    """Return a search result that carries our score."""
    return SearchItem(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=score,
    )
