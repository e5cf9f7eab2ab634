"""A reply in six fields, read from what a model said.

A reply has the right form if all six fields are there in their order, each beginning a line. The
input is the first JSON object of the last field: a fence around it, and anything after it, do no
harm. Names of fields may stand in bold or as headings; a field may hold names of others.

A reply of the wrong form is none, and is asked for again (`problem`). One of the right form is a
step, also where its tool is unknown or its input cannot be used: the model is told so in the
observation, as MLAB does it (`refused`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from langgraft.memory.recall import strip_block
from langgraft.nodes.mlab.inputs import UnusableInputError, read_input
from langgraft.nodes.mlab.tools import TOOLS
from langgraft.nodes.replies import encodable

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
