"""What the nodes of the chain agent depend on: `ChainDeps`, one object for them all."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from langchain_core.messages import BaseMessage

from langgraft._core.tokens import count_tokens_approximately
from langgraft.nodes.chain.messages import Instructions, messages_of
from langgraft.nodes.chain.tools import Schema
from langgraft.nodes.chain.visible_history import Condenser, VisibleHistory, visible_history
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.limits import estimated_tokens
from langgraft.nodes.workbench.log import Event
from langgraft.nodes.workbench.state import RunState

Browse: TypeAlias = Callable[[str], str]
"""Reads a page of the web, as text; what it raises is told to the agent."""

_REPLY_SHARE = 8
"""Of the context, one part in so many is left for the reply."""


@dataclass(frozen=True, slots=True)
class ChainDeps:
    """What the chain agent's nodes share."""

    run: RunDeps
    instructions: Instructions
    tools: Sequence[Schema]
    """What the model is offered."""
    condensers: Sequence[Condenser] = ()
    context: int | None = None
    """Tokens that the model can read, where that is known."""
    browse: Browse | None = None

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of the tools."""
        return tuple(tool["function"]["name"] for tool in self.tools)

    @property
    def most(self) -> int | None:
        """Tokens that messages may have, as far as it is known."""
        if self.context is None:
            return None
        told = count_tokens_approximately(json.dumps(list(self.tools)))
        return max(self.context - self.context // _REPLY_SHARE - told, 0)

    def data(self, state: RunState) -> str:
        """Return the preview of the data."""
        return self.run.artifacts.read(state["begun"]["preview"]).decode()

    def history(self, events: Sequence[Event]) -> VisibleHistory:
        """Return what the agent sees of a log."""
        return visible_history(events, self.condensers)

    def prompt(self, events: Sequence[Event], data: str) -> list[BaseMessage]:
        """Return what the model is sent after these events."""
        done = sum(event.kind == "action" and event.source == "agent" for event in events)
        return messages_of(self.history(events), self.instructions, data=data, done=done)

    def tokens(self, events: Sequence[Event], data: str) -> int:
        """Estimate the tokens of that."""
        return estimated_tokens(self.prompt(events, data))
