"""A conversation with tools, read: the task, what was done, what came of it, what is left."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraft._core.canonical import text_digest
from langgraft.benchmarks.simulated.data_scientist.asked import Asked, read_prompt
from langgraft.memory.recall import strip_block

_LEFT: Final = re.compile(r"\[(\d+) steps? (?:is|are) left of (\d+)\.\]")
_UNKNOWN_LEFT: Final = 99
"""Steps that are taken to be left where nothing says how many."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A call of a tool, what was said beside it, and what it showed."""

    said: str
    tool: str
    arguments: dict[str, str]
    """Those that are texts."""
    seen: str
    """What it showed; empty where that is not told."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What an engineer has before it."""

    asked: Asked
    turns: tuple[Turn, ...]
    left: int
    """Steps that are left, the next one included."""
    recovered: bool
    """Whether it was just told that it went in circles."""
    digest: str
    """Of all that was said but recalled notes."""


def read_conversation(messages: Sequence[BaseMessage]) -> Conversation | None:
    """Read a conversation; `None` where none of its messages is the task of an engineer."""
    for message in messages:
        if isinstance(message, HumanMessage):
            asked = read_prompt(message.text, ("chain_task",))
            if asked is not None:
                last = messages[-1].text if isinstance(messages[-1], HumanMessage) else ""
                recovered = read_prompt(last, ("chain_recovery",)) is not None
                turns = tuple(_turns(messages))
                left = _left(messages, asked, len(turns))
                return Conversation(asked, turns, left, recovered, _digest(messages))
    return None


def _turns(messages: Sequence[BaseMessage]) -> list[Turn]:
    """Pair calls with what they showed; replies that are no call, or none that was read, are left out."""
    shown = {each.tool_call_id: each.text for each in messages if isinstance(each, ToolMessage)}
    turns = []
    for message in messages:
        for call in message.tool_calls[:1] if isinstance(message, AIMessage) else ():
            texts = {key: value for key, value in call["args"].items() if isinstance(value, str)}
            seen = shown.get(str(call["id"]), "")
            turns.append(Turn(message.text, call["name"], texts, seen))
    return turns


def _left(messages: Sequence[BaseMessage], asked: Asked, done: int) -> int:
    told = [found for message in messages[-3:] for found in _LEFT.findall(message.text)]
    if told:
        return int(told[-1][0])
    steps = asked.part("steps")
    return int(steps) - done if steps.isdecimal() else _UNKNOWN_LEFT


def _digest(messages: Sequence[BaseMessage]) -> str:
    # Blank lines are dropped, which notes leave behind: with and without them draws are the same.
    told = [" ".join(strip_block(message.text).split()) for message in messages]
    called = [
        [[call["name"], call["args"]] for call in message.tool_calls]
        for message in messages
        if isinstance(message, AIMessage)
    ]
    return text_digest(json.dumps([told, called]))
