"""What indexes made of other indexes share: everything but how they rank."""

from collections.abc import Sequence
from pathlib import Path

from langgraft.memory.embedders.base import EmbeddingRequest, Vectors
from langgraft.memory.rankers.base import DocumentId, EmbeddingIndex, Order, RankerIndex
from langgraft.memory.rankers.saved import Document, Documents, load_part, save_part


class CompositeIndex:
    """Documents that are kept here and in each of some other indexes.

    With a `search` it is a durable `EmbeddingIndex`; it is not safe for threads on its own.

    Args:
        parts: The other indexes, empty.
    """

    def __init__(self, parts: Sequence[RankerIndex]) -> None:
        self._indexes = parts
        self._documents = Documents()

    def __len__(self) -> int:
        return len(self._documents)

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it."""
        self._documents.put(Document(document, text, order))
        for index in self._indexes:
            index.put(document, text, order)

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        self._documents.pop(document)
        for index in self._indexes:
            index.remove(document)

    def lacking(self, query: str | None) -> list[EmbeddingRequest]:
        """Say which vectors a search for `query` would have to fetch; `None`: any search."""
        requests = (
            request
            for index in self._indexes
            if isinstance(index, EmbeddingIndex)
            for request in index.lacking(query)
        )
        # Two rankers may lack the same vectors of one embedder.
        return list(dict.fromkeys(requests))

    def learn(self, request: EmbeddingRequest, vectors: Vectors) -> None:
        """Take in what answers a request."""
        for index in self._indexes:
            if isinstance(index, EmbeddingIndex):
                index.learn(request, vectors)

    def save(self, folder: Path) -> None:
        """Write everything into an empty folder."""
        self._documents.save(folder)
        for i, index in enumerate(self._indexes):
            save_part(index, folder / f"part_{i}")

    def load(self, folder: Path) -> None:
        """Become what `save` wrote."""
        self._documents.load(folder)
        for i, index in enumerate(self._indexes):
            load_part(index, folder / f"part_{i}", self._documents)
