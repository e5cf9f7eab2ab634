"""Embedders: vectors for texts, asked for once.

`make_embedder` turns a name (`"hashing"`, `"wordllama"`, `"openai:text-embedding-3-small"`) or any LangChain
`Embeddings` into a `CachedEmbedder`, whose fingerprint says what its vectors depend on. Whatever
ranks by vectors says which it lacks (`EmbeddingRequest`); whoever may wait fetches them.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.embedders.base import Embedder, EmbeddingRequest, Role, Vectors
    from langgraft.memory.embedders.cached import (
        CachedEmbedder,
        MemoryVectors,
        SQLiteVectors,
        VectorCache,
    )
    from langgraft.memory.embedders.named import HashingEmbeddings, make_embedder
    from langgraft.memory.embedders.wordllama import WordLlamaEmbeddings

__all__ = [
    "CachedEmbedder",
    "Embedder",
    "EmbeddingRequest",
    "HashingEmbeddings",
    "MemoryVectors",
    "Role",
    "SQLiteVectors",
    "VectorCache",
    "Vectors",
    "WordLlamaEmbeddings",
    "make_embedder",
]

_MODULES = {
    "base": ("Embedder", "EmbeddingRequest", "Role", "Vectors"),
    "cached": ("CachedEmbedder", "MemoryVectors", "SQLiteVectors", "VectorCache"),
    "named": ("HashingEmbeddings", "make_embedder"),
    "wordllama": ("WordLlamaEmbeddings",),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)
