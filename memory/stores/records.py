"""What stores of ours take and give back: addresses and values that are checked, and times."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from langgraph.store.base import ListNamespacesOp, MatchCondition

from langgraft._core.errors import InputError
from langgraft.memory.stores.programs import Address, Namespace

MAX_DEPTH: Final = 200
"""Levels a value may be nested; Python reads JSON recursively and stops at about 1,000."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_EXCERPT: Final = 60

as_json: Final = json.JSONEncoder(separators=(",", ":")).encode
"""Write JSON in ASCII."""


def check_address(namespace: Any, key: Any) -> Address:
    """Return the address of a record, with a namespace that came as a list as a tuple.

    Raises:
        InputError: A label or the key is no string, or one that JSON cannot give back.
    """
    labels = check_labels(namespace)
    if not isinstance(key, str):
        msg = f"a key must be a string, got {key!r} in namespace {labels!r}"
        raise InputError(msg)
    _check_text(key, f"the key {key!r}")
    return labels, key


def check_labels(namespace: Any) -> Namespace:
    """Return a namespace or a prefix of one as a tuple.

    Raises:
        InputError: It is no sequence of strings, or one that JSON cannot give back.
    """
    if not isinstance(namespace, tuple | list) or not all(isinstance(x, str) for x in namespace):
        msg = f"a namespace must be a tuple of strings, got {namespace!r}"
        raise InputError(msg)
    for label in namespace:
        _check_text(label, f"the namespace {namespace!r}")
    return tuple(namespace)


def encode(value: Any, address: Address) -> str:
    """Write a record's value as JSON in ASCII.

    Tuples become lists; NaN and infinities stay what they are.

    Raises:
        InputError: It is no mapping, or holds something that JSON does not give back as it was.
    """
    where = f"the value of {address[1]!r} in {address[0]!r}"
    if not isinstance(value, Mapping):
        msg = f"{where} must be a mapping, got {type(value).__name__}"
        raise InputError(msg)
    _check(dict(value), where, 0)
    try:
        return as_json(dict(value))
    except ValueError as error:  # an integer of more digits than Python writes
        msg = f"{where} cannot be written as JSON: {error}"
        raise InputError(msg) from error


def moment(nanoseconds: int) -> datetime:
    """Return a time stamp as a date, which has microseconds."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _check(value: Any, where: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        msg = f"{where} is nested deeper than {MAX_DEPTH} levels; flatten it"
        raise InputError(msg)
    match value:
        case None | bool() | int() | float():
            return
        case str():
            _check_text(value, where)
        case dict():
            for key, inner in value.items():
                if not isinstance(key, str):
                    msg = f"{where} holds a mapping with the key {key!r}; keys must be strings"
                    raise InputError(msg)
                _check_text(key, where)
                _check(inner, where, depth + 1)
        case list() | tuple():
            for inner in value:
                _check(inner, where, depth + 1)
        case _:
            msg = f"{where} holds a {type(value).__name__}, which is no JSON; convert it first"
            raise InputError(msg)


def _check_text(text: str, where: str) -> None:
    """Refuse two surrogates that JSON would read back as the one character they stand for."""
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        units = text.encode("utf-16-le", "surrogatepass")
        if units.decode("utf-16-le", "surrogatepass") != text:
            msg = (
                f"{where} holds a character split into two surrogates, in"
                f" {text[:_EXCERPT]!r}; decode it first"
            )
            raise InputError(msg) from None


def listed(namespaces: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """Return those of some namespaces that a listing asks for."""
    conditions = op.match_conditions or ()
    kept = [each for each in set(namespaces) if all(_matches(each, c) for c in conditions)]
    shown = sorted({each[: op.max_depth] for each in kept})
    start = max(op.offset, 0)
    return shown[start : start + max(op.limit, 0)]


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    """Say whether a namespace begins or ends with a path, in which `*` is any label."""
    path = tuple(condition.path)
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[max(0, len(namespace) - len(path)) :]
    return len(part) == len(path) and all(
        wanted in ("*", label) for wanted, label in zip(path, part, strict=True)
    )


def check_conditions(op: ListNamespacesOp) -> None:
    """Refuse a listing by anything else than `prefix` and `suffix`."""
    for condition in op.match_conditions or ():
        if condition.match_type not in {"prefix", "suffix"}:
            msg = f"namespaces match by 'prefix' or 'suffix', got {condition.match_type!r}"
            raise InputError(msg)
