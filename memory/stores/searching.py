"""How a ranked store answers a query: rank, fetch, filter, cut."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

from langgraph.store.base import GetOp, Item, SearchItem, SearchOp

from langgraft.memory.rankers.among import wider
from langgraft.memory.rankers.base import EmbeddingIndex, Ranker, Scored, ranker_name
from langgraft.memory.stores.corpora import Corpora
from langgraft.memory.stores.corpus import Corpus, Watched, enter_fields
from langgraft.memory.stores.drive import Program, embed
from langgraft.memory.stores.fields import FieldIndex
from langgraft.memory.stores.paging import read_all
from langgraft.memory.stores.put_index import (
    PutIndex,
    PutIndexes,
    is_reserved,
    read_indexes,
    read_with_indexes,
)
from langgraft.memory.stores.question import Lacking, Learned, Question, Ranking
from langgraft.memory.stores.ranked_item import RankedItem
from langgraft.memory.stores.records import Address, Entry, Namespace, Reading, passes

_FETCH = 300
"""Ranked records fetched at a time when only they can tell which of them pass a filter: what is
read beyond the last one needed costs a database less than being asked again."""

_READ = 1_000
"""Changed records read at a time."""


class Searching:
    """Searches with a query, over one store, as programs.

    Args:
        corpora: The store's indexes.
        ranker: How documents are ordered.
        reading: What of a record is ranked.
        frozen: The records never change.
        refreshing: Being found prolongs the life of records, if a search says so.
        put_indexes: What puts said, if that decides about their records.
    """

    def __init__(
        self,
        corpora: Corpora,
        ranker: Ranker,
        reading: Reading,
        *,
        frozen: bool,
        refreshing: bool,
        put_indexes: PutIndexes | None,
    ) -> None:
        self._corpora = corpora
        self._ranker = ranker
        self._reading = reading
        self._frozen = frozen
        self._refreshing = refreshing
        self._put_indexes = put_indexes
        self._ranker_name = ranker_name(ranker)

    def search(self, op: SearchOp) -> Program[list[SearchItem]]:
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
        if op.refresh_ttl and self._refreshing and found:
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

    def _rank(self, op: SearchOp, *, limit: int) -> Program[Ranking]:
        """Rank the documents under a prefix after bringing its index up to date."""
        question = Question(op.query or "", op.filter)
        while (opened := self._corpora.open(op.namespace_prefix)) is None:
            yield from self._build(op.namespace_prefix, question)
        corpus, versions = opened
        addresses = list(versions)
        entries: dict[Address, Entry | None] = {}
        for i in range(0, len(addresses), _READ):
            entries |= yield from self._changed(addresses[i : i + _READ])
        ask = partial(question.ask, limit=limit)
        answer = self._corpora.search(corpus, entries, versions, ask)
        # Others may enter documents while what is lacking is fetched.
        while isinstance(answer, Lacking):
            learned: list[Learned] = []
            for request in answer.requests:
                vectors = yield from embed(request)
                learned.append((request, vectors))
            if answer.fields:
                yield from self._fill(corpus, answer.fields)
            answer = self._corpora.search(corpus, {}, {}, partial(ask, learned=learned))
        return answer

    def _build(self, prefix: Namespace, question: Question) -> Program[None]:
        """Index a prefix, or take its index from the directory."""
        if self._corpora.reopen(prefix, self._ranker.index(frozen=self._frozen)):
            return
        index = self._ranker.index(frozen=self._frozen)
        with self._corpora.building(prefix, index) as corpus:
            corpus.fields = FieldIndex(FieldIndex().unread(question.conditions or {}))
            for address, entry in (yield from self._all(corpus)):
                corpus.enter(address, entry)
            if isinstance(index, EmbeddingIndex):
                for request in index.lacking(None):
                    index.learn(request, (yield from embed(request)))
            self._corpora.install(corpus)

    def _fill(self, corpus: Corpus, keys: Sequence[str]) -> Program[None]:
        """Read fields that a corpus lacks."""
        fields = FieldIndex(keys)
        with self._corpora.filling(corpus) as filling:
            for address, entry in (yield from self._all(filling)):
                enter_fields(fields, address, entry)
            self._corpora.fill(corpus, filling, fields)

    def _all(self, watched: Watched) -> Program[Iterable[tuple[Address, Entry | None]]]:
        """Read all records under a prefix."""
        undisturbed = partial(self._corpora.undisturbed, watched)
        items = yield from read_all(watched.prefix, undisturbed=undisturbed)
        if self._put_indexes is None:
            return (self._entry((item.namespace, item.key), item, None) for item in items)
        said = yield from read_indexes(watched.prefix, undisturbed)
        addressed = (((item.namespace, item.key), item) for item in items)
        return (self._entry(address, item, said.get(address)) for address, item in addressed)

    def _changed(self, addresses: Sequence[Address]) -> Program[dict[Address, Entry | None]]:
        """Read records again."""
        if self._put_indexes is not None and not self._put_indexes.none:
            read = yield from read_with_indexes(addresses)
        else:
            items = yield [GetOp(*address, refresh_ttl=False) for address in addresses]
            read = [(cast("Item | None", item), None) for item in items]
        return dict(
            self._entry(address, item, said)
            for address, (item, said) in zip(addresses, read, strict=True)
        )

    def _entry(
        self, address: Address, item: Item | None, said: PutIndex
    ) -> tuple[Address, Entry | None]:
        if item is None or is_reserved(address[0]):
            return address, None
        return address, self._reading.entry(address, item.value, said)

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
