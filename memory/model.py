"""The words of memory: items, questions and verdicts, receipts, episodes, and deltas with what they add up to.

A bank holds `MemoryItem`s. What an agent hands to memory after an attempt is an `Episode`, with receipts
of what memory gave it and verdicts on what memory asked. Of it a provider makes a `MemoryDelta`, an
ordered list of changes to one bank.

Memory is the fold of its deltas: folding all those of a bank over an empty one gives the bank again, byte
for byte; so a log of deltas *is* the memory, and every store is a cache of it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from langgraft._core.arguments import check_argument, describe_validation, named_fields
from langgraft._core.canonical import JSON, canonical_json, digest
from langgraft._core.errors import InputError
from langgraft.memory.facts import Fact, moment
from langgraft.memory.sources import Sources, check_sources

T = TypeVar("T")

ItemType: TypeAlias = Literal["strategic", "operational", "error_trace", "other"]
"""What kind of knowledge an item holds (memory-transplants §3.1)."""

Scalar: TypeAlias = str | int | float | bool
_Text: TypeAlias = Annotated[str, Field(min_length=0)]
"""A text that can be stored and exported: only where it counts the letters does pydantic refuse a
lone surrogate."""

By: TypeAlias = Literal["model", "rules"]
"""Who said something: a model, or deterministic rules that stood in for one."""

Result: TypeAlias = Literal["success", "failure", ""]
"""How a trajectory ended, as far as its text says."""

Feedback: TypeAlias = Literal["environment", "self", "oracle"]
"""Where the word on success comes from: a reward the agent is entitled to, its own judgment, or
gold answers that no agent would have in earnest."""

ErrorKind: TypeAlias = Literal["code", "environment", "resource"]
"""What failed: the program, what it runs in (files, packages, network), or a limit on time or
memory."""

BLOCK_START = "<recalled_memory>"
BLOCK_END = "</recalled_memory>"
_BLOCK = re.compile(rf"{re.escape(BLOCK_START)}.*?(?:{re.escape(BLOCK_END)}\n?|\Z)", re.DOTALL)


class MemoryItem(BaseModel):
    """One memory in canonical form (memory-transplants §3.1, `CanonicalMemoryItem`).

    An item is content only. Whatever a provider derives from it (vectors, tiers, votes,
    counters) is kept as notes in the bank and is recomputed where an item is imported.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

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
    sources: Sources = ()
    """What it follows from besides its own episode: `user:ada`, `item:e1/note` …"""

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
        if self.sources:
            value["sources"] = list(self.sources)
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


@named_fields
@dataclass(frozen=True, slots=True)
class Question:
    """Something only a model can judge, asked by a provider and answered by a node.

    `id` is the digest of everything the question on `episode_id` shows. An answer given before the bank
    moved therefore no longer fits, and the provider asks again (see
    `MemoryProvider.questions`).
    """

    kind: str
    """What is asked, such as `votes`, `novelty` or `contradiction`: selects the prompt of the
    node."""
    episode_id: str
    shows: Mapping[str, JSON]
    """What the judge sees, memory items by their ids."""

    @property
    def id(self) -> str:
        """Digest of the question."""
        return digest({"kind": self.kind, "episode": self.episode_id, "shows": dict(self.shows)})


@named_fields
@dataclass(frozen=True, slots=True)
class Verdict:
    """One judgment in answer to a question (`question_id`), and who judged (`by`); a question may have several."""

    question_id: str
    action: str
    """What to do, in the provider's words: `add`, `agree`, `edit`, `remove`, `none` …"""
    item_id: str | None = None
    """The item concerned. A verdict on an item that has gone meanwhile is ignored."""
    text: str = ""
    """New text, where the action carries one."""
    by: By = "model"


@named_fields
@dataclass(frozen=True, slots=True)
class Dropped:
    """An item that was found and is not given to the agent."""

    id: str
    reason: str
    """`OVER_BUDGET`, `OVER_SHARE`, `SAME_TASK`, `BLANK`, `CONTRADICTS`, or a provider's own words."""


