"""MLAB's tools, done in a live workspace: each a pure function of its action and what lies there.

What a model has to say for it (an edited script, what a file was understood to hold) is in the
action already, under `answer`, so that doing it again asks no model.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.result_text import trimmed
from langgraft.nodes.mlab import tools
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
from langgraft.nodes.workbench.submit import perform_validation

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
    if last - first >= tools.LINES_SHOWN:
        raise ToolError(f"at most {tools.LINES_SHOWN} lines are shown at a time")
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
    tools.LIST_FILES: _list,
    tools.COPY_FILE: _copy,
    tools.UNDO_EDIT: _undo,
    tools.EXECUTE: _execute,
    tools.VALIDATE: _validate,
    tools.INSPECT: _inspect,
    tools.UNDERSTAND: _understand,
    tools.EDIT: _edit,
}
"""Final Answer, and what is no action, do nothing."""

CHANGING: Final = frozenset({tools.COPY_FILE, tools.UNDO_EDIT, tools.EXECUTE, tools.EDIT})
"""Tools that may change the workspace."""
