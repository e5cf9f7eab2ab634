"""What a ranked store reads in a record: its text, its place among equals, its filter fields."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langgraph.store.base import get_text_at_path

from langgraft._core.errors import InputError
from langgraft.memory.rankers.base import Order

Namespace: TypeAlias = tuple[str, ...]

Address: TypeAlias = tuple[Namespace, str]
"""Namespace and key of a record."""

_ESCAPED: Final = re.compile(r"[\x00-\x1f]")
"""What JSON writes as a letter behind a backslash, which would become a part of a word."""


def at_path(value: Any, path: str) -> Any:
    """Return what `value` holds at a dotted path of mapping keys, or `None`."""
    for part in path.split("."):
        # Nearly all are plain ones, of which that is known ten times as fast.
        if not isinstance(value, dict) and not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


@dataclass(frozen=True, slots=True)
class IndexedRecord:
    """A record that is a document, as an index takes it."""

    text: str
    order: Order
    value: Mapping[str, Any]
    """The whole record: filters may name any field of it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a record's text and position are."""

    fields: tuple[str, ...]
    """Paths of the texts, as LangGraph's `IndexConfig` has them; `$` is the whole record."""
    order_field: str | None

    def entry(
        self,
        address: Address,
        value: Mapping[str, Any] | None,
        index: bool | Sequence[str] | None = None,
    ) -> IndexedRecord | None:
        """Return a record as a document, or `None` if it is none or gone.

        Args:
            address: Of the record.
            value: What it holds; `None`: it is gone.
            index: What its put said: `False`, or paths in the place of `fields`.
        """
        text = None if value is None else self.text(value, index)
        if value is None or text is None:
            return None
        return IndexedRecord(text, self.order(address, value), value)

    def text(
        self, value: Mapping[str, Any], index: bool | Sequence[str] | None = None
    ) -> str | None:
        """Return the text to rank by, or `None` for a record that is no document.

        A text is taken as it is. Anything else at a path is written as LangGraph writes it for
        an embedder: numbers as digits, lists and mappings as JSON.
        """
        if isinstance(index, bool):
            return None
        texts: list[str] = []
        for path in self.fields if index is None else index:
            found = at_path(value, path)
            texts += [found] if isinstance(found, str) else get_text_at_path(_plain(value), path)
        return "\n".join(texts) if texts else None

    def order(self, address: Address, value: Mapping[str, Any]) -> Order:
        """Return the record's place among equal scores; no two records share one.

        Records with an integer in `order_field` come by (integer, key), then namespace; all
        others after them by (namespace, key).
        """
        namespace, key = address
        number = None if self.order_field is None else at_path(value, self.order_field)
        if isinstance(number, int) and not isinstance(number, bool):
            return (0, number, key, *namespace)
        # No label is empty, so "" puts a namespace before those that it is a prefix of.
        return (1, *namespace, "", key)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold, and whose texts JSON does not escape."""
    match value:
        case str():
            return _ESCAPED.sub(" ", value)
        case Mapping():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case int() | float():
            return value
    return None


def passes(value: Mapping[str, Any], conditions: Mapping[str, Any] | None) -> bool:
    """Say whether a record's value meets a LangGraph filter.

    Keys name fields of the record; one that the record does not have is tried as a dotted path.
    Conditions are plain values, nested mappings, or mappings of operators (`$eq`, `$ne`, `$gt`,
    `$gte`, `$lt`, `$lte`). Comparisons read both sides as numbers if they can and else compare
    two strings; where neither is possible, as with a missing field, the record does not pass.

    Raises:
        InputError: An operator is unknown.
    """
    return all(
        meets(field_of(value, key), condition) for key, condition in (conditions or {}).items()
    )


def field_of(value: Mapping[str, Any], key: str) -> Any:
    """Return what a filter's key names in a record, or `None`."""
    return value[key] if key in value else at_path(value, key)


def check_filter(conditions: Any) -> None:
    """Raise `InputError` if a filter uses an unknown operator, whatever the records hold."""
    if not isinstance(conditions, Mapping):
        return
    operators = any(key.startswith("$") for key in conditions)
    for key, condition in conditions.items():
        if operators and key not in _OPERATORS:
            msg = f"unknown filter operator {key!r}; known are {', '.join(sorted(_OPERATORS))}"
            raise InputError(msg)
        check_filter(condition)


def meets(value: Any, condition: Any) -> bool:
    """Say whether a field meets one condition of a filter."""
    if isinstance(condition, Mapping):
        if any(key.startswith("$") for key in condition):
            return all(_OPERATORS[name](value, operand) for name, operand in condition.items())
        return isinstance(value, Mapping) and all(
            meets(value.get(key), inner) for key, inner in condition.items()
        )
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(condition)
            and all(map(meets, value, condition))
        )
    return bool(value == condition)


def _compared(value: Any, operand: Any) -> int | None:
    """Return the sign of `value - operand`, or `None` if they cannot be compared."""
    try:
        left, right = _number(value), _number(operand)
    except (TypeError, ValueError):
        if not (isinstance(value, str) and isinstance(operand, str)):
            return None
        return (value > operand) - (value < operand)
    return None if left != left or right != right else (left > right) - (left < right)  # noqa: PLR0124


def _number(value: Any) -> int | float:
    """Return what a value is as a number; an integer, however large, is its own."""
    return value if isinstance(value, int) else float(value)


_OPERATORS = {
    "$eq": lambda value, operand: bool(value == operand),
    "$ne": lambda value, operand: bool(value != operand),
    "$gt": lambda value, operand: _compared(value, operand) == 1,
    "$gte": lambda value, operand: _compared(value, operand) in (0, 1),
    "$lt": lambda value, operand: _compared(value, operand) == -1,
    "$lte": lambda value, operand: _compared(value, operand) in (0, -1),
}
