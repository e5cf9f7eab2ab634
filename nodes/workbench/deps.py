"""What all nodes of a run depend on, and how they pay for what they ask models."""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from langgraft._core.effects import Call, Program, relay
from langgraft._core.texts import Prompt
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.nodes.competition_run import Bounds, CompetitionDeps, Gpus
from langgraft.nodes.dialogue import Dialogue, Request, Response
from langgraft.nodes.workbench.limits import (
    NOTHING_SPENT,
    RunLimits,
    TokenPrices,
    estimated_tokens,
    spend,
    tokens_of,
    too_dear,
)
from langgraft.nodes.workbench.log import Action, EventLog, Observation, RunState, Spent, read_log
from langgraft.nodes.workbench.sessions import Workspaces

T = TypeVar("T")

NO_MONEY: Final = "no money is left"


@dataclass(frozen=True, slots=True)
class RunDeps(CompetitionDeps):
    """What all nodes of a run share, beside models and memory."""

    workspaces: Workspaces
    limits: RunLimits = field(default_factory=RunLimits)
    prices: TokenPrices | None = None
    clock: Callable[[], float] = time.monotonic
    """Seconds that go on; of what it says only differences count."""
    gpus: Gpus = None
    """Of a program, as prompts tell it."""
    weights: Sequence[str] = ()
    """Names of pretrained weights that programs find."""

    @property
    def bounds(self) -> Bounds:
        """What the run may use."""
        limits = self.limits
        return Bounds(
            self.sandbox.limits,
            self.seconds,
            limits.steps,
            limits.hours,
            self.gpus,
            self.weights,
        )

    def bounds_text(self, prompt: Prompt, state: RunState) -> str:
        """Return what the run may use, and what is left of it, as a prompt tells it."""
        spent = state.get("spent", NOTHING_SPENT)["seconds"]
        return self.bounds.text(prompt, done=state.get("steps", 0), spent=spent)

    @property
    def sandbox(self) -> Sandbox:
        """Where executions run."""
        return self.workspaces.sandbox

    @property
    def seconds(self) -> float:
        """Wall clock of one execution."""
        return self.workspaces.seconds

    def acting(self, state: RunState, action: Action) -> Program[Call, tuple[Observation, float]]:
        """Do an action in the run's workspace; return what was observed, and the seconds it took.

        A workspace that is gone is built anew first. That counts nothing: what is done again there
        was counted when it was done first.

        Raises:
            SandboxUnavailableError: There is no engine or image.
            SandboxFailureError: The engine or container died, and again in fresh ones.
        """
        began: list[float] = []
        seen: Observation = yield Call(
            self.workspaces.run,
            self.workspaces.arun,
            state["episode_id"],
            self.log(state),
            action,
            seconds=self.bounds.allowed(state.get("spent", NOTHING_SPENT)["seconds"]),
            begins=lambda: began.append(self.clock()),
        )
        return seen, self.clock() - began[-1] if began else 0.0

    def log(self, state: RunState) -> EventLog:
        """Return what happened so far."""
        return read_log(self.artifacts, state.get("log", ""))


@dataclass(frozen=True, slots=True)
class Metered(Generic[T]):
    """What came of a dialogue."""

    value: T
    spent: Spent
    """Of the whole run, with this dialogue."""
    broke: bool
    """A request was not sent since there was no money left for it."""


def metered(deps: RunDeps, state: RunState, dialogue: Dialogue[T]) -> Dialogue[Metered[T]]:
    """Hold a dialogue and note what it uses; a request there is no money for has no reply."""
    now: RunState = {**state, "spent": state.get("spent", NOTHING_SPENT)}
    broke = False

    def respond(request: Request) -> Generator[Request, Response, Response]:
        nonlocal broke
        tokens = estimated_tokens(request.messages)
        if too_dear(deps.limits, now, deps.prices, prompt_tokens=tokens):
            broke = True
            return Response("", NO_MONEY)
        began = deps.clock()
        response = yield request
        seconds = deps.clock() - began
        sent, got = 0, 0
        if response.message is not None:
            sent, got = tokens_of(response.message, request.messages)
        now["spent"] = spend(
            now, seconds=seconds, prompt_tokens=sent, completion_tokens=got, prices=deps.prices
        )
        return response

    value = yield from relay(dialogue, respond)
    return Metered(value, now["spent"], broke)
