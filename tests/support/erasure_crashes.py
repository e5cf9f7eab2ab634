"""Kill an erasure at each of its steps, erase again, and look for what is left.

`python erasure_crashes.py STORE FOLDER STRIDE` prints one JSON object: how often it was killed, and what was
wrong afterwards. Steps are system calls that write, and whatever a store does at once. It runs by itself,
because it forks.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crash_points import in_fork, status_of
from langchain_core.outputs import Generation
from memory_cases import asking, make_episode

from langgraft._core.sqlite_file import SQLiteFile
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.erasing import ResponsePlace
from langgraft.memory.erasure import Ledger, Wanted, erase
from langgraft.memory.erasure.places import found_in
from langgraft.memory.providers import provider_class
from langgraft.memory.stores.chroma.store import ChromaStore
from langgraft.memory.stores.named import open_store
from langgraft.memory.testing.providers.base import with_every_text

CALLS = ("write", "fsync", "replace", "mkdir", "ftruncate", "unlink", "rmdir")
PHRASE = "zanzibar-7431"


class Kills:
    """Ends the process at a step: before it, or right after it."""

    def __init__(self, position: int) -> None:
        self.left = position

    def install(self) -> None:
        """Have every step counted."""
        places: list[tuple[Any, str]] = [(os, name) for name in CALLS]
        places += [(SQLiteFile, "scrub"), (ChromaStore, "scrub"), (ChromaStore, "_write")]
        places += [(SQLiteFile, "checkpoint"), (shutil, "rmtree")]
        for owner, name in places:
            setattr(owner, name, self.counted(getattr(owner, name)))

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
    with open_store(spec) as store:
        memory = memory_class(store)
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
    with open_store(spec) as store:
        place = ResponsePlace(folder / "responses.sqlite")
        ledger = Ledger(folder / "ledger")
        erase(provider_class("insight")(store), episode="told", ledger=ledger, places=[place])


def ended(spec: str, folder: Path) -> None:
    """Say what is wrong once it was erased again, by the exit code."""
    erased(spec, folder)
    problems = [f"{path} says it" for path in found_in([folder], Wanted(phrases=(PHRASE,)))]
    ledger = Ledger(folder / "ledger")
    problems += ledger.verify()
    problems += [
        f"receipt {each.number}: {each.places}" for each in ledger.receipts() if not each.complete
    ]
    problems += ["pending"] if ledger.pending else []
    with open_store(spec) as store:
        ids = {i.partition("/")[0] for i in provider_class("insight")(store).content().items}
    problems += [] if ids == {f"e{number}" for number in range(8)} else [f"other items: {ids}"]
    with ResponseCache(folder / "responses.sqlite") as cache:
        problems += [] if len(cache) == 1 else [f"{len(cache)} replies"]
    if problems:
        raise AssertionError(problems)


def main() -> None:
    """Read the arguments, and kill at every `STRIDE`-th step."""
    kind, base, stride = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    whole = base / "whole"
    whole.mkdir()
    assert status_of(in_fork(lambda: fill(f"{kind}:{whole / 'bank'}", whole))) == 0
    killed, wrong, position = 0, [], 1
    while True:
        folder = base / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        spec, kills = f"{kind}:{folder / 'bank'}", Kills(position)
        status = status_of(in_fork(lambda: erased(spec, folder, kills)))  # noqa: B023 - waited for
        if status != -signal.SIGKILL:
            wrong += [] if status == 0 else [f"moment {position}: ended with {status}"]
            break
        killed += 1
        if status_of(in_fork(lambda: ended(spec, folder))):  # noqa: B023
            wrong.append(f"moment {position}: not ended by the next erasure")
        position += stride
    sys.stdout.write(json.dumps({"killed": killed, "wrong": wrong}))


if __name__ == "__main__":
    main()
