"""Erasure: canaries in banks, indexes, caches and run directories, and every byte searched afterwards."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from chain_study import chain_plan, run_chain
from chroma_server import chroma_server
from langchain_core.outputs import Generation
from memory_cases import asking, make_episode
from postgres_server import HOW_TO_GET_IT, available, running_server
from provider_variants import REGISTERED

from acceptance.command import worker_environment
from acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.erasing import ResponsePlace, RunDirectory
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.memory.embedders import SQLiteVectors
from langgraft.memory.erasure import Ledger, Place, VectorPlace, Wanted, erase
from langgraft.memory.erasure.places import found_in
from langgraft.memory.model import Episode
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.stores.named import open_store
from langgraft.memory.testing.providers.base import sample_episode, with_every_text

PHRASE: Final = 'zanzibar-7431 ü "quoted"'
_WORD: Final = "zanzibar-7431"
_WRITERS: Final = 16
_KILLED: Final = {"sqlite": "SQLite", "chroma": "Chroma", "run": "a run directory"}


def measure(setting: Setting) -> list[Figure]:
    """Erase everywhere; forge receipts; kill; file from threads meanwhile."""
    figures: list[Figure] = []
    with ExitStack() as opened:
        specs = {"sqlite": "", "chroma": "", "memory": "memory"}
        if available():
            specs["PostgreSQL"] = opened.enter_context(running_server())
        else:
            figures.append(Figure("Erasure from PostgreSQL", HOW_TO_GET_IT, "", "all", False))
        specs["a Chroma server"] = opened.enter_context(chroma_server())
        for kind, spec in specs.items():
            setting.say(f"one episode erased from every provider in {kind}")
            figures.append(_providers(setting.work / kind.replace(" ", "-"), kind, spec))
    setting.say("an item erased from a run directory")
    figures += _runs(setting.work / "runs")
    setting.say(f"{_WRITERS} threads file while an episode is erased")
    figures.append(_threads(setting.work / "threads", setting.size(2000, 160)))
    figures.append(_forged(setting.work / "forged", setting.size(10_000, 500)))
    for kind in ("sqlite", "chroma", "run"):
        setting.say(f"an erasure killed at its steps, in {_KILLED[kind]}")
        figures.append(_killed(setting.work / f"killed-{kind}", kind, setting.size(1, 12)))
    return figures


def _providers(folder: Path, kind: str, spec: str) -> Figure:
    names = [name for name in PROVIDERS if name != "none"]
    wrong: list[str] = []
    for name in names:
        place = folder / name
        place.mkdir(parents=True)
        wrong += [
            f"{name}: {each}" for each in _one(place, name, spec or f"{kind}:{place / 'bank'}")
        ]
    good = len(names) - len({each.partition(":")[0] for each in wrong})
    return Figure(
        f"An erased episode is in no byte of bank, indexes and caches, others are as they were: {kind}",
        "every provider with an index kept, raw bytes as UTF-8, UTF-16 and escaped, free pages of SQLite and"
        " Chroma included; of a server, what lies on this machine beside it",
        share(good, len(names), wrong),
        "all",
        not wrong,
    )


def _one(place: Path, name: str, spec: str) -> Iterator[str]:
    part = REGISTERED[name]()
    vectors, cache = place / "vectors.sqlite", place / "responses.sqlite"
    told = with_every_text(sample_episode(2), PHRASE)
    with open_store(spec) as store, ResponseCache(cache) as replies:
        memory = make_provider(name, store, settings={}, namespace=("canary", name))
        for number in range(12):
            episode = told if number == 2 else sample_episode(number)
            memory.file(part.judged(memory, episode))
            memory.provide(*part.asks(episode))
        replies.update(json.dumps([told.task]), "model", [Generation(text="ok")])
        replies.update(json.dumps(["other"]), "model", [Generation(text="ok")])
        before = memory.content()
        kept = SQLiteVectors(vectors)
        places: list[Place] = [VectorPlace(kept), ResponsePlace(cache)]
        receipt = erase(memory, episode=told, ledger=Ledger(place / "ledger"), places=places)
        after = memory.content()
        kept.close()
        if not receipt.complete:
            yield f"the receipt says that something is left: {receipt.places}"
        if _WORD in after.to_bytes().decode():
            yield "the bank says it"
        if after.items != {i: x for i, x in before.items.items() if x.episode_id != told.id}:
            yield "other items changed"
        if len(replies) != 1:
            yield "replies"
    yield from (f"{path.name} says it" for path in found_in([place], Wanted(phrases=(_WORD,))))


def _runs(folder: Path) -> list[Figure]:
    out = folder / "run"
    asyncio.run(run_chain(out, chain_plan(streams=2, items=6)))
    log = PlanLog(out)
    item = next(iter(log.bank("0/first", 3).items.values()))
    before = {path: path.read_bytes().splitlines() for path in out.glob("runs/*/items.jsonl")}
    places = [RunDirectory(out)]
    receipt = erase([], item=item.id, ledger=Ledger(folder / "ledger"), places=places)
    wanted = Wanted(phrases=(item.text,))
    left = [str(path) for path in found_in([folder], wanted)]
    form = json.dumps(item.text, ensure_ascii=False)[1:-1].encode()
    same = [
        old == new
        for path, lines in before.items()
        for old, new in zip(lines, path.read_bytes().splitlines(), strict=True)
        if form not in old
    ]
    findings = [each for each in verify_directory(out) if not each.on_request]
    named = any(each.on_request for each in verify_directory(out))
    outcome = asyncio.run(run_chain(out, chain_plan(streams=2, items=6)))
    good = receipt.complete and not findings and named and outcome.exit_code == 0
    how = "six streams and four probes, an item that later banks start from"
    return [
        Figure(
            "An erased item is in no byte of a run directory",
            how,
            f"{len(left)} files",
            "0",
            not left,
        ),
        Figure(
            "Lines that do not say it are the same bytes",
            how,
            share(sum(same), len(same)),
            "all",
            all(same),
        ),
        Figure(
            "The directory verifies, names the receipt, and is gone on with",
            how,
            str(findings),
            "[]",
            good,
        ),
    ]


def _threads(folder: Path, count: int) -> Figure:
    listed = [make_episode(f"w{n}", task=f"task {n} of many") for n in range(count)]
    with open_store(f"sqlite:{folder / 'bank.sqlite'}") as store:
        memory = make_provider("insight", store, settings={})
        memory.file(with_every_text(make_episode("told"), PHRASE))

        def file(episode: Episode) -> None:
            memory.file(episode)
            memory.provide(episode.task, asking())

        with ThreadPoolExecutor(_WRITERS) as pool:
            filed = [pool.submit(file, episode) for episode in listed]
            receipt = erase(memory, episode="told", ledger=Ledger(folder / "ledger"))
            for each in filed:
                each.result()
        found = {
            item.id: {**item.to_json(), "order_index": 0}
            for item in memory.content().items.values()
        }
    with open_store("memory") as store:
        quiet = make_provider("insight", store, settings={})
        for episode in listed:
            quiet.file(episode)
        wanted = {
            item.id: {**item.to_json(), "order_index": 0} for item in quiet.content().items.values()
        }
    left = found_in([folder], Wanted(phrases=(_WORD,)))
    good = sum(found.get(identity) == item for identity, item in wanted.items())
    return Figure(
        f"{_WRITERS} threads that file during an erasure lose nothing, and nothing of it is left",
        f"{count} episodes on SQLite, items compared but for their number in the order of filing",
        share(good, len(wanted), [str(path) for path in left]),
        "all",
        found == wanted and not left and receipt.complete,
    )


def _forged(folder: Path, count: int) -> Figure:
    memory: Any = []
    ledger = Ledger(folder)
    erase(memory, item="anything", ledger=ledger, mentions=["a phrase"])
    (receipt,) = ledger.receipts()
    line = receipt.line()
    refused = 0
    for number in range(count):
        at, bit = number * 7919 % len(line), 1 << number % 7
        forged = line[:at] + bytes([line[at] ^ bit]) + line[at + 1 :]
        (folder / "receipts.jsonl").write_bytes(forged)
        try:
            refused += bool(ledger.verify()) or not list(ledger.receipts())
        except ValueError:
            refused += 1
        except Exception as error:  # noqa: BLE001  (named as what it is)
            refused += type(error).__name__ == "InputError"
    (folder / "receipts.jsonl").write_bytes(line)
    return Figure(
        "A receipt verifies; changed in any bit it does not",
        f"{count:,} changes of one bit",
        share(refused, count),
        "all",
        refused == count and ledger.verify() == [],
    )


def _killed(folder: Path, kind: str, stride: int) -> Figure:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    worker = Path(__file__).parents[1] / "support" / "erasure_crashes.py"
    program = [sys.executable, str(worker), kind, str(folder), str(stride)]
    done = subprocess.run(
        program, env=worker_environment(), capture_output=True, text=True, check=False
    )
    told: dict[str, Any] = {"steps": 0, "killed": 0, "hung": 0, "wrong": [done.stderr]}
    if done.returncode == 0:
        told = json.loads(done.stdout)
    good = told["killed"] - len(told["wrong"])
    return Figure(
        f"An erasure killed at any step is ended by the next one, with one receipt: {_KILLED[kind]}",
        f"kill -9 before and after system calls and statements that write and steps of the store, every"
        f" {stride}th of {told['steps']}; once there is a receipt, bytes are searched right then too;"
        f" {told['hung']} processes hung and were killed once more",
        share(good, told["killed"], told["wrong"]),
        "all",
        told["killed"] > 0 and not told["wrong"],
    )
