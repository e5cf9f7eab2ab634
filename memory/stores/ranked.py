"""Exact, deterministic search over any LangGraph store."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Self, TypeAlias, cast

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
from langgraft.memory.embedders.base import EmbeddingRequest, Vectors
from langgraft.memory.rankers.base import (
    DurableIndex,
    EmbeddingIndex,
    Order,
    Ranker,
    RankerIndex,
    Scored,
)
from langgraft.memory.stores.corpora import Corpora, Corpus, Update
from langgraft.memory.stores.drive import Program, adrive, drive, embed
from langgraft.memory.stores.index_directory import IndexDirectory
from langgraft.memory.stores.paging import read_all
from langgraft.memory.stores.ranked_item import RankedItem
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.stores.records import Address, Namespace, Reading, check_filter, passes

_FETCH = 300
"""Ranked records fetched at a time when a filter decides which of them count: what is read
beyond the last one needed costs a database less than being asked again."""

_FIRST_LOOK = 320
"""Documents ranked at first, at least, beside a filter: ranking them again costs more than that,
and among as many are ten, nearly always, of what passes one time in twenty."""

_READ = 1_000
"""Changed records read at a time."""

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
    * Results are `RankedItem`s: `parts` says what a score is made of.
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
      again, they cost a fraction of what building them does. The wrapped store remains the
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
        SettingsError: `max_indexes` is below 1, a path is empty, or the ranker's index cannot be
            kept in a directory.
        StorePathError: The directory cannot be used, or another open store has it.
    """

    def __init__(
        self,
        store: BaseStore,
        ranker: Ranker,
        *,
        field: str = "text",
        order_field: str | None = None,
        max_indexes: int = 128,
        directory: Path | None = None,
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
        self._ranker_name = str(ranker.describe().get("ranker", type(ranker).__name__))
        self._frozen = isinstance(store, ReadOnlyStore) and directory is None
        self._corpora = Corpora(max_indexes, None if directory is None else self._kept(directory))

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
        """Answer a query: rank, fetch, filter, cut, looking down no further than needed."""
        start = max(op.offset, 0)
        stop = start + max(op.limit, 0)
        if stop == start:
            return []
        width = stop if op.filter is None else max(stop * _WIDENING, _FIRST_LOOK)
        read: dict[Address, Item | None] = {}
        while True:
            ranking = yield from self._rank(op, limit=width)
            found = yield from self._fetch(ranking, op, stop, read)
            if len(found) >= stop or len(ranking) < width:
                break
            width = _wider(width, found=len(found), wanted=stop)
        found = found[start:stop]
        if op.refresh_ttl and self.supports_ttl and found:
            yield [GetOp(item.namespace, item.key, refresh_ttl=True) for item in found]
        return found

    def _fetch(
        self,
        ranking: Sequence[Scored],
        op: SearchOp,
        enough: int,
        read: dict[Address, Item | None],
    ) -> Program[list[SearchItem]]:
        """Read ranked records, unless they are in `read`, until `enough` pass the filter."""
        found: list[SearchItem] = []
        for i in range(0, len(ranking), max(_FETCH, enough)):
            hits = ranking[i : i + max(_FETCH, enough)]
            yield from self._read([cast("Address", hit.id) for hit in hits], read)
            for hit in hits:
                item = read[cast("Address", hit.id)]
                if item is not None and passes(item.value, op.filter):
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
            self._corpora.mark(gone)

    def _rank(self, op: SearchOp, *, limit: int) -> Program[list[Scored]]:
        """Rank the documents under a prefix after bringing its index up to date."""
        while (opened := self._corpora.open(op.namespace_prefix)) is None:
            yield from self._build(op.namespace_prefix)
        corpus, versions = opened
        items: list[Result] = []
        gets = [GetOp(*address, refresh_ttl=False) for address in versions]
        for i in range(0, len(gets), _READ):
            items += yield gets[i : i + _READ]
        updates = {
            address: self._update(address, cast("Item | None", item))
            for address, item in zip(versions, items, strict=True)
        }
        question = _Question(op.query or "", limit)
        answer = self._corpora.search(corpus, updates, versions, question.ask)
        return (yield from self._complete(corpus, question, answer))

    def _complete(
        self, corpus: Corpus, question: "_Question", answer: "_Answer"
    ) -> Program[list[Scored]]:
        """Fetch vectors until none is lacking: other searches may enter documents meanwhile."""
        while isinstance(answer, _Lacking):
            learned: list[_Learned] = []
            for request in answer.requests:
                vectors = yield from embed(request)
                learned.append((request, vectors))
            ask = partial(question.ask, learned=learned)
            answer = self._corpora.search(corpus, {}, {}, ask)
        return answer

    def _build(self, prefix: Namespace) -> Program[None]:
        """Index a prefix, or take its index from the directory."""
        if self._corpora.reopen(prefix, self.ranker.index(frozen=self._frozen)):
            return
        index = self.ranker.index(frozen=self._frozen)
        with self._corpora.building(prefix, index) as corpus:
            undisturbed = partial(self._corpora.undisturbed, corpus)
            items = yield from read_all(prefix, undisturbed=undisturbed)
            for item in items:
                self._update((item.namespace, item.key), item)(index)
            if isinstance(index, EmbeddingIndex):
                for request in index.lacking(None):
                    index.learn(request, (yield from embed(request)))
            self._corpora.install(corpus)

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


def _wider(width: int, *, found: int, wanted: int) -> int:
    """Say how far down a ranking to look after `found` of its first `width` passed a filter.

    Far enough for `wanted` if as many pass further down, with half as much to spare.
    """
    share = (found + 0.5) / width
    return max(width * _WIDENING, ceil(1.5 * wanted / share))


_Learned: TypeAlias = tuple[EmbeddingRequest, Vectors]


@dataclass(frozen=True, slots=True)
class _Lacking:
    """An index cannot answer before it has these vectors."""

    requests: Sequence[EmbeddingRequest]


_Answer: TypeAlias = list[Scored] | _Lacking


@dataclass(frozen=True, slots=True)
class _Question:
    """What an index is asked while no other thread uses it."""

    query: str
    limit: int

    def ask(self, index: RankerIndex, learned: Sequence[_Learned] = ()) -> _Answer:
        """Rank, or say which vectors are lacking."""
        if isinstance(index, EmbeddingIndex):
            for request, vectors in learned:
                index.learn(request, vectors)
            if requests := index.lacking(self.query):
                return _Lacking(requests)
        return index.search(self.query, limit=self.limit)
