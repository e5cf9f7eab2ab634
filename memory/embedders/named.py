"""Embedders by name, for plans and settings files, and what their vectors depend on."""

import importlib
import inspect
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, cast
from zlib import crc32

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.embedders.base import Vectors
from langgraft.memory.embedders.cached import CachedEmbedder, VectorCache
from langgraft.memory.embedders.wordllama import DIMENSIONS as WORDLLAMA_DIMENSIONS
from langgraft.memory.embedders.wordllama import (
    TOKENIZER_SHA256,
    WEIGHTS_SHA256,
    WordLlamaEmbeddings,
)
from langgraft.memory.words import hidden_characters, runs, tokenize

_UNTOLD = (
    "key",
    "secret",
    "token",
    "password",
    "credential",
    "auth",
    "header",
    "cert",
    "organization",
    "project",
    "url",
    "base",
    "host",
    "endpoint",
    "proxy",
    "path",
    "folder",
    "dir",
    "client",
    "retr",
    "timeout",
    "progress",
    "chunk_size",
    "batch",
    "cache",
    "device",
    "thread",
    "worker",
)
"""Settings whose names hold one of these are secret, differ from machine to machine, or say how
vectors are fetched rather than what they are."""


def describe_embeddings(embeddings: Embeddings) -> dict[str, JSON]:
    """Return the class of an embedder and those of its public settings that shape its vectors.

    Settings are the fields of a pydantic model; of other classes, the constructor's arguments
    that are attributes too.

    Left out are settings that JSON cannot hold (clients, functions, secrets that pydantic
    guards), addresses, and whatever goes by a name that suggests a secret, a place or a matter
    of transport. Two embedders that differ only in such things have the same description: give
    them fingerprints where their vectors differ.
    """
    kind = type(embeddings)
    described: dict[str, JSON] = {"class": f"{kind.__module__}.{kind.__qualname__}"}
    settings = _tell({name: getattr(embeddings, name) for name in sorted(_names(embeddings))})
    return described | {"settings": settings}


def _names(embeddings: Embeddings) -> Iterable[str]:
    fields = getattr(type(embeddings), "model_fields", None)
    if fields is None:
        # Other attributes may be state, such as a count of calls.
        fields = inspect.signature(type(embeddings)).parameters
    return [name for name in fields if not name.startswith("_") and hasattr(embeddings, name)]


def _tell(settings: Mapping[str, Any]) -> dict[str, JSON]:
    """Keep the settings that may and can be told, those inside of others too."""
    told: dict[str, JSON] = {}
    for name, value in settings.items():
        if any(word in name.lower() for word in _UNTOLD) or not _is_json(value):
            continue
        told[name] = _tell(value) if isinstance(value, Mapping) else value
    return told


def _is_json(value: Any) -> bool:
    if isinstance(value, str) and "://" in value:
        return False
    if isinstance(value, Mapping):
        return all(isinstance(name, str) for name in value)
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def make_embedder(
    embeddings: str | Embeddings = "hashing",
    *,
    dimensions: int | None = None,
    fingerprint: str | None = None,
    cache: VectorCache | None = None,
) -> CachedEmbedder:
    """Return a cached embedder; nothing is loaded or called before it is used.

    | `embeddings` | is |
    |---|---|
    | `"hashing"`, `"hashing:256"` | `HashingEmbeddings`: offline, lexical |
    | `"wordllama"` | `WordLlamaEmbeddings`: offline, by meaning; the extra `semantic` |
    | `"openai:text-embedding-3-small"` | what LangChain's `init_embeddings` makes of it |
    | a LangChain `Embeddings` object | itself; a `CachedEmbedder` is returned as it is |

    Args:
        embeddings: See above.
        dimensions: Length of the vectors, for models named by a string that offer a choice.
        fingerprint: Stands for all that the vectors of an object depend on; `None` describes
            its class and public settings. The string that would make the same embedder is a good
            choice: the two then share vectors.
        cache: Where vectors are kept; `None` keeps them in memory, for this embedder only.

    Raises:
        SettingsError: The string names no embedder, or a parameter does not go with it.
    """
    if isinstance(embeddings, str):
        _refuse("fingerprint", fingerprint, embeddings)
        named = read_name(embeddings, dimensions)
        return CachedEmbedder(named.make, named.describe(), cache)
    if not isinstance(embeddings, Embeddings):
        msg = (
            "embeddings must be 'hashing', 'wordllama', a name such as"
            f" 'openai:text-embedding-3-small' or a LangChain Embeddings object, got {embeddings!r}"
        )
        raise SettingsError(msg)
    _refuse("dimensions", dimensions, type(embeddings).__name__)
    if isinstance(embeddings, CachedEmbedder):
        _refuse("fingerprint", fingerprint, "a cached embedder")
        _refuse("cache", cache, "a cached embedder")
        return embeddings
    if isinstance(embeddings, HashingEmbeddings) and fingerprint is None:
        return make_embedder("hashing", dimensions=embeddings.dimensions, cache=cache)
    if isinstance(embeddings, WordLlamaEmbeddings) and fingerprint is None:
        return make_embedder("wordllama", cache=cache)
    described: Mapping[str, JSON] | str = fingerprint or describe_embeddings(embeddings)
    return CachedEmbedder(partial(_itself, embeddings), {"embeddings": described}, cache)


