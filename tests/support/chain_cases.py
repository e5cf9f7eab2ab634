"""Logs, and a chat model that calls tools by a script, for the chain agent."""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field
from tree_cases import sandbox
from typing_extensions import override

from langgraft.environments.competitions.competition import Competition
from langgraft.graphs.chain import build_chain_agent
from langgraft.nodes.artifacts import FolderArtifacts, MemoryArtifacts
from langgraft.nodes.dialogue import SAMPLE
from langgraft.nodes.workbench.limits import RunLimits, estimated_tokens
from langgraft.nodes.workbench.log import (
    MESSAGE,
    RECOVERY,
    Action,
    Event,
    EventLog,
    Observation,
    read_log,
)

Reply = AIMessage | str


def call(name: str, said: str = "", **arguments: Any) -> AIMessage:
    """Write a reply that calls one tool."""
    return calls((name, arguments), thought=said)


def calls(*asked: tuple[str, dict[str, Any]], thought: str = "") -> AIMessage:
    """Write a reply that calls several tools; ids are made up anew each time, as providers do."""
    made = [
        {"name": name, "args": arguments, "id": f"made-up-{next(_IDS)}", "type": "tool_call"}
        for name, arguments in asked
    ]
    return AIMessage(thought, tool_calls=made)


def spoiled(name: str | None, arguments: str) -> AIMessage:
    """Write a reply with a call that nobody can read."""
    wrong = {
        "name": name,
        "args": arguments,
        "id": f"made-up-{next(_IDS)}",
        "error": "no JSON",
        "type": "invalid_tool_call",
    }
    return AIMessage("", invalid_tool_calls=[wrong])


_IDS = itertools.count()


class ToolModel(BaseChatModel):
    """Replies by a rule to the messages it is sent, at a step; keeps what it was asked."""

    rule: Callable[[list[BaseMessage], int], Reply]
    """Gets the messages, and the step, by what the prompt says of those that are left."""
    context: int | None = None
    """Tokens that it can read."""
    asked: list[list[BaseMessage]] = Field(default_factory=list)
    samples: list[str] = Field(default_factory=list)
    bound: list[str] = Field(default_factory=list)
    """Names of the tools that were bound last."""

    @property
    def _llm_type(self) -> str:
        return "tool-rule"

    @override
    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        self.bound[:] = [tool["function"]["name"] for tool in tools]
        return self.bind(tools=list(tools), **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        metadata = (run_manager.metadata if run_manager is not None else None) or {}
        sample = str(metadata.get(SAMPLE, ""))
        if self.context is not None and estimated_tokens(messages) > self.context:
            raise ContextOverflowError(f"longer than {self.context} tokens")
        self.asked.append(messages)
        self.samples.append(sample)
        left, steps = map(int, re.findall(r"Steps: (\d+) of (\d+) left", messages[-1].text)[-1])
        step = steps - left
        said = self.rule(messages, step)
        message = AIMessage(said) if isinstance(said, str) else said
        return ChatResult(generations=[ChatGeneration(message=message)])


def scripted(*replies: Reply, **settings: Any) -> ToolModel:
    """Make a model that gives a reply a step, and the last one for all further steps."""
    return ToolModel(rule=lambda _, step: replies[min(step, len(replies) - 1)], **settings)


class LogMaker:
    """Writes a log event by event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def did(
        self,
        name: str,
        seen: str = "done",
        *,
        failed: bool = False,
        thought: str = "",
        **given: Any,
    ) -> "LogMaker":
        """Add an action with its observation."""
        action = Action(
            id=len(self.events), source="agent", name=name, arguments=given, thought=thought
        )
        self.events.append(action)
        self.events.append(Observation(id=action.id + 1, cause=action.id, text=seen, failed=failed))
        return self

    def said(self, text: str, answer: str = "Go on.") -> "LogMaker":
        """Add a message with what the user said to it."""
        action = Action(id=len(self.events), source="agent", name=MESSAGE, arguments={"text": text})
        self.events.append(action)
        return self.event("user", MESSAGE, cause=action.id, text=answer)

    def recovered(self, rule: str, first_hidden: int) -> "LogMaker":
        """Add a recovery."""
        return self.event("environment", RECOVERY, rule=rule, first_hidden=first_hidden)

    def event(self, source: Any, name: str, cause: int | None = None, **given: Any) -> "LogMaker":
        """Add an action of somebody else."""
        place = len(self.events)
        self.events.append(Action(id=place, source=source, name=name, cause=cause, arguments=given))
        return self


def ran(
    competition: Competition, model: ToolModel, **settings: Any
) -> tuple[dict[str, Any], EventLog]:
    """Run the agent in a real sandbox, and return what came out and its log."""
    artifacts = settings.pop("artifacts", None)
    if artifacts is None and "folder" not in settings:
        artifacts = MemoryArtifacts()
    with sandbox(competition) as place:
        settings = {"seconds": 60, "limits": RunLimits(steps=100), **settings}
        agent = build_chain_agent(
            model, competition=competition, sandbox=place, artifacts=artifacts, **settings
        )
        out = agent.invoke({"episode_id": "e"})
    kept = artifacts or FolderArtifacts(settings["folder"] / "artifacts")
    return out, read_log(kept, out["log"])
