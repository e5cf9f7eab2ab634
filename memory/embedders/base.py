"""What asks for vectors, and what gives them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]
"""One vector a row, as an embedder gave them: finite, and not scaled to unit length."""

Role: TypeAlias = Literal["document", "query"]
"""What a text is embedded as: some models embed what is sought otherwise than what is kept."""


class Embedder(Protocol):
    """Gives a vector for each text; equal embedders give equal vectors."""

    @property
    def fingerprint(self) -> str:
        """What the vectors depend on besides the text, as one short string."""
        ...

    def vectors(self, texts: Sequence[str], role: Role) -> Vectors:
        """Embed texts; may call a network."""
        ...

    async def avectors(self, texts: Sequence[str], role: Role) -> Vectors:
        """Do as `vectors` does, asynchronously."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Texts that somebody needs the vectors of, and must not wait for while holding a lock."""

    embedder: Embedder
    texts: tuple[str, ...]
    """Different from each other."""
    role: Role

    def answer(self) -> Vectors:
        """Return one vector per text."""
        return self.embedder.vectors(self.texts, self.role)

    async def aanswer(self) -> Vectors:
        """Return one vector per text."""
        return await self.embedder.avectors(self.texts, self.role)
