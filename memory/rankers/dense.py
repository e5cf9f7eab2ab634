"""Ranking by the cosine of embeddings, exactly."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langgraft._core.canonical import JSON
from langgraft._core.errors import InfrastructureError
from langgraft.memory.embedders.base import Embedder, EmbeddingRequest, Vectors
from langgraft.memory.embedders.cached import CachedEmbedder
from langgraft.memory.embedders.named import make_embedder, read_name
from langgraft.memory.rankers.base import (
    Document,
    DocumentId,
    Order,
    RankerIndex,
    Scored,
    Ties,
    check_ties,
)
from langgraft.memory.rankers.documents import Documents, Floats, best, rounded
from langgraft.memory.rankers.mirror import Mirror, Scaled

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
        self._queries: dict[str, Scaled] = {}
        self._estimates: _Estimates | None = None

    def __len__(self) -> int:
        return len(self._documents)

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it; one whose text stays keeps its vector."""
        entry = Document(document, text, order)
        before = self._documents.get(document)
        if before is not None and before.text == text:
            self._documents.replace(entry)
            return
        self.remove(document)
        self._documents.extend([entry])
        self._estimates = None
        if text.strip():  # some models refuse a blank one
            self._pending.setdefault(text, {})[document] = None

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        slot = self._documents.slot(document)
        gone = self._documents.remove(document)
        if slot is None or gone is None:
            return
        waiting = self._pending.get(gone.text, {})
        waiting.pop(document, None)
        if not waiting:
            self._pending.pop(gone.text, None)
        self._mirror.remove(slot)
        self._estimates = None
        if self._documents.sparse:
            self._mirror.sweep(self._documents.sweep())

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
        if request.role == "document" and not self._mirror.present:
            self._mirror = Mirror(vectors.shape[1])
        for i, text in enumerate(request.texts):
            row, length = scaled.rows[i], float(scaled.lengths[i])
            if request.role == "query":
                self._queries[text] = Scaled(row[np.newaxis], scaled.lengths[i : i + 1])
            else:
                self._enter(self._pending.pop(text, ()), row, length)
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
        slots = self._documents.slots(documents)
        slots = slots[slots < self._mirror.room]
        near = self._mirror.nominated(self._mirror.estimates_at(sought, slots), limit)
        return self._ranking(sought, slots[near], limit)

    def _sought(self, query: str) -> Scaled | None:
        """Return the query's vector, or `None` where nothing can be like it."""
        if not query.strip() or not self._documents:
            return None
        for request in self.lacking(query):
            self.learn(request, request.answer())
        sought = self._queries[query]
        return sought if self._mirror.present and sought.lengths[0] else None

    def _ranking(self, sought: Scaled, slots: NDArray[np.intp], limit: int) -> list[Scored]:
        """Order nominated documents by their exact cosines."""
        cosines = self._mirror.cosines(sought, slots)
        return best(self._documents, slots, cosines, limit=limit, ties=self._ties)

    def save(self, folder: Path) -> None:
        """Write all documents and vectors into an empty folder."""
        self._documents.save(folder)
        self._mirror.save(folder, self._documents.size)
        waiting = (self._documents.slots(documents) for documents in self._pending.values())
        none = np.empty(0, dtype=np.intp)
        np.save(folder / "pending.npy", np.concatenate([none, *waiting]))

    def load(self, folder: Path) -> None:
        """Become what `save` wrote."""
        self._documents.load(folder)
        self._mirror = Mirror.load(folder)
        self._pending = {}
        for slot in np.load(folder / "pending.npy", allow_pickle=False).tolist():
            document = self._documents.at(slot)
            self._pending.setdefault(document.text, {})[document.id] = None
        self._estimates = None

    def similarities(self, documents: Sequence[DocumentId], position: int) -> Floats:
        """Return the cosine of one of some ranked documents with each of them."""
        slots = np.array([self._documents.slot(document) for document in documents], dtype=np.intp)
        return rounded(self._mirror.cosines(self._mirror.at(int(slots[position])), slots))

    def _check_dimensions(self, dimensions: int) -> None:
        if self._mirror.present and dimensions != self._mirror.dimensions:
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

    def _enter(
        self, documents: Iterable[DocumentId], row: NDArray[np.float32], length: float
    ) -> None:
        """Enter the vector of a text for all documents that have it; zeros are no direction."""
        if not length:
            return
        self._mirror.reserve(self._documents.size)
        for document in documents:
            slot = self._documents.slot(document)
            assert slot is not None
            self._mirror.set(slot, row, length)
        self._estimates = None


@dataclass(frozen=True, slots=True)
class Dense:
    """Rank by the cosine of the embeddings of query and text.

    Every document is compared with the query: nothing is approximated, and a score is computed
    in float64 from the vector as the embedder gave it (in float32). A cosine says how alike two
    texts are and has no threshold below which they do not match, so as many documents are
    returned as are asked for, best first, those with negative scores included. A blank text is
    not embedded, and a vector of zeros has no direction: such documents are never returned, and
    for such a query nothing is.

    ```python
    Dense()  # hashed words and pieces of words: offline, lexical
    Dense("openai:text-embedding-3-small", dimensions=512)
    Dense(HuggingFaceEmbeddings(model_name="…"))  # any LangChain embeddings
    Dense(make_embedder("openai:…", cache=SQLiteVectors("vectors.db")))
    ```

    Two rankers are equal if their embedders have one fingerprint, wherever vectors are cached.

    Raises:
        SettingsError: `embeddings` names no embedder, or `dimensions` does not go with it.
    """

    embeddings: str | Embeddings = field(default="hashing", compare=False)
    """As `make_embedder` takes it."""

    dimensions: int | None = field(default=None, compare=False)
    """Length of the vectors, for embeddings named by a string; `None` is the model's own."""

    ties: Ties = "oldest"
    """Which of equal documents comes first."""

    embedder: CachedEmbedder = field(init=False, repr=False)
    """What `embeddings` stands for; all indexes of this ranker share its cache."""

    def __post_init__(self) -> None:
        check_ties(self.ties)
        embedder = make_embedder(self.embeddings, dimensions=self.dimensions)
        if isinstance(self.embeddings, str):
            named = read_name(self.embeddings, self.dimensions)
            object.__setattr__(self, "embeddings", named.name)
            object.__setattr__(self, "dimensions", named.dimensions)
        else:
            object.__setattr__(self, "embeddings", embedder)
        object.__setattr__(self, "embedder", embedder)

    def index(self) -> RankerIndex:
        """Return a new empty index."""
        return DenseIndex(self.embedder, ties=self.ties)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        return {
            "ranker": "dense",
            **self.embedder.describe(),
            "similarity": "cosine",
            "ties": self.ties,
        }
