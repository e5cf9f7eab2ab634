"""A reply in six fields, read from what a model said.

A reply has the right form if all six fields are there in their order, each beginning a line. The
input is the first JSON object of the last field: a fence around it, and anything after it, do no
harm. Names of fields may stand in bold or as headings; a field may hold names of others.

A reply of the wrong form is none, and is asked for again (`problem`). One of the right form is a
step, also where its tool is unknown or its input cannot be used: the model is told so in the
observation, as MLAB does it (`refused`).

----
A tool's input, read from what stands in a reply: JSON, or what was meant to be JSON.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import JsonValue

from langgraft.memory.recall import strip_block
from langgraft.nodes.mlab.tools import TOOLS, Key, Tool
from langgraft.nodes.replies import cleaned, encodable, json_values

REFLECTION: Final = "Reflection"
PLAN: Final = "Research Plan and Status"
FACT_CHECK: Final = "Fact Check"
THOUGHT: Final = "Thought"
ACTION: Final = "Action"
ACTION_INPUT: Final = "Action Input"

FIELDS: Final = (REFLECTION, PLAN, FACT_CHECK, THOUGHT, ACTION, ACTION_INPUT)
"""In the order that a reply has them."""

_LABELS: Final = re.compile(
    rf"^[ \t]*(?:[#>*_-]{{1,6}}[ \t]*)?(?P<name>{'|'.join(map(re.escape, FIELDS))})"
    r"[ \t]*[*_]{0,3}[ \t]*:[ \t]*[*_]{0,3}[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_SEEN: Final = re.compile(r"^[ \t]*Observation[ \t]*:", re.IGNORECASE | re.MULTILINE)
_AROUND: Final = " \t\r\n`*_\"'[]<>."
_LONGEST_SHOWN: Final = 80
LONGEST_INPUT: Final = 100_000
"""Most characters that are read."""
_WHOLE: Final = re.compile(r"\s*[+-]?\d{1,9}\s*")
_LARGEST: Final = 10**9
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "/": "/"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a reply holds."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Those found, by name; the last as it was written."""
    tool: str = ""
    """Name of the tool asked for: one of `TOOLS` where nothing is refused."""
    input: Mapping[str, JsonValue] = field(default_factory=dict)
    """Its input, with exactly the tool's keys."""
    problem: str = ""
    """Why it has not the form of a reply; empty where it has."""
    refused: str = ""
    """Why it can be no action although it has the form; empty where it can."""


def read_reply(text: str) -> Reply:
    """Read a reply, whatever it holds."""
    fields, problem = _fields(encodable(text))
    if problem:
        return Reply(fields, problem=problem)
    asked = _name(fields[ACTION])
    tool = TOOLS.get(_KNOWN.get(asked.casefold(), ""))
    if tool is None:
        names = ", ".join(TOOLS)
        return Reply(fields, asked, refused=f"there is no tool {asked!r}; there are: {names}")
    try:
        return Reply(fields, tool.name, read_input(fields[ACTION_INPUT], tool))
    except UnusableInputError as error:
        return Reply(fields, tool.name, refused=str(error))


_KNOWN: Final = {name.casefold(): name for name in TOOLS}


def _fields(text: str) -> tuple[dict[str, str], str]:
    """Return the fields in their order, and what is wrong with them.

    A field ends where the next one in the order begins, so that names of others may stand in it.
    The last ends where a model goes on with what it thinks will be observed.
    """
    if not text.strip():
        return {}, "it is empty"
    found: dict[str, re.Match[str]] = {}
    labels = list(_LABELS.finditer(text))
    position = 0
    for name in FIELDS:
        ahead = (label for label in labels if label.start() >= position and _is(label, name))
        label = next(ahead, None)
        if label is None:
            there = any(_is(label, name) for label in labels)
            why = "stands before another that it must follow" if there else "is missing"
            return _texts(text, found), f"the field `{name}:` {why}"
        found[name] = label
        position = label.end()
    fields = _texts(text, found)
    if not fields[ACTION]:
        return fields, f"the field `{ACTION}:` names no tool"
    return fields, ""


