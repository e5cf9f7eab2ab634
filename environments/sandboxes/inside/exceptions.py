"""Telling the exception that ended a program, as its own interpreter knows it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

MAX_MESSAGE = 10_000
MAX_TEXT = 500
HEAD_FRAMES, TAIL_FRAMES = 10, 40
"""Frames told of a deeper traceback: where it came from, and where it happened."""


def describe(
    error: BaseException,
    trace: TracebackType | None,
    line_of: Callable[[str, int], str],
) -> bytes:
    """Return type, message and frames as fields that end with NUL; never raises.

    Frames are four fields each: file, line, function, text.
    """
    fields = [_plain(_type_name(error)), _plain(_message(error))]
    try:
        for file, line, function in _frames(error, trace):
            text = line_of(file, line).strip()
            told = file[:MAX_TEXT], str(line), function[:MAX_TEXT], text[:MAX_TEXT]
            fields += [_plain(field) for field in told]
    except BaseException:  # noqa: BLE001 - an odd traceback must not hide the exception
        del fields[2:]
    return b"".join(field + b"\0" for field in fields)


def from_file(trace: TracebackType | None, file: str) -> TracebackType | None:
    """Return the traceback from its first line in a file on: without those who called it."""
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    return trace


def _type_name(error: BaseException) -> str:
    try:
        kind = type(error)
        # A class or its metaclass may answer anything, also subclasses of str.
        module, name = (str.__str__(str(one)) for one in (kind.__module__, kind.__qualname__))
    except BaseException:  # noqa: BLE001 - and raise anything
        return "Exception"
    return (name if module == "builtins" else f"{module}.{name}")[:MAX_TEXT]


def _message(error: BaseException) -> str:
    try:
        # A subclass of str may have methods of its own.
        message = str.__str__(str(error))
        if str.__len__(message) > MAX_MESSAGE:
            cut = str.__len__(message) - MAX_MESSAGE
            half = MAX_MESSAGE // 2
            head, tail = message[:half], message[-half:]
            message = f"{head} [... {cut} characters cut ...] {tail}"
    except BaseException as failure:  # noqa: BLE001 - its __str__ is the program's own
        return f"<its str() raised {_type_name(failure)}>"
    return message


def _frames(error: BaseException, trace: TracebackType | None) -> list[tuple[str, int, str]]:
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append((code.co_filename, trace.tb_lineno or 0, code.co_name))
        trace = trace.tb_next
    if len(frames) > HEAD_FRAMES + TAIL_FRAMES:
        del frames[HEAD_FRAMES:-TAIL_FRAMES]
    if isinstance(error, SyntaxError) and isinstance(error.filename, str):
        frames.append((error.filename, error.lineno or 0, "<module>"))
    return frames


def _plain(field: str) -> bytes:
    return str.encode(field, "utf-8", "backslashreplace").replace(b"\0", b"\\x00")


def show(error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback as the interpreter does, or as the program wants it printed."""
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)
