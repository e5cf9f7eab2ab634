"""All that `langgraft bench` measures: topics of sections, each in one run with its floor and its peers."""

import importlib.util
import logging
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from langgraph.store.memory import InMemoryStore

import langgraft
from langgraft._core.errors import InputError, MissingExtraError, SandboxUnavailableError
from langgraft.benchmarks.performance.contenders import (
    INSTALL,
    Contender,
    Memory,
    Who,
    contenders,
    drop_schema,
)
from langgraft.benchmarks.performance.dense_search import (
    DrawnEmbeddings,
    filtered_over_chroma,
    write_over_chroma,
)
from langgraft.benchmarks.performance.environments import (
    first_instruction_over_floor,
    fresh_over_floor,
    imports_in_kernel_over_exec,
)
from langgraft.benchmarks.performance.lexical_search import (
    bank,
    changing_over_bm25s,
    first_recall_of_process,
    opening_over_building,
    recall_opened_over_built,
    recall_over_ranker,
    take_in_over_put,
)
from langgraft.benchmarks.performance.page import comparisons, tally, write_page
from langgraft.benchmarks.performance.react_agent import (
    CALLS,
    SECONDS,
    calls_in_process,
    calls_over_http,
    episode_times,
    overhead_per_item,
    turn_cost,
    turn_times,
)
from langgraft.benchmarks.performance.searching import Row, Section, sections
from langgraft.benchmarks.performance.timing import Compared, Times, alone
from langgraft.benchmarks.reporting.pages import check_extra
from langgraft.memory import MemoryProvider
from langgraft.memory.providers import TrajectoryMemory


@dataclass(frozen=True, slots=True)
class Setting:
    """What to measure, and where."""

    sizes: tuple[int, ...]
    work: Path
    """An empty folder to work in."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What is measured together."""

    title: str
    measure: Callable[[Setting], Iterator[Sequence[Section]]]
    """Yields its sections as far as they are, again and again: a run may take an hour."""


def topics(only: str | None) -> tuple[Topic, ...]:
    """Return what to measure, all or that whose title holds a word.

    Raises:
        InputError: There is none.
    """
    chosen = tuple(each for each in TOPICS if (only or "").lower() in each.title.lower())
    if not chosen:
        msg = f"nothing that is measured is called {only!r}; there are {'; '.join(t.title for t in TOPICS)}"
        raise InputError(msg)
    return chosen


def machine() -> dict[str, str]:
    """Name what the figures were measured on."""
    found = {
        "langgraft": langgraft.__version__,
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(os.cpu_count()),
        "load before the run": " ".join(f"{each:.1f}" for each in os.getloadavg()),
    }
    for name in _VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


_VERSIONS: Final = (
    *(
        "langgraph",
        "langchain",
        "langchain-core",
        "numpy",
        "chromadb",
        "bm25s",
        "langmem",
        "mem0ai",
    ),
    *(
        "qdrant-client",
        "sqlite-vec",
        "langgraph-checkpoint-sqlite",
        "langgraph-checkpoint-postgres",
    ),
    *("alfworld", "textworld", "docker"),
)


def _imports(_: Setting) -> Iterator[Sequence[Section]]:
    """Measure what starting takes, in a process each time."""
    found = Section(
        "imports",
        "Import time",
        "A process that imports it and does nothing else; user and system time, and wall time.",
    )
    code: Mapping[str, str] = {
        "floor: Python itself": "pass",
        "langgraft": "import langgraft",
        "langgraft, with what adds memory": "from langgraft import MemoryMiddleware, open_memory",
        "langgraft --help": "",
        "langchain.agents": "import langchain.agents",
        "langgraph.graph": "import langgraph.graph",
        "langmem": "import langmem",
        "chromadb": "import chromadb",
        "mem0": "import mem0",
    }
    there = {}
    for name, text in code.items():
        module = text.partition(" ")[2].partition(";")[0].partition(".")[0]
        if text.startswith("import ") and importlib.util.find_spec(module) is None:
            found.missing[name] = f"`{module}` is not installed: {INSTALL}"
        else:
            command = ["-c", text] if text else ["-m", "langgraft", "--help"]
            there[name] = partial(_process_seconds, [sys.executable, "-W", "ignore", *command])
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in there}
    for _round in range(5):
        for name, run in there.items():
            taken[name].append(run())
    for name, times in taken.items():
        who: Who = "floor" if name.startswith("floor") else "peer"
        if name.startswith("langgraft"):
            who = "langgraft"
        columns = tuple(tuple(each * 1e3 for each in column) for column in zip(*times, strict=True))
        found.rows.append(Row(name, who, Times(*columns)))
    yield [found]


