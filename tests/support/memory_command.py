"""`langgraft` in this process, and `langgraft memory`: what it printed, its JSON, its refusals."""

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from langgraft.cli.app import run_command_line


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def ran_here(*arguments: object, columns: int = 120) -> Done:
    """Run a command in this process, as the console script does."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["langgraft", *map(str, arguments)])
        patch.setenv("COLUMNS", str(columns))
        try:
            run_command_line()
        except SystemExit as ended:
            code = ended.code
    return Done(int(code or 0), out.getvalue(), err.getvalue())


def memory(*arguments: object) -> Done:
    """Run a command of `langgraft memory` in this process."""
    done = ran_here("memory", *arguments, columns=100)
    assert all(each.isprintable() for each in done.stdout.split("\n"))
    return done


def told(*arguments: object) -> Any:
    """Run a command that succeeds and return its JSON."""
    done = memory(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    return json.loads(done.stdout)


def refusal(*arguments: object) -> str:
    """Run a command that is refused and return its one line."""
    done = memory(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("langgraft: ")
    assert done.stderr[:-1].isprintable()
    return done.stderr


def contents(folder: Path) -> dict[Path, bytes]:
    """Return every file below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
