"""An interpreter that runs cells in one module and says after each how it went.

Cells come over one pipe and reports go back over another, each as four bytes of length and a
body. A cell shares this process and could forge its report: it is its own word, like an exit
code. Standard output and standard error are pipes of the supervisor, so that C code and child
processes print into the same place.
"""

from __future__ import annotations

import ast
import importlib
import json
import linecache
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType, TracebackType
from typing import Any

from langgraft.environments.sandboxes.inside.exceptions import describe, from_file, show

try:
    import ctypes

    _flush_c: Callable[[], object] = lambda: ctypes.CDLL(None).fflush(None)  # noqa: E731
except (ImportError, OSError):
    _flush_c = lambda: None  # noqa: E731

_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`, without the 10 ms that importing `inspect` takes."""


class Cells:
    """The module that cells run in."""

    def __init__(self) -> None:
        self.main = type(sys)("__main__")
        self.main.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = self.main
        self._running = False
        self._loop: Any = None

    def run(self, number: int, source: str) -> bytes:
        """Run a cell; return the description of its exception, or nothing."""
        file = f"<cell {number}>"
        lines = f"{source}\n".splitlines(keepends=True)
        linecache.cache[file] = (len(source), None, lines, file)
        signal.signal(signal.SIGINT, self._interrupted)
        try:
            try:
                self._running = True
                self._execute(source, file)
            finally:
                self._running = False
        except BaseException as error:  # noqa: BLE001 - whatever ends the cell is told
            trace = _without_own_end(from_file(error.__traceback__, file))
            told = describe(error, trace, linecache.getline)
            if not isinstance(error, SystemExit):
                _guarded(partial(_show, error, trace))
            return told
        return b""

    def _interrupted(self, _number: int, _frame: FrameType | None) -> None:
        # One that comes when the cell has just ended is no cell's.
        if self._running:
            raise KeyboardInterrupt

    def _execute(self, source: str, file: str) -> None:
        tree = ast.parse(source, file)
        last = [tree.body.pop()] if tree.body and isinstance(tree.body[-1], ast.Expr) else []
        if tree.body:
            self._evaluate(compile(tree, file, "exec", _AWAIT, dont_inherit=True))
        if last:
            # As at the interactive prompt, where a value is shown and kept as `_`.
            shown = ast.Interactive(list(last))
            self._evaluate(compile(shown, file, "single", _AWAIT, dont_inherit=True))

    def _evaluate(self, code: CodeType) -> None:
        result = eval(code, self.main.__dict__)  # noqa: S307
        if code.co_flags & _COROUTINE:
            import asyncio  # noqa: PLC0415 - 50 ms that most kernels never need

            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                asyncio.set_event_loop(self._loop)
            self._loop.run_until_complete(result)


def serve(control: int, report: int) -> None:
    """Preload what the first message says, then run cells until there are no more."""
    for descriptor in (control, report):
        os.set_inheritable(descriptor, False)
    own = os.getpid()
    first = json.loads(_receive(control) or b"{}")
    if sys.path[:1] == [""]:
        del sys.path[0]
    for name in first["preload"]:
        _guarded(partial(importlib.import_module, name))
    sys.path.insert(0, "")
    sys.argv = [""]
    cells = Cells()
    signal.signal(signal.SIGINT, cells._interrupted)  # noqa: SLF001
    _send(report, b"0\0")
    while True:
        message = _receive(control)
        if message is None:
            return
        ask = json.loads(message)
        told = cells.run(ask["number"], ask["code"])
        _flush()
        if os.getpid() != own:
            # A cell forked, and the child came to the cell's end.
            os._exit(0)
        _send(report, b"%d\0" % ask["number"] + told)


def _without_own_end(trace: TracebackType | None) -> TracebackType | None:
    """Cut off what happened in here: an interrupt is raised by our handler."""
    last = trace
    while last is not None:
        if last.tb_next is not None and last.tb_next.tb_frame.f_globals is globals():
            last.tb_next = None
        last = last.tb_next
    return trace


def _show(error: BaseException, trace: TracebackType | None) -> None:
    if sys.excepthook is sys.__excepthook__:
        # The interpreter's own would not find the source of cells.
        traceback.print_exception(type(error), error, trace)
    else:
        show(error, trace)


def _flush() -> None:
    # Looked up each time: a cell may have put others in their place.
    _guarded(lambda: sys.stdout.flush())  # noqa: PLW0108
    _guarded(lambda: sys.stderr.flush())  # noqa: PLW0108
    _guarded(_flush_c)


def _guarded(action: Callable[[], object]) -> None:
    try:
        action()
    except BaseException:  # noqa: BLE001, S110 - cells and modules may raise anything
        pass


def _receive(control: int) -> bytes | None:
    header = _exactly(control, 4)
    return None if header is None else _exactly(control, int.from_bytes(header, "big"))


def _exactly(control: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        more = os.read(control, size - len(data))
        if not more:
            return None
        data += more
    return data


def _send(report: int, body: bytes) -> None:
    data = len(body).to_bytes(4, "big") + body
    while data:
        data = data[os.write(report, data) :]


if __name__ == "__main__":
    warnings.simplefilter("default", DeprecationWarning, append=True)
    serve(int(sys.argv[1]), int(sys.argv[2]))