def _process_seconds(command: Sequence[str]) -> tuple[float, float]:
    """Return the CPU and wall seconds of a process."""
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603  (our own command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - wall


def _graph(_: Setting) -> Iterator[Sequence[Section]]:
    found = Section(
        "graph",
        "A graph without memory",
        "An episode of BabyAI with a model that answers at once: means of 20 episodes, repeated.",
    )
    names = {
        "hand-written": "floor: hand-written LangGraph",
        "langgraft": "langgraft ReAct",
        "create_agent": "create_agent, one tool",
    }
    try:
        times = alone(_episodes, tuple(names))
    except MissingExtraError as error:
        found.missing["all"] = str(error)
        yield [found]
        return
    measured: dict[str, Who] = {"hand-written": "floor", "langgraft": "langgraft"}
    for name, values in times.items():
        found.rows.append(Row(names[name], measured.get(name, "peer"), _once(values)))
    yield [found]


def _episodes(names: Sequence[str]) -> dict[str, list[float]]:
    return episode_times(names, episodes=20, rounds=7)


def _turns(setting: Setting) -> Iterator[Sequence[Section]]:
    found = Section(
        "turn",
        "Overhead a turn",
        "A turn of an agent of `create_agent` with a model that answers at once, one recall and one"
        " filing in it, less the same turn without memory: by question. Ours is `MemoryMiddleware`; of a"
        " peer, a middleware of twelve lines that searches before the model and writes after it. Vectors"
        " cost nothing on either side.",
    )
    for size in setting.sizes:
        folder = setting.work / f"turn-{size}"
        folder.mkdir()
        rows, missing = alone(_measure_turns, size, folder)
        found.rows += rows
        found.missing.update(missing)
        yield [found]


_TURNS: Final = (
    "LangGraph InMemoryStore",
    "LangGraph SqliteStore",
    "langmem tools over InMemoryStore",
    "mem0 over Qdrant's local mode",
)


def _measure_turns(size: int, folder: Path) -> tuple[list[Row], dict[str, str]]:
    logging.disable(logging.WARNING)
    embeddings, missing = DrawnEmbeddings(size), {}
    peers: dict[str, Memory] = {}
    known: dict[str, Contender] = {each.name: each for each in contenders("vectors")}
    with ExitStack() as opened:
        for name in _TURNS:
            each = known[name]
            if each.lacking():
                missing[name] = each.lacking()
                continue
            place = folder / str(len(peers))
            place.mkdir()
            opened.callback(drop_schema, place)
            peers[name] = each.open(place, embeddings)
            opened.callback(peers[name].close)
            if name.startswith("mem0") and size > _MEM0_TURNS:
                missing[f"{name}, {size:,} records"] = "writing them takes minutes; see Write"
                peers.pop(name)
                continue
            for start in range(0, size, 1_000):
                numbers = range(start, min(start + 1_000, size))
                peers[name].write([(str(number), str(number)) for number in numbers])
        ours: dict[str, MemoryProvider[Any]] = {
            "langgraft MemoryMiddleware over InMemoryStore": _filled(InMemoryStore(), size)
        }
        file = langgraft.open_memory(folder / "memory.sqlite")
        opened.callback(file.close)
        file.restore(bank(size))
        ours["langgraft MemoryMiddleware over a SQLite file"] = file
        times = turn_times({**ours, **peers}, rounds=30)
    bare = times.pop("no memory")
    rows = []
    for name, values in times.items():
        own = tuple(value - base for value, base in zip(values, bare, strict=False))
        if name == "hooks":
            rows.append(Row("floor: hooks that keep a number", "floor", _once(own), size))
        elif name in ours:
            durable = "SQLite" in name
            rows.append(Row(name, "langgraft", _once(own), size, durable, exact=True))
        else:
            rows.append(Row(name, "peer", _once(own), size, known[name].durable, exact=True))
    return rows, missing


_MEM0_TURNS: Final = 10_000


def _filled(store: Any, size: int) -> TrajectoryMemory:
    memory = TrajectoryMemory(store)
    memory.restore(bank(size))
    return memory


def _provider(_: Setting) -> Iterator[Sequence[Section]]:
    found = Section(
        "provider",
        "A provider over what it stands on",
        "Each beside the least that could stand in its place, in turns; medians over the questions.",
    )
    for name, floor, measure, size in _FLOORS:
        taken: Compared = alone(measure, size)
        found.rows.append(Row(f"floor of {name}: {floor}", "floor", _once([taken.floor]), size))
        found.rows.append(Row(name, "langgraft", _once([taken.ours]), size))
        yield [found]


def _parts(_: Setting) -> Iterator[Sequence[Section]]:
    found = Section(
        "turn-parts",
        "What the middleware adds beside the provider",
        "A turn over 10,000 trajectories after so many messages, less the turn without memory and less"
        " the provider's own calls; the floor is what LangGraph takes for hooks that keep a number.",
    )
    for history in (0, 2_000):
        cost = turn_cost(10_000, history=history)
        hooks, ours = _once([cost.hooks - cost.bare]), _once([cost.overhead])
        found.rows.append(Row("floor: the hooks alone", "floor", hooks, history))
        found.rows.append(Row("langgraft MemoryMiddleware", "langgraft", ours, history))
        yield [found]


_FLOORS: Final[Sequence[tuple[str, str, Callable[[int], Compared], int]]] = (
    ("take in an episode", "`InMemoryStore.put` of its text", take_in_over_put, 1_000),
    ("recall", "a search of its ranker's index", recall_over_ranker, 1_000),
    ("first recall of a process, index kept", "without the index", first_recall_of_process, 10_000),
    (
        "first recall of a provider, index kept",
        "without the index",
        recall_opened_over_built,
        10_000,
    ),
    ("first search of a store, index kept", "building the index", opening_over_building, 100_000),
    ("BM25, add and search", "bm25s built anew and asked", changing_over_bm25s, 100_000),
    ("dense, a filter that passes 5 %", "Chroma's query", filtered_over_chroma, 10_000),
    ("100 new records in Chroma", "Chroma's upsert", write_over_chroma, 100),
)


def _harness(_: Setting) -> Iterator[Sequence[Section]]:
    found = Section(
        "harness",
        "The harness over the ideal",
        f"Model calls a second, each of {SECONDS:g} s, {CALLS} an item one after the other. The floor of"
        " calls in this process is what arithmetic allows, of calls over HTTP `asyncio.gather` of bare"
        " ChatOpenAI against the same server, in the same run.",
        unit="calls a second",
        more_is_better=True,
    )
    for count in (16, 64):
        found.rows.append(
            Row("floor: ideal, in this process", "floor", _once([count / SECONDS]), count)
        )
        reached = calls_in_process(count) * count / SECONDS
        found.rows.append(Row("langgraft, in this process", "langgraft", _once([reached]), count))
    for mixed, what in ((False, "frozen memory"), (True, "half of it streams that learn")):
        for count in (16, 64, 256):
            ours, bare = calls_over_http(count, mixed=mixed)
            floor = f"floor: bare ChatOpenAI over HTTP, as many calls as with {what}"
            found.rows.append(Row(floor, "floor", _once([bare]), count))
            found.rows.append(
                Row(f"langgraft over HTTP, {what}", "langgraft", _once([ours]), count)
            )
    yield [found]
    item_costs = Section(
        "harness-item",
        "What an item costs the harness",
        "CPU of executing, committing and syncing an item of a continual study whose episodes are"
        " played already, beside that of playing it.",
    )
    added, item = overhead_per_item()
    item_costs.rows += [
        Row("floor: the item itself, with a simulated model", "floor", _once([item])),
        Row("langgraft harness, beside it", "langgraft", _once([added])),
    ]
    yield [found, item_costs]


def _alfworld(_: Setting) -> Iterator[Sequence[Section]]:
    found = Section(
        "alfworld",
        "ALFWorld over plain TextWorld",
        "Loads, resets and steps of a generated game of each family, in turns; a call of each.",
    )
    try:
        from langgraft.benchmarks.performance.environments import (  # noqa: PLC0415  (an extra)
            engine_times,
            generated_games,
        )

        times = engine_times(generated_games())
    except MissingExtraError as error:
        found.missing["all"] = str(error)
        times = {}
    for call, each in times.items():
        found.rows.append(Row(f"floor: TextWorld, a {call}", "floor", _once([each.plain])))
        found.rows.append(Row(f"langgraft engine, a {call}", "langgraft", _once([each.ours])))
    yield [found]


def _sandbox(_: Setting) -> Iterator[Sequence[Section]]:
    found = Section(
        "sandbox",
        "Programs in a sandbox",
        "Wall time, both sides in turns. The floor of a program is the Docker engine alone: create, start,"
        " wait and remove a container with the same limits. That of imports is `exec` in a warm container.",
    )
    pairs = {
        "a program in a fresh container": fresh_over_floor,
        "first instruction, from the pool": first_instruction_over_floor,
        "importing the ML stack, in a kernel": imports_in_kernel_over_exec,
    }
    try:
        for name, measure in pairs.items():
            taken = measure(rounds=10)
            floor, ours = ([each * 1e3 for each in t.values] for t in (taken.floor, taken.ours))
            found.rows += [
                Row(f"floor of {name}", "floor", _once(floor)),
                Row(f"langgraft, {name}", "langgraft", _once(ours)),
            ]
    except SandboxUnavailableError as error:
        found.missing["all"] = str(error)
    yield [found]


def _once(values: Sequence[float]) -> Times:
    """Return figures that have one clock."""
    return Times(tuple(values), tuple(values))


def _words(setting: Setting) -> Iterator[Sequence[Section]]:
    return sections("words", setting.sizes, setting.work)


def _vectors(setting: Setting) -> Iterator[Sequence[Section]]:
    return sections("vectors", setting.sizes, setting.work)


TOPICS: Final = (
    Topic("words: recall, write, cold open, memory", _words),
    Topic("vectors: recall, write, cold open, memory", _vectors),
    Topic("turn: overhead of memory", _turns),
    Topic("middleware: over LangGraph's hooks", _parts),
    Topic("provider: over its floor", _provider),
    Topic("graph: without memory", _graph),
    Topic("harness: over the ideal", _harness),
    Topic("sandbox: over the engine", _sandbox),
    Topic("ALFWorld: over TextWorld", _alfworld),
    Topic("import time", _imports),
)


def run(out: Path, sizes: str, only: str | None, say: Callable[[str], None]) -> Path:
    """Measure everything, topic by topic, write the page after each, and return where it is.

    Args:
        out: A folder, made where it is missing.
        sizes: Records of a memory, each measured by itself: `1000,10000`.
        only: Measure only what has this word in its title.
        say: Is told of progress, in lines.

    Raises:
        InputError: Sizes are no numbers, or nothing has such a title.
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    numbers, chosen = _read_sizes(sizes), topics(only)
    check_extra()
    measured_on, done = machine(), list[Section]()
    where = write_page(out, done, measured_on, numbers)  # before hours of work
    for each in chosen:
        say(f"measuring {each.title}")
        with tempfile.TemporaryDirectory(prefix="langgraft-bench-") as folder:
            found: Sequence[Section] = ()
            for found in each.measure(Setting(numbers, Path(folder))):
                where = write_page(out, [*done, *found], measured_on, numbers)
            done += found
    counted = tally([one for section in done for one in comparisons(section)])
    say(f"{', '.join(f'{count} {verdict}' for verdict, count in counted.items())}: {where}")
    return where


def _read_sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(each) for each in text.split(",")}))
    except ValueError:
        sizes = ()
    if not sizes or sizes[0] < _SMALLEST:
        msg = f"sizes are numbers of at least {_SMALLEST} with commas between them, got {text!r}"
        raise InputError(msg)
    return sizes


_SMALLEST: Final = 20
