"""JSON values: one way to write them as bytes, a form that any database gives back, paths into them.

Equal values have equal bytes, and so equal digests.

Not every database gives back what it was given. PostgreSQL's `jsonb` refuses the character NUL,
returns whole floats from 1e16 on as integers and -0.0 as 0.0; its keys hold no NUL and end at a
few thousand bytes. LangGraph's SQLite store refuses integers beyond 64 bits. So a record that
would not come back as it was is *sealed*: its JSON, in ASCII, goes along as one text, from which
it is read again. Every other record is plain fields.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
"""Any value that JSON can hold."""


SEALED: Final = "sealed"
"""Field of a record that holds the JSON of all it stands for."""

_NAME_BYTES: Final = 1000
"""Longest name that is a key as it is. A row of PostgreSQL's index ends at 2,704 bytes, and
shares them with the namespace."""

_DIGEST: Final = "sha256:"

_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
)
"""Made once: `json.dumps` makes one a call where it is told anything."""

_UNUSUAL: Final = re.compile(r"\\u0000|\d{19}|\d[eE]|-0")
"""What JSON shows of each value that some store does not give back, and of some that all do."""

_STANDS_FOR_NUL: Final = "\ufffd"


def canonical_json(value: JSON) -> str:
    """Write `value` as canonical JSON: sorted keys, no spaces, UTF-8 text, no NaN.

    Args:
        value: A JSON value. Strings must be encodable as UTF-8.

    Returns:
        One line without a line break at the end.

    Raises:
        ValueError: `value` holds NaN, an infinity or a lone surrogate.
        TypeError: `value` holds something JSON cannot hold.
    """
    text = _ENCODER.encode(value)
    text.encode("utf-8")
    return text


def digest(value: JSON) -> str:
    """Return the SHA-256 hex digest of `value` in canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def text_digest(text: str) -> str:
    """Return the SHA-256 hex digest of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def seeded_fraction(*parts: JSON) -> float:
    """Return a number in [0, 1) that depends on `parts` alone.

    The same parts give the same number in every process and on every machine, which makes
    it the right source for "random" choices that a log has to reproduce.
    """
    return math.ldexp(int(digest(list(parts))[:13], 16), -52)


_parts: Final = lru_cache(lambda path: tuple(path.split(".")))


def at_path(value: Any, path: str) -> Any:
    """Return what `value` holds at a dotted path of mapping keys, or `None`."""
    for part in _parts(path):
        # Nearly all are plain ones, of which that is known ten times as fast.
        if not isinstance(value, dict) and not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def travels(value: JSON) -> bool:
    """Say whether every store gives `value` back as it is."""
    return not _UNUSUAL.search(json.dumps(value)) or _all_travel(value)


def _all_travel(value: JSON) -> bool:
    match value:
        case str():
            return "\x00" not in value
        case int():
            return -(2**63) <= value < 2**63
        case float():
            exponent = value.is_integer() and "e" in repr(value)
            return not exponent and (value != 0 or math.copysign(1, value) > 0)
        case Mapping():
            return all(_all_travel(key) and _all_travel(each) for key, each in value.items())
        case Sequence():
            return all(map(_all_travel, value))
        case _:
            return True


def portable_name(name: str) -> str:
    """Return a key for `name` that every store takes: the name, or a digest of it."""
    fits = len(name.encode()) <= _NAME_BYTES and "\x00" not in name
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
