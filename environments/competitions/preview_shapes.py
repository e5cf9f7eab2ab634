"""The shape of JSON files, for a competition's preview."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from langgraft.environments.competitions.preview_files import plain, read_beginning

_READ: Final = 4 * 2**20
"""Bytes: a JSON file is read whole or not at all, of JSON lines the beginning."""
_LINES: Final = 200
"""JSON lines that are looked at."""
_ITEMS: Final = 200
"""Items of a list that are looked at."""
_KEYS: Final = 12
"""Keys of an object that are told."""
_DEPTH: Final = 4


def described_json(path: Path, name: str, *, lines: bool) -> str:
    """Describe the shape of a JSON file: which keys, and what kinds of values.

    Args:
        path: The file.
        name: What to call it.
        lines: Whether each line is a value of its own.

    Raises:
        OSError: It cannot be read.
    """
    beginning = read_beginning(path, _READ)
    if lines:
        return _of_lines(beginning.text.splitlines(), name, whole=beginning.whole)
    if not beginning.whole:
        return f"{name}: JSON, too large to look into here"
    try:
        return f"{name}: {_shape([json.loads(beginning.text)], 0)}"
    except (ValueError, RecursionError):
        return f"{name}: cannot be read as JSON"


def _of_lines(lines: Sequence[str], name: str, *, whole: bool) -> str:
    kept = [line for line in lines if line.strip()]
    try:
        values = [json.loads(line) for line in kept[:_LINES]]
    except (ValueError, RecursionError):
        return f"{name}: cannot be read as JSON lines"
    if not values:
        return f"{name}: empty"
    seen = f"{len(values)} lines" if whole and len(kept) <= _LINES else f"first {len(values)} lines"
    return f"{name}: each line ({seen} looked at) {_shape(values, 0)}"


def _shape(values: Sequence[Any], depth: int) -> str:
    """Put into words what values that stand in one place are like."""
    parts: list[str] = []
    objects = [value for value in values if isinstance(value, Mapping)]
    lists = [value for value in values if isinstance(value, list)]
    if objects:
        parts.append(_object(objects, depth))
    if lists:
        parts.append(_list(lists, depth))
    parts += dict.fromkeys(
        _scalar(value) for value in values if not isinstance(value, Mapping | list)
    )
    return " or ".join(parts) or "nothing"


def _object(objects: Sequence[Mapping[str, Any]], depth: int) -> str:
    keys = list(dict.fromkeys(key for each in objects for key in each))
    if not keys:
        return "empty object"
    if depth >= _DEPTH:
        return f"object of {len(keys)} keys"
    told = [
        f"{plain(key, 40)}: {_shape([each[key] for each in objects if key in each], depth + 1)}"
        for key in keys[:_KEYS]
    ]
    more = [f"… {len(keys) - _KEYS:,} more keys"] if len(keys) > _KEYS else []
    return f"object {{{', '.join(told + more)}}}"


def _list(lists: Sequence[list[Any]], depth: int) -> str:
    lengths = [len(each) for each in lists]
    long = f"{lengths[0]:,}" if len(set(lengths)) == 1 else f"{min(lengths):,} to {max(lengths):,}"
    if depth >= _DEPTH:
        return f"list of {long}"
    items = [item for each in lists for item in each[:_ITEMS]][:_ITEMS]
    return f"list of {long}, each {_shape(items, depth + 1)}" if items else "empty list"


def _scalar(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "number"
        case None:
            return "null"
        case _:
            return "text"
