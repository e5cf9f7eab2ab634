"""What all nodes of a run depend on, and how they pay for what they ask models."""

import asyncio
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from langgraft._core.canonical import JSON
from langgraft._core.effects import relay
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.nodes.artifacts import Artifacts, keep_json, read_json
from langgraft.nodes.model_dialogue import Ask, Said, Talk
from langgraft.nodes.workbench.limits import (
    NOTHING_SPENT,
    RunLimits,
    TokenPrices,
    estimated_tokens,
    left,
    spend,
    tokens_of,
    too_dear,
)
from langgraft.nodes.workbench.log import Action, EventLog, Observation, read_log
from langgraft.nodes.workbench.sessions import Workspaces
from langgraft.nodes.workbench.state import RunState, Spent

_MINUTE: Final = 60


class _Watch:
    """Takes the seconds since it was last started."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began: float | None = None

    def start(self) -> None:
        self._began = self._clock()

    @property
    def seconds(self) -> float:
        return 0.0 if self._began is None else self._clock() - self._began


@dataclass(frozen=True, slots=True)
class RunDeps:
    """What all nodes of a run share: the competition, where contents and workspaces are, limits."""

    competition: Competition
    artifacts: Artifacts
    workspaces: Workspaces
    limits: RunLimits = field(default_factory=RunLimits)
    prices: TokenPrices | None = None
    clock: Callable[[], float] = time.monotonic
    """Seconds that go on; of what it says only differences count."""

    @property
    def sandbox(self) -> Sandbox:
        """Where executions run."""
        return self.workspaces.sandbox

    @property
    def seconds(self) -> float:
        """Wall clock of one execution."""
        return self.workspaces.seconds

    def allowed(self, state: RunState) -> float:
        """Return the wall clock that an execution may take now: not longer than the run goes on.

        What the run has left counts in whole minutes, or else seconds: it may be told.
        """
        _, rest = left(self.limits, state)
        unit = _MINUTE if rest >= _MINUTE else 1
        return min(self.seconds, max(rest // unit * unit, 1.0))

    def run(self, state: RunState, action: Action) -> tuple[Observation, float]:
        """Do an action in the run's workspace; return what was observed, and the seconds it took.

        A workspace that is gone is built anew first. That counts nothing: what is done again there
        was counted when it was lived.

        Raises:
            SandboxUnavailableError: There is no engine or image.
            SandboxFailureError: The engine or container died, and again in fresh ones.
        """
        log, watch = self.log(state), _Watch(self.clock)
        seen = self.workspaces.run(
            state["episode_id"], log, action, seconds=self.allowed(state), begins=watch.start
        )
        return seen, watch.seconds

    async def arun(self, state: RunState, action: Action) -> tuple[Observation, float]:
        """Do what `run` does, asynchronously."""
        log, watch = await asyncio.to_thread(self.log, state), _Watch(self.clock)
        seen = await self.workspaces.arun(
            state["episode_id"], log, action, seconds=self.allowed(state), begins=watch.start
        )
        return seen, watch.seconds

    def keep(self, value: JSON) -> str:
        """Keep a value as canonical JSON, and return its reference."""
        return keep_json(self.artifacts, value)

    def read(self, reference: str | None) -> dict[str, Any]:
        """Read a mapping that was kept; without a reference it is empty.

        Raises:
            InputError: Nothing is kept under that reference, or it is damaged.
        """
        return read_json(self.artifacts, reference)

    def log(self, state: RunState) -> EventLog:
        """Return what happened so far."""
        return read_log(self.artifacts, state.get("log", ""))


T = TypeVar("T")

NO_MONEY: Final = "no money is left"


@dataclass(frozen=True, slots=True)
class Metered(Generic[T]):
    """What came of a talk."""

    value: T
    spent: Spent
    """Of the whole run, with this talk."""
    broke: bool
    """A question was not asked since there was no money left for it."""


def metered(deps: RunDeps, state: RunState, held: Talk[T]) -> Talk[Metered[T]]:
    """Hold a talk and note what it uses; a question there is no money for has no reply."""
    now: RunState = {**state, "spent": state.get("spent", NOTHING_SPENT)}
    broke = False

    def answer(ask: Ask) -> Generator[Ask, Said, Said]:
        nonlocal broke
        tokens = estimated_tokens(ask.messages)
        if too_dear(deps.limits, now, deps.prices, prompt_tokens=tokens):
            broke = True
            return Said("", NO_MONEY)
        began = deps.clock()
        said = yield ask
        seconds = deps.clock() - began
        sent, got = (0, 0) if said.message is None else tokens_of(said.message, ask.messages)
        now["spent"] = spend(
            now, seconds=seconds, prompt_tokens=sent, completion_tokens=got, prices=deps.prices
        )
        return said

    value = yield from relay(held, answer)
    return Metered(value, now["spent"], broke)
