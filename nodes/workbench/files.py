"""Files of the workspace, as tools read them: inside it, regular, of text, and not too large."""

import glob
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from langgraft._core.errors import InputError
from langgraft.environments.competitions.attempts import INPUT
from langgraft.environments.competitions.submissions import UnusableFileError, read_bounded
from langgraft.environments.sandboxes.requests import check_name
from langgraft.environments.sandboxes.sandbox import Command, ExecutionResult
from langgraft.nodes.workbench.performing import KernelProgram, put_in, run_command, take_out

LARGEST_TEXT: Final = 4 << 20
"""Most bytes of a file that a tool reads."""
_SHOWN: Final = 200


class ToolError(Exception):
    """Why a tool does not do what it was asked; the message is the observation.

    Args:
        why: For the model, without a full stop.
        lost: What came of a command that took its workspace with it.
    """

    def __init__(self, why: str, *, lost: ExecutionResult | None = None) -> None:
        super().__init__(why)
        self.lost = lost


def inside_path(text: str) -> str:
    """Return a path of the workspace in its plain form: relative, `.` for the workspace itself.

    Raises:
        ToolError: It leaves the workspace, or is none.
    """
    text = text.strip()
    if text.startswith(("/", "~")):
        raise ToolError(f"{text[:_SHOWN]} is not inside the workspace: give a relative path")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ToolError(f"{text[:_SHOWN]} is not inside the workspace: leave out `..`")
    if not parts:
        return "."
    try:
        return check_name("/".join(parts))
    except InputError as error:
        raise ToolError(f"{text[:_SHOWN]!r} is no path of a file") from error


def writable_path(text: str) -> str:
    """Return the path of a file that may be written.

    Raises:
        ToolError: It leaves the workspace, is its folder, or lies in the data.
    """
    path = inside_path(text)
    if path == ".":
        raise ToolError("the workspace itself is no file: name one in it")
    if _in_data(path):
        raise ToolError(f"./{INPUT} is read-only: name a file elsewhere in the workspace")
    return path


def script_path(text: str) -> str:
    """Return the path of a script that may be run.

    Raises:
        ToolError: It leaves the workspace, is its folder, or lies in the data.
    """
    path = inside_path(text)
    if path == "." or _in_data(path):
        raise ToolError(f"{path} is no script of the workspace outside ./{INPUT}: copy it first")
    return path


def _in_data(path: str) -> bool:
    return path.split("/", maxsplit=1)[0] == INPUT


def reading(path: str, data: Path) -> KernelProgram[str]:
    """Read a file of text, of the workspace or of the data, which the host has too.

    Args:
        path: As `inside_path` returns it.
        data: The folder that lies in `./input`.

    Raises:
        ToolError: There is none, it cannot be read, or it is no text.
    """
    if path in (".", INPUT):
        raise ToolError(f"{path} is a folder: name a file in it")
    if _in_data(path):
        content = _of_data(path, data)
    else:
        content = yield from _of_workspace(path)
    if len(content) > LARGEST_TEXT:
        msg = f"{path} is too large: {len(content):,} bytes, and at most {LARGEST_TEXT:,} are read"
        raise ToolError(msg)
    return _text(content, path)


def reading_or_none(path: str, data: Path) -> KernelProgram[str | None]:
    """Read a file of text; `None` where there is none.

    Raises:
        ToolError: It cannot be read, or it is no text.
    """
    try:
        return (yield from reading(path, data))
    except _MissingError:
        return None


class _MissingError(ToolError):
    pass


def _of_workspace(path: str) -> KernelProgram[bytes]:
    try:
        collected, left_out = yield from take_out(glob.escape(path))
    except InputError as error:
        raise ToolError(f"{path} cannot be read: {error}") from error
    if path in collected:
        return collected[path]
    # A folder on the way, such as a link, may be what was left out.
    if left_out:
        name, why = next(iter(left_out.items()))
        raise ToolError(f"{path} cannot be read: {name} is {why}")
    raise _MissingError(f"there is no file {path}")


def _of_data(path: str, data: Path) -> bytes:
    """Read public data on the host: what a sandbox mounts is not collected from it."""
    found = data / path.partition("/")[2]
    if not found.resolve().is_relative_to(data.resolve()):
        raise ToolError(f"{path} is a link that leads elsewhere")
    if not os.path.exists(found):  # a name may be too long for the host  # noqa: PTH110
        raise _MissingError(f"there is no file {path}")
    try:
        return read_bounded(found, most=LARGEST_TEXT)
    except UnusableFileError as error:
        raise ToolError(f"{path} cannot be read: {error}") from error


def _text(content: bytes, path: str) -> str:
    size = f"{len(content):,} bytes"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is no text in UTF-8 ({size}): look at it with a script") from error
    if "\0" in text:
        raise ToolError(f"{path} is binary ({size}): look at it with a script")
    return text


def writing(path: str, text: str) -> KernelProgram[None]:
    """Write a file of text.

    Raises:
        ToolError: It cannot be written.
    """
    try:
        yield from put_in({path: text.encode("utf-8", "replace")})
    except InputError as error:
        raise ToolError(f"{path} cannot be written: {error}") from error


def inside(verb: str, *paths: str) -> KernelProgram[str]:
    """Do one thing of `langgraft.nodes.workbench.file_tool_program`, and return its report.

    Raises:
        ToolError: It was not done.
    """
    command = Command(["python3", "-I", "-S", "-c", _file_tool_script(), verb, *paths])
    result = yield from run_command(command)
    report = result.stdout.strip()
    if result.ok:
        return report
    lost = result if result.kernel_lost or result.workspace_lost else None
    raise ToolError(report or "it could not be done: the sandbox gave no answer", lost=lost)


@cache
def _file_tool_script() -> str:
    return (
        files("langgraft.nodes.workbench")
        .joinpath("file_tool_program.py")
        .read_text(encoding="utf-8")
    )
