"""The changing index of the ranker that compares vectors."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from langgraft._core.errors import InfrastructureError
from langgraft.memory.embedders.base import Embedder, EmbeddingRequest, Vectors
from langgraft.memory.rankers.base import DocumentId, Order, Scored
from langgraft.memory.rankers.mirror import Mirror, Scaled
from langgraft.memory.rankers.saved import Document, Documents, SavedDocuments
from langgraft.memory.rankers.selection import Floats, Slots, Ties, best_first
from langgraft.memory.rankers.ties import told

REQUEST_TEXTS: Final = 1_000
"""Texts in one request: what was embedded before a failure is cached and not asked for again."""

_QUERIES: Final = 64
"""How many queries' vectors are kept; the embedder's cache has the others."""


@dataclass(frozen=True, slots=True, eq=False)
class _Estimates:
    """What the last search computed for all documents: looking further down needs it again."""

    query: str
    cosines: NDArray[np.float32]


class DenseIndex:
    """A durable `EmbeddingIndex` over a `Mirror`; it is not safe for threads on its own.

    Args:
        embedder: Gives the vectors.
        ties: Which of equal documents comes first.
    """

    def __init__(self, embedder: Embedder, *, ties: Ties) -> None:
        self._embedder = embedder
        self._ties = ties
        self._documents = Documents()
        self._pending: dict[str, dict[DocumentId, None]] = {}
        self._mirror = Mirror(0)
        self._slots: dict[DocumentId, int] = {}
        self._ids: list[DocumentId] = []
        self._queries: dict[str, Scaled] = {}
        self._estimates: _Estimates | None = None

    def __len__(self) -> int:
        return len(self._documents)

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it; one whose text stays keeps its vector."""
        before = self._documents.get(document)
        if before is None or before.text != text:
            self.remove(document)
            if text.strip():  # some models refuse a blank one
                self._pending.setdefault(text, {})[document] = None
        self._documents.put(Document(document, text, order))

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        entry = self._documents.pop(document)
        if entry is None:
            return
        waiting = self._pending.get(entry.text, {})
        if document in waiting:
            del waiting[document]
            if not waiting:
                del self._pending[entry.text]
        elif document in self._slots:
            self._clear(document)

    def lacking(self, query: str | None) -> list[EmbeddingRequest]:
        """Say which vectors a search for `query` would have to fetch; `None`: any search."""
        texts = list(self._pending)
        requests = [
            EmbeddingRequest(self._embedder, tuple(texts[i : i + REQUEST_TEXTS]), "document")
            for i in range(0, len(texts), REQUEST_TEXTS)
        ]
        if query and query.strip() and self._documents and query not in self._queries:
            requests.append(EmbeddingRequest(self._embedder, (query,), "query"))
        return requests

    def learn(self, request: EmbeddingRequest, vectors: Vectors) -> None:
        """Take in what answers a request; other embedders' vectors are passed over.

        Raises:
            InfrastructureError: The vectors are longer or shorter than those in the index.
        """
        if request.embedder != self._embedder:
            return
        self._check_dimensions(vectors.shape[1])
        scaled = Scaled.of(vectors)
        for i, text in enumerate(request.texts):
            row, length = scaled.rows[i], float(scaled.lengths[i])
            if request.role == "query":
                self._queries[text] = Scaled(row[np.newaxis], scaled.lengths[i : i + 1])
            else:
                for document in self._pending.pop(text, ()):
                    self._enter(document, row, length)
        while len(self._queries) > _QUERIES:
            del self._queries[next(iter(self._queries))]

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the `limit` documents most like the query, best first.

        Vectors that are lacking are fetched, synchronously.
        """
        sought = self._sought(query) if limit > 0 else None
        if sought is None:
            return []
        near = self._mirror.nominated(self._estimated(query, sought), limit)
        return self._ranking(sought, near, limit)

    def search_among(
        self, query: str, documents: Collection[DocumentId], *, limit: int
    ) -> list[Scored]:
        """Return the `limit` of some documents most like the query, best first.

        Vectors that are lacking are fetched, synchronously.
        """
        sought = self._sought(query) if limit > 0 else None
        if sought is None:
            return []
        places = map(self._slots.get, documents)
        slots = np.array([slot for slot in places if slot is not None], dtype=np.intp)
        slots.sort()  # memory is read faster in its order
        near = self._mirror.nominated(self._mirror.estimates_at(sought, slots), limit)
        return self._ranking(sought, slots[near], limit)

    def _sought(self, query: str) -> Scaled | None:
        """Return the query's vector, or `None` where nothing can be like it."""
        if not query.strip() or not self._documents:
            return None
        for request in self.lacking(query):
            self.learn(request, request.answer())
        sought = self._queries[query]
        return sought if self._mirror.size and sought.lengths[0] else None

    def _ranking(self, sought: Scaled, slots: Slots, limit: int) -> list[Scored]:
        """Order nominated documents by their exact cosines."""
        cosines = self._mirror.cosines(sought, slots)
        ranking = best_first(
            slots,
            cosines,
            width=limit,
            order=lambda slot: self._documents[self._ids[slot]].order,
            ties=self._ties,
        )
        best = [Scored(self._ids[slot], score) for slot, score in islice(ranking, limit)]
        return told(best, cosines)

    def save(self, folder: Path) -> None:
        """Write all documents and vectors into an empty folder."""
        slots = self._slots
        ids = [*self._ids, *(i for i in self._documents.ids() if i not in slots)]
        waiting = {i for documents in self._pending.values() for i in documents}
        places = [place for place, document in enumerate(ids) if document in waiting]
        self._documents.save(folder, ids)
        self._mirror.save(folder)
        np.save(folder / "pending.npy", np.array(places, dtype=np.int64))

    def load(self, folder: Path) -> None:
        """Become what `save` wrote."""
        self._documents.load(folder)
        self._mirror = Mirror.load(folder)
        ids = SavedDocuments(folder).ids()
        self._ids = ids[: self._mirror.size]
        self._slots = {document: slot for slot, document in enumerate(self._ids)}
        self._pending = {}
        for place in np.load(folder / "pending.npy", allow_pickle=False).tolist():
            text = self._documents[ids[place]].text
            self._pending.setdefault(text, {})[ids[place]] = None
        self._estimates = None

    def similarities(self, documents: Sequence[DocumentId], position: int) -> Floats:
        """Return the cosine of one of some ranked documents with each of them."""
        slots = np.array([self._slots[document] for document in documents], dtype=np.intp)
        return self._mirror.cosines(self._mirror.at(int(slots[position])), slots)

    def _check_dimensions(self, dimensions: int) -> None:
        if self._mirror.size and dimensions != self._mirror.dimensions:
            msg = (
                f"{self._embedder!r} gives vectors of {dimensions} numbers, and those of the index"
                f" have {self._mirror.dimensions}: its model was changed; give it another"
                " fingerprint, or refresh the store"
            )
            raise InfrastructureError(msg)

    def _estimated(self, query: str, sought: Scaled) -> NDArray[np.float32]:
        if self._estimates is None or self._estimates.query != query:
            self._estimates = _Estimates(query, self._mirror.estimates(sought))
        return self._estimates.cosines

    def _enter(self, document: DocumentId, row: NDArray[np.float32], length: float) -> None:
        if not length:
            return
        if not self._mirror.size:
            self._mirror = Mirror(row.size)
        self._slots[document] = self._mirror.append(row, length)
        self._ids.append(document)
        self._estimates = None

    def _clear(self, document: DocumentId) -> None:
        """Take a document out of the matrix; the last one moves into its place."""
        slot = self._slots.pop(document)
        moved = self._ids.pop()
        if moved != document:
            self._ids[slot] = moved
            self._slots[moved] = slot
        self._mirror.remove(slot)
        self._estimates = None
