"""Runs a program on the inputs of tests; as a program, inside a sandbox, on Python 3.8 or later.

    python3 code_harness.py run       job.json, solution.py  →  result-0000, result-0001, …
    python3 code_harness.py record    job.json               →  calls.json
    python3 code_harness.py replay    job.json               →  verdict.json

`run` gives each test a process of its own, and stops at the first that does not end well. It knows
no expected output. A result is a line of JSON, how the process ended, and then what it printed or
returned. All of that is the program's own word, which has the rights of this process: whoever
reads it compares outputs, and believes nothing else.

`record` and `replay` run HumanEval's `check`, and no program of a model: first on the problem's own
solution, which tells the calls it makes, then on the values that a program returned for them.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

PRELUDE = """
from string import *
from re import *
from datetime import *
from collections import *
from heapq import *
from bisect import *
from copy import *
from math import *
from random import *
from statistics import *
from itertools import *
from functools import *
from operator import *
from io import *
from sys import *
from json import *
from builtins import *
from typing import *
import string, re, datetime, collections, heapq, bisect, copy, math, random, statistics
import itertools, functools, operator, io, sys, json
sys.setrecursionlimit(50000)
"""
"""What LiveCodeBench puts before every program."""

WALL = 10
"""Seconds of wall clock for each of processor time that a test may take: a verdict must not hang on
what else the machine does."""


def run(job: dict[str, Any]) -> None:
    """Run the program on each input, until one does not end well."""
    namespace: dict[str, Any] = {"__name__": "__main__" if job["mode"] == "stdin" else "solution"}
    exec(PRELUDE, namespace)  # noqa: S102  (here, so that no test pays for it)
    job["code"] = Path("solution.py").read_text("utf-8")
    for number, given in enumerate(job["given"]):
        ended, output = attempt(job, namespace, given)
        header = json.dumps({"ended": ended}).encode()
        Path(f"result-{number:04}").write_bytes(header + b"\n" + output)
        if ended != "well":
            return


def attempt(job: dict[str, Any], namespace: dict[str, Any], given: Any) -> tuple[str, bytes]:
    """Run one test in a process of its own; return how it ended, and its output."""
    (source, sink), (told, tell) = os.pipe(), os.pipe()
    folder = tempfile.mkdtemp()
    with tempfile.TemporaryFile() as stdin:
        if job["mode"] == "stdin":
            stdin.write(given.encode("utf-8", "surrogatepass"))
            stdin.seek(0)
        try:
            process = os.fork()
        except OSError:  # what an earlier test left running takes all processes
            return "processes", b""
        if process == 0:
            exit_code = 1
            try:
                os.chdir(folder)  # what it writes must not take the room of results
                _begin(job["seconds"], stdin.fileno())
                exit_code = _carry_out(job, namespace, given, sink, tell)
            finally:
                os._exit(exit_code)
    os.close(sink)
    os.close(tell)
    why, status, output = _follow(process, source, job["seconds"], job["output"])
    raised = os.read(told, 200) if select.select([told], [], [], 0)[0] else b""
    os.close(source)
    os.close(told)
    shutil.rmtree(folder, ignore_errors=True)
    return why or _ended(status, raised.decode("utf-8", "replace")), output


def _begin(seconds: int, stdin: int) -> None:
    """Be a process apart, with a bound on processor time and nobody to talk to."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(stdin, 0)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _carry_out(
    job: dict[str, Any], namespace: dict[str, Any], given: Any, sink: int, tell: int
) -> int:
    """Run the program, its threads and its exit functions; return the exit code."""
    exit_code = 0
    try:
        if job["mode"] == "stdin":
            os.dup2(sink, 1)
            os.close(sink)
        sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        try:
            exec(compile(job["code"], "solution.py", "exec"), namespace)  # noqa: S102
        except SystemExit:
            if job["mode"] != "stdin":
                raise
        if job["mode"] != "stdin":
            text = _returned(job, namespace, given)
            with open(sink, "wb") as file:
                file.write(text.encode("utf-8", "surrogatepass"))
    except BaseException as error:  # noqa: BLE001  (whatever a program raises)
        os.write(tell, type(error).__name__.encode("utf-8", "replace")[:100])
        exit_code = 1
    with contextlib.suppress(BaseException):
        getattr(threading, "_shutdown", int)()  # waits for threads, as an interpreter does
        atexit._run_exitfuncs()  # noqa: SLF001
        sys.stdout.flush()
    return exit_code