@named_fields
@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that at a `step` a `query` recalled `item_ids` with `scores`, of so many `tokens`; `id` names the recall. It takes effect when an episode that carries it is filed, once."""

    id: str
    query: str
    step: int
    item_ids: tuple[str, ...]
    scores: tuple[float, ...]
    tokens: int
    dropped: tuple[Dropped, ...] = ()
    """What was found and not given, and why."""
    searched: str = ""
    """The text that was compared with the keys of the bank."""
    tied: int = 0
    """How many items of the bank shared the best score; 0: not known, or nothing found."""
    sources: tuple[str, ...] = ()
    """What follows from the recall follows from these too: sources of what was given, and itself."""

    def __post_init__(self) -> None:
        for name in ("item_ids", "scores", "sources"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        read = (drop if isinstance(drop, Dropped) else Dropped(**drop) for drop in self.dropped)
        object.__setattr__(self, "dropped", tuple(read))

    def to_json(self) -> dict[str, JSON]:
        """Return the receipt as JSON."""
        value = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        if not self.sources:
            del value["sources"]
        return value


@named_fields
@dataclass(frozen=True, slots=True)
class Step:
    """One turn: `thought`, `action`, `observation`. The first step of an episode in a world has no thought and
    no action: its observation is what the world showed before the agent did anything.

    A reply that held no action is a step too: its thought is the whole reply, and its observation
    what the agent was told of that.
    """  # noqa: D205

    thought: str
    action: str
    observation: str

    @property
    def malformed(self) -> bool:
        """Whether it is a reply that held no action, and was answered."""
        return bool(self.thought and self.observation and not self.action)


@named_fields
@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended.

    Raises:
        InputError: `success` or `feedback` is none of its values.
    """

    success: bool | None
    """Whether the goal was reached; `None` where nobody can tell."""
    score: float | None = None
    """The world's own score, in its own unit."""
    reason: str = ""
    """Why it ended: `goal reached`, `out of rounds` …"""
    feedback: Feedback = "environment"
    """Who says so. A provider refuses `oracle` unless its settings declare it."""

    def __post_init__(self) -> None:
        # What is not `True` would count as a failure, and a misspelt `oracle` as no oracle.
        _check_choice("success", "an outcome", self.success, (True, False, None))
        _check_choice("feedback", "an outcome", self.feedback, get_args(Feedback))


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was done at a task, and how it ended: what lessons are drawn from."""

    steps: tuple[Step, ...]
    outcome: Outcome
    task: str = ""
    """The instruction, where it is not the one at hand."""
    episode_id: str = ""
    """The episode it was, where it is one of memory's."""


@named_fields
@dataclass(frozen=True, slots=True)
class Lesson:
    """Advice distilled from an episode (continual-memory §3: an *insight*): its `type`, and who drew it (`by`)."""

    text: str
    """The advice."""
    when_to_use: str = ""
    """The situation it applies to; what it is retrieved by when stored on its own."""
    type: ItemType = "strategic"
    by: By = "model"
    title: str = ""
    """A name for it, where whoever drew it gave one (ReasoningBank)."""


@named_fields
@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """An `error` of a `package` met on the way, and the `fix` that removed it, told by whom (`by`) (mle-agent-memory §3.3).

    Raises:
        InputError: Nobody knows that `kind`.
    """

    package: str
    error: str
    fix: str
    kind: ErrorKind = "code"
    verified: bool = False
    """A later program that contains the fix ran."""
    by: By = "model"

    def __post_init__(self) -> None:
        _check_choice("kind", "an error record", self.kind, get_args(ErrorKind))


