"""LangGraph's filters: which records pass, and the fields of a corpus, so that few are looked at.

Which documents of a corpus pass is worked out once per distinct value, by the function that also
judges records, and without asking the store.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from typing_extensions import override

from langgraft._core.canonical import at_path
from langgraft._core.errors import InputError
from langgraft.memory.stores.programs import Address, Namespace

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

    Attributes:
        keys: The keys.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._by_key = {key: _Field(key) for key in keys}
        self.keys = frozenset(self._by_key)
        self._saved = ""
        """What was loaded and is not read yet: whoever names no filter need not wait for it."""

    def unread(self, conditions: Mapping[str, Any]) -> Sequence[str]:
        """Say which keys of a filter are lacking, unless there would be too many then."""
        lacking = [key for key in conditions if key not in self.keys]
        return lacking if len(self.keys) + len(lacking) <= MOST_KEYS else ()

    def put(self, document: Address, record: Mapping[str, Any]) -> None:
        """Enter what a document's record holds, in place of what it held before."""
        for each in self._fields().values():
            each.put(document, record)

    def remove(self, document: Address) -> None:
        """Forget a document; unknown ones are ignored."""
        for each in self._fields().values():
            each.remove(document)

    def adopt(self, other: "FieldIndex") -> None:
        """Take over the keys of another index of the same documents."""
        self._by_key = other._fields() | self._fields()
        self.keys = frozenset(self._by_key)

    def save(self, path: Path) -> None:
        """Write the fields into a file, but for those whose values JSON would not give back."""
        kept = {key: each for key, each in self._fields().items() if each.is_json()}
        if not kept:
            return
        numbered: dict[Namespace, list[str]] = {}
        (first, *_) = kept.values()  # all are of the same documents
        for namespace, key in first.tokens:
            numbered.setdefault(namespace, []).append(key)
        documents = _addresses(numbered.items())
        listed = json.dumps([*numbered.items()])
        if _addresses(json.loads(listed)) == documents:
            columns = (json.dumps(each.columns(documents)) for each in kept.values())
            path.write_text("\n".join((json.dumps([*kept]), listed, *columns)), encoding="ascii")

    @classmethod
    def load(cls, path: Path) -> "FieldIndex":
        """Return what `save` wrote; without a file, no fields."""
        fields = cls()
        if path.exists():
            fields._saved = path.read_text(encoding="ascii")
            fields.keys = frozenset(json.loads(fields._saved.partition("\n")[0]))
        return fields

    def _fields(self) -> "dict[str, _Field]":
        if self._saved:
            keys, listed, *columns = map(json.loads, self._saved.split("\n"))
            documents = _addresses(listed)
            for key, (values, places) in zip(keys, columns, strict=True):
                self._by_key[key] = _Field.of(key, documents, values, places)
            self._saved = ""
        return self._by_key

    def matching(self, conditions: Mapping[str, Any]) -> AbstractSet[Address] | None:
        """Return the documents that pass a filter.

        It is not a copy, and holds until something is put or removed.

        Returns:
            The documents, or `None` where only their records can tell.
        """
        meeting: list[AbstractSet[Address]] = []
        for key, condition in conditions.items():
            each = self._fields().get(key)
            documents = None if each is None else each.meeting(condition)
            if documents is None:
                return None
            meeting.append(documents)
        fewest, *others = sorted(meeting, key=len)
        for documents in others:
            fewest = {document for document in fewest if document in documents}
        return fewest


def _addresses(numbered: Iterable[tuple[Sequence[str], Iterable[str]]]) -> list[Address]:
    """Return addresses from their keys by namespace."""
    return [(space, key) for labels, keys in numbered for space in (tuple(labels),) for key in keys]


class _Union(AbstractSet[Address]):
    """The documents that have one of some values, not copied: they may be nearly all.

    Args:
        field: Which has the documents.
        tokens: Of the values.
    """

    def __init__(self, field: "_Field", tokens: AbstractSet[Hashable]) -> None:
        self._field = field
        self._tokens = tokens

    def __len__(self) -> int:
        return sum(map(self._field.counts.__getitem__, self._tokens))

    def __iter__(self) -> Iterator[Address]:
        return chain.from_iterable(map(self._field.by_token().__getitem__, self._tokens))

    def __contains__(self, document: object) -> bool:
        # No token is `None`.
        return self._field.tokens.get(cast("Address", document)) in self._tokens


