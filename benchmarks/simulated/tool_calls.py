"""Calls of tools in OpenAI's format, in both directions, those whose arguments are no JSON included."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    InvalidToolCall,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.messages.tool import invalid_tool_call


def messages_of(told: Sequence[Any]) -> list[BaseMessage]:
    """Return the messages of a request.

    Raises:
        ValueError: They are no messages.
    """
    return [_message(each) for each in told]


def told_message(message: AIMessage) -> dict[str, Any]:
    """Return a reply as a provider tells it."""
    told: Any = convert_to_openai_messages(message)
    spoiled = [_told_call(call) for call in message.invalid_tool_calls]
    if spoiled:
        told["tool_calls"] = [*told.get("tool_calls", ()), *spoiled]
    return dict(told)


def _message(told: Any) -> BaseMessage:
    """Read a message; LangChain's reader takes no call that cannot be read."""
    calls = told.get("tool_calls") if isinstance(told, Mapping) else None
    if not calls:
        return convert_to_messages([told])[0]
    whole = [call for call in calls if _readable(call)]
    spoiled = [_spoiled(call) for call in calls if not _readable(call)]
    message = convert_to_messages([{**told, "tool_calls": whole}])[0]
    if spoiled and isinstance(message, AIMessage):
        message.invalid_tool_calls = spoiled
    return message


def _readable(call: Any) -> bool:
    try:
        return isinstance(json.loads(call["function"]["arguments"]), dict)
    except ValueError:
        return False
    except (KeyError, TypeError) as error:
        msg = "a tool call has a function with a name and arguments"
        raise ValueError(msg) from error


def _spoiled(call: Mapping[str, Any]) -> InvalidToolCall:
    function = call["function"]
    return invalid_tool_call(
        name=function.get("name"), args=function["arguments"], id=call.get("id")
    )


def _told_call(call: InvalidToolCall) -> dict[str, Any]:
    function = {"name": call["name"] or "", "arguments": call["args"] or ""}
    return {"type": "function", "id": call["id"], "function": function}
