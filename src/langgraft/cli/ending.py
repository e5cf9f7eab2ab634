"""How a command ends: what is said of an error, on one line or whole, and an end without delay."""

import atexit
import logging
import os
import sys
import traceback
from contextlib import suppress
from typing import Final

from typing_extensions import override

from langgraft._core.confidential import without_secrets
from langgraft._core.texts import printable

INTERRUPTED: Final = 130
"""Exit code of a command that was stopped by a signal."""


def end_at_once() -> None:
    """End an interrupted process without unloading it, which takes seconds while others are at work."""
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no other way to them
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it, or it is closed
            stream.flush()
    os._exit(INTERRUPTED)


class Printable(logging.Formatter):
    """Writes log records that steer no terminal and show no key."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return printable(without_secrets(super().format(record)))


def told_of(error: Exception, *, debug: bool) -> str:
    """Return what is said of an error: a line, or all there is; nothing in it steers a terminal."""
    if debug:
        told = without_secrets("".join(traceback.format_exception(error)))
        return "\n".join(map(printable, told.split("\n")))
    if isinstance(error, RecursionError):
        return "langgraft: what was read is nested too deeply; --debug shows where"
    # The harness's own notes say where; LangGraph's say in which of its tasks.
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("in run")]
    told = without_secrets(" ".join([str(error), *notes]))
    return printable("langgraft: " + " ".join(told.split()))
