"""Kill an erasure at each of its steps, erase again, and look for what is left.

`python erasure_crashes.py STORE FOLDER STRIDE` prints one JSON object: how many steps there are, how often it
was killed, and what was wrong afterwards. Steps are system calls that write, files opened to be written,
statements of SQLite and moments within its `VACUUM`, and whatever Chroma does at once. It runs by itself,
because it forks: what each trial needs is imported before, and nothing is opened.
"""

import importlib
import io
import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from crash_points import in_fork, status_of
from langchain_core.outputs import Generation
from memory_cases import asking, make_episode

from langgraft._core.sqlite_file import SQLiteFile
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.erasing import ResponsePlace
from langgraft.memory.erasure import Ledger, Wanted, erase
from langgraft.memory.erasure.places import found_in
from langgraft.memory.providers import provider_class
from langgraft.memory.stores.chroma import client, store
from langgraft.memory.stores.chroma.table import Table
from langgraft.memory.stores.named import open_store
from langgraft.memory.testing.providers.base import with_every_text

CALLS = ("write", "fsync", "replace", "mkdir", "ftruncate", "unlink", "rmdir")
PHRASE = "zanzibar-7431"
_IMPORTED: Final = {
    "chroma": ("chromadb", "chromadb.api.rust", "chromadb.telemetry.product.posthog")
}
"""What opening a store imports, a second or two each time where a trial does it."""
_READS: Final = ("SELECT", "BEGIN")
"""What statements begin with that change no file."""
_INSTRUCTIONS: Final = 400
"""Of SQLite's virtual machine, between two moments within a `VACUUM`."""


