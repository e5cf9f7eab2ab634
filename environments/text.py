"""The text-environment protocol: a world that shows text and takes one line of text back.

A world knows nothing of memory or models. What an agent needs to play it is data: the
world's own `instructions`, the text of each observation, and a list of actions where the
world offers one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from langgraft._core.canonical import JSON


@dataclass(frozen=True, slots=True)
class TextTask:
    """One instance of a task family: what an environment can be built from."""

    id: str
    """Stable name of the instance, such as `babyai/action_obj_door/17`."""
    domain: str
    """The task family, such as `babyai/action_obj_door`."""
    split: str
    """`train` or `test`."""


@dataclass(frozen=True, slots=True)
class Reset:
    """What a world shows before the first action."""

    instruction: str
    """The goal alone, in one line (`open the purple door`): what memories are keyed by."""
    observation: str
    """All that the agent sees first, the goal included, as the world words it."""
    actions: tuple[str, ...] = ()
    """The actions on offer, where the world lists them."""
    shown_now: str = ""
    """What is shown behind the observation as long as it is the latest, and is kept nowhere."""


@dataclass(frozen=True, slots=True)
class Transition:
    """What one action led to."""

    observation: str
    """What the agent sees next."""
    reward: float
    """The world's reward for this action."""
    done: bool
    """The episode has ended; further actions are refused."""
    success: bool
    """The goal has been reached."""
    actions: tuple[str, ...] = ()
    """The actions on offer now."""
    shown_now: str = ""
    """As in `Reset`."""
    info: Mapping[str, JSON] = field(default_factory=dict)
    """What else the world says of the step (never shown to the agent)."""


@runtime_checkable
class TextEnvironment(Protocol):
    """One episode of one task instance. `task` is that instance."""

    task: TextTask
    instructions: str
    """How the world is played, for the system prompt."""
    max_rounds: int
    """How many replies the agent has by the benchmark's rule."""

    def reset(self) -> Reset:
        """Start the episode again from the beginning; the same every time."""
        ...

    def step(self, action: str) -> Transition:
        """Take one action, written as text.

        Raises:
            RuntimeError: Called before `reset` or after the episode ended.
        """
        ...

    def close(self) -> None:
        """Free what the episode holds."""
        ...


class TextWorldFactory(Protocol):
    """Builds environments by task id, and lists the tasks there are."""

    def __call__(self, task_id: str) -> TextEnvironment:
        """Return a fresh environment for one task instance.

        Raises:
            SettingsError: There is no such task.
        """
        ...

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        """List the instances of a task family in one split, in the benchmark's order.

        Raises:
            SettingsError: There is no such family or split.
        """
        ...


@runtime_checkable
class Graded(Protocol):
    """A world that knows how hard its tasks are."""

    def difficulty(self, task_id: str) -> float:
        """Return how hard a task is, in any unit that is one within a family: more is harder.

        Raises:
            SettingsError: There is no such task.
        """
        ...
