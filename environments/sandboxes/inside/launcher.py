"""Running a file as the main module, so that an exception which ends it is told apart.

A program finds what `python program.py` gives it: `__main__` is its own, `__file__`, `sys.argv`
and `sys.path[0]` are as they are there, functions of it can be pickled and re-imported by
`multiprocessing`. Its traceback is printed without the launcher's frames, and written, apart from
the output, to a descriptor that the supervisor reads.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from langgraft.environments.sandboxes.inside.exceptions import describe, from_file, show

_open = open


def launch(report: int, path: str, name: str, arguments: list[str]) -> None:
    """Run a file as `__main__`."""
    os.set_inheritable(report, False)
    own = os.getpid()
    main = type(sys)("__main__")
    main.__file__ = path
    main.__dict__.update(__builtins__=__builtins__, __cached__=None)
    # The launcher's own module lives on in its functions only.
    sys.modules["__main__"] = main
    sys.argv = [name, *arguments]
    if sys.path[:1] == [""]:
        del sys.path[0]
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    try:
        with _open(path, "rb") as file:
            source = file.read()
        exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)  # noqa: S102
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever ends the program is told
        # A child that the program forked ends here as well, and is not the program.
        _fail(report if os.getpid() == own else None, error, path)


def _fail(report: int | None, error: BaseException, path: str) -> NoReturn:
    trace = from_file(error.__traceback__, path)
    if report is not None:
        _write(report, describe(error, trace, _line_of))
    show(error, trace)
    # 130 is what a shell tells of an interrupted program.
    sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)


def _write(report: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(report, data) :]
    except OSError:
        pass  # the program closed it


def _line_of(file: str, line: int) -> str:
    """Read a source line without modules, which the program may have put others in place of."""
    try:
        with _open(file, "rb") as lines:
            for number, text in enumerate(lines, 1):
                if number == line:
                    return text.decode("utf-8", "replace")
    except (OSError, ValueError):
        pass
    return ""


if __name__ == "__main__":
    launch(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
