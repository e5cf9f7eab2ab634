"""Embeddings that a test decides, and that count what they are asked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from langchain_core.embeddings import Embeddings

Call = tuple[
    Literal["embed_documents", "aembed_documents", "embed_query", "aembed_query"], list[str]
]


class TableEmbeddings(Embeddings):
    """Look vectors up in a table, or compute them.

    `calls` keeps every call; while `error` is set, each raises it. As a query a text has the
    vector of `queries`, if it is there.
    """

    def __init__(
        self,
        table: Mapping[str, Sequence[float]] | Callable[[str], Sequence[float]],
        queries: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self._table = table
        self._queries = queries or {}
        self.calls: list[Call] = []
        self.error: Exception | None = None

    def vector(self, text: str) -> list[float]:
        """The vector of a document."""
        return list(self._table(text) if callable(self._table) else self._table[text])

    def asked(self) -> list[str]:
        """All documents' texts in the order in which they were asked for."""
        return [text for name, texts in self.calls if "documents" in name for text in texts]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Count, and look up."""
        self._count(("embed_documents", texts))
        return [self.vector(text) for text in texts]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Count, and look up."""
        self._count(("aembed_documents", texts))
        return [self.vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Count, and look up."""
        self._count(("embed_query", [text]))
        return list(self._queries.get(text) or self.vector(text))

    async def aembed_query(self, text: str) -> list[float]:
        """Count, and look up."""
        self._count(("aembed_query", [text]))
        return list(self._queries.get(text) or self.vector(text))

    def _count(self, call: Call) -> None:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
