"""Recall, write, cold open and memory of everybody in `contenders`, side by side, at one size.

All are open in one process and are asked the same in turns (`timing.in_turns`), so that what else the
machine does meets them alike. Opening and memory take a process each, forked from one that has
imported everything and used nothing.
"""

import gc
import logging
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Final, TypeAlias, TypeVar

from langgraft.benchmarks.performance.contenders import (
    LIMIT,
    Contender,
    Memory,
    Ranking,
    Record,
    Who,
    contenders,
    drop_schema,
)
from langgraft.benchmarks.performance.dense_search import DrawnEmbeddings
from langgraft.benchmarks.performance.lexical_search import documents, queries
from langgraft.benchmarks.performance.timing import Times, alone, in_turns, single_threaded

QUESTIONS: Final = 12
"""Queries; the vectors of as many are drawn beyond those of the records."""
COMPARED: Final = 3
"""Queries whose answers are compared with the floor's; a search of some takes seconds."""
BATCH: Final = 100
"""Records of a write."""
BATCHES: Final = 8
FINDS: Final = 6
"""Records that are written one at a time, with a search after each."""
OPENINGS: Final = 3
PATIENCE: Final = 15.0
"""Seconds of CPU that one contender is asked for in a table, before it is asked no more."""
LONGEST: Final = 240.0
"""Seconds of CPU that writing all records may take one contender."""

_CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Row:
    """One way to do what a section is about, at one size."""

    name: str
    who: Who
    times: Times
    """Of other sections than those of times, `cpu` has their figures and `wall` the same."""
    size: int | None = None
    durable: bool | None = None
    """`None`: nothing is kept."""
    exact: bool | None = None
    server: bool = False
    agreement: float | None = None
    """Share of the floor's best ten that it found."""


@dataclass(slots=True)
class Section:
    """A table of the page."""

    name: str
    title: str
    method: str
    """What is measured, and how."""
    unit: str = "ms"
    rows: list[Row] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    """What is not measured, and why."""
    more_is_better: bool = False


_SECTIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "recall": (
        "Recall",
        f"A search among so many records for the best {LIMIT}, of {QUESTIONS} queries that all are asked.",
        "ms",
    ),
    "write": (
        "Write",
        f"A batch of {BATCH} new records into a memory of so many, until it returns.",
        "ms",
    ),
    "found": (
        "Write, then find",
        "One new record and the search after it, with what bringing the index up to date takes.",
        "ms",
    ),
    "open": (
        "Cold open",
        "From a file to the first answer, in a process that has imported everything and used nothing.",
        "ms",
    ),
    "memory": (
        "Memory",
        "Resident memory gained up to the first answer, by opening what is durable, or by writing it all.",
        "MB",
    ),
}
_TOPICS: Final[Mapping[Ranking, str]] = {"words": "by words", "vectors": "by vectors"}


def sections(
    ranks: Ranking, sizes: Sequence[int], work: Path, *, rounds: int = 3
) -> Iterator[list[Section]]:
    """Measure all who rank alike, and yield the sections as far as they are after each size.

    Args:
        ranks: By what.
        sizes: Numbers of records.
        work: An empty folder.
        rounds: How often each question is asked; the best counts.
    """
    made = {
        name: Section(f"{name}-{ranks}", f"{title}, {_TOPICS[ranks]}", method, unit)
        for name, (title, method, unit) in _SECTIONS.items()
    }
    there = [each for each in contenders(ranks) if not each.lacking()]
    for each in contenders(ranks):
        for name, section in made.items():
            why = each.lacking() or _no_part(each, name)
            if why:
                section.missing[each.name] = why
    for size in sizes:
        found = _measured(ranks, there, size, work / f"{ranks}-{size}", rounds)
        for name, section in made.items():
            section.rows += _rows(there, found, name, size)
            for slow, why in found.slow.items():
                section.missing[f"{slow}, {size:,} records"] = why
        yield list(made.values())


