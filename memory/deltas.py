"""Memory is the fold of its deltas: what a bank holds, and how it changes.

A bank holds `MemoryItem`s. A `MemoryDelta` is an ordered list of changes to one bank. Folding all
deltas of a bank over an empty one gives the bank again, byte for byte; so a log of deltas *is* the
memory, and every store is a cache of it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from langgraft._core.arguments import describe_validation
from langgraft._core.canonical import JSON, canonical_json, digest
from langgraft._core.errors import InputError

ItemType: TypeAlias = Literal["strategic", "operational", "error_trace", "other"]
"""What kind of knowledge an item holds (memory-transplants §3.1)."""

Scalar: TypeAlias = str | int | float | bool
_Text: TypeAlias = Annotated[str, Field(min_length=0)]
"""A text that can be stored and exported: only where it counts the letters does pydantic refuse a
lone surrogate."""


class MemoryItem(BaseModel):
    """One memory in canonical form (memory-transplants §3.1, `CanonicalMemoryItem`).

    An item is content only. Whatever a provider derives from it (vectors, tiers, votes,
    counters) is kept as notes in the bank and is recomputed where an item is imported.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str = Field(min_length=1)
    """Stable name, unique within a bank."""
    text: _Text
    """The memory itself, as plain text."""
    type: ItemType
    """What kind of knowledge it is."""
    source_domain: str = Field(min_length=1)
    """Where it was learned: `code`, `math`, `babyai/find_obj` …"""
    episode_id: _Text
    """The episode it was learned in."""
    success: bool | None
    """Whether that episode reached its goal; `None` where nobody can tell."""
    order_index: int = Field(ge=0)
    """Position in the stream of items written to the bank, from 0."""
    task_id: _Text | None = None
    """The task instance of that episode."""
    key: _Text | None = None
    """What the item is retrieved by, where that is not its text."""
    metadata: Mapping[str, Scalar] = Field(default_factory=dict)
    """Flat extra fields: `package`, `error`, `kind` …"""

    @field_validator("metadata")
    @classmethod
    def _plain_numbers(cls, metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
        canonical_json(dict(metadata))  # refuses NaN and lone surrogates
        return dict(metadata)

    @property
    def retrieval_key(self) -> str:
        """What a ranker compares with the query: `key`, or the text where there is none."""
        return self.text if self.key is None else self.key

    def __hash__(self) -> int:
        return hash((self.id, self.text, self.order_index))

    def to_json(self) -> dict[str, JSON]:
        """Return the item as JSON; optional fields that hold nothing are left out."""
        value: dict[str, Any] = {
            "id": self.id,
            "text": self.text,
            "type": self.type,
            "source_domain": self.source_domain,
            "episode_id": self.episode_id,
            "success": self.success,
            "order_index": self.order_index,
        }
        if self.task_id is not None:
            value["task_id"] = self.task_id
        if self.key is not None:
            value["key"] = self.key
        if self.metadata:
            value["metadata"] = dict(self.metadata)
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, JSON]) -> "MemoryItem":
        """Read an item back from JSON.

        Raises:
            InputError: A field is missing, unknown or of the wrong type.
        """
        try:
            return cls.model_validate(dict(value) if isinstance(value, Mapping) else value)
        except ValidationError as error:
            raise InputError(describe_validation(error)) from error


@dataclass(frozen=True, slots=True)
class Add:
    """A new item enters the bank."""

    item: MemoryItem

    def to_json(self) -> dict[str, JSON]:
        """Return the change as JSON."""
        return {"op": "add", "item": self.item.to_json()}


