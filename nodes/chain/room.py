"""What the chain agent's nodes share, beside the desk that all step agents have."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from langchain_core.messages import BaseMessage

from langgraft._core.tokens import count_tokens_approximately
from langgraft.nodes.chain.briefing import Briefing
from langgraft.nodes.chain.messages import messages_of
from langgraft.nodes.chain.sight import Condenser, Sight, sight_of
from langgraft.nodes.chain.tools import Schema
from langgraft.nodes.workbench.desk import Desk
from langgraft.nodes.workbench.events import Event
from langgraft.nodes.workbench.limits import estimated_tokens
from langgraft.nodes.workbench.state import RunState

Browse: TypeAlias = Callable[[str], str]
"""Reads a page of the web, as text; what it raises is told to the agent."""

_REPLY_SHARE = 8
"""Of the context, one part in so many is left for the reply."""


@dataclass(frozen=True, slots=True)
class Room:
    """What the chain agent's nodes share."""

    desk: Desk
    briefing: Briefing
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
        return self.desk.artifacts.read(state["begun"]["preview"]).decode()

    def sight(self, events: Sequence[Event]) -> Sight:
        """Return what the agent sees of a log."""
        return sight_of(events, self.condensers)

    def prompt(self, events: Sequence[Event], data: str) -> list[BaseMessage]:
        """Return what the model is sent after these events."""
        done = sum(event.kind == "action" and event.source == "agent" for event in events)
        return messages_of(self.sight(events), self.briefing, data=data, done=done)

    def tokens(self, events: Sequence[Event], data: str) -> int:
        """Estimate the tokens of that."""
        return estimated_tokens(self.prompt(events, data))