def _no_part(each: Contender, section: str) -> str:
    """Say why a contender has no part in a section; nothing, if it has."""
    if section == "write":
        return "" if each.adds else "it takes in no record: see Write, then find"
    if not each.searches:
        return "it ranks nothing by words"
    if section == "open" and not each.reopens:
        return "it keeps nothing: all has to be written again"
    return ""


def _measured(
    ranks: Ranking, there: Sequence[Contender], size: int, folder: Path, rounds: int
) -> "Measured":
    found = alone(measure, ranks, [each.name for each in there], size, folder, rounds)
    left = [each for each in there if each.name not in found.slow and each.searches]
    try:
        found.times.update(_processes(ranks, left, size, folder))
    finally:
        for each in there:
            drop_schema(_place(folder, each))
        shutil.rmtree(folder)
    return found


@dataclass(slots=True)
class Measured:
    """What one process found."""

    times: dict[tuple[str, str], Times]
    """By section and contender."""
    agreement: dict[str, float]
    slow: dict[str, str]
    """Who would have taken too long, and how long."""


def measure(ranks: Ranking, names: Sequence[str], size: int, folder: Path, rounds: int) -> Measured:
    """Fill the memory of each, and ask all in turns; meant for `alone`."""
    logging.disable(logging.WARNING)
    embeddings, asked = _embeddings(ranks, size), _queries(ranks, size)
    memories: dict[Contender, Memory] = {}
    slow: dict[str, str] = {}
    with ExitStack() as opened:
        for each in _chosen(ranks, names):
            place = _place(folder, each)
            place.mkdir(parents=True)
            memory = each.open(place, embeddings)
            opened.callback(memory.close)
            why = _fill(memory, _records(ranks, size))
            if why:
                slow[each.name] = why
            else:
                memories[each] = memory
        searching = {each.name: memory for each, memory in memories.items() if each.searches}
        adding = {each.name: memory for each, memory in memories.items() if each.adds}
        answers = {
            name: [memory.search(query) for query in asked[:COMPARED]]
            for name, memory in searching.items()
        }
        new = {each.name: _new_records(ranks) for each in memories}

        def write(name: str, _: object) -> None:
            adding[name].write(list(islice(new[name], BATCH)))

        def find(name: str, query: str) -> None:
            searching[name].write(list(islice(new[name], 1)))
            searching[name].search(query)

        def ask(name: str, query: str) -> None:
            searching[name].search(query)

        times = _in_turns("recall", searching, ask, asked, rounds)
        times |= _in_turns("write", adding, write, range(BATCHES), rounds)
        # Last, so that no index lags behind when it is saved.
        times |= _in_turns("found", searching, find, asked[:FINDS], 1)
    floor = next(each.name for each in memories if each.who == "floor")
    return Measured(times, _agreement(answers, floor), slow)


Q = TypeVar("Q")
_Found: TypeAlias = dict[tuple[str, str], Times]


def _in_turns(
    section: str,
    names: Iterable[str],
    ask: Callable[[str, Q], None],
    questions: Sequence[Q],
    rounds: int,
) -> _Found:
    asks = {name: partial(ask, name) for name in names}
    found = in_turns(asks, questions, rounds=rounds, seconds=PATIENCE)
    return {(section, name): times for name, times in found.items()}


def _fill(memory: Memory, records: Sequence[Record]) -> str:
    """Write all records; if that takes too long, stop and say so."""
    started = time.process_time()
    for start in range(0, len(records), _CHUNK):
        memory.write(records[start : start + _CHUNK])
        took = time.process_time() - started
        if took > LONGEST:
            done = min(start + _CHUNK, len(records))
            return f"writing the first {done:,} took {took:.0f} s of CPU, and it was stopped there"
    return ""


def _embeddings(ranks: Ranking, size: int) -> DrawnEmbeddings:
    return DrawnEmbeddings(size if ranks == "vectors" else 0)


def _records(ranks: Ranking, size: int) -> list[Record]:
    """Return the records; where numbers are texts, the keys are the texts."""
    texts = documents(size) if ranks == "words" else map(str, range(size))
    return [(str(number), text) for number, text in enumerate(texts)]


