"""The tools that MLE-bench's MLAB shows its model, and the six fields of a reply that uses one.

A reply has the right form if all six fields are there in their order, each beginning a line. The
input is the first JSON object of the last field: a fence around it, and anything after it, do no
harm. Names of fields may stand in bold or as headings; a field may hold names of others.

A reply of the wrong form is none, and is asked for again (`problem`). One of the right form is a
step, also where its tool is unknown or its input cannot be used: the model reads so in the
observation, as MLAB does it (`refused`).

Actions are done in a live workspace (`performer`): each is a pure function of its input and what lies
there. What a model has to say for it (an edited script, what a file was understood to hold) is in the
action already, under `answer`, so that doing it again asks no model.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from pydantic import JsonValue

from langgraft._core.untrusted import unreadable_as
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.result_text import trimmed
from langgraft.memory.model import strip_block
from langgraft.nodes.replies import cleaned, encodable, json_values
from langgraft.nodes.workbench.files import (
    ToolError,
    inside,
    inside_path,
    reading,
    reading_or_none,
    script_path,
    writable_path,
    writing,
)
from langgraft.nodes.workbench.log import Action
from langgraft.nodes.workbench.performing import KernelProgram, Performed, Performer, perform_script
from langgraft.nodes.workbench.start import perform_validation

LIST_FILES: Final = "List Files"
COPY_FILE: Final = "Copy File"
UNDO_EDIT: Final = "Undo Edit Script"
EXECUTE: Final = "Execute Script"
VALIDATE: Final = "Validate Submission"
FINAL_ANSWER: Final = "Final Answer"
UNDERSTAND: Final = "Understand File"
INSPECT: Final = "Inspect Script Lines"
EDIT: Final = "Edit Script (AI)"

LINES_SHOWN: Final = 100
"""Most lines of a script that are shown at a time."""
BLOCK: Final = 10_000
"""Characters of a file or an observation that a model reads at a time (MLAB's figure)."""
BLOCKS: Final = 10
"""Most parts of a file that are read (MLAB's figure)."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a tool's input."""

    says: str
    """What belongs there, as the model reads it."""
    kind: Literal["text", "number"] = "text"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, as the model is shown it."""

    name: str
    does: str
    shows: str
    """What is observed of it."""
    keys: Mapping[str, Key]

    def described(self) -> str:
        """Write what the model is shown."""
        signs = {"text": '"<{}>"', "number": "<{}>"}
        keys = (f'"{name}": {signs[key.kind].format(key.says)}' for name, key in self.keys.items())
        return "\n".join(
            [
                f"## {self.name}",
                self.does,
                f"Action Input: {{{', '.join(keys)}}}",
                f"Observation: {self.shows}",
            ]
        )


def _tool(name: str, does: str, shows: str, **keys: Key) -> Tool:
    return Tool(name, does, shows, MappingProxyType(keys))


_SCRIPT: Final = "path of a script"

TOOLS: Final[Mapping[str, Tool]] = MappingProxyType(
    {
        tool.name: tool
        for tool in (
            _tool(
                LIST_FILES,
                "Lists a folder of the workspace.",
                "the names in it, folders with a slash after them, files with their sizes.",
                dir_path=Key("path of a folder, . for the workspace itself"),
            ),
            _tool(
                COPY_FILE,
                "Copies a file or a folder. What is at the destination is replaced.",
                "whether it was copied.",
                source=Key("path of what is copied"),
                destination=Key("path of the copy"),
            ),
            _tool(
                UNDO_EDIT,
                f"Takes back the last edit that {EDIT} made in a script.",
                "the script as it was before that edit.",
                script_name=Key(_SCRIPT),
            ),
            _tool(
                EXECUTE,
                "Runs a Python script that is there already, in the workspace.",
                "what it printed, and how it ended.",
                script_name=Key(_SCRIPT),
            ),
            _tool(
                VALIDATE,
                "Holds ./submission.csv against the sample submission: its form, not its answers.",
                "whether it is valid, and what is wrong with it.",
            ),
            _tool(
                FINAL_ANSWER,
                "Ends the work. The submission that lies there is the one that counts.",
                "nothing: the work is over.",
                final_answer=Key("what was done and what it reached"),
            ),
            _tool(
                UNDERSTAND,
                "Reads a whole file for you, and reports what it holds about your question.",
                "what was found.",
                file_name=Key("path of a file"),
                things_to_look_for=Key("what you want to know, in detail"),
            ),
            _tool(
                INSPECT,
                f"Shows lines of a script as they stand there, at most {LINES_SHOWN} at a time.",
                "the lines.",
                script_name=Key(_SCRIPT),
                start_line_number=Key("first line, from 1", "number"),
                end_line_number=Key("last line", "number"),
            ),
            _tool(
                EDIT,
                "Has a script rewritten after your instruction; one that is not there is written"
                " anew. Whoever does it sees the script and the instruction, and nothing else.",
                "what was changed, as a diff.",
                script_name=Key("path of the script that is edited"),
                edit_instruction=Key("what to change, step by step and in detail"),
                save_name=Key("path that the edited script is saved as"),
            ),
        )
    }
)
"""By name, in the order that the model is shown them."""


def described_tools() -> str:
    """Write what the model is shown of all tools."""
    return "\n\n".join(tool.described() for tool in TOOLS.values())


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
    r"[ \t]*+[*_]{0,3}[ \t]*+:[ \t]*[*_]{0,3}[ \t]*",
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


@unreadable_as(lambda _: Reply(problem="it cannot be read"))
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


# Done in a workspace ----------------------------------------------------------------------

LONGEST_DIFF: Final = 5000
"""Most characters shown of what an edit changed."""
LONGEST_LINE: Final = 2000
"""Most characters shown of a line."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool that is to be done."""

    given: Mapping[str, Any]
    """Its input."""
    answer: Any
    """What a model answered for it."""
    competition: Competition

    @property
    def data(self) -> Path:
        """The folder that lies in `./input`, which the host has too."""
        return self.competition.input_dir


Does: TypeAlias = Callable[[_Call], KernelProgram[Performed]]


def performer(competition: Competition) -> Performer:
    """Return what does MLAB's actions."""

    def perform(action: Action) -> KernelProgram[Performed]:
        arguments: Mapping[str, Any] = action.arguments
        if problem := arguments.get("told") or arguments.get("problem"):
            return Performed(f"Not done: {problem}.", failed=True)
        does = _DOES.get(action.name)
        if does is None:
            return Performed()
        try:
            call = _Call(arguments["input"], arguments.get("answer"), competition)
            return (yield from does(call))
        except ToolError as error:
            return Performed(f"Not done: {error}.", failed=True, result=error.lost)

    return perform


def _list(call: _Call) -> KernelProgram[Performed]:
    return Performed((yield from inside("list", inside_path(call.given["dir_path"]))))


def _copy(call: _Call) -> KernelProgram[Performed]:
    source = inside_path(call.given["source"])
    return Performed((yield from inside("copy", source, writable_path(call.given["destination"]))))


def _undo(call: _Call) -> KernelProgram[Performed]:
    path = writable_path(call.given["script_name"])
    report = yield from inside("take back", path)
    text = yield from reading_or_none(path, call.data)
    return Performed(report if text is None else f"{report}\n{text}")


def _execute(call: _Call) -> KernelProgram[Performed]:
    path = script_path(call.given["script_name"])
    yield from reading(path, call.data)  # says why, where it is no script
    return (yield from perform_script(path if not path.startswith("-") else f"./{path}"))


def _validate(call: _Call) -> KernelProgram[Performed]:
    return (yield from perform_validation(call.competition))


def _inspect(call: _Call) -> KernelProgram[Performed]:
    path = inside_path(call.given["script_name"])
    lines = (yield from reading(path, call.data)).splitlines()
    first, last = call.given["start_line_number"], min(call.given["end_line_number"], len(lines))
    if not lines:
        return Performed(f"{path} is empty.")
    if not 1 <= first <= len(lines) or call.given["end_line_number"] < first:
        raise ToolError(f"{path} has the lines 1 to {len(lines)}")
    if last - first >= LINES_SHOWN:
        raise ToolError(f"at most {LINES_SHOWN} lines are shown at a time")
    shown = (trimmed(line, LONGEST_LINE) for line in lines[first - 1 : last])
    return Performed("\n".join([f"{path}, lines {first} to {last} of {len(lines)}:", *shown]))


def _understand(call: _Call) -> KernelProgram[Performed]:
    yield from ()
    return Performed(str(call.answer))


def _edit(call: _Call) -> KernelProgram[Performed]:
    source, target = inside_path(call.given["script_name"]), writable_path(call.given["save_name"])
    before = yield from reading_or_none(source, call.data)
    yield from inside("keep", target)
    yield from writing(target, str(call.answer))
    made = "It was not there before" if before is None else f"What changed from {source}"
    changed = _difference(before or "", str(call.answer), source, target)
    return Performed(f"{target} was written. {made}:\n\n{changed}")


def _difference(before: str, after: str, source: str, target: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), source, target, lineterm="", n=2
    )
    return trimmed("\n".join(lines), LONGEST_DIFF) or "(Nothing changed.)"


_DOES: Final[Mapping[str, Does]] = {
    LIST_FILES: _list,
    COPY_FILE: _copy,
    UNDO_EDIT: _undo,
    EXECUTE: _execute,
    VALIDATE: _validate,
    INSPECT: _inspect,
    UNDERSTAND: _understand,
    EDIT: _edit,
}
"""Final Answer, and what is no action, do nothing."""

CHANGING: Final = frozenset({COPY_FILE, UNDO_EDIT, EXECUTE, EDIT})
"""Tools that may change the workspace."""
