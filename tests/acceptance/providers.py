"""Memory systems: what all of them promise, on ReMe's libraries and under load."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from langgraph.store.memory import InMemoryStore

from acceptance.figure import Figure, Setting, share
from langgraft._core.canonical import JSON
from langgraft._core.errors import BankFormatError
from langgraft.memory.bank_format import write_items
from langgraft.memory.converters import REME, FieldSource, convert_jsonl
from langgraft.memory.forgetting import CREDITED, USES, noted_items
from langgraft.memory.model import (
    Add,
    BankContent,
    Episode,
    ErrorRecord,
    Lesson,
    MemoryDelta,
    MemoryItem,
    Outcome,
    Receipt,
    Remove,
    Step,
)
from langgraft.memory.provider import EPISODES, MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.recall import RecallContext

SETTINGS: Final[Mapping[str, Mapping[str, JSON]]] = {"coding": {"tasks": "all"}}
"""Settings under which a provider looks at entries of other tasks, as libraries are."""
OF_SUCCESS: Final = ("recency", "self_examples")
"""Providers that recall what comes from a success. A library does not tell; for these it is
declared one on conversion."""
DECLARED: Final = REME.model_copy(update={"success": FieldSource(constant=True)})
"""ReMe's field map, with every entry declared to come from a success."""
KEEPING: Final = tuple(name for name in PROVIDERS if name != "none")
"""Providers that keep what is imported."""
THREADS: Final = 16
ASKED: Final = 25
"""Entries of a library that are asked for by what they are to be found by."""


def measure(setting: Setting) -> list[Figure]:
    """Measure what holds for every memory system."""
    return [*_conformance(setting), *_libraries(setting), *_round_trips(setting), *_load(setting)]


# The suite --------------------------------------------------------------------------------


def _conformance(setting: Setting) -> list[Figure]:
    """Run the conformance suite over all providers, controls and stores."""
    promise = "The provider suite passes for all, on InMemoryStore, ChromaStore and PostgreSQL"
    tests = "tests/memory/testing/test_provider_conformance.py"
    if setting.reduced:
        return [Figure(promise, tests, "run with the tests", "", None)]
    setting.say("the suite of memory providers")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", tests, "-q", "-p", "no:cacheprovider"],
        cwd=setting.checkout,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().rpartition("\n")[2]
    passed = done.returncode == 0 and re.search(r"skipped|(?<!x)failed|error", last) is None
    bound = "all pass, none skipped, departures declared"
    return [Figure(promise, f"`pytest {tests}`", last.strip("= "), bound, passed)]


# Libraries --------------------------------------------------------------------------------


def library_folder(setting: Setting) -> Path:
    """Return where ReMe's libraries are, by `LANGGRAFT_DATA`."""
    given = os.environ.get("LANGGRAFT_DATA")
    return Path(given) / "reme" if given else setting.checkout.parent / "shared" / "data" / "reme"


