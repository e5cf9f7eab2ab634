"""What a vector depends on besides its text, told without secrets."""

import inspect
import json
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.embeddings import Embeddings

from langgraft._core.canonical import JSON

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
