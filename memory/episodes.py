"""What an agent hands to memory after an attempt: an `Episode` and the parts it is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

from langgraft._core.arguments import check_argument
from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.memory.deltas import ItemType
from langgraft.memory.questions import By, Verdict
from langgraft.memory.recall import BLOCK_START, Receipt, strip_block

T = TypeVar("T")

Result: TypeAlias = Literal["success", "failure", ""]
"""How a trajectory ended, as far as its text says."""

Feedback: TypeAlias = Literal["environment", "self", "oracle"]
"""Where the word on success comes from: a reward the agent is entitled to, its own judgment, or
gold answers that no agent would have in earnest."""

ErrorKind: TypeAlias = Literal["code", "environment", "resource"]
"""What failed: the program, what it runs in (files, packages, network), or a limit on time or
memory."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn. The first step of an episode in a world has no thought and no action: its
    observation is what the world showed before the agent did anything.

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


@dataclass(frozen=True, slots=True)
class Lesson:
    """Advice distilled from an episode (continual-memory §3: an *insight*)."""

    text: str
    """The advice."""
    when_to_use: str = ""
    """The situation it applies to; what it is retrieved by when stored on its own."""
    type: ItemType = "strategic"
    by: By = "model"


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """An error met on the way, and what removed it (mle-agent-memory §3.3).

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


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at one task, complete. Injected memory is not part of it.

    Raises:
        InputError: The id is empty or holds a lone surrogate, or a part is of another class.
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

    def without_memory(self) -> "Episode":
        """Return the episode with recalled blocks taken out of all its texts."""
        return replace(
            self,
            task=_without_block(self.task),
            steps=tuple(_stripped(step) for step in self.steps),
            outcome=_stripped(self.outcome),
            lessons=tuple(_stripped(lesson) for lesson in self.lessons),
            errors=tuple(_stripped(error) for error in self.errors),
            verdicts=tuple(replace(v, text=_without_block(v.text)) for v in self.verdicts),
        )

    def to_json(self) -> dict[str, JSON]:
        """Return the episode as JSON."""
        return cast("dict[str, JSON]", asdict(self))

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
}


def render_trajectory(steps: Sequence[Step], *, result: Result) -> str:
    """Write a trajectory as text: each thought, action and observation on lines of its own.

    Parts that hold nothing leave no line. Of a malformed reply only what was said to it is shown,
    and of several in a row once: a trajectory is read by models, who do as they are shown.
    """
    lines: list[str] = []
    for step in steps:
        parts = {
            "Thought": "" if step.malformed else step.thought,
            "Action": step.action,
            "Observation": step.observation,
        }
        shown = [f"{name}: {text}" for name, text in parts.items() if text]
        lines += shown if not step.malformed or lines[-1:] != shown else []
    if result:
        lines.append(f"Result: {result}")
    return "\n".join(lines)
