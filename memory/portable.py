"""Records that every store gives back as they were.

A bank is the same bank wherever it is kept. PostgreSQL's `jsonb` refuses the character NUL,
returns whole floats from 1e16 on as integers and -0.0 as 0.0; its keys hold no NUL and end at a
few thousand bytes. LangGraph's SQLite store refuses integers beyond 64 bits. So a record that
could not make the way is *sealed*: its JSON, in ASCII, goes along as one text, from which it is
read again. Every other record is plain fields. What a record looks like depends on its content
alone, never on the store.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from langgraft._core.canonical import JSON, text_digest

SEALED: Final = "sealed"
"""Field of a record that holds the JSON of all it stands for."""

_NAME_BYTES: Final = 1000
"""Longest name that is a key as it is. A row of PostgreSQL's index ends at 2,704 bytes, and
shares them with the namespace."""

_DIGEST: Final = "sha256:"

_STANDS_FOR_NUL: Final = "\ufffd"


def travels(value: JSON) -> bool:
    """Say whether every store gives `value` back as it is."""
    match value:
        case str():
            return "\x00" not in value
        case int():
            return -(2**63) <= value < 2**63
        case float():
            exponent = value.is_integer() and "e" in repr(value)
            return not exponent and (value != 0 or math.copysign(1, value) > 0)
        case Mapping():
            return all(travels(key) and travels(each) for key, each in value.items())
        case Sequence():
            return all(map(travels, value))
        case _:
            return True


def portable_name(name: str) -> str:
    """Return a key for `name` that every store takes: the name, or a digest of it."""
    fits = len(name.encode()) <= _NAME_BYTES and travels(name)
    return name if fits and not name.startswith(_DIGEST) else _DIGEST + text_digest(name)


def portable_text(text: str) -> str:
    """Return what filters find `text` by: itself, with U+FFFD in the place of NUL."""
    return text.replace("\x00", _STANDS_FOR_NUL)


def portable_record(record: Mapping[str, JSON]) -> dict[str, Any]:
    """Return a record that every store gives back as it is: `record`, sealed if it must be.

    The fields of a sealed record are what rankers and filters see; they are no longer exact.
    """
    if travels(record):
        return dict(record)
    legible = {portable_text(key): _legible(value) for key, value in record.items()}
    return {**legible, SEALED: json.dumps(record, sort_keys=True, allow_nan=False)}


def unseal(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a record stands for, sealed or not."""
    sealed = record.get(SEALED)
    return json.loads(sealed) if isinstance(sealed, str) else record


def _legible(value: JSON) -> JSON:
    match value:
        case str():
            return portable_text(value)
        case int() | float() if not travels(value):
            return str(value)
        case Mapping():
            return {portable_text(key): _legible(each) for key, each in value.items()}
        case Sequence():
            return [_legible(each) for each in value]
        case _:
            return value
