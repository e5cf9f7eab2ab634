"""Vectors without a model: hashed words and pieces of words."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from zlib import crc32

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from typing_extensions import override

from langgraft._core.errors import SettingsError
from langgraft.memory.embedders.base import Vectors

FEATURES: Final = "lowercase unicode words x2, character 3-4-grams; crc32, murmur3 finalizer"
"""What a vector counts, as it appears in manifests."""

DIMENSIONS: Final = 384
"""As many as the usual small sentence encoders have."""

_WORD = re.compile(r"\w+")
_GRAMS = (3, 4)
_WORD_WEIGHT = 2
"""A word counts as much as two of its pieces, so that a shared word outweighs shared endings."""

_Buckets: TypeAlias = tuple[NDArray[np.intp], NDArray[np.float64]]
"""Places in a vector, and what is added there."""


@dataclass(frozen=True, slots=True)
class HashingEmbeddings(Embeddings):
    """Embed a text by hashing its words and the character 3-grams and 4-grams of each word.

    This compares spelling, not meaning: "open" and "opened" come out alike, "car" and
    "automobile" do not. It needs no network, no download and no key, and a text has the same
    vector, to the last bit, in every process and on every machine. Use it for tests and
    simulations, and as a lexical measure that forgives inflections; use a trained model where
    meaning matters.

    Each feature adds or subtracts its count at one of `dimensions` places, both decided by a
    hash (the hashing trick); the sum is scaled to length 1. A text without a single letter,
    digit or underscore has the zero vector.

    Raises:
        SettingsError: `dimensions` is below 1.
    """

    dimensions: int = DIMENSIONS

    def __post_init__(self) -> None:
        if isinstance(self.dimensions, bool) or not isinstance(self.dimensions, int):
            msg = f"dimensions must be an integer, got {self.dimensions!r}"
            raise SettingsError(msg)
        if self.dimensions < 1:
            msg = f"dimensions must be at least 1, got {self.dimensions!r}"
            raise SettingsError(msg)

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts; each is embedded as if it were alone."""
        vectors: list[list[float]] = self.vectors(texts).tolist()
        return vectors

    @override
    def embed_query(self, text: str) -> list[float]:
        """Embed a text just as a document is."""
        return self.embed_documents([text])[0]

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""
        words: dict[str, _Buckets] = {}
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._vector(text, words)
        return rows

    def _vector(self, text: str, words: dict[str, _Buckets]) -> NDArray[np.float64]:
        sums = np.zeros(self.dimensions)
        for word, count in Counter(_WORD.findall(text.lower())).items():
            if word not in words:
                words[word] = self._buckets(word)
            places, signs = words[word]
            np.add.at(sums, places, count * signs)
        # All sums are whole numbers, so their squares add up exactly in any order.
        length = math.sqrt(float(np.sum(sums * sums)))
        return sums / length if length else sums

    def _buckets(self, word: str) -> _Buckets:
        codes = [crc32(feature) for feature in _features(word)]
        mixed = _mixed(np.array(codes, dtype=np.uint32))
        places = ((mixed >> np.uint32(1)) % np.uint32(self.dimensions)).astype(np.intp)
        signs = np.where(mixed & np.uint32(1), 1.0, -1.0)
        signs[0] *= _WORD_WEIGHT
        return places, signs


def _features(word: str) -> Iterator[bytes]:
    """Yield the word, then its pieces; marks at both ends tell beginnings from middles."""
    # A lone surrogate can be in a text and has no UTF-8.
    yield word.encode("utf-8", "surrogatepass")
    marked = f"<{word}>"
    for size in _GRAMS:
        for start in range(len(marked) - size + 1):
            yield f"{size} {marked[start : start + size]}".encode("utf-8", "surrogatepass")


def _mixed(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Spread checksums: similar strings have similar ones (constants of MurmurHash3's fmix32)."""
    codes ^= codes >> np.uint32(16)
    codes *= np.uint32(0x85EBCA6B)
    codes ^= codes >> np.uint32(13)
    codes *= np.uint32(0xC2B2AE35)
    codes ^= codes >> np.uint32(16)
    return codes
