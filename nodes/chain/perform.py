"""What the chain agent's actions do in its workspace.

What a file was before `edit_file` changed it is kept in the workspace itself, so that a workspace
which is built anew can take changes back, too.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from langgraft.environments.competitions.competition import Competition
from langgraft.nodes.chain.tools import EDIT_FILE, JOB, RUN_BASH, RUN_PYTHON, VALIDATE_SUBMISSION
from langgraft.nodes.workbench.ends import perform_validation
from langgraft.nodes.workbench.files import (
    ToolError,
    inside,
    inside_path,
    reading,
    writable_path,
    writing,
)
from langgraft.nodes.workbench.log import Action, Observation
from langgraft.nodes.workbench.performing import (
    KernelProgram,
    Performed,
    Performer,
    perform_cell,
    perform_command,
    perform_job,
)
from langgraft.nodes.workbench.sessions import Repeater

CHANGING: Final = frozenset({RUN_BASH, RUN_PYTHON, EDIT_FILE, JOB})
"""Actions that may change a workspace."""
IN_WORKSPACE: Final = CHANGING | {VALIDATE_SUBMISSION}
"""Actions that need one."""
Does: TypeAlias = Callable[[str, Mapping[str, Any], Path], KernelProgram[str]]
"""Does one of the commands with a file, and returns what is observed of it."""
_AROUND: Final = 4
"""Lines shown before and after a change (OpenHands' figure)."""
_LONGEST_LINE: Final = 2_000


def performer(competition: Competition, soft_seconds: float | None = None) -> Performer:
    """Return what does the chain agent's actions.

    Args:
        competition: Whose data there is.
        soft_seconds: After which a command goes on as a job; `None`: it is waited for.
    """

    def perform(action: Action) -> KernelProgram[Performed]:
        arguments = action.arguments
        if action.name == JOB and soft_seconds is not None:
            wait = arguments.get("wait")
            asked = min(wait, soft_seconds) if isinstance(wait, int) else soft_seconds
            return (yield from perform_job(arguments, wait=asked))
        if action.name == RUN_BASH and soft_seconds is not None:
            line = {"line": str(arguments["command"])}
            return (yield from perform_job(line, wait=soft_seconds))
        if action.name == RUN_BASH:
            return (yield from perform_command(str(arguments["command"])))
        if action.name == RUN_PYTHON:
            return (yield from perform_cell(str(arguments["code"])))
        if action.name == EDIT_FILE:
            return (yield from perform_edit(arguments, competition.input_dir))
        return (yield from perform_validation(competition))

    return perform


def repeater(competition: Competition, soft_seconds: float | None = None) -> Repeater:
    """Return what does the chain agent's actions again, where a workspace is built anew.

    A job that had ended when it was looked at is waited for until it ends, and any other is not.
    """
    perform = performer(competition, soft_seconds)

    def repeat(action: Action, before: Observation) -> KernelProgram[Performed]:
        if soft_seconds is None or action.name not in (RUN_BASH, JOB):
            return (yield from perform(action))
        ask = action.arguments
        if action.name == RUN_BASH:
            ask = {"line": str(ask["command"])}
        return (yield from perform_job(ask, wait=0.0 if before.running else math.inf))

    return repeat


def perform_edit(arguments: Mapping[str, Any], data: Path) -> KernelProgram[Performed]:
    """Do what a call of `edit_file` asks for.

    Args:
        arguments: Of the call, checked.
        data: The folder that lies in `./input`, which the host has too.
    """
    does = _COMMANDS[arguments["command"]]
    try:
        return Performed((yield from does(arguments["path"], arguments, data)))
    except ToolError as error:
        return Performed(f"Not done: {error}.", failed=True, result=error.lost)


def _view(given: str, arguments: Mapping[str, Any], data: Path) -> KernelProgram[str]:
    path = inside_path(given)
    lines = (yield from reading(path, data)).splitlines()
    first, last = _range(arguments.get("view_range"), len(lines))
    shown = _numbered(lines, first, last)
    return f"{path}, lines {first} to {last} of {len(lines)}:\n{shown}" if lines else "It is empty."


def _create(given: str, arguments: Mapping[str, Any], _data: Path) -> KernelProgram[str]:
    path, text = writable_path(given), _needed(arguments, "file_text")
    yield from _changed(path, text)
    return f"{path} was written: {len(text.splitlines()):,} lines."


def _replace(given: str, arguments: Mapping[str, Any], data: Path) -> KernelProgram[str]:
    path, old = writable_path(given), _needed(arguments, "old_str")
    new = str(arguments.get("new_str") or "")
    text = yield from reading(path, data)
    count = text.count(old) if old else 0
    if count != 1:
        there = "is not in" if count == 0 else f"is {count:,} times in"
        raise ToolError(f"`old_str` {there} {path}, and must be there exactly once, to the letter")
    if old == new:
        raise ToolError("`new_str` is the same as `old_str`")
    yield from _changed(path, text.replace(old, new))
    before = text[: text.index(old)].count("\n")
    return _changed_lines(path, text.replace(old, new), before, len(new.splitlines()))


def _insert(given: str, arguments: Mapping[str, Any], data: Path) -> KernelProgram[str]:
    path, new = writable_path(given), _needed(arguments, "new_str")
    after = int(_needed(arguments, "insert_line"))
    text = yield from reading(path, data)
    lines = text.splitlines(keepends=True)
    if not 0 <= after <= len(lines):
        raise ToolError(f"`insert_line` is from 0 to {len(lines)}, the number of lines of {path}")
    if after and not lines[after - 1].endswith(("\n", "\r")):
        lines[after - 1] += "\n"
    put = new if new.endswith("\n") or after == len(lines) else f"{new}\n"
    changed = "".join([*lines[:after], put, *lines[after:]])
    yield from _changed(path, changed)
    return _changed_lines(path, changed, after, len(new.splitlines()))


def _undo(given: str, _arguments: Mapping[str, Any], _data: Path) -> KernelProgram[str]:
    report = yield from inside("take back", writable_path(given))
    return report.removesuffix(" It now reads:")


_COMMANDS: Final[dict[str, Does]] = {
    "view": _view,
    "create": _create,
    "str_replace": _replace,
    "insert": _insert,
    "undo_edit": _undo,
}


def _changed(path: str, text: str) -> KernelProgram[None]:
    yield from inside("keep", path)
    yield from writing(path, text)


def _needed(arguments: Mapping[str, Any], name: str) -> Any:
    if arguments.get(name) is None:
        raise ToolError(f"`{arguments['command']}` needs `{name}`")
    return arguments[name]


def _range(given: Any, count: int) -> tuple[int, int]:
    """Return the first and the last line to show."""
    if given is None:
        return min(1, count), count
    if len(given) != 2:  # noqa: PLR2004 - first and last
        raise ToolError("`view_range` is the first and the last line, such as [1, 40]")
    first, last = given[0], count if given[1] == -1 else min(given[1], count)
    if not 1 <= first <= last:
        raise ToolError(f"`view_range` has to lie within its {count:,} lines, first before last")
    return first, last


def _changed_lines(path: str, text: str, before: int, changed: int) -> str:
    """Tell a change by the lines around it; `before` lines come before it."""
    lines = text.splitlines()
    if not lines:
        return f"{path} was changed. It is empty now."
    first, last = max(before + 1 - _AROUND, 1), min(before + changed + _AROUND, len(lines))
    return f"{path} was changed. Lines {first} to {last} now read:\n{_numbered(lines, first, last)}"


def _numbered(lines: list[str], first: int, last: int) -> str:
    shown = enumerate(lines[max(first - 1, 0) : last], start=first)
    return "\n".join(f"{number:>6}  {line[:_LONGEST_LINE]}" for number, line in shown)
