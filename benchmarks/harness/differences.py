"""Put the difference between two values into readable lines."""

import string
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TypeAlias

from langgraft._core.canonical import JSON, canonical_json

_SHORT_DIGEST = 12
_LONGEST = 60


class _Missing:
    """Stands for a value that one side does not have."""


_MISSING = _Missing()
_Maybe: TypeAlias = "JSON | _Missing"


def differences(old: JSON, new: JSON, where: str, sep: str = ".") -> Iterator[str]:
    """List what differs: `plan.temperature: 0.5 → 0.7`.

    Args:
        old: What was.
        new: What is.
        where: Name of the value, put before the name of its parts.
        sep: What stands between the name and the first part.
    """
    yield from _walk(old, new, where, sep)


def _walk(old: _Maybe, new: _Maybe, where: str, sep: str) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _walk(
                old.get(key, _MISSING), new.get(key, _MISSING), f"{where}{sep}{key}", "."
            )
    elif _is_table(old) and _is_table(new):
        pairs = zip_longest(old, new, fillvalue=_MISSING)  # type: ignore[arg-type]
        for position, (one, other) in enumerate(pairs):
            yield from _walk(one, other, f"{where}[{position}]", ".")
    elif isinstance(old, _Missing) or isinstance(new, _Missing) or not _same(old, new):
        yield f"{where}: {_show(old)} → {_show(new)}"


def _is_table(value: _Maybe) -> bool:
    """Whether a value is a list of mappings, which is compared row by row."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return bool(value) and all(isinstance(row, Mapping) for row in value)


def _same(old: JSON, new: JSON) -> bool:
    return canonical_json(old) == canonical_json(new)


def _show(value: _Maybe) -> str:
    if isinstance(value, _Missing):
        return "nothing"
    if value is None:
        return "none"
    text = value if isinstance(value, str) and value else canonical_json(value)
    if len(text) >= 2 * _SHORT_DIGEST and all(char in string.hexdigits for char in text):
        return text[:_SHORT_DIGEST]
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