def _queries(ranks: Ranking, size: int) -> list[str]:
    return queries(QUESTIONS) if ranks == "words" else [str(size + i) for i in range(QUESTIONS)]


def _new_records(ranks: Ranking) -> Iterator[Record]:
    """Yield further records, the same for all; their texts come round again where they are of words."""
    texts = documents(_CHUNK)
    for number in count():
        key = f"n{number}"
        yield key, texts[number % _CHUNK] if ranks == "words" else key


def _agreement(answers: Mapping[str, list[list[str]]], floor: str) -> dict[str, float]:
    """Return which share of the floor's best each one found, over all queries."""
    return {
        name: fmean(
            len({*ours} & {*best}) / len(best)
            for ours, best in zip(found, answers[floor], strict=True)
        )
        for name, found in answers.items()
    }


def _place(folder: Path, contender: Contender) -> Path:
    return folder / re.sub(r"\W+", "-", contender.name)


def _chosen(ranks: Ranking, names: Collection[str]) -> list[Contender]:
    return [each for each in contenders(ranks) if each.name in names]


# A process each -------------------------------------------------------------------------------

_IMPORTED: Final = (
    __name__,
    "bm25s",
    "chromadb",
    "langgraph.store.sqlite",
    "langgraph.store.postgres",
    "langmem",
    "mem0",
    "psycopg",
    "pysqlite3.dbapi2",
    "qdrant_client",
    "sqlite_vec",
)


def _processes(ranks: Ranking, left: Sequence[Contender], size: int, folder: Path) -> _Found:
    """Measure what opening takes and what stays in memory, in turns, a process for each time."""
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    taken: dict[str, list[_Opened]] = {each.name: [] for each in left}
    with single_threaded():
        for number in range(OPENINGS):
            for each in left:
                if each.reopens or number == 0:
                    with ProcessPoolExecutor(1, mp_context=context) as pool:
                        done = pool.submit(_open, ranks, each.name, size, folder)
                        taken[each.name].append(done.result())
    found: _Found = {}
    for each in left:
        opened = taken[each.name]
        grown = tuple(one.megabytes for one in opened)
        found["memory", each.name] = Times(grown, grown)
        if each.reopens:
            found["open", each.name] = Times(
                tuple(one.cpu * 1e3 for one in opened), tuple(one.wall * 1e3 for one in opened)
            )
    return found


@dataclass(frozen=True, slots=True)
class _Opened:
    cpu: float
    wall: float
    megabytes: float


def _open(ranks: Ranking, name: str, size: int, folder: Path) -> _Opened:
    """Open a memory, fill it where it keeps nothing, and ask it once."""
    logging.disable(logging.WARNING)
    (each,) = _chosen(ranks, [name])
    embeddings, query = _embeddings(ranks, size), _queries(ranks, size)[0]
    gc.collect()
    before, cpu, wall = _resident(), time.process_time(), time.perf_counter()
    memory = each.open(_place(folder, each), embeddings)
    if not each.reopens:
        _fill(memory, _records(ranks, size))
    memory.search(query)
    took = time.process_time() - cpu, time.perf_counter() - wall
    gc.collect()
    found = _Opened(*took, (_resident() - before) / 1e6)
    memory.close()
    return found


def _resident() -> float:
    """Return the bytes of this process that are in memory; where the system does not say, the most there were."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most * (1 if sys.platform == "darwin" else 1024)
    return pages * os.sysconf("SC_PAGE_SIZE")


def _rows(there: Sequence[Contender], found: Measured, section: str, size: int) -> Iterator[Row]:
    for each in there:
        times = found.times.get((section, each.name))
        if times is not None:
            agreement = found.agreement.get(each.name) if section == "recall" else None
            yield Row(
                each.name,
                each.who,
                times,
                size,
                durable=each.durable,
                exact=each.exact,
                server=each.server,
                agreement=agreement,
            )
