"""The chain agent with a model that follows a script: what its graph promises whatever is said."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from pydantic import Field
from typing_extensions import override

from acceptance.figure import Setting
from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel, ToolUse
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.registry import Registry
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.workbench.log import Event, read_log

COMPETITION: Final = "weather"

Script = Callable[[int], Reply]
"""Returns the n-th reply, from 0."""


class Scripted(SimulatedChatModel):
    """Says what a script says, and keeps how long each prompt was."""

    model_name: str = "scripted"
    script: Script
    refusals: int = 0
    """So many prompts are refused as too long, whatever their length."""
    refuse_from: int = 0
    """From this reply on."""
    prompts: list[int] = Field(default_factory=list)
    """Tokens of the prompts that were answered, as the model counts them."""
    asked: list[list[BaseMessage]] = Field(default_factory=list)
    """The newest prompts that were answered."""
    refused: list[int] = Field(default_factory=list)
    """One for each prompt that was refused: how many had been answered."""

    @override
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> Reply:
        """Return what the script says at this step, also to a process that goes on with a run.

        A server is not told of the step: there the next reply is that of the next call.
        """
        named = _STEP.search(sampling.sample)
        return self.script(int(named[1]) if named else len(self.prompts))

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        done = len(self.prompts)
        try:
            if done >= self.refuse_from and len(self.refused) < self.refusals:
                raise ContextOverflowError("the prompt is too long, says the script")
            result = super()._generate(messages, stop, run_manager, **kwargs)
        except ContextOverflowError:
            self.refused.append(done)
            raise
        told: Any = result.generations[0].message
        self.prompts.append(told.usage_metadata["input_tokens"])
        self.asked.append(messages)
        del self.asked[:-_KEPT]
        return result

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        return self._generate(messages, stop, None, **kwargs)


_KEPT: Final = 3
_STEP: Final = re.compile(r"/step-(\d+)/think")


def in_turn(replies: Iterable[Reply]) -> Script:
    """Return the script of these replies; after the last one the work is finished."""
    said = list(replies)
    return lambda number: said[number] if number < len(said) else does("finish", message="done")


def does(name: str, arguments: Mapping[str, Any] | str | None = None, **given: Any) -> Reply:
    """Return a reply that calls one tool; arguments that are a text are sent as they stand."""
    return Reply("", (ToolUse(name, given if arguments is None else arguments),))


def bash(command: str) -> Reply:
    """Return a reply that runs a command line."""
    return does("run_bash", command=command)


def prepared(setting: Setting) -> Competition:
    """Return the competition that scripts work at."""
    competition = Registry(setting.work / "data").get_competition(COMPETITION)
    if not competition.prepared:
        prepare_competition(competition)
    return competition


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run."""

    ended: str
    steps: int
    events: Sequence[Event]


def ran(final: Mapping[str, Any], artifacts: Artifacts) -> Ran:
    """Read what a graph returned."""
    events = read_log(artifacts, final["log"]).events
    return Ran(str(final.get("ended", "")), int(final.get("steps", 0)), events)