def _texts(text: str, found: Mapping[str, re.Match[str]]) -> dict[str, str]:
    starts = [label.start() for label in found.values()]
    made_up = _SEEN.search(text, starts[-1]) if ACTION_INPUT in found else None
    ends = [*starts[1:], made_up.start() if made_up else len(text)]
    return {
        name: strip_block(text[label.end() : end]).strip()
        for (name, label), end in zip(found.items(), ends, strict=False)
    }


def _is(label: re.Match[str], name: str) -> bool:
    return label["name"].casefold() == name.casefold()


def _name(text: str) -> str:
    """Return the name of a tool as a reply gives it: its first line without what is around it."""
    line = next((line for line in text.splitlines() if line.strip(_AROUND)), text)
    return line.strip(_AROUND)[:_LONGEST_SHOWN]


class UnusableInputError(ValueError):
    """An input that a tool cannot be given; the message says why, to the model."""


def read_input(text: str, tool: Tool) -> dict[str, JsonValue]:
    """Read the input of a tool: an object with exactly its keys.

    Quotation marks inside a text are a common slip that makes it no JSON: where nothing can be
    read, the text between one key of the tool and the next is taken (MLAB has such a way, too).

    Raises:
        UnusableInputError: It is no object, or its keys or values are others.
    """
    value = _object(text[:LONGEST_INPUT])
    if value is None or not value.keys() & tool.keys.keys():  # none, or one inside a text
        value = _between_keys(text[:LONGEST_INPUT], list(tool.keys)) or value
    if value is None and not tool.keys:
        value = {}
    if value is None:
        raise UnusableInputError(f"the input of {tool.name} is no JSON object; {_wanted(tool)}")
    if value.keys() != tool.keys.keys():
        raise UnusableInputError(_other_keys(value, tool))
    return {name: _value(name, value[name], key) for name, key in tool.keys.items()}


def _object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text.

    Raises:
        UnusableInputError: It has a number that is none.
    """
    try:
        for value in json_values(text):
            if isinstance(value, dict):
                found: dict[str, Any] = cleaned(value)
                return found
    except ValueError as error:
        raise UnusableInputError(f"its input cannot be used: {error}") from error
    except RecursionError as error:
        raise UnusableInputError("its input is nested too deeply") from error
    return None


def _between_keys(text: str, names: list[str]) -> dict[str, Any] | None:
    """Return the texts between a tool's keys, in any order, where all keys are there once."""
    if not names:
        return None
    starts: list[tuple[int, int, str]] = []
    for name in names:
        found = list(re.finditer(rf'"{re.escape(name)}"\s*:\s*', text))
        if len(found) != 1:
            return None
        starts.append((found[0].start(), found[0].end(), name))
    starts.sort()
    ends = [*[start for start, _, _ in starts[1:]], _last_brace(text)]
    return {
        name: _unquoted(text[begin:end]) for (_, begin, name), end in zip(starts, ends, strict=True)
    } or None


def _last_brace(text: str) -> int:
    end = text.rfind("}")
    return len(text) if end < 0 else end


def _unquoted(text: str) -> str:
    """Return a text without the quotation marks and the comma around it."""
    inner = text.strip().removesuffix(",").strip()
    inner = inner.removeprefix('"').removesuffix('"')
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), inner)


def _value(name: str, value: Any, key: Key) -> JsonValue:
    """Return a value as its key has it; a number for a text, and the other way round, will do."""
    if key.kind == "number":
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
            return value
        raise UnusableInputError(f"`{name}` is to be a whole number, and is {_shown(value)}")
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise UnusableInputError(f"`{name}` is to be a text, and is {_shown(value)}")


def _shown(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 60 else f"{written[:60]} …"  # noqa: PLR2004


def _other_keys(value: Mapping[str, Any], tool: Tool) -> str:
    missing = [name for name in tool.keys if name not in value]
    unknown = [name for name in value if name not in tool.keys]
    parts = [f"it has no `{name}`" for name in missing]
    parts += [f"`{name[:60]}` is none of its keys" for name in unknown[:3]]
    return f"the input of {tool.name} has other keys: {', '.join(parts)}; {_wanted(tool)}"


def _wanted(tool: Tool) -> str:
    keys = ", ".join(f'"{name}": …' for name in tool.keys)
    return f"give {{{keys}}}"
