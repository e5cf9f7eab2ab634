"""The log as messages for a chat model: a pure function of the log and of settings.

What the model said stands there word for word. Every call of a tool has its answer right behind
it, under a name of its own (`call-<step>`), so that any provider takes them and no provider's ids
are kept. A call that providers would not take back (arguments that are no JSON object, a name that
no tool can have) is not made into another: it is quoted where the model is told what was wrong.
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
from langgraft.nodes.replies import in_turns
from langgraft.nodes.search.program_text import quotable
from langgraft.nodes.workbench.events import INVALID, MESSAGE

_NOTHING: Final = "(nothing)"
_CALLABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that providers take."""


def messages_of(sight: Sight, briefing: Briefing, *, data: str, done: int) -> list[BaseMessage]:
    """Return what a model is sent.

    Args:
        sight: What the agent sees of the log.
        briefing: What the prompts are filled in with.
        data: The preview of the data.
        done: Steps of the run so far.
    """
    first = briefing.first(data, sight.memory, room=sight.first_message)
    told = (message for part in sight.parts for message in _told(part, briefing))
    messages = in_turns([SystemMessage(briefing.system()), HumanMessage(first), *told])
    last = messages[-1]
    messages[-1] = last.model_copy(update={"content": f"{last.text}\n\n{briefing.reminder(done)}"})
    return messages


def _told(part: Part, briefing: Briefing) -> Iterator[BaseMessage]:
    if isinstance(part, Notice):
        yield HumanMessage(briefing.recovery(str(part.action.arguments.get("rule", ""))))
    elif part.action.name == MESSAGE:
        yield AIMessage(_clean(str(part.action.arguments.get("text", ""))))
        yield HumanMessage(_text(part.answer))
    else:
        yield from _called(part)


def _called(turn: Turn) -> Iterator[BaseMessage]:
    action, name = turn.action, f"call-{turn.step}"
    tool = action.name
    arguments: dict[str, Any] | None = dict(action.arguments)
    thought = _clean(action.thought) if action.thought.strip() else ""
    seen = "" if turn.observation is None else turn.observation.text
    said = f"{seen}\n\n{turn.answer}" if turn.answer else seen
    if action.name == INVALID:
        tool, written = (str(action.arguments.get(key, "")) for key in ("tool", "said"))
        arguments = _object(written) if _CALLABLE.fullmatch(tool) else None
        if arguments is None:
            yield AIMessage(thought)
            yield HumanMessage(_clean(f"{_quoted(tool, written)}{said}"))
            return
    call = {"name": tool, "args": arguments, "id": name, "type": "tool_call"}
    yield AIMessage(thought, tool_calls=[call])
    yield ToolMessage(_text(said), tool_call_id=name)


def _object(written: str) -> dict[str, Any] | None:
    """Return arguments as the object that they are; `None` where they are none."""
    try:
        read = json.loads(written)
        json.dumps(read, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _quoted(tool: str, written: str) -> str:
    if not tool and not written:
        return ""
    return f"You called `{tool}` with these arguments:\n```\n{quotable(written)}\n```\n"


def _text(text: str) -> str:
    return _clean(text) if text.strip() else _NOTHING


def _clean(text: str) -> str:
    """Take NULs out, which some servers refuse."""
    return text.replace("\0", "�")
