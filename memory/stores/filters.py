"""LangGraph's filters: which records pass, and the fields of a corpus, so that few are looked at.

Which documents of a corpus pass is worked out once per distinct value, by the function that also
judges records, and without asking the store.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from langgraft._core.canonical import at_path
from langgraft._core.errors import InputError
from langgraft.memory.rankers.base import DocumentId

MOST_KEYS: Final = 16
"""Filter keys kept for one corpus; each costs memory for every document."""

MOST_VALUES: Final = 10_000
"""Distinct values gone through for one condition: some 10 ms. Beyond, records are looked at."""

_SCALARS: Final = (str, int, float, bool, type(None))


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


class FieldIndex:
    """Which documents have which value under each of some filter keys.

    It is not safe for threads on its own.

    Args:
        keys: The keys, as LangGraph filters have them.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self.by_key = {key: _Field(key) for key in keys}

    def unread(self, conditions: Mapping[str, Any]) -> Sequence[str]:
        """Say which keys of a filter are lacking, unless there would be too many then."""
        lacking = [key for key in conditions if key not in self.by_key]
        return lacking if len(self.by_key) + len(lacking) <= MOST_KEYS else ()

    def put(self, document: DocumentId, record: Mapping[str, Any]) -> None:
        """Enter what a document's record holds, in place of what it held before."""
        for each in self.by_key.values():
            each.put(document, record)

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        for each in self.by_key.values():
            each.remove(document)

    def adopt(self, other: "FieldIndex") -> None:
        """Take over the keys of another index of the same documents."""
        self.by_key = other.by_key | self.by_key

    def matching(self, conditions: Mapping[str, Any]) -> AbstractSet[DocumentId] | None:
        """Return the documents that pass a filter.

        It is not a copy, and holds until something is put or removed.

        Returns:
            The documents, or `None` where only their records can tell.
        """
        meeting: list[AbstractSet[DocumentId]] = []
        for key, condition in conditions.items():
            each = self.by_key.get(key)
            documents = None if each is None else each.meeting(condition)
            if documents is None:
                return None
            meeting.append(documents)
        fewest, *others = sorted(meeting, key=len)
        for documents in others:
            fewest = {document for document in fewest if document in documents}
        return fewest


@dataclass(slots=True, eq=False)
class _Group:
    """The documents that have one value."""

    value: Any
    documents: set[DocumentId] = field(default_factory=set)


class _Union(AbstractSet[DocumentId]):
    """The documents of some groups, not copied: they may be nearly all.

    Args:
        tokens: Which group each document is in.
        groups: The groups.
    """

    def __init__(
        self, tokens: Mapping[DocumentId, Hashable], groups: Mapping[Hashable, _Group]
    ) -> None:
        self._tokens = tokens
        self._groups = groups

    def __len__(self) -> int:
        return sum(len(group.documents) for group in self._groups.values())

    def __iter__(self) -> Iterator[DocumentId]:
        return chain.from_iterable(group.documents for group in self._groups.values())

    def __contains__(self, document: object) -> bool:
        # No token is `None`.
        return self._tokens.get(document) in self._groups


class _Field:
    """The values under one key."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._groups: dict[Hashable, _Group] = {}
        self._tokens: dict[DocumentId, Hashable] = {}
        self._given_up = False

    def put(self, document: DocumentId, record: Mapping[str, Any]) -> None:
        if self._given_up:
            return
        value = field_of(record, self._key)
        try:
            token = _token(value)
        except TypeError:  # not JSON: nobody knows what equals it
            self._given_up = True
            self._groups, self._tokens = {}, {}
            return
        if self._tokens.get(document) == token:
            return
        self.remove(document)
        group = self._groups.get(token)
        if group is None:
            # A copy: some stores hand out the very lists and mappings that they keep.
            group = self._groups[token] = _Group(deepcopy(value))
        group.documents.add(document)
        self._tokens[document] = token

    def remove(self, document: DocumentId) -> None:
        if document not in self._tokens:
            return
        token = self._tokens.pop(document)
        documents = self._groups[token].documents
        documents.remove(document)
        if not documents:
            del self._groups[token]

    def meeting(self, condition: Any) -> AbstractSet[DocumentId] | None:
        """Return the documents that meet a condition, if that can be told."""
        groups = self._candidates(condition)
        if groups is None:
            return None
        found = {token: group for token, group in groups.items() if meets(group.value, condition)}
        return _Union(self._tokens, found)

    def _candidates(self, condition: Any) -> Mapping[Hashable, _Group] | None:
        """Return at least the groups that meet a condition."""
        if self._given_up:
            return None
        if type(condition) in _SCALARS:
            # Equal numbers of several types are equal and have one hash, within tokens as well.
            tokens = [(kind, condition) for kind in _SCALARS]
            return {token: self._groups[token] for token in tokens if token in self._groups}
        return self._groups if len(self._groups) <= MOST_VALUES else None


def _token(value: Any) -> Hashable:
    """Return what stands for a JSON value: equal only for values that meet the same conditions.

    Raises:
        TypeError: The value is, or holds, something JSON does not have.
    """
    kind = type(value)
    if kind in _SCALARS:
        return kind, value
    if kind is list or kind is tuple:
        return kind, tuple(map(_token, value))
    if kind is dict:
        return kind, frozenset((name, _token(inner)) for name, inner in value.items())
    msg = f"{kind.__name__} is not a type of JSON"
    raise TypeError(msg)
