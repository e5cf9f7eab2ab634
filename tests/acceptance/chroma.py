"""Records in Chroma under `kill -9`, from many threads and tasks, and from two processes."""

import asyncio
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import TimeoutExpired
from typing import cast

from langgraph.store.base import GetOp, Item, PutOp
from warm_python import Warm

from acceptance.chroma_worker import (
    INDEX,
    NAMESPACE,
    REWRITTEN,
    embed,
    new_key,
    rewritten_key,
    write_steps,
)
from acceptance.figure import Figure, Setting, share
from langgraft._core.canonical import digest
from langgraft.memory.stores import ChromaStore
from langgraft.memory.stores.chroma.client import open_folder
from langgraft.memory.stores.chroma.rows import Index, Row, pack
from langgraft.memory.stores.chroma.table import Table

LONGEST = 0.02
"""Seconds from an acknowledgment to a kill at most; a write takes about half of it."""
_WITHOUT_END = 100_000
"""Steps that no process comes to the end of."""


@dataclass
class Writes:
    """What happened to writes that were disturbed."""

    acknowledged: int = 0
    kills: int = 0
    problems: list[str] = field(default_factory=list)


def measure(setting: Setting) -> list[Figure]:
    """Kill a writer, write from 32 sides at once, and open one folder twice."""
    steps, kills = setting.size(1000, 40), setting.size(20, 3)
    setting.say(f"{steps} batches to Chroma, killed {kills} times")
    killed = kill_while_writing(setting.work / "chroma-killed", steps=steps, kills=kills, seed=2605)
    each = setting.size(25, 4)
    setting.say(f"16 threads and 16 tasks write {each} batches each to Chroma")
    crowd = write_from_many(setting.work / "chroma-crowd", each=each)
    setting.say("two processes open one Chroma folder")
    refused = open_twice(setting.work / "chroma-twice")
    return [
        Figure(
            "kill -9 loses no acknowledged write to Chroma and leaves no half record",
            f"{killed.acknowledged} batches of two records, SIGKILL at {killed.kills} seeded moments",
            share(killed.acknowledged - len(killed.problems), killed.acknowledged, killed.problems),
            "all",
            not killed.problems and killed.acknowledged >= steps and killed.kills == kills,
        ),
        Figure(
            "Threads and tasks lose no write to Chroma and see no half batch",
            f"16 threads and 16 tasks, {each} batches each, one store",
            share(crowd.acknowledged - len(crowd.problems), crowd.acknowledged, crowd.problems),
            "all",
            not crowd.problems and crowd.acknowledged == 32 * each,
        ),
        Figure(
            "A second process is refused while one has the folder, and not after its kill -9",
            "three processes, one folder",
            "; ".join(refused.problems) or "refused, then let in; no record damaged",
            "so",
            not refused.problems,
        ),
    ]


def kill_while_writing(folder: Path, *, steps: int, kills: int, seed: int) -> Writes:
    """Let processes write one after another, kill all but the last, and look at what is there.

    Each process goes on after the last step that was acknowledged. It would write on and on, and is
    killed after a drawn number of acknowledgments and up to 20 ms, in the midst of a later write.

    Args:
        folder: Where the records go.
        steps: How many batches are written at least.
        kills: How many processes are killed.
        seed: Of the moments.
    """
    chance = random.Random(seed)
    writes = Writes()
    for left in range(kills, -1, -1):
        room = (steps - writes.acknowledged) // (left + 1)
        stop = writes.acknowledged + chance.randint(1, max(1, room)) if left else None
        first = writes.acknowledged + 1
        with start(folder, first, _WITHOUT_END if left else max(first, steps)) as process:
            acknowledged = _follow(process, stop)
            if stop is not None:
                acknowledged += _kill(process, chance.uniform(0, LONGEST))
                writes.kills += process.wait() < 0
        writes.acknowledged = acknowledged[-1] if acknowledged else writes.acknowledged
        writes.problems += damage(folder, writes.acknowledged)
    return writes


def write_from_many(folder: Path, *, each: int, sides: int = 16) -> Writes:
    """Write batches of two equal records from threads and tasks of one store, all at once.

    Every side writes records of its own, and a pair that all sides write; a reader looks
    at the pair all along.
    """
    with ChromaStore.open(folder) as store:
        problems = asyncio.run(_crowd(store, each, sides))
        found = {item.key: item.value["n"] for item in store.search(("own",), limit=10**6)}
    names = [f"{kind}-{side}" for kind in ("thread", "task") for side in range(sides)]
    expected = {f"{name}-{n}": n for name in names for n in range(each)}
    lost = [f"lost {key}" for key, n in expected.items() if found.get(key) != n]
    return Writes(acknowledged=len(expected), problems=[*lost, *problems])


