"""The filter fields of a corpus, so that a search under a filter looks at nothing else.

Which documents pass is worked out once per distinct value, by the function that also judges
records, and without asking the store.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, cast

from langgraft.memory.stores.records import Address, field_of, meets

MOST_KEYS: Final = 16
"""Filter keys kept for one corpus; each costs memory for every document."""

MOST_VALUES: Final = 10_000
"""Distinct values gone through for one condition: some 10 ms. Beyond, records are looked at."""

_SCALARS: Final = (str, int, float, bool, type(None))


class FieldIndex:
    """Which documents have which value under each of some filter keys.

    It is not safe for threads on its own.

    Args:
        keys: The keys, as LangGraph filters have them.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._fields = {key: _Field(key) for key in keys}

    def unread(self, conditions: Mapping[str, Any]) -> Sequence[str]:
        """Say which keys of a filter are lacking, unless there would be too many then."""
        lacking = [key for key in conditions if key not in self._fields]
        return lacking if len(self._fields) + len(lacking) <= MOST_KEYS else ()

    def put(self, document: Address, record: Mapping[str, Any]) -> None:
        """Enter what a document's record holds, in place of what it held before."""
        for each in self._fields.values():
            each.put(document, record)

    def remove(self, document: Address) -> None:
        """Forget a document; unknown ones are ignored."""
        for each in self._fields.values():
            each.remove(document)

    def adopt(self, other: "FieldIndex") -> None:
        """Take over the keys of another index of the same documents."""
        self._fields = other._fields | self._fields

    def matching(self, conditions: Mapping[str, Any]) -> AbstractSet[Address] | None:
        """Return the documents that pass a filter.

        It is not a copy, and holds until something is put or removed.

        Returns:
            The documents, or `None` where only their records can tell.
        """
        meeting: list[AbstractSet[Address]] = []
        for key, condition in conditions.items():
            each = self._fields.get(key)
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
    documents: set[Address] = field(default_factory=set)


class _Union(AbstractSet[Address]):
    """The documents of some groups, not copied: they may be nearly all.

    Args:
        tokens: Which group each document is in.
        groups: The groups.
    """

    def __init__(
        self, tokens: Mapping[Address, Hashable], groups: Mapping[Hashable, _Group]
    ) -> None:
        self._tokens = tokens
        self._groups = groups

    def __len__(self) -> int:
        return sum(len(group.documents) for group in self._groups.values())

    def __iter__(self) -> Iterator[Address]:
        return chain.from_iterable(group.documents for group in self._groups.values())

    def __contains__(self, document: object) -> bool:
        # No token is `None`.
        return self._tokens.get(cast("Address", document)) in self._groups


class _Field:
    """The values under one key."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._groups: dict[Hashable, _Group] = {}
        self._tokens: dict[Address, Hashable] = {}
        self._given_up = False

    def put(self, document: Address, record: Mapping[str, Any]) -> None:
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

    def remove(self, document: Address) -> None:
        if document not in self._tokens:
            return
        token = self._tokens.pop(document)
        documents = self._groups[token].documents
        documents.remove(document)
        if not documents:
            del self._groups[token]

    def meeting(self, condition: Any) -> AbstractSet[Address] | None:
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