@dataclass(frozen=True, slots=True)
class Remove:
    """An item leaves the bank, with its notes."""

    id: str
    reason: str

    def to_json(self) -> dict[str, JSON]:
        """Return the change as JSON."""
        return {"op": "remove", "id": self.id, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Annotate:
    """Notes about an item change: votes, uses, tier, whether it is verified.

    Notes are what a provider derives or counts; they are never part of an item, are not
    exported, and start afresh where an item is imported.
    """

    id: str
    notes: Mapping[str, JSON]
    """Note → new value; `None` erases the note."""

    def __post_init__(self) -> None:
        notes = _json_copy(f"notes on item {self.id!r}", dict(self.notes))
        object.__setattr__(self, "notes", notes)

    def to_json(self) -> dict[str, JSON]:
        """Return the change as JSON."""
        return {"op": "annotate", "id": self.id, "notes": dict(self.notes)}


@dataclass(frozen=True, slots=True)
class SetState:
    """A value of the provider's own bookkeeping changes."""

    key: str
    value: JSON
    """The new value; `None` erases the key."""

    def __post_init__(self) -> None:
        held = _json_copy(f"state {self.key!r}", {self.key: self.value})
        object.__setattr__(self, "value", held[self.key])

    def to_json(self) -> dict[str, JSON]:
        """Return the change as JSON."""
        return {"op": "set_state", "key": self.key, "value": self.value}


Change: TypeAlias = Add | Remove | Annotate | SetState


def _json_copy(what: str, value: dict[str, JSON]) -> dict[str, JSON]:
    """Copy a value as a log will hold it, and refuse early what none could.

    A change must not move with a list that its maker goes on to fill.
    """
    try:
        return cast("dict[str, JSON]", json.loads(canonical_json(value)))
    except (TypeError, ValueError) as error:
        msg = f"{what} cannot be written as JSON: {error}"
        raise InputError(msg) from error


def change_from_json(value: Mapping[str, JSON]) -> Change:
    """Read a change back from JSON.

    Raises:
        InputError: `value` is not a change.
    """
    match dict(value) if isinstance(value, Mapping) else value:
        case {"op": "add", "item": dict(item), **rest} if not rest:
            return Add(MemoryItem.from_json(item))
        case {"op": "remove", "id": str(identity), "reason": str(reason), **rest} if not rest:
            return Remove(identity, reason)
        case {"op": "annotate", "id": str(identity), "notes": dict(notes), **rest} if not rest:
            return Annotate(identity, dict(notes))
        case {"op": "set_state", "key": str(key), "value": new, **rest} if not rest:
            return SetState(key, new)
        case _:
            msg = f"not a memory change: {value!r:.200}"
            raise InputError(msg)


@dataclass(frozen=True, slots=True)
class MemoryDelta:
    """What one call changed in a bank, in order."""

    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        for change in self.changes:
            # What is no change would change nothing, and the episode would count as filed.
            if not isinstance(change, Change):
                msg = (
                    f"not a memory change: {change!r:.80};"
                    f" give Add(item), Remove(id, reason), Annotate or SetState"
                )
                raise InputError(msg)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __add__(self, other: "MemoryDelta") -> "MemoryDelta":
        return MemoryDelta(self.changes + other.changes)

    def to_json(self) -> list[JSON]:
        """Return the changes as JSON."""
        return [change.to_json() for change in self.changes]

    @classmethod
    def from_json(cls, changes: Sequence[JSON]) -> "MemoryDelta":
        """Read a delta back from JSON.

        Raises:
            InputError: One of the changes is not a change.
        """
        if not isinstance(changes, list | tuple):
            msg = f"a memory delta is a list of changes, got {changes!r:.200}"
            raise InputError(msg)
        return cls(
            tuple(change_from_json(cast("Mapping[str, JSON]", change)) for change in changes)
        )


@dataclass(slots=True)
class BankContent:
    """All that a bank holds: items by id, notes on them, and the provider's bookkeeping.

    Built up by `fold`; compare two with `==` or by `digest`.
    """

    items: dict[str, MemoryItem] = field(default_factory=dict)
    notes: dict[str, dict[str, JSON]] = field(default_factory=dict)
    state: dict[str, JSON] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        """Apply one change.

        Raises:
            InputError: The change does not fit: an item is added twice, or one that is not
                there is removed or annotated.
        """
        match change:
            case Add(item):
                if item.id in self.items:
                    msg = f"item {item.id!r} is added to a bank that already holds it"
                    raise InputError(msg)
                self.items[item.id] = item
            case Remove(identity, _):
                self._require(identity, "removed")
                del self.items[identity]
                self.notes.pop(identity, None)
            case Annotate(identity, notes):
                self._require(identity, "annotated")
                merged = merge(self.notes.get(identity, {}), notes)
                self.notes[identity] = merged
                if not merged:
                    del self.notes[identity]
            case SetState(key, value):
                # In place: a long log sets many keys, and copying each time is quadratic.
                self.state.pop(key, None)
                if value is not None:
                    self.state[key] = value

    def _require(self, identity: str, verb: str) -> None:
        if identity not in self.items:
            msg = f"item {identity!r} is {verb} in a bank that does not hold it"
            raise InputError(msg)

    def to_json(self) -> dict[str, JSON]:
        """Return the content as JSON."""
        return {
            "items": {identity: item.to_json() for identity, item in self.items.items()},
            "notes": {identity: dict(notes) for identity, notes in self.notes.items()},
            "state": dict(self.state),
        }

    def to_bytes(self) -> bytes:
        """Return the content as canonical JSON."""
        return canonical_json(self.to_json()).encode()

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical content: equal banks have equal digests."""
        return digest(self.to_json())


def merge(old: Mapping[str, JSON], new: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return `old` updated by `new`, without the keys whose new value is `None`."""
    return {key: value for key, value in {**old, **new}.items() if value is not None}


def fold(deltas: Iterable[MemoryDelta], start: BankContent | None = None) -> BankContent:
    """Apply deltas in order over an empty bank, or over a copy of `start`.

    Raises:
        InputError: A change does not fit the bank it meets.
    """
    content = BankContent()
    if start is not None:
        content.items = dict(start.items)
        content.notes = {identity: dict(notes) for identity, notes in start.notes.items()}
        content.state = dict(start.state)
    for delta in deltas:
        for change in delta:
            content.apply(change)
    return content
