"""Kill an erasure at each of its steps, erase again, and look for what is left.

`python erasure_crashes.py KIND FOLDER STRIDE` prints one JSON object: how many steps there are, how often it
was killed, how many processes hung, and what was wrong afterwards. KIND is a kind of store, or `run` for a run directory. Steps are system calls that write, files opened to be written,
statements of SQLite and moments within its `VACUUM`, and whatever Chroma does at once. It runs by itself,
because it forks: what each trial needs is imported before, and nothing is opened.
"""

import asyncio
import importlib
import io
import json
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from chain_study import chain_plan, run_chain
from crash_points import in_fork, status_of
from langchain_core.outputs import Generation
from langgraph.store.base import BaseStore
from memory_cases import asking, make_episode

from langgraft._core.sqlite_file import SQLiteFile
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.directory import STORE
from langgraft.benchmarks.harness.erasing import ResponsePlace, RunDirectory
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.verify import read_erased, verify_directory
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
_SECONDS: Final = 60.0
"""After which a process that takes one second has hung."""
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


class Bank:
    """A bank in a store, and a cache of replies."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.wanted = Wanted(phrases=(PHRASE,))

    def opened(self, folder: Path) -> AbstractContextManager[BaseStore]:
        """Open the store."""
        return open_store(f"{self.kind}:{folder / 'bank'}")

    def fill(self, folder: Path) -> None:
        """File what is erased later, and what is not."""
        with self.opened(folder) as opened:
            memory = provider_class("insight")(opened)
            for number in range(8):
                memory.file(make_episode(f"e{number}", task=f"task {number} of many"))
            memory.file(with_every_text(make_episode("told"), f"it is {PHRASE}"))
            memory.provide("open", asking())
        with ResponseCache(folder / "responses.sqlite") as cache:
            for text in (f"it is {PHRASE}", "nothing"):
                cache.update(json.dumps([text]), "model", [Generation(text=text)])

    def erase(self, folder: Path) -> None:
        """Erase the episode."""
        with self.opened(folder) as opened:
            place = ResponsePlace(folder / "responses.sqlite")
            ledger = Ledger(folder / "ledger")
            erase(provider_class("insight")(opened), episode="told", ledger=ledger, places=[place])

    def problems(self, folder: Path) -> list[str]:
        """Say what is not as it was."""
        with self.opened(folder) as opened:
            ids = {i.partition("/")[0] for i in provider_class("insight")(opened).content().items}
        problems = [] if ids == {f"e{number}" for number in range(8)} else [f"other items: {ids}"]
        with ResponseCache(folder / "responses.sqlite") as cache:
            return problems + ([] if len(cache) == 1 else [f"{len(cache)} replies"])


class Run:
    """A run directory whose later banks start from an item, with files of runs and a cache."""

    def __init__(self, folder: Path) -> None:
        self.whole = folder / "run"

    @cached_property
    def wanted(self) -> Wanted:
        """What the item says, once there is a run."""
        text = PlanLog(self.whole).bank("0/first").items["0/first/2"].text
        return Wanted(phrases=(text.partition("\n")[2],))

    def fill(self, folder: Path) -> None:
        """Run a plan."""
        out = folder / "run"
        asyncio.run(run_chain(out, chain_plan(streams=1, items=4, probes=(3,))))
        kept = run_folder(out, PlanLog(out).graph["0/first"]) / "kept"
        for place, name in (kept, "page.txt"), (kept, "other.txt"), (out / STORE, "bank.txt"):
            place.mkdir(exist_ok=True)
            said = "nothing" if name == "other.txt" else self.wanted.phrases[0]
            (place / name).write_text(said)

    def erase(self, folder: Path) -> None:
        """Erase the item."""
        places = [RunDirectory(folder / "run")]
        erase([], item="0/first/2", ledger=Ledger(folder / "ledger"), places=places)

    def problems(self, folder: Path) -> list[str]:
        """Say what does not verify, or is not named as erased."""
        out = folder / "run"
        problems = [str(each) for each in verify_directory(out) if not each.on_request]
        entries = read_erased(out)
        problems += [f"changed lines: {each['ended']}" for each in entries if not each["ended"]]
        problems += [] if [each["receipt"] for each in entries] == [1] else [f"erased: {entries}"]
        problems += [f"{STORE} is there"] if (out / STORE).exists() else []
        return problems


def erased(subject: Bank | Run, folder: Path, kills: Kills) -> None:
    """Erase, with a kill to come."""
    kills.install()
    subject.erase(folder)


def counted(subject: Bank | Run, folder: Path, told: Path) -> None:
    """Write down how many steps an erasure has that nothing disturbs."""
    kills = Kills()
    erased(subject, folder, kills)
    told.write_text(str(-kills.left))


def ended(subject: Bank | Run, folder: Path) -> None:
    """Say what is wrong now, and once it was erased again, by the exit code."""
    ledger = Ledger(folder / "ledger")
    done, under_way = len(list(ledger.receipts())), ledger.pending is not None
    # What a receipt was written for is gone already, whatever ended the process after it.
    searched = [each for each in folder.iterdir() if not (under_way and each == ledger.path)]
    found = found_in(searched, subject.wanted) if done else []
    problems = [f"{path} says it after the receipt" for path in found]
    subject.erase(folder)
    problems += [f"{path} says it" for path in found_in([folder], subject.wanted)]
    problems += ledger.verify()
    receipts = list(ledger.receipts())
    problems += [f"receipt {each.number}: {each.places}" for each in receipts if not each.complete]
    problems += ["pending"] if ledger.pending else []
    if len(receipts) != (done if under_way and done else done + 1):
        problems.append(f"{len(receipts)} receipts, after {done}")
    problems += subject.problems(folder)
    if problems:
        raise AssertionError(problems)


def ended_in_time(child: int) -> int | None:
    """Wait for a process as `status_of` does; `None`: it came to no end, and was killed.

    Chroma's own shutdown was seen to spin for ever, once in some 1,600 processes.
    """
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main() -> None:
    """Read the arguments, and kill at every `STRIDE`-th step."""
    kind, base, stride = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    for name in _IMPORTED.get(kind, ()):
        importlib.import_module(name)
    whole, folder, told = base / "whole", base / "copy", base / "steps"
    subject = Run(whole) if kind == "run" else Bank(kind)
    whole.mkdir()

    def again(action: Callable[[], object]) -> int | None:
        """Return what becomes of a process that acts on a new copy of what there is."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        return ended_in_time(in_fork(action))

    assert status_of(in_fork(lambda: subject.fill(whole))) == 0
    assert found_in([whole], subject.wanted)
    assert again(lambda: counted(subject, folder, told)) == 0
    steps = int(told.read_text())
    killed, wrong, hung = 0, [], 0
    for position in range(1, steps + 1, stride):
        kills = Kills(position)
        status = again(lambda: erased(subject, folder, kills))  # noqa: B023 - waited for
        hung += status is None
        if status not in (-signal.SIGKILL, None):
            wrong.append(f"moment {position} of {steps}: ended with {status}")
            continue
        killed += 1
        status = ended_in_time(in_fork(lambda: ended(subject, folder)))
        if (
            status is None
        ):  # killed once more, at a moment of nobody's choice: again the next ends it
            hung += 1
            status = ended_in_time(in_fork(lambda: ended(subject, folder)))
        if status != 0:
            wrong.append(f"moment {position} of {steps}: not ended by the next erasure")
    sys.stdout.write(json.dumps({"steps": steps, "killed": killed, "hung": hung, "wrong": wrong}))


if __name__ == "__main__":
    main()
