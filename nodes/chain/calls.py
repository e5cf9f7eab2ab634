"""What a reply asks for: one action, whatever a model says."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import BaseMessage
from pydantic import JsonValue, ValidationError

from langgraft._core.settings import describe_validation
from langgraft.nodes.chain.tools import ARGUMENTS
from langgraft.nodes.replies import encodable
from langgraft.nodes.talking import UNREADABLE, Said
from langgraft.nodes.workbench.events import INVALID, MESSAGE, keepable

LONGEST_KEPT: Final = 10_000
"""Most characters kept of arguments that could not be used."""
LONGEST_NAME: Final = 100
CUT: Final = "cut"
"""Failure of a reply that ends where the longest possible one does, before it calls a tool."""
_NAMES_TOLD: Final = 5
_NO_OBJECT: Final = "the arguments of the call cannot be read: they must be one JSON object"


@dataclass(frozen=True, slots=True)
class Asked:
    """An action that a reply asks for."""

    name: str
    """A tool, `message` or `invalid`, as the log calls it."""
    arguments: dict[str, JsonValue] = field(default_factory=dict)
    thought: str = ""
    """What the model said beside it."""
    surplus: tuple[str, ...] = ()
    """Tools of further calls in the same reply, which are not done."""


def asked(said: Said, offered: Collection[str]) -> Asked:
    """Read a reply.

    The first call that can be read counts. A reply without any call is a message, one that holds
    nothing at all too: `failure` says in a word why (what else a provider says may differ each time).

    Args:
        said: The reply.
        offered: Names of the tools there are.
    """
    calls, spoiled = _calls(said.message)
    thought = said.text
    if calls:
        surplus = [_name(call) for call in (*calls[1:], *spoiled)]
        return _checked(calls[0], thought, offered, tuple(surplus))
    if spoiled:
        surplus = [_name(call) for call in spoiled[1:]]
        return _unreadable(spoiled[0], thought, tuple(surplus), cut=said.cut)
    if said.failure.partition(":")[0] == UNREADABLE:
        return _invalid("", "", _NO_OBJECT, thought, ())
    if not thought.strip():
        failure = said.failure.partition(":")[0] or "empty"
        return Asked(MESSAGE, {"text": "", "failure": failure})
    return Asked(MESSAGE, {"text": thought, **({"failure": CUT} if said.cut else {})})


def no_call_told(failure: str) -> str:
    """Tell the model why a reply did nothing that calls no tool."""
    told = {
        "": "your reply calls no tool",
        "empty": "your reply is empty",
        CUT: "your reply was cut off, before it called a tool, where the longest possible one ends",
    }
    return told.get(failure, f"your reply is empty ({failure})")


def surplus_told(names: Collection[str]) -> str:
    """Tell the model which calls of its reply were not done; nothing where there was only one."""
    if not names:
        return ""
    told = ", ".join([*names][:_NAMES_TOLD]) + (", …" if len(names) > _NAMES_TOLD else "")
    calls = "1 further call" if len(names) == 1 else f"{len(names)} further calls"
    return f"[Not done: {calls} of the same reply ({told}). Make one call a reply.]"


def _calls(message: BaseMessage | None) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    calls: Any = getattr(message, "tool_calls", None) or []
    spoiled: Any = getattr(message, "invalid_tool_calls", None) or []
    return list(calls), list(spoiled)


def _name(call: Mapping[str, Any]) -> str:
    return encodable(str(call.get("name") or ""))[:LONGEST_NAME]


def _checked(
    call: Mapping[str, Any], thought: str, offered: Collection[str], surplus: tuple[str, ...]
) -> Asked:
    name, given = _name(call), keepable(call.get("args"))
    if name not in offered:
        problem = f"there is no tool {name!r}; the tools are {', '.join(offered)}"
        return _invalid(name, _written(given), problem, thought, surplus)
    try:
        arguments = ARGUMENTS[name].model_validate(given)
    except ValidationError as error:
        problem = f"{name} cannot be called like that: {describe_validation(error)}"
        return _invalid(name, _written(given), problem, thought, surplus)
    kept = arguments.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return Asked(name, kept, thought, surplus)


def _unreadable(
    call: Mapping[str, Any], thought: str, surplus: tuple[str, ...], *, cut: bool
) -> Asked:
    name, given = _name(call), encodable(str(call.get("args") or ""))
    problem = _NO_OBJECT
    if cut:
        problem += ". The reply was cut off where the longest possible reply ends: send less"
    else:
        problem += _where(given)
    return _invalid(name, given, problem, thought, surplus)


def _where(given: str) -> str:
    """Say what is wrong with a text that ought to be JSON."""
    try:
        json.loads(given)
    except RecursionError:
        return ", not so deeply nested"
    except ValueError as error:
        return f" ({encodable(str(error))[:200]})"
    return ""


def _invalid(tool: str, said: str, problem: str, thought: str, surplus: tuple[str, ...]) -> Asked:
    told = encodable(problem)
    arguments: dict[str, JsonValue] = {
        "tool": tool,
        "said": said[:LONGEST_KEPT],
        "problem": told[:LONGEST_KEPT],
    }
    return Asked(INVALID, arguments, thought, surplus)


def _written(given: Any) -> str:
    """Write arguments as JSON, whatever they are."""
    try:
        return encodable(json.dumps(given, ensure_ascii=False, sort_keys=True, default=str))
    except (TypeError, ValueError, RecursionError):
        return encodable(f"{type(given).__name__} that is no JSON")
