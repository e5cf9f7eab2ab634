"""What asks for vectors, what gives them, and what an answer must be like."""

from collections.abc import Mapping, Sequence
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

    def share(self, rows: Mapping[str, NDArray[np.float32]]) -> None:
        """Take rows that somebody keeps anyway in the place of equal ones, kept of the same documents."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Texts that somebody needs the vectors of, and must not wait for while holding a lock.

    `embedder` makes them, for texts in a `role`: query or document.

    It is an effect (`langgraft._core.effects`).
    """

    embedder: Embedder
    texts: tuple[str, ...]
    """Different from each other."""
    role: Role

    def do(self) -> Vectors:
        """Return one vector per text."""
        return self.embedder.vectors(self.texts, self.role)

    async def ado(self) -> Vectors:
        """Return one vector per text."""
        return await self.embedder.avectors(self.texts, self.role)


def read_answer(answer: object, count: int) -> Vectors:
    """Return an embedder's answer to `count` texts, one row each.

    Raises:
        ValueError: It is not one vector per text, all of one length and of numbers that are
            finite in float32; the message says what it is instead.
    """
    try:
        with np.errstate(over="ignore"):  # it becomes infinite and is refused below
            rows = np.array(answer, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        msg = "vectors of different lengths, or no numbers"
        raise ValueError(msg) from error
    if rows.ndim != 2 or len(rows) != count or not rows.size:  # noqa: PLR2004
        msg = f"an array of shape {rows.shape} for {count} texts"
        raise ValueError(msg)
    if not np.isfinite(rows).all():
        msg = "numbers that are not finite in float32"
        raise ValueError(msg)
    return rows
