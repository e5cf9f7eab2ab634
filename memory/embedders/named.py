"""Embedders by name, for plans and settings files, and what their vectors depend on."""

import importlib
import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain_core.embeddings import Embeddings

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.embedders.cached import CachedEmbedder, VectorCache
from langgraft.memory.embedders.hashing import DIMENSIONS, FEATURES, HashingEmbeddings

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
            f"embeddings must be 'hashing', a name such as 'openai:text-embedding-3-small' or a"
            f" LangChain Embeddings object, got {embeddings!r}"
        )
        raise SettingsError(msg)
    _refuse("dimensions", dimensions, type(embeddings).__name__)
    if isinstance(embeddings, CachedEmbedder):
        _refuse("fingerprint", fingerprint, "a cached embedder")
        _refuse("cache", cache, "a cached embedder")
        return embeddings
    if isinstance(embeddings, HashingEmbeddings) and fingerprint is None:
        return make_embedder("hashing", dimensions=embeddings.dimensions, cache=cache)
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
        chosen: dict[str, JSON] = {}
        if self.dimensions is not None:
            chosen["dimensions"] = self.dimensions
        return {"embeddings": self.name, **chosen}


def read_name(name: str, dimensions: int | None = None) -> NamedEmbeddings:
    """Read `"hashing"`, `"hashing:256"` or `"provider:model"`.

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
    if not (provider.strip() and model.strip()):
        msg = (
            f"unknown embeddings {name!r}; give 'hashing', 'hashing:<dimensions>' or"
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
