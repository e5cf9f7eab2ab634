"""MLAB's tools, done in a live workspace: each a pure function of its action and what lies there.

What a model has to say for it (an edited script, what a file was understood to hold) is in the
action already, under `answer`, so that doing it again asks no model.
"""

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.telling import trimmed
from langgraft.nodes.mlab import tools
from langgraft.nodes.workbench.events import Action
from langgraft.nodes.workbench.files import (
    ToldError,
    inside,
    inside_path,
    reading,
    reading_or_none,
    script_path,
    writable_path,
    writing,
)
from langgraft.nodes.workbench.kernel_calls import KernelTalk
from langgraft.nodes.workbench.performing import Performed, Performer, perform_script
from langgraft.nodes.workbench.validation import perform_validation

LONGEST_DIFF: Final = 5000
"""Most characters shown of what an edit changed."""
LONGEST_LINE: Final = 2000
"""Most characters shown of a line."""

Does: TypeAlias = Callable[[Mapping[str, Any], Any, Competition], KernelTalk[Performed]]
"""Does a tool, given its input and what a model answered for it."""


def performer(competition: Competition) -> Performer:
    """Return what does MLAB's actions."""

    def perform(action: Action) -> KernelTalk[Performed]:
        arguments: Mapping[str, Any] = action.arguments
        if told := arguments.get("told") or arguments.get("problem"):
            return Performed(f"Not done: {told}.", failed=True)
        does = _DOES.get(action.name)
        if does is None:
            return Performed()
        try:
            return (yield from does(arguments["input"], arguments.get("answer"), competition))
        except ToldError as error:
            return Performed(f"Not done: {error}.", failed=True, result=error.lost)

    return perform


def _list(
    given: Mapping[str, Any], _answer: Any, _competition: Competition
) -> KernelTalk[Performed]:
    return Performed((yield from inside("list", inside_path(given["dir_path"]))))


def _copy(
    given: Mapping[str, Any], _answer: Any, _competition: Competition
) -> KernelTalk[Performed]:
    source, destination = inside_path(given["source"]), writable_path(given["destination"])
    return Performed((yield from inside("copy", source, destination)))


def _undo(
    given: Mapping[str, Any], _answer: Any, competition: Competition
) -> KernelTalk[Performed]:
    path = writable_path(given["script_name"])
    told = yield from inside("take back", path)
    text = yield from reading_or_none(path, competition.public_dir)
    return Performed(told if text is None else f"{told}\n{text}")


def _execute(
    given: Mapping[str, Any], _answer: Any, competition: Competition
) -> KernelTalk[Performed]:
    path = script_path(given["script_name"])
    yield from reading(path, competition.public_dir)  # says why, where it is no script
    return (yield from perform_script(path if not path.startswith("-") else f"./{path}"))


def _validate(
    _given: Mapping[str, Any], _answer: Any, competition: Competition
) -> KernelTalk[Performed]:
    return (yield from perform_validation(competition))


def _inspect(
    given: Mapping[str, Any], _answer: Any, competition: Competition
) -> KernelTalk[Performed]:
    path = inside_path(given["script_name"])
    lines = (yield from reading(path, competition.public_dir)).splitlines()
    first, last = given["start_line_number"], min(given["end_line_number"], len(lines))
    if not lines:
        return Performed(f"{path} is empty.")
    if not 1 <= first <= len(lines) or given["end_line_number"] < first:
        raise ToldError(f"{path} has the lines 1 to {len(lines)}")
    if last - first >= tools.LINES_SHOWN:
        raise ToldError(f"at most {tools.LINES_SHOWN} lines are shown at a time")
    shown = (trimmed(line, LONGEST_LINE) for line in lines[first - 1 : last])
    return Performed("\n".join([f"{path}, lines {first} to {last} of {len(lines)}:", *shown]))


def _understand(
    _given: Mapping[str, Any], answer: Any, _competition: Competition
) -> KernelTalk[Performed]:
    yield from ()
    return Performed(str(answer))


def _edit(given: Mapping[str, Any], answer: Any, competition: Competition) -> KernelTalk[Performed]:
    source, target = inside_path(given["script_name"]), writable_path(given["save_name"])
    before = yield from reading_or_none(source, competition.public_dir)
    yield from inside("keep", target)
    yield from writing(target, str(answer))
    made = "It was not there before" if before is None else f"What changed from {source}"
    changed = _difference(before or "", str(answer), source, target)
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