def _libraries(setting: Setting) -> list[Figure]:
    """Import ReMe's libraries everywhere, ask for their entries, export them again."""
    paths = sorted(library_folder(setting).glob("*.jsonl"))
    if not paths:
        lacking = "no libraries: set LANGGRAFT_DATA to the folder that holds reme/"
        return [Figure("ReMe's libraries import into every provider", "", lacking, "", None)]
    kept = found = itself = asked = pruned = same = 0
    wrong: list[str] = []
    listed = 0
    for path in paths:
        listed += len(convert_jsonl(path, REME))
        for name in KEEPING:
            setting.say(f"{path.stem} into {name}")
            items = convert_jsonl(path, DECLARED if name in OF_SUCCESS else REME)
            bare = setting.work / f"{path.stem}.jsonl"
            write_items(bare, items)
            memory = _memory(name)
            delta = memory.import_items(bare)
            removed = {change.id for change in delta if isinstance(change, Remove)}
            left = [item for item in items if item.id not in removed]
            out = setting.work / f"{path.stem}-{name}.jsonl"
            memory.export_items(out)
            write_items(setting.work / "expected.jsonl", left)
            exported, expected = out.read_bytes(), (setting.work / "expected.jsonl").read_bytes()
            same += bool(left) and exported == expected
            kept, pruned = kept + len(left), pruned + len(removed)
            tried = left[:: max(1, len(left) // ASKED)]
            recalled = [_recalled(memory, item) for item in tried]
            found, asked = found + sum(map(bool, recalled)), asked + len(tried)
            itself += sum(item.id in ids for item, ids in zip(tried, recalled, strict=True))
            if not all(recalled):
                wrong.append(f"{path.stem} in {name}: {recalled.count(set())} without an answer")
    banks = len(paths) * len(KEEPING)
    how = f"{len(paths)} libraries, {listed:,} entries, into {len(KEEPING)} providers each"
    return [
        Figure(
            "ReMe's libraries import into every provider and export again, byte for byte",
            how,
            f"{share(same, banks)} banks; {kept:,} items kept, {pruned:,} pruned, as deltas say",
            "all banks",
            same == banks,
        ),
        Figure(
            "Asked by what it is to be found by, memory recalls something",
            f"about {ASKED} entries of each bank; for {' and '.join(OF_SUCCESS)}, declared successes",
            f"{share(found, asked, wrong)}; the entry itself is among {itself:,} of them, though some"
            " providers recall by age or usefulness and many entries share their words",
            "all",
            found == asked > 0,
        ),
        _torn(setting, paths),
    ]


def _memory(name: str, **settings: JSON) -> MemoryProvider[Any]:
    """Make a provider over an empty store."""
    return make_provider(name, InMemoryStore(), settings={**SETTINGS.get(name, {}), **settings})


def _recalled(memory: MemoryProvider[Any], item: MemoryItem) -> set[str]:
    """Return the ids of what memory recalls when asked by what an item is to be found by."""
    context = RecallContext(
        domain=item.source_domain,
        task_id="a task",
        episode_id="asking",
        episode_index=0,
        stage="debug",
        observation=item.retrieval_key,
    )
    return {each.id for each in memory.provide(item.retrieval_key, context).items}


def _torn(setting: Setting, paths: Sequence[Path]) -> Figure:
    """Tear the last line of each library off in the middle, as ReMe's and as bare content."""
    memory = _memory("simple_rag")
    memory.file(_episode(0))
    before = memory.content().to_bytes()
    bare, torn = setting.work / "bare.jsonl", setting.work / "torn.jsonl"
    refused = 0
    for path in paths:
        write_items(bare, convert_jsonl(path, REME))
        readers: dict[Path, Callable[[Path], object]] = {
            path: lambda file: convert_jsonl(file, REME),
            bare: memory.import_items,
        }
        for whole, read in readers.items():
            data = whole.read_bytes().rstrip(b"\n")
            torn.write_bytes(data[: -(len(data) - data.rindex(b"\n")) // 2])
            try:
                read(torn)
            except BankFormatError as error:
                refused += error.row == data.count(b"\n") + 1
    kept = memory.content().to_bytes() == before
    total = 2 * len(paths)
    return Figure(
        "A library with a torn last line is refused with its number, and nothing changes",
        f"{len(paths)} libraries, as they are and as bare content",
        f"{share(refused, total)}; the bank is {'as it was' if kept else 'another one'}",
        "all, as it was",
        kept and refused == total,
    )


# Banks of their own -----------------------------------------------------------------------


def _round_trips(setting: Setting) -> list[Figure]:
    """Fill every provider from a stream, and send its bank to another of the same kind."""
    count = setting.size(60, 20)
    same = 0
    for name in KEEPING:
        setting.say(f"{name}: export, import, export")
        memory, other = _memory(name), _memory(name)
        for number in range(count):
            memory.file(_episode(number))
        first, second = setting.work / f"{name}-1.jsonl", setting.work / f"{name}-2.jsonl"
        memory.export_items(first)
        delta = other.import_items(first)
        other.export_items(second)
        added = sum(isinstance(change, Add) for change in delta)
        same += bool(added) and first.read_bytes() == second.read_bytes()
    return [
        Figure(
            "Export, import, export: the same bytes, for the same provider within its capacity",
            f"{count} episodes in each of {len(KEEPING)} providers",
            share(same, len(KEEPING)),
            "all",
            same == len(KEEPING),
        )
    ]


def _episode(number: int, *, recalls: Sequence[Receipt] = ()) -> Episode:
    """Make an episode that holds something for every provider."""
    task = f"open door {number % 7} with key {number % 5}"
    return Episode(
        f"e{number}",
        "toy",
        f"task {number % 11}",
        task,
        (Step("", "", "a room"), Step(f"try {number}", "toggle", f"KeyError: 'door {number}'")),
        Outcome(success=number % 3 != 0),
        lessons=(Lesson(f"key {number % 5} fits door {number % 7}", f"you must {task}"),),
        errors=(ErrorRecord("numpy", f"KeyError: 'door {number}'", f"use door {number + 1}"),),
        recalls=tuple(recalls),
    )


# Load -------------------------------------------------------------------------------------


def _load(setting: Setting) -> list[Figure]:
    """File from many threads at once, every receipt twice."""
    count = setting.size(320, 96)
    kept: list[str] = []
    credited: list[str] = []
    for name in KEEPING:
        setting.say(f"{name} under {THREADS} threads")
        memory = _memory(name, credit=True)
        seen = _episode(1000)
        memory.file(seen)
        items = sorted(memory.content().items)
        receipts = [
            Receipt(f"r{number}", "q", 0, tuple(items[:1]), (1.0,), 1) for number in range(count)
        ]
        episodes = [_episode(n, recalls=receipts[n // 2 : n // 2 + 1]) for n in range(count)]
        with ThreadPoolExecutor(THREADS) as pool:
            deltas = list(pool.map(memory.file, [*episodes, *episodes]))
        content = memory.content()
        if content.state[EPISODES] == count + 1 and _holds(content, items, deltas):
            kept.append(name)
        marks = sum(key.startswith(CREDITED) for key in content.state)
        uses = sum(entry.count(USES) for entry in noted_items(content))
        if marks == uses == count // 2:
            credited.append(name)
    how = f"{count} episodes filed twice by {THREADS} threads, each receipt on two of them"
    lost = [name for name in KEEPING if name not in kept]
    double = [name for name in KEEPING if name not in credited]
    total = len(KEEPING)
    return [
        Figure(
            "No update is lost under threads",
            how,
            f"{share(len(kept), total, lost)} providers",
            "all",
            not lost,
        ),
        Figure(
            "No receipt gives credit twice",
            how,
            f"{share(len(credited), total, double)} providers",
            "all",
            not double,
        ),
    ]


def _holds(content: BankContent, before: Iterable[str], deltas: Iterable[MemoryDelta]) -> bool:
    """Say whether a bank holds what was there and what came, without what went."""
    changes = [change for delta in deltas for change in delta]
    came = {change.item.id for change in changes if isinstance(change, Add)}
    went = {change.id for change in changes if isinstance(change, Remove)}
    return bool(came) and content.items.keys() == (came | set(before)) - went