def _returned(job: dict[str, Any], namespace: dict[str, Any], given: Any) -> str:
    """Call the function, and write down its value."""
    name = job["name"]
    holder = namespace.get("Solution")
    function = namespace[name] if holder is None else getattr(holder(), name)
    if job["mode"] == "call":
        # What numpy returns is a number or a list, too.
        return json.dumps(function(*given), default=lambda value: value.tolist())
    arguments, named = ast.literal_eval(given)
    return repr(function(*arguments, **named))


def _follow(process: int, source: int, limit: int, most: int) -> tuple[str, int, bytes]:
    """Take what a process prints until it ends, or has to: why it had to, its status, the output."""
    parts: list[bytes] = []
    size, status, why = 0, None, ""
    reading = True
    until = time.monotonic() + limit * WALL
    while not why and (reading or status is None):
        waiting = 0 if status is not None else 0.01 if not reading else 0.1
        if select.select([source] if reading else [], [], [], waiting)[0]:
            part = os.read(source, 1 << 16)
            reading = bool(part)
            parts.append(part)
            size += len(part)
        elif status is not None:  # it is gone, and what it left running holds the pipe
            reading = False
        if status is None:
            done, found, used = os.wait4(process, os.WNOHANG)
            status = found if done else None
            # Where SIGXCPU is ignored, the hard limit kills.
            if done and os.WIFSIGNALED(found) and used.ru_utime + used.ru_stime > limit:
                why = "time"
        if size > most:
            why = "output"
        elif time.monotonic() > until:
            why = "time"
    with contextlib.suppress(OSError):
        os.killpg(process, signal.SIGKILL)
    if status is None:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
        status = os.waitpid(process, 0)[1]
    return why, status, b"" if why else b"".join(parts)


def _ended(status: int, raised: str) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "time" if number == signal.SIGXCPU else signal.Signals(number).name
    if os.WEXITSTATUS(status) == 0:
        return "well"
    return raised or "exit"


def record(job: dict[str, Any]) -> None:
    """Write down the calls that `check` makes of the problem's own solution."""
    calls: list[str] = []
    namespace = _checking(job)
    right = namespace[job["name"]]

    def candidate(*arguments: Any, **named: Any) -> Any:
        calls.append(repr((arguments, named)))
        return right(*arguments, **named)

    namespace["check"](candidate)
    Path("calls.json").write_text(json.dumps(calls))


def replay(job: dict[str, Any]) -> None:
    """Check the values that a program returned for the calls."""
    made = 0

    def candidate(*arguments: Any, **named: Any) -> Any:
        nonlocal made
        made += 1
        if repr((arguments, named)) != job["calls"][made - 1]:
            raise ValueError  # no such call was recorded: it hangs on what the program returned
        return ast.literal_eval(job["values"][made - 1])

    passed = False
    with contextlib.suppress(Exception):
        _checking(job)["check"](candidate)
        passed = made == len(job["calls"])
    Path("verdict.json").write_text(json.dumps({"passed": passed, "made": made}))


def _checking(job: dict[str, Any]) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(f"{job['prompt']}{job['solution']}\n{job['check']}", namespace)  # noqa: S102
    random.seed(0)  # some checks draw their inputs
    return namespace


if __name__ == "__main__":
    asked = json.loads(Path("job.json").read_text("utf-8"))
    {"run": run, "record": record, "replay": replay}[sys.argv[1]](asked)