class Kills:
    """Ends the process at a step: before it, or right after it; `0`: at none, and they are counted."""

    def __init__(self, position: int = 0) -> None:
        self.left = position

    def install(self) -> None:
        """Have every step counted."""
        places: list[tuple[Any, str]] = [(os, name) for name in CALLS]
        places += [(SQLiteFile, "scrub"), (SQLiteFile, "checkpoint"), (shutil, "rmtree")]
        places += [(store.ChromaStore, "scrub"), (store.ChromaStore, "_write")]
        places += [(Table, "write"), (Table, "remove"), (client, "_embedded"), (client, "_scrub")]
        places += [(client, "blank_unused"), (store, "blank_unused")]
        for owner, name in places:
            setattr(owner, name, self.counted(getattr(owner, name)))
        opened, connect = io.open, sqlite3.connect
        counted_open = self.counted(opened)

        def open_counted(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            call = opened if mode in ("r", "rb") else counted_open
            return call(file, mode, *args, **kwargs)

        setattr(io, "open", open_counted)  # noqa: B010 - as `pathlib` finds it
        setattr(sqlite3, "connect", partial(connect, factory=self.connection()))  # noqa: B010

    def connection(self) -> type[sqlite3.Connection]:
        """Return connections whose statements are steps, where they change something."""
        kills = self

        class Cursor(sqlite3.Cursor):
            def execute(self, statement: str, *args: Any) -> Any:
                run = super().execute
                if statement.lstrip().upper().startswith(_READS):
                    return run(statement, *args)
                return kills.counted(run)(statement, *args)

            def executemany(self, statement: str, rows: Any, /) -> Any:
                return kills.counted(super().executemany)(statement, rows)

        class Connection(sqlite3.Connection):
            def cursor(self, *_: Any) -> sqlite3.Cursor:  # type: ignore[override]
                return super().cursor(Cursor)

            def execute(self, statement: str, *args: Any) -> sqlite3.Cursor:
                if statement != "VACUUM":
                    return self.cursor().execute(statement, *args)
                self.set_progress_handler(kills.pass_one, _INSTRUCTIONS)
                try:
                    return self.cursor().execute(statement)
                finally:
                    self.set_progress_handler(None, 0)

            def commit(self) -> None:
                kills.counted(super().commit)()

        return Connection

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call that may be the last one."""

        def step(*args: Any, **kwargs: Any) -> Any:
            self.pass_one()
            result = call(*args, **kwargs)
            self.pass_one()
            return result

        return step

    def pass_one(self) -> None:
        """Count a moment."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def fill(spec: str, folder: Path) -> None:
    """File what is erased later, and what is not."""
    memory_class = provider_class("insight")
    with open_store(spec) as opened:
        memory = memory_class(opened)
        for number in range(8):
            memory.file(make_episode(f"e{number}", task=f"task {number} of many"))
        memory.file(with_every_text(make_episode("told"), f"it is {PHRASE}"))
        memory.provide("open", asking())
    with ResponseCache(folder / "responses.sqlite") as cache:
        for text in (f"it is {PHRASE}", "nothing"):
            cache.update(json.dumps([text]), "model", [Generation(text=text)])


def erased(spec: str, folder: Path, kills: Kills | None = None) -> None:
    """Erase, with a kill to come."""
    if kills is not None:
        kills.install()
    with open_store(spec) as opened:
        place = ResponsePlace(folder / "responses.sqlite")
        ledger = Ledger(folder / "ledger")
        erase(provider_class("insight")(opened), episode="told", ledger=ledger, places=[place])


def counted(spec: str, folder: Path, told: Path) -> None:
    """Write down how many steps an erasure has that nothing disturbs."""
    kills = Kills()
    erased(spec, folder, kills)
    told.write_text(str(-kills.left))


def ended(spec: str, folder: Path) -> None:
    """Say what is wrong now, and once it was erased again, by the exit code."""
    wanted = Wanted(phrases=(PHRASE,))
    ledger = Ledger(folder / "ledger")
    done, under_way = len(list(ledger.receipts())), ledger.pending is not None
    # What a receipt was written for is gone already, whatever ended the process after it.
    searched = [each for each in folder.iterdir() if not (under_way and each == ledger.path)]
    problems = [f"{path} says it after the receipt" for path in found_in(searched, wanted) if done]
    erased(spec, folder)
    problems += [f"{path} says it" for path in found_in([folder], wanted)]
    problems += ledger.verify()
    receipts = list(ledger.receipts())
    problems += [f"receipt {each.number}: {each.places}" for each in receipts if not each.complete]
    problems += ["pending"] if ledger.pending else []
    if len(receipts) != (done if under_way and done else done + 1):
        problems.append(f"{len(receipts)} receipts, after {done}")
    with open_store(spec) as opened:
        ids = {i.partition("/")[0] for i in provider_class("insight")(opened).content().items}
    problems += [] if ids == {f"e{number}" for number in range(8)} else [f"other items: {ids}"]
    with ResponseCache(folder / "responses.sqlite") as cache:
        problems += [] if len(cache) == 1 else [f"{len(cache)} replies"]
    if problems:
        raise AssertionError(problems)


def main() -> None:
    """Read the arguments, and kill at every `STRIDE`-th step."""
    kind, base, stride = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    for name in _IMPORTED.get(kind, ()):
        importlib.import_module(name)
    whole, folder, told = base / "whole", base / "copy", base / "steps"
    whole.mkdir()
    spec = f"{kind}:{folder / 'bank'}"

    def again(action: Callable[[], object]) -> int:
        """Return what becomes of a process that acts on a new copy of the bank."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        return status_of(in_fork(action))

    assert status_of(in_fork(lambda: fill(f"{kind}:{whole / 'bank'}", whole))) == 0
    assert again(lambda: counted(spec, folder, told)) == 0
    steps = int(told.read_text())
    killed, wrong = 0, []
    for position in range(1, steps + 1, stride):
        kills = Kills(position)
        status = again(lambda: erased(spec, folder, kills))  # noqa: B023 - waited for
        if status != -signal.SIGKILL:
            wrong.append(f"moment {position} of {steps}: ended with {status}")
            continue
        killed += 1
        if status_of(in_fork(lambda: ended(spec, folder))):
            wrong.append(f"moment {position} of {steps}: not ended by the next erasure")
    sys.stdout.write(json.dumps({"steps": steps, "killed": killed, "wrong": wrong}))


if __name__ == "__main__":
    main()