class _AllBut(_Union):
    """The documents that have none of some values."""

    @override
    def __len__(self) -> int:
        return len(self._field.tokens) - super().__len__()

    @override
    def __iter__(self) -> Iterator[Address]:
        return (each for each in self._field.tokens if each in self)

    @override
    def __contains__(self, document: object) -> bool:
        return document in self._field.tokens and not super().__contains__(document)


class _Field:
    """The values under one key.

    Attributes:
        tokens: What stands for the value that a document has.
        counts: How many documents have a value.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._values: dict[Hashable, Any] = {}
        self.tokens: dict[Address, Hashable] = {}
        self.counts: Counter[Hashable] = Counter()
        self._by_token: defaultdict[Hashable, set[Address]] | None = None
        self._given_up = False

    @classmethod
    def of(
        cls, key: str, documents: Sequence[Address], values: Sequence[Any], places: Iterable[int]
    ) -> "_Field":
        """Return a field from its `columns`."""
        made = cls(key)
        tokens = list(map(_token, values))
        made._values = dict(zip(tokens, values, strict=True))
        made.tokens = dict(zip(documents, map(tokens.__getitem__, places), strict=True))
        made.counts = Counter(made.tokens.values())
        return made

    def columns(self, documents: Iterable[Address]) -> tuple[Sequence[Any], Sequence[int]]:
        """Return the different values, and which of them each document has."""
        places = {token: place for place, token in enumerate(self._values)}
        return [*self._values.values()], [places[self.tokens[document]] for document in documents]

    def is_json(self) -> bool:
        """Say whether JSON gives all values back: it has no tuples, and no NaN equals another."""
        try:
            values = json.loads(json.dumps([*self._values.values()]))
        except (TypeError, ValueError):
            return False
        return not self._given_up and list(map(_token, values)) == list(self._values)

    def by_token(self) -> Mapping[Hashable, AbstractSet[Address]]:
        """Return the documents that have each value: sets of one each, often, which few ask for."""
        if self._by_token is None:
            self._by_token = defaultdict(set)
            for document, token in self.tokens.items():
                self._by_token[token].add(document)
        return self._by_token

    def put(self, document: Address, record: Mapping[str, Any]) -> None:
        if self._given_up:
            return
        value = field_of(record, self._key)
        try:
            token = _token(value)
        except TypeError:  # not JSON: nobody knows what equals it
            self._given_up = True
            self._values, self.tokens, self.counts, self._by_token = {}, {}, Counter(), None
            return
        if self.tokens.get(document) == token:
            return
        self.remove(document)
        if token not in self._values:
            # A copy: some stores hand out the very lists and mappings that they keep.
            self._values[token] = deepcopy(value)
        self.counts[token] += 1
        self.tokens[document] = token
        if self._by_token is not None:
            self._by_token[token].add(document)

    def remove(self, document: Address) -> None:
        if document not in self.tokens:
            return
        token = self.tokens.pop(document)
        self.counts[token] -= 1
        if self._by_token is not None:
            self._by_token[token].remove(document)
        if not self.counts[token]:
            del self.counts[token], self._values[token]
            if self._by_token is not None:
                del self._by_token[token]

    def meeting(self, condition: Any) -> AbstractSet[Address] | None:
        """Return the documents that meet a condition, if that can be told."""
        kind: type[_Union] = _Union
        match condition:
            case {"$ne": operand, **others} if not others and type(operand) in _SCALARS:
                kind, condition = _AllBut, operand  # as fast as equality
        tokens = self._candidates(condition)
        if tokens is None:
            return None
        return kind(self, {token for token in tokens if meets(self._values[token], condition)})

    def _candidates(self, condition: Any) -> Iterable[Hashable] | None:
        """Return at least the tokens of values that meet a condition."""
        if self._given_up:
            return None
        if type(condition) in _SCALARS:
            # Equal numbers of several types are equal and have one hash, within tokens as well.
            tokens = [(kind, condition) for kind in _SCALARS]
            return [token for token in tokens if token in self._values]
        return self._values if len(self._values) <= MOST_VALUES else None


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
