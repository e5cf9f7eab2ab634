"""Ranking by the cosine of embeddings, exactly: estimates in float32 nominate, float64 decides."""

import math
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
from langgraft.memory.rankers.documents import (
    SLACK,
    Documents,
    Floats,
    best,
    mapped,
    reaching,
    rounded,
)

REQUEST_TEXTS: Final = 1_000
"""Texts in one request: what was embedded before a failure is cached and not asked for again."""

_QUERIES: Final = 64
"""How many queries' vectors are kept; the embedder's cache has the others."""


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


_NONE: Final = math.inf
"""Length of the vector of a slot that has none."""

_PLAIN: Final = 20
"""Vectors whose largest entries lie within 2 to the power of so many are not scaled: their products are far
from the ends of float32, and the index and the embedder's cache can have one copy of them."""

_CHUNK: Final = 1024
"""Rows compared at a time where float64 is needed: 3 MB at 384 dimensions."""

_GATHERED: Final = 128
"""Rows copied at a time before they are multiplied: so few are still near the processor then,
which takes a third less time than 1,024."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """Vectors as they are, or huge and tiny ones times powers of two: largest entries from ½ to 1.

    A power of two changes no digit, and the cosine of vectors is that of their multiples. So
    no numbers overflow or vanish when they are multiplied.
    """

    rows: Vectors
    lengths: Floats
    """Euclidean lengths of the rows; 0 for a vector of zeros, which has no direction."""

    @classmethod
    def of(cls, vectors: Vectors) -> "Scaled":
        """Scale each row by itself."""
        wide = vectors.astype(np.float64)
        _, exponents = np.frexp(np.abs(wide).max(axis=1, initial=0.0))
        exponents[np.abs(exponents) <= _PLAIN] = 0
        rows = np.ldexp(wide, -exponents[:, np.newaxis]).astype(np.float32)
        return cls(rows, np.sqrt(_sums(rows.astype(np.float64) ** 2)))


def _sums(rows: Floats) -> Floats:
    """Add up each row in a fixed order: right half to left half until one column is left.

    Only whole columns are added, so that a row's sum depends on nothing but the row, whatever
    a library's own sums do on another machine or at another place in memory. Overwrites `rows`.
    """
    width = rows.shape[1]
    while width > 1:
        half = (width + 1) // 2
        rows[:, : width - half] += rows[:, half:width]
        width = half
    return rows[:, 0].copy()


class Mirror:
    """The directions of a changing set of vectors, by slot: 0, 1, 2 …; a slot may have none.

    Args:
        dimensions: Length of the vectors.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.present = 0
        self._rows: Vectors = np.empty((0, dimensions), dtype=np.float32)
        self._lengths: Floats = np.empty(0)

    @property
    def room(self) -> int:
        """Number of slots there is room for: those beyond have no vector."""
        return len(self._rows)

    def reserve(self, slots: int) -> None:
        """Make room for as many slots; those that are new have no vector."""
        room = len(self._rows)
        if slots <= room:
            return
        # The first time there are as many as will ever be, perhaps; then they come one by one.
        size = max(slots, math.ceil(1.5 * room))
        rows = np.zeros((size, self.dimensions), dtype=np.float32)
        lengths = np.full(size, _NONE)
        rows[:room], lengths[:room] = self._rows, self._lengths
        self._rows, self._lengths = rows, lengths

    def set(self, slot: int, row: NDArray[np.float32], length: float) -> None:
        """Enter a scaled vector that is not zero in a slot that has none."""
        self._rows[slot], self._lengths[slot] = row, length
        self.present += 1

    def remove(self, slot: int) -> None:
        """Forget the vector of a slot, if it has one."""
        if slot < len(self._lengths) and self._lengths[slot] != _NONE:
            self._lengths[slot] = _NONE
            self.present -= 1

    def row(self, slot: int) -> NDArray[np.float32] | None:
        """Return the vector in a slot, not copied, if it has one; it is where it is as long as `room` stays."""
        if slot >= self.room or self._lengths[slot] == _NONE:
            return None
        row: NDArray[np.float32] = self._rows[slot]
        row.flags.writeable = False
        return row

    def sweep(self, places: NDArray[np.intp]) -> None:
        """Move every slot to `places[slot]`, which rises; -1 drops it, and it has no vector."""
        kept = np.flatnonzero(places[: len(self._rows)] >= 0)
        self._rows, self._lengths = self._rows[kept], self._lengths[kept]

    def estimates(self, query: Scaled) -> NDArray[np.float32]:
        """Return the cosine of `query` (one row) with every slot, off by `error` at most.

        NDArray[np.intp] without a vector have -∞.
        """
        # Not `@`: einsum is as fast, for memory is what one waits for, and starts no threads.
        products: NDArray[np.float32] = np.einsum("ij,j->i", self._rows, query.rows[0])
        return self._estimated(products, self._lengths, query)

    @property
    def error(self) -> float:
        """How far an estimate can be from the cosine, in whatever order float32 was summed.

        n products and n - 1 sums, each off by half a unit in the last place, keep a dot product
        within n / 2**24 of the product of the lengths; a few more roundings come after it.
        """
        return (self.dimensions + 16) * 2.0**-24

    def estimates_at(self, query: Scaled, slots: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the cosine of `query` (one row) with some slots, off by `error` at most."""
        products = np.empty(slots.size, dtype=np.float32)
        for start in range(0, slots.size, _GATHERED):
            rows = self._rows[slots[start : start + _GATHERED]]
            np.einsum("ij,j->i", rows, query.rows[0], out=products[start : start + _GATHERED])
        return self._estimated(products, self._lengths[slots], query)

    @staticmethod
    def _estimated(
        products: NDArray[np.float32], lengths: Floats, query: Scaled
    ) -> NDArray[np.float32]:
        products /= (lengths * query.lengths[0]).astype(np.float32)
        products[lengths == _NONE] = -np.inf
        return products

    def nominated(self, estimates: NDArray[np.float32], width: int) -> NDArray[np.intp]:
        """Return where in `estimates` those are that could be among the exact best `width`."""
        near, _ = reaching(estimates, width, below=2 * self.error + SLACK)
        return near[np.isfinite(estimates[near])]

    def cosines(self, query: Scaled, slots: NDArray[np.intp]) -> Floats:
        """Return the cosine of `query` (one row) with the vectors at `slots`, not rounded."""
        wide = query.rows[0].astype(np.float64)
        dots = np.empty(slots.size)
        for start in range(0, slots.size, _CHUNK):
            chunk = slots[start : start + _CHUNK]
            # The product of two float32 numbers is exact in float64.
            dots[start : start + _CHUNK] = _sums(self._rows[chunk].astype(np.float64) * wide)
        cosines: Floats = dots / (self._lengths[slots] * query.lengths[0])
        return cosines

    def at(self, slot: int) -> Scaled:
        """Return the vector at a slot, as a query."""
        return Scaled(self._rows[slot : slot + 1], self._lengths[slot : slot + 1])

    def save(self, folder: Path, slots: int) -> None:
        """Write the vectors of the first slots, or as many as there is room for, into a folder."""
        np.save(folder / "vectors.npy", self._rows[:slots])
        np.save(folder / "vector_lengths.npy", self._lengths[:slots])

    @classmethod
    def load(cls, folder: Path) -> "Mirror":
        """Return what `save` wrote; many vectors stay in their file until one is added."""
        rows = mapped(folder / "vectors.npy")
        mirror = cls(rows.shape[1])
        mirror._rows, mirror._lengths = rows, mapped(folder / "vector_lengths.npy")
        mirror.present = int(np.count_nonzero(mirror._lengths != _NONE))
        return mirror


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
        self._learned: list[int] = []
        """Slots of vectors that the embedder gave, not a file: its cache may show them."""

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
        if (row := self._mirror.row(slot)) is not None:
            self._embedder.share({gone.text: row.copy()})
        self._mirror.remove(slot)
        self._estimates = None
        if self._documents.sparse:
            places = self._documents.sweep()
            self._mirror.sweep(places)
            moved = places[self._learned]
            self._learned = moved[moved >= 0].tolist()
            self._share(self._learned)

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
        known = len(self._learned)
        if request.role == "document" and not self._mirror.present:
            self._mirror = Mirror(vectors.shape[1])
        room = self._mirror.room
        for i, text in enumerate(request.texts):
            row, length = scaled.rows[i], float(scaled.lengths[i])
            if request.role == "query":
                self._queries[text] = Scaled(row[np.newaxis], scaled.lengths[i : i + 1])
            else:
                self._enter(self._pending.pop(text, ()), row, length)
        self._share(self._learned[known:] if self._mirror.room == room else self._learned)
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
            self.learn(request, request.do())
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
        self._learned = []
        self._pending = {}
        for slot in mapped(folder / "pending.npy").tolist():
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
            self._learned.append(slot)
        self._estimates = None

    def _share(self, slots: Iterable[int]) -> None:
        """Have the embedder's cache show these vectors instead of keeping copies."""
        rows = ((slot, self._mirror.row(slot)) for slot in slots)
        self._embedder.share(
            {self._documents.at(slot).text: row for slot, row in rows if row is not None}
        )
