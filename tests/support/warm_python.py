"""Runs Python programs in processes of their own that have the usual libraries loaded already.

Run as a program, it forks for each line of its input, a JSON object: the program's `code`, the
`folder` to run it in, and the `script` whose code it is, if it is one. It answers with the exit
code. What the program printed is in the files `OUT` and `ERR` of the folder.
"""

import atexit
import gc
import importlib
import json
import os
import subprocess
import sys
import types
from multiprocessing import get_context
from pathlib import Path

import langgraft

OUT, ERR = ".stdout", ".stderr"
LOADED = ("chromadb", "langchain.agents", "langgraph.prebuilt", "scipy.stats")


class WarmPython:
    """What starts programs; each takes as long as it runs, and not the seconds of its imports."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error::UserWarning:__main__", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str, folder: Path, script: Path | None = None) -> str:
        """Run a program in a folder; return what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"code": code, "folder": str(folder), "script": str(script) if script else None}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "0\n", (folder / ERR).read_text()
        return (folder / OUT).read_text()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def main() -> None:
    """Load the libraries, and run what comes."""
    for name in LOADED:
        importlib.import_module(name)
    for name in langgraft.__all__:
        getattr(langgraft, name)
    gc.freeze()
    fork = get_context("fork")
    for line in sys.stdin:
        # A child of multiprocessing ends without taking down all modules, half the time of most.
        child = fork.Process(target=_run, kwargs=json.loads(line))
        child.start()
        child.join()
        sys.stdout.write(f"{child.exitcode}\n")
        sys.stdout.flush()


def _run(code: str, folder: str, script: str | None) -> None:
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, OUT), (2, ERR)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.argv = [script or "-c"]
    sys.path[0] = str(Path(script).parent) if script else ""
    module = types.ModuleType("__main__")
    if script:
        module.__file__ = script
    sys.modules["__main__"] = module
    exec(compile(code, script or "<string>", "exec"), vars(module))
    atexit._run_exitfuncs()  # multiprocessing leaves that out


if __name__ == "__main__":
    main()