@dataclass(frozen=True, slots=True)
class NamedEmbeddings:
    """An embedder as a string names it."""

    name: str
    dimensions: int | None

    def make(self) -> Embeddings:
        """Load the embedder.

        Raises:
            SettingsError: LangChain does not know it, its package is not installed, or its client
                lacks something, such as a key.
        """
        if self.name == "hashing":
            return HashingEmbeddings(cast("int", self.dimensions))
        if self.name == "wordllama":
            return WordLlamaEmbeddings()
        # Loaded here: nobody who ranks by words should wait for it.
        langchain = importlib.import_module("langchain.embeddings")
        options: dict[str, Any] = {}
        if self.dimensions is not None:
            options["dimensions"] = self.dimensions
        try:
            return cast("Embeddings", langchain.init_embeddings(self.name, **options))
        except Exception as error:  # clients have classes of their own for a missing key
            msg = f"embeddings {self.name!r} cannot be made: {' '.join(str(error).split())}"
            raise SettingsError(msg) from error

    def describe(self) -> dict[str, JSON]:
        """Return what the vectors depend on."""
        if self.name == "hashing":
            return {"embeddings": "hashing", "dimensions": self.dimensions, "features": FEATURES}
        if self.name == "wordllama":
            return {
                "embeddings": "wordllama",
                "dimensions": self.dimensions,
                "weights": WEIGHTS_SHA256,
                "tokenizer": TOKENIZER_SHA256,
            }
        chosen: dict[str, JSON] = {}
        if self.dimensions is not None:
            chosen["dimensions"] = self.dimensions
        return {"embeddings": self.name, **chosen}


def read_name(name: str, dimensions: int | None = None) -> NamedEmbeddings:
    """Read `"hashing"`, `"hashing:256"`, `"wordllama"` or `"provider:model"`.

    Raises:
        SettingsError: It is none of these, or states dimensions twice and differently.
    """
    provider, _, model = name.partition(":")
    if provider == "hashing":
        stated = _number(name, model) if model else dimensions
        if dimensions not in (None, stated):
            msg = f"embeddings {name!r} and dimensions {dimensions!r} do not agree"
            raise SettingsError(msg)
        chosen = HashingEmbeddings(DIMENSIONS if stated is None else stated)
        return NamedEmbeddings("hashing", chosen.dimensions)
    if name == "wordllama":
        if dimensions not in (None, WORDLLAMA_DIMENSIONS):
            msg = (
                f"embeddings 'wordllama' have {WORDLLAMA_DIMENSIONS} dimensions, not {dimensions!r}"
            )
            raise SettingsError(msg)
        return NamedEmbeddings(name, WORDLLAMA_DIMENSIONS)
    if provider == "wordllama" or not (provider.strip() and model.strip()):
        msg = (
            f"unknown embeddings {name!r}; give 'hashing', 'hashing:<dimensions>', 'wordllama' or"
            " '<provider>:<model>', such as 'openai:text-embedding-3-small'"
        )
        raise SettingsError(msg)
    if dimensions is not None and (type(dimensions) is not int or dimensions < 1):
        msg = f"dimensions must be an integer of at least 1, got {dimensions!r}"
        raise SettingsError(msg)
    return NamedEmbeddings(name, dimensions)


def _number(name: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        msg = f"embeddings {name!r}: {digits!r} is no number of dimensions"
        raise SettingsError(msg)
    return int(digits)


def _refuse(what: str, value: object, beside: str) -> None:
    if value is not None:
        msg = f"{what}={value!r} cannot be given together with {beside}"
        raise SettingsError(msg)


def _itself(embeddings: Embeddings) -> Embeddings:
    return embeddings


# Hashing ---------------------------------------------------------------------------------

FEATURES: Final = (
    "lowercase unicode words or bigrams x2, character 3-4-grams; crc32, murmur3 finalizer"
)
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
        for word, count in Counter(_words(text)).items():
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


def _words(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, the character bigrams and characters."""
    if not runs(text):
        return _WORD.findall(text.lower())
    return [*tokenize(text), *hidden_characters(text)]


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
