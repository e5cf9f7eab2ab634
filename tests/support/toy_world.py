"""A small text world, and chat models that play it by rule: what agents are tested with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from acceptance.reply_scripts import reply_due
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field
from typing_extensions import override

from langgraft._core.errors import SettingsError
from langgraft.environments.text import Reset, TextTask, Transition

LESSONS = '[{"when_to_use": "the corridor is long", "lesson": "walk on"}, {"lesson": "count"}]'


class Corridor:
    """A corridor to walk to the end of; `wait` is allowed, `fall` ends badly."""

    instructions = "Walk to the end of the corridor."

    def __init__(self, length: int, max_rounds: int, counts: "Counts") -> None:
        self.task = TextTask(f"toy/corridor/{length}", "toy/corridor", "train")
        self.max_rounds = max_rounds
        self._length = length
        self._counts = counts
        self._position: int | None = None
        counts.opened += 1

    def reset(self) -> Reset:
        """Go back to the start."""
        self._position = 0
        return Reset(f"walk {self._length} steps", f"Goal: walk {self._length} steps. At 0.")

    def step(self, action: str) -> Transition:
        """Take one action."""
        if self._position is None:
            raise RuntimeError("the episode has ended or was never started")
        if action == "break":
            raise OSError("the world broke")
        self._counts.steps += 1
        self._position += action == "walk"
        success = self._position == self._length
        done = success or action == "fall"
        seen = f"At {self._position} after {action}."
        if done:
            self._position = None
        return Transition(seen, float(success), done, success)

    def close(self) -> None:
        """Count that it was let go of."""
        self._counts.closed += 1
        self._position = None


@dataclass
class Counts:
    """What happened in all worlds of a factory."""

    opened: int = 0
    closed: int = 0
    steps: int = 0


@dataclass
class Corridors:
    """Builds corridors by task id."""

    max_rounds: int = 20
    counts: Counts = field(default_factory=Counts)

    def __call__(self, task_id: str) -> Corridor:
        """Return a fresh corridor."""
        domain, _, length = task_id.rpartition("/")
        if domain != "toy/corridor" or not length.isdigit():
            raise SettingsError(f"no task {task_id!r}; tasks are toy/corridor/<length>")
        return Corridor(int(length), self.max_rounds, self.counts)

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        """List three corridors."""
        return tuple(TextTask(f"{domain}/{length}", domain, split) for length in (1, 2, 3))


class RuleModel(BaseChatModel):
    """Replies by a rule: a function of the messages alone."""

    rule: Callable[[Sequence[BaseMessage]], str]
    seen: list[list[BaseMessage]] = Field(default_factory=list)
    """All prompts so far."""

    @property
    @override
    def _llm_type(self) -> str:
        return "rule"

    @override
    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **__: Any
    ) -> ChatResult:
        self.seen.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.rule(messages)))])


def playing(*replies: str, lessons: str = LESSONS) -> RuleModel:
    """Make a model that gives one reply after the other in an episode, the last for ever.

    Where it is in the episode it reads from the messages; asked to look back, it gives lessons.
    """

    def rule(messages: Sequence[BaseMessage]) -> str:
        if not isinstance(messages[0], SystemMessage):
            return lessons
        return replies[min(reply_due(replies, messages), len(replies) - 1)]

    return RuleModel(rule=rule)


def acting(*actions: str) -> RuleModel:
    """Make a model that takes one action after the other, the last for ever."""
    return playing(*(f"Thought: now {action}\nAction: {action}" for action in actions))
