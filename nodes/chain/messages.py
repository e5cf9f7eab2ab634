"""The log as messages for a chat model: a pure function of the log and of settings.

Every call of a tool has its answer right behind it, under a name of its own (`call-<step>`), so
that any provider takes them and no provider's ids are kept. A call that could not be read is told
as one that could.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraft.nodes.chain.briefing import Briefing
from langgraft.nodes.chain.sight import Sight
from langgraft.nodes.chain.turns import Notice, Part, Turn
from langgraft.nodes.workbench.events import INVALID, MESSAGE

_NOTHING: Final = "(nothing)"
_NO_REPLY: Final = "(no reply)"
_NO_TOOL: Final = "unknown"
_LONGEST_NAME: Final = 64


def messages_of(sight: Sight, briefing: Briefing, *, data: str, done: int) -> list[BaseMessage]:
    """Return what a model is sent.

    Args:
        sight: What the agent sees of the log.
        briefing: What the prompts are filled in with.
        data: The preview of the data.
        done: Steps of the run so far.
    """
    first = briefing.first(data, sight.memory, room=sight.first_message)
    messages: list[BaseMessage] = [SystemMessage(briefing.system()), HumanMessage(first)]
    for part in sight.parts:
        for message in _told(part, briefing):
            if isinstance(message, HumanMessage) and isinstance(messages[-1], HumanMessage):
                # Some servers want the roles to take turns.
                messages[-1] = HumanMessage(f"{messages[-1].text}\n\n{message.text}")
            else:
                messages.append(message)
    last = messages[-1]
    messages[-1] = last.model_copy(update={"content": f"{last.text}\n\n{briefing.reminder(done)}"})
    return messages


def _told(part: Part, briefing: Briefing) -> Iterator[BaseMessage]:
    if isinstance(part, Notice):
        yield HumanMessage(briefing.recovery(str(part.action.arguments.get("rule", ""))))
    elif part.action.name == MESSAGE:
        yield AIMessage(_text(str(part.action.arguments.get("text", "")), _NO_REPLY))
        yield HumanMessage(_text(part.answer))
    else:
        yield from _called(part)


def _called(turn: Turn) -> Iterator[BaseMessage]:
    action, name = turn.action, f"call-{turn.step}"
    tool, arguments = action.name, dict[str, Any](action.arguments)
    if action.name == INVALID:
        tool = callable_name(str(action.arguments.get("tool", "")))
        arguments = _as_object(str(action.arguments.get("said", "")))
    call = {"name": tool, "args": arguments, "id": name, "type": "tool_call"}
    yield AIMessage(_clean(action.thought), tool_calls=[call])
    seen = "" if turn.observation is None else turn.observation.text
    said = f"{seen}\n\n{turn.answer}" if turn.answer else seen
    yield ToolMessage(_text(said), tool_call_id=name)


def callable_name(name: str) -> str:
    """Return a name that providers accept for a tool, like the one that a model made up."""
    return _ODD.sub("_", name)[:_LONGEST_NAME] or _NO_TOOL


_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")


def _as_object(said: str) -> dict[str, Any]:
    """Return arguments that could not be used as an object, which providers insist on."""
    try:
        read = json.loads(said)
        if isinstance(read, dict):
            json.dumps(read, allow_nan=False)
            return read
    except (ValueError, RecursionError):
        pass
    return {"arguments": said}


def _text(text: str, otherwise: str = _NOTHING) -> str:
    return _clean(text) if text.strip() else otherwise


def _clean(text: str) -> str:
    """Take NULs out, which some servers refuse."""
    return text.replace("\0", "�")
