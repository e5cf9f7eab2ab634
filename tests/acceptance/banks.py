"""Whoever files, and however filings come between one another: the bank is the fold of its deltas."""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, cast

from chroma_server import chroma_server
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from postgres_server import HOW_TO_GET_IT, available, running_server

from acceptance.bank_worker import SMALL, file_all, opened, provider
from acceptance.command import worker_environment
from acceptance.figure import Figure, Setting, share
from acceptance.fold import random_episode
from langgraft.memory.model import Add, MemoryDelta, SetState, fold
from langgraft.memory.provider import EPISODES

SIDES: Final = 4
"""Threads or tasks that file at once."""


class UnhurriedStore(InMemoryStore):
    """Takes a moment for every batch, so that others come in between."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as the base class, later."""
        time.sleep(random.random() / 10_000)
        return super().batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch`, with other tasks in between."""
        for _ in range(random.randrange(4)):
            await asyncio.sleep(0)
        return super().batch(ops)


@dataclass
class Rounds:
    """What came of filing at the same time, bank by bank."""

    made: int = 0
    told: int = 0
    wrong: list[str] = field(default_factory=list)

    def check(self, store: BaseStore, bank: str, name: str, deltas: Sequence[MemoryDelta]) -> None:
        """Hold a bank to what its filings returned."""
        self.made += 1
        content = provider(store, bank, name).content()
        made = sorted(filter(None, deltas), key=_position)
        orders = [change.item.order_index for change in chain(*made) if isinstance(change, Add)]
        problems = {
            "is not the fold": fold(made).to_bytes() != content.to_bytes(),
            "numbers two items alike": len(set(orders)) < len(orders),
            "lost an episode": len(made) != content.state[EPISODES],
        }
        self.wrong += [f"{bank} ({name}) {what}" for what, holds in problems.items() if holds]

    def figure(self, who: str, how: str) -> Figure:
        """Write them as a row."""
        good = self.made - len({each.partition(" ")[0] for each in self.wrong})
        promise = (
            f"{who}: the bank is the fold of all deltas, no number stands twice, nothing is lost"
        )
        figure = share(good, self.made, self.wrong)
        return Figure(promise, how, figure, "all", self.made > 0 and not self.wrong)


def measure(setting: Setting) -> list[Figure]:
    """File from threads, tasks and processes at random."""
    count = setting.size(1000, 20)
    figures: list[Figure] = []
    kinds: dict[str, Callable[[BaseStore, str, str, list[str]], list[MemoryDelta]]] = {
        "Threads": by_threads,
        "Tasks of an event loop": by_tasks,
        "Tasks of two event loops, and threads": by_loops,
    }
    for who, file in kinds.items():
        setting.say(f"{count} banks filed in by {who.lower()}")
        how = f"{count} banks, {SIDES} sides, a provider for each filing, each episode twice"
        figures.append(in_process(file, count).figure(who, how))
    with ExitStack() as stack:
        sqlite = f"sqlite:{setting.work / 'banks.sqlite'}"
        setting.say(f"{count} banks filed in by two processes, in SQLite")
        how = f"{count} banks, 4 episodes each, filed by both processes at once"
        figures.append(at_once(sqlite, count).figure("Two processes on SQLite", how))
        if available():
            setting.say(f"{count} banks filed in by two processes, in PostgreSQL")
            uri = stack.enter_context(running_server())
            figures.append(at_once(uri, count).figure("Two processes on PostgreSQL", how))
        else:
            figures.append(Figure("Two processes on PostgreSQL", HOW_TO_GET_IT, "", "all", False))
        count = setting.size(1000, 5)
        setting.say(f"{count} banks filed in by two processes, on a Chroma server")
        rounds = in_turns(stack.enter_context(chroma_server()), count)
        how = f"{count} banks, 4 episodes each, the processes in random turns"
        figures.append(rounds.figure("Two processes on a Chroma server", how))
        figures.append(
            Figure(
                "A Chroma server offers no lock: a process that files after another one is told",
                how,
                f"{rounds.told:,} times",
                "at least once in two banks",
                2 * rounds.told >= count,
            )
        )
    return figures


def in_process(
    file: Callable[[BaseStore, str, str, list[str]], list[MemoryDelta]], count: int
) -> Rounds:
    """File in so many banks of stores in memory."""
    rounds = Rounds()
    for number in range(count):
        store, name = UnhurriedStore(), sorted(SMALL)[number % len(SMALL)]
        listed = [f"bank {number}, episode {each}" for each in range(8)] * 2
        random.Random(number).shuffle(listed)
        rounds.check(store, f"bank {number}", name, file(store, f"bank {number}", name, listed))
    return rounds


def by_threads(store: BaseStore, bank: str, name: str, listed: list[str]) -> list[MemoryDelta]:
    """File from threads."""
    with ThreadPoolExecutor(SIDES) as pool:
        filed = pool.map(lambda part: file_all(store, bank, name, part)[0], _parts(listed))
        return list(chain(*filed))


def by_tasks(store: BaseStore, bank: str, name: str, listed: list[str]) -> list[MemoryDelta]:
    """File from tasks."""
    return asyncio.run(_tasks(store, bank, name, _parts(listed)))


def by_loops(store: BaseStore, bank: str, name: str, listed: list[str]) -> list[MemoryDelta]:
    """File from tasks of two event loops, and from threads."""
    first, second, *rest = _parts(listed)
    with ThreadPoolExecutor(SIDES) as pool:
        filed = [
            *(pool.submit(by_tasks, store, bank, name, part) for part in (first, second)),
            *(pool.submit(by_threads, store, bank, name, part) for part in rest),
        ]
        return list(chain(*(each.result() for each in filed)))


def at_once(spec: str, count: int) -> Rounds:
    """Let two processes file in one bank after the other, both at the same time."""
    rounds = Rounds()
    with opened(spec) as store, _workers(spec) as workers:
        for number, (bank, name, listed) in enumerate(_banks(count)):
            cut = number % 3 + 1
            for worker, part in zip(workers, (listed[:cut], listed[cut:]), strict=True):
                worker.tell(bank, name, part)
            deltas = [delta for worker in workers for delta in worker.answer(rounds)]
            rounds.check(store, bank, name, deltas)
    return rounds


def in_turns(spec: str, count: int) -> Rounds:
    """Let two processes file in turns, drawn at random."""
    rounds = Rounds()
    chance = random.Random(2605)
    with opened(spec) as store, _workers(spec) as workers:
        for bank, name, listed in _banks(count):
            deltas: list[MemoryDelta] = []
            for episode in listed:
                worker = chance.choice(workers)
                worker.tell(bank, name, [episode])
                deltas += worker.answer(rounds)
            rounds.check(store, bank, name, deltas)
    return rounds


class _Worker:
    """A process that files."""

    def __init__(self, spec: str, errors: Any) -> None:
        module = "acceptance.bank_worker"
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, spec],
            env=worker_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        self._errors = errors

    def tell(self, bank: str, name: str, episodes: Sequence[str]) -> None:
        """Say what to file."""
        assert self.process.stdin is not None
        job = {"bank": bank, "provider": name, "episodes": episodes}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()

    def answer(self, rounds: Rounds) -> list[MemoryDelta]:
        """Wait for what came of it."""
        deltas, told = json.loads(self.line())
        rounds.told += told
        return [MemoryDelta.from_json(delta) for delta in deltas]

    def line(self) -> str:
        """Wait for a line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self._errors.seek(0)
            raise RuntimeError(self._errors.read().decode())
        return line


@contextmanager
def _workers(spec: str) -> Iterator[list[_Worker]]:
    """Start two processes on a store, and end them."""
    with tempfile.TemporaryFile() as errors:
        workers = [_Worker(spec, errors) for _ in range(2)]
        try:
            for worker in workers:
                worker.line()
            yield workers
        finally:
            for worker in workers:
                worker.process.communicate()


def _banks(count: int) -> Iterator[tuple[str, str, list[str]]]:
    """Yield banks, each with its provider and its episodes."""
    for number in range(count):
        listed = [f"bank {number}, episode {each}" for each in range(4)]
        yield f"bank {number}", sorted(SMALL)[number % len(SMALL)], listed


async def _tasks(
    store: BaseStore, bank: str, name: str, parts: Sequence[Sequence[str]]
) -> list[MemoryDelta]:
    async def side(part: Sequence[str]) -> list[MemoryDelta]:
        return [await provider(store, bank, name).afile(random_episode(each)) for each in part]

    return list(chain(*await asyncio.gather(*map(side, parts))))


def _parts(listed: Sequence[str]) -> list[list[str]]:
    return [list(listed[side::SIDES]) for side in range(SIDES)]


def _position(delta: MemoryDelta) -> int:
    """Return which one of the episodes a delta files."""
    count = next(c.value for c in delta if isinstance(c, SetState) and c.key == EPISODES)
    return cast("int", count)