@named_fields
@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at one task (`task_id`) of a `domain`, complete: `steps`, `outcome`, `lessons`, `errors`, `verdicts`. Injected memory is not part of it.

    Raises:
        InputError: The id is empty or holds a lone surrogate, a part is of another class, or a
            source is not possible.
    """

    id: str
    """Unique: `file` files an episode once, however often it is handed in."""
    domain: str
    task_id: str
    task: str
    """The instruction."""
    steps: tuple[Step, ...]
    outcome: Outcome
    lessons: tuple[Lesson, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    recalls: tuple[Receipt, ...] = ()
    """Receipts of what memory the agent was given in this episode."""
    resolves: tuple[str, ...] = ()
    """Ids of earlier episodes whose errors are gone in this one: that verifies their fixes."""
    facts: tuple[Fact, ...] = ()
    """What was said in it of somebody or something, for memory that keeps facts."""
    at: str = ""
    """When it was, as ISO 8601; empty where nobody needs to know."""
    sources: tuple[str, ...] = ()
    """Who and what it was learned from, where anybody said: `user:ada`, `tool:search`, `web:…`."""

    def __post_init__(self) -> None:
        if not self.id:
            msg = f"an episode of task {self.task_id!r} has an empty id"
            raise InputError(msg)
        try:
            self.id.encode("utf-8")
        except UnicodeEncodeError as error:
            msg = f"episode id {self.id!r} holds a lone surrogate, which no log can hold"
            raise InputError(msg) from error
        check_argument("`outcome` of an episode", self.outcome, Outcome)
        if self.at:
            moment(self.at, f"`at` of episode {self.id!r:.80}")
        if self.sources:
            sources = check_sources(self.sources, "`sources` of an episode")
            object.__setattr__(self, "sources", sources)
        for name, kind in _PARTS.items():
            for part in _listed(name, getattr(self, name)):
                if not isinstance(part, kind):
                    msg = f"not a {kind.__name__}: {part!r:.80}, in `{name}` of an episode"
                    raise InputError(msg)

    @property
    def first_observation(self) -> str:
        """What the world showed before the first action, or nothing."""
        return self.steps[0].observation if self.steps else ""

    @property
    def succeeded(self) -> bool:
        """Whether the goal was reached, as far as anybody can tell."""
        return self.outcome.success is True

    @property
    def is_blank(self) -> bool:
        """Whether nothing came of the task: no word of the agent or the world, no end, no lesson.

        Such is a turn whose call of a model failed or was canceled.
        """
        said = any(step.thought or step.action or step.observation for step in self.steps)
        ended = self.outcome.success is not None or self.outcome.reason
        return not (said or ended or self.lessons or self.errors or self.facts or self.verdicts)

    def without_memory(self) -> "Episode":
        """Return the episode with recalled blocks taken out of all its texts."""
        return replace(
            self,
            task=_without_block(self.task),
            steps=tuple(_stripped(step) for step in self.steps),
            outcome=_stripped(self.outcome),
            lessons=tuple(_stripped(lesson) for lesson in self.lessons),
            errors=tuple(_stripped(error) for error in self.errors),
            facts=tuple(_stripped(fact) for fact in self.facts),
            verdicts=tuple(replace(v, text=_without_block(v.text)) for v in self.verdicts),
        )

    def to_json(self) -> dict[str, JSON]:
        """Return the episode as JSON; it names no facts, time or sources where there are none."""
        value = asdict(self)
        for name in ("facts", "at", "sources"):
            if not value[name]:
                del value[name]
        for receipt in value["recalls"]:
            if not receipt["sources"]:
                del receipt["sources"]
        return cast("dict[str, JSON]", value)

    @classmethod
    def from_json(cls, value: Mapping[str, JSON]) -> "Episode":
        """Read an episode back from JSON.

        Raises:
            InputError: A field is missing or unknown, or a part is not of the right form.
        """
        parts = dict(cast("Mapping[str, Any]", value))
        for name, kind in _PARTS.items():
            if name in parts:
                parts[name] = tuple(_build(kind, part) for part in _listed(name, parts[name]))
        parts["outcome"] = _build(Outcome, parts.get("outcome", {}))
        if "resolves" in parts:
            parts["resolves"] = tuple(_listed("resolves", parts["resolves"]))
        return _build(cls, parts)


def _check_choice(name: str, part: str, value: object, choices: Sequence[object]) -> None:
    if not any(isinstance(value, type(choice)) and value == choice for choice in choices):
        msg = f"`{name}` of {part} is one of {', '.join(map(str, choices))}; got {value!r:.80}"
        raise InputError(msg)


def _stripped(part: T) -> T:
    """Return a part of an episode with recalled blocks taken out of its texts."""
    texts = {
        field.name: strip_block(text)
        for field in fields(cast("Any", part))
        if isinstance(text := getattr(part, field.name), str) and BLOCK_START in text
    }
    return replace(cast("Any", part), **texts) if texts else part


def strip_block(text: str) -> str:
    """Take recalled blocks out of a text, so that memory never feeds on itself.

    Of a block that is not ended, such as one quoted in a reply that was cut, all is taken. What
    is left holds no block: where the two sides of one would make a marker, a blank parts them.
    """
    first, *others = _BLOCK.split(text)
    kept, end = [first], first
    for piece in others:
        if BLOCK_START in end[1 - len(BLOCK_START) :] + piece[: len(BLOCK_START) - 1]:
            kept.append(" ")
            end = ""
        kept.append(piece)
        end = end[1 - len(BLOCK_START) :] + piece
    return "".join(kept)


def _without_block(text: str) -> str:
    return strip_block(text) if BLOCK_START in text else text


def _listed(name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        msg = f"`{name}` of an episode is a list, got {value!r:.80}"
        raise InputError(msg)
    return value


def _build(kind: type[T], value: Any) -> T:
    if not isinstance(value, Mapping):
        msg = f"not a {kind.__name__}: {value!r:.80}"
        raise InputError(msg)
    names = {field.name for field in fields(cast("Any", kind))}
    if unknown := sorted(set(value) - names):
        msg = f"{kind.__name__} has no field {', '.join(unknown)}; it has {sorted(names)}"
        raise InputError(msg)
    try:
        return kind(**value)
    except TypeError as error:
        msg = f"not a {kind.__name__}: {error}"
        raise InputError(msg) from error


_PARTS: Mapping[str, type] = {
    "steps": Step,
    "lessons": Lesson,
    "errors": ErrorRecord,
    "verdicts": Verdict,
    "recalls": Receipt,
    "facts": Fact,
}


@dataclass(frozen=True, slots=True)
class Add:
    """A new `item` enters the bank."""

    item: MemoryItem

    def to_json(self) -> dict[str, JSON]:
        """Return the change as JSON."""
        return {"op": "add", "item": self.item.to_json()}


@dataclass(frozen=True, slots=True)
class Remove:
    """The item `id` leaves the bank for a `reason`, with its notes."""

    id: str
    reason: str

    def to_json(self) -> dict[str, JSON]:
        """Return the change as JSON."""
        return {"op": "remove", "id": self.id, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Annotate:
    """Notes about the item `id` change: votes, uses, tier, whether it is verified.

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
    """A value of the provider's own bookkeeping changes, that of `key`."""

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
    """What one call changed in a bank: `changes`, in order."""

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
    """All that a bank holds: `items` by id, `notes` on them, and the provider's bookkeeping (`state`).

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
