"""Embedders: vectors for texts, asked for once.

Whatever ranks by vectors says which it lacks (`EmbeddingRequest`); whoever may wait fetches them.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.embedders.base import Embedder, EmbeddingRequest, Role, Vectors

__all__ = ["Embedder", "EmbeddingRequest", "Role", "Vectors"]

_MODULES = {"base": ("Embedder", "EmbeddingRequest", "Role", "Vectors")}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)