def open_twice(folder: Path) -> Writes:
    """Open a folder in a second process while one writes, and in a third after its kill."""
    writes = Writes()
    with start(folder, 1, _WITHOUT_END) as first:
        seen = _follow(first, 1)
        with start(folder, 1, 1) as second:
            message = second.communicate()[1]
        if second.returncode != 2 or str(folder) not in message:
            writes.problems.append(f"the second ended with {second.returncode}: {message}")
        seen += _kill(first, 0)
    with start(folder, seen[-1] + 1, seen[-1] + 1) as third:
        after, message = third.communicate()
    if third.returncode != 0:
        writes.problems.append(f"the third ended with {third.returncode}: {message}")
    writes.acknowledged = int(after or seen[-1])
    writes.problems += damage(folder, writes.acknowledged)
    return writes


def damage(folder: Path, acknowledged: int) -> list[str]:
    """Say what is not as it must be after steps 1 to `acknowledged` and perhaps one more."""
    connection = open_folder(folder)
    try:
        rows = Table(connection.client, "langgraft", connection.where, alone=True).under(())
    finally:
        connection.close()
    found = {row.key: row for row in rows if row.namespace == NAMESPACE}
    torn = [f"half a record {row.key}" for row in rows if not _whole(row)]
    lost = [f"lost {key}" for key in map(new_key, range(1, acknowledged + 1)) if key not in found]
    first = max(1, acknowledged + 1 - REWRITTEN)
    old = [
        f"{key} is older than step {step}"
        for step in range(first, acknowledged + 1)
        if (key := rewritten_key(step)) not in found or found[key].content()["step"] < step
    ]
    next_key = rewritten_key(acknowledged + 1)
    written = next_key in found and found[next_key].content()["step"] > acknowledged
    half = [] if written == (new_key(acknowledged + 1) in found) else ["half a batch"]
    return [*torn, *lost, *old, *half]


def start(folder: Path, first: int, last: int) -> Warm:
    """Start a process that writes steps and acknowledges them on its standard output."""
    return Warm(write_steps, str(folder), first, last)


def _follow(process: Warm, stop: int | None) -> list[int]:
    """Read acknowledgments up to step `stop`, or all."""
    seen: list[int] = []
    for line in process.stdout:
        seen.append(int(line))
        if seen[-1] == stop:
            break
    return seen


def _kill(process: Warm, seconds: float) -> list[int]:
    """Kill a process after a while, and return what it acknowledged until then."""
    try:
        process.wait(timeout=seconds)
    except TimeoutExpired:
        process.kill()  # SIGKILL
        process.wait()
    return [int(line) for line in process.stdout if line.endswith("\n")]


def _whole(row: Row) -> bool:
    """Say whether a record's digest and vectors are those of its texts."""
    content = row.content()
    texts = content["texts"]
    vectors = Index.from_config(INDEX).checked(texts, embed(texts))
    expected = pack([vectors[text] for text in texts])
    return content["digest"] == digest([content["step"], *texts]) and row.packed == expected


async def _crowd(store: ChromaStore, each: int, sides: int) -> list[str]:
    done = threading.Event()
    with ThreadPoolExecutor(sides + 1) as pool:
        watching = pool.submit(_watch, store, done.is_set)
        threads = [pool.submit(_side, store, f"thread-{side}", each) for side in range(sides)]
        tasks = [_aside(store, f"task-{side}", each) for side in range(sides)]
        try:
            await asyncio.gather(*tasks, *map(asyncio.wrap_future, threads))
        finally:
            done.set()
        return watching.result()


def _side(store: ChromaStore, name: str, each: int) -> None:
    for n in range(each):
        store.batch(_batch(name, n))


async def _aside(store: ChromaStore, name: str, each: int) -> None:
    for n in range(each):
        await store.abatch(_batch(name, n))


def _batch(name: str, n: int) -> list[PutOp]:
    pair = {"from": name, "n": n}
    return [
        PutOp(("own",), f"{name}-{n}", pair),
        PutOp(("shared",), "left", pair),
        PutOp(("shared",), "right", pair),
    ]


def _watch(store: ChromaStore, done: Callable[[], bool]) -> list[str]:
    """Look at the shared pair until all is done, and say what was wrong with it."""
    created = set()
    problems = []
    while not done():
        pair = store.batch([GetOp(("shared",), "left"), GetOp(("shared",), "right")])
        left, right = (cast("Item | None", item) for item in pair)
        if left is None or right is None:
            if (left, right) != (None, None):
                problems.append("half a batch")
            continue
        created.add(left.created_at)
        if left.value != right.value:
            problems.append(f"half a batch: {left.value} and {right.value}")
    if len(created) > 1:
        problems.append(f"a record was created {len(created)} times")
    return problems
