"""Where runs keep their banks: apart from each other, and from what others left."""

import asyncio
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import storms
from chain_study import ChainPlan, ChainStudy, chain_plan, log_bytes, run_chain
from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from postgres_server import Schemas
from psycopg.conninfo import conninfo_to_dict
from typing_extensions import override

from langgraft._core.errors import (
    InfrastructureError,
    InputError,
    ResumeRefusedError,
    RunDirectoryError,
)
from langgraft.benchmarks.harness import directory
from langgraft.benchmarks.harness.directory import hold_places
from langgraft.benchmarks.harness.log import PlanLog, read_events, run_folder
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.schedule import Shard, run_plan
from langgraft.benchmarks.harness.study import BankPlace, RunSession, RunSpec
from langgraft.benchmarks.studies import choose
from langgraft.memory.model import MemoryDelta

PREPARED = prepare(ChainStudy(), chain_plan())

DATABASE = "postgresql://127.0.0.1/banks"


class Keeper(ChainStudy):
    """Puts a record into the place of each run, and notes what was there before."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {}
        self.places: dict[str, BankPlace] = {}

    @override
    def open(
        self,
        plan: ChainPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> RunSession:
        self.places[run.name] = place
        there = place.store.search(place.namespace, limit=100)
        self.found[run.name] = [item.key for item in there]
        place.store.put((*place.namespace, "bank"), run.name, {"n": 1})
        return super().open(plan, run, deltas, model, place)


class Database(InMemoryStore):
    """A store that can be down."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        if self.down:
            raise InfrastructureError("the database does not answer")
        return super().batch(ops)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Database:
    """Have `DATABASE` stand for one store that outlives a plan, as a database does."""
    store = Database()

    class Opened:
        def __enter__(self) -> BaseStore:
            return store

        def __exit__(self, *_: object) -> None:
            """Keep it."""

    monkeypatch.setattr(directory, "open_store", lambda _: Opened())
    return store


def records(store: BaseStore) -> list[str]:
    """Return the keys of all records."""
    return sorted(item.key for item in store.search((), limit=1000))


async def test_places_when_runs_go_on_then_share_a_store_and_no_namespace(
    tmp_path: Path, shared: Database
) -> None:
    """Each run has a namespace of its own in the one store, and leaves nothing there."""
    study = Keeper()
    await run_chain(tmp_path, study=study, concurrency=4, store=DATABASE)
    assert len(study.places) == len(PREPARED.graph)
    assert len({place.namespace for place in study.places.values()}) == len(PREPARED.graph)
    assert all(place.store is shared for place in study.places.values())
    assert set(map(tuple, study.found.values())) == {()}
    assert records(shared) == []


async def test_places_in_memory_when_runs_go_on_then_share_no_store(tmp_path: Path) -> None:
    """Runs are opened in threads, and a store in memory is not made for two of them at once."""
    study = Keeper()
    await run_chain(tmp_path, study=study, concurrency=4)
    stores = [place.store for place in study.places.values()]
    assert len({id(store) for store in stores}) == len(stores) == len(PREPARED.graph)
    assert [key for store in stores for key in records(store)] == []


async def test_places_when_a_killed_process_left_records_then_a_run_does_not_see_them(
    tmp_path: Path, shared: Database
) -> None:
    """What lies in a run's namespace is gone before the run is opened; what lies beside it stays."""
    out = tmp_path / "out"
    with hold_places(out, PREPARED, DATABASE) as here:
        left = [here.of(run).namespace for run in PREPARED.graph]
    for namespace in left:
        shared.put(namespace, "left", {"n": 0})
        shared.put((*namespace, "bank"), "left below", {"n": 0})
    shared.put(("langgraft", "mine"), "mine", {"n": 0})
    study = Keeper()
    await run_chain(out, study=study, store=DATABASE)
    assert {run.name for run in PREPARED.graph} == set(study.found)
    assert set(map(tuple, study.found.values())) == {()}
    assert records(shared) == ["mine"]


async def test_places_when_directories_share_a_database_then_are_apart(
    tmp_path: Path, shared: Database
) -> None:
    """A copy of a run directory does not share the banks of the original."""
    first, copy = tmp_path / "first", tmp_path / "copy"
    with hold_places(first, PREPARED, DATABASE):
        pass
    shutil.copytree(first, copy)
    with (
        hold_places(first, PREPARED, DATABASE) as one,
        hold_places(copy, PREPARED, DATABASE) as other,
    ):
        run = next(iter(PREPARED.graph))
        assert one.of(run).namespace != other.of(run).namespace
    with hold_places(first, PREPARED, DATABASE) as again:
        assert again == one


def test_places_when_machines_share_a_directory_are_the_same_and_caches_are_not(
    tmp_path: Path, shared: Database
) -> None:
    """What a machine left in a database is emptied by the next one, by whatever path it comes."""
    out, elsewhere, run = tmp_path / "out", tmp_path / "mounted", next(iter(PREPARED.graph))
    with hold_places(out, PREPARED, DATABASE, part="0-of-2") as one:
        pass
    elsewhere.symlink_to(out)
    with hold_places(elsewhere, PREPARED, DATABASE, part="1-of-2") as other:
        assert one.of(run).namespace == other.of(run).namespace
    parts = [each.of(run).files for each in (one, other)]
    assert [each and each.shared for each in parts] == [
        out / "shared" / "0-of-2",
        elsewhere / "shared" / "1-of-2",
    ]


@pytest.mark.matrix
async def test_shards_when_banks_lie_on_postgresql_have_the_bytes_of_memory(
    tmp_path: Path, postgres: Schemas
) -> None:
    """Machines may share a database for banks, and leave nothing there."""
    plan = storms.write_plan(tmp_path / "plan.yaml", runs=1, items=2)
    prepared = choose(str(plan), model="simulated", base_url=None, limit=None)
    model_for = prepared.study.simulated_model
    options = conninfo_to_dict(postgres.new())["options"]
    database = f"{postgres.uri}{'&' if '?' in postgres.uri else '?'}options={quote(str(options))}"
    await run_plan(prepared, tmp_path / "memory", model_for=model_for)
    shards = [
        run_plan(
            prepared, tmp_path / "out", model_for=model_for, shard=Shard(index, 2), store=database
        )
        for index in range(2)
    ]
    assert all(each.complete for each in await asyncio.gather(*shards))
    assert log_bytes(tmp_path / "out") == log_bytes(tmp_path / "memory")
    events = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("events.jsonl"))
    assert events.count(b'"postgresql"') == len(prepared.graph)
    assert records(postgres.store(database)) == []


async def test_plan_when_gone_on_with_over_another_store_then_ends_with_the_same_bytes(
    tmp_path: Path,
) -> None:
    """The store of a directory is nobody's business but the process's."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    await run_chain(whole)

    def fail(run: str, item: str) -> None:
        if item == "item-4":
            raise InfrastructureError("no luck")

    outcome = await run_chain(parts, study=ChainStudy(fail), store="chroma")
    assert not outcome.complete
    shutil.rmtree(parts / "store")
    assert (await run_chain(parts, store="memory")).complete
    assert log_bytes(parts) == log_bytes(whole)
    folder = run_folder(parts, PlanLog(parts).graph["0/first"])
    kinds = [event["text"] for event in read_events(folder / "events.jsonl") if "text" in event]
    assert [kind for kind in kinds if kind in {"chroma", "memory"}] == ["chroma", "memory"]
    assert b"chroma" not in b"".join(log_bytes(parts).values())


@pytest.mark.parametrize(
    "store", ["nonsense", "chroma:", "postgresql://127.0.0.1:1/x", "http://127.0.0.1:1"]
)
def test_store_when_it_cannot_be_opened_then_nothing_is_written(store: str, tmp_path: Path) -> None:
    """A wrong name or a server that is down stops before a directory is made."""
    with pytest.raises(InputError):
        asyncio.run(run_chain(tmp_path / "out", store=store))
    assert list(tmp_path.iterdir()) == []


async def test_store_when_the_directory_is_another_plans_then_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that cannot be used leaves every store as it is."""
    out, foreign = tmp_path / "out", tmp_path / "foreign"
    await run_chain(out)
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("precious")

    def opened(_: str) -> Any:
        raise AssertionError

    monkeypatch.setattr(directory, "open_store", opened)
    for store in ("memory", "chroma", f"chroma:{tmp_path / 'bank'}"):
        with pytest.raises(ResumeRefusedError):
            await run_chain(out, chain_plan(items=3), store=store)
        with pytest.raises(RunDirectoryError):
            await run_chain(foreign, store=store)
    assert [path.name for path in foreign.iterdir()] == ["thesis.tex"]


async def test_store_when_it_fails_then_the_run_ends_unscored_and_can_be_resumed(
    tmp_path: Path, shared: Database
) -> None:
    """A database that goes away is a failure of the world: the run is stopped, not wrong."""
    shared.down = True
    outcome = await run_chain(tmp_path, store=DATABASE)
    assert {run.status for run in outcome.runs} == {"failed", "blocked"}
    assert any("the database does not answer" in run.message for run in outcome.runs)
    shared.down = False
    assert (await run_chain(tmp_path, store=DATABASE)).complete


async def test_store_when_it_fails_as_a_run_ends_then_the_results_stand(
    tmp_path: Path, shared: Database
) -> None:
    """Records that could not be removed change no result; the event log says so."""

    def last(run: str, item: str) -> None:
        shared.down = (run, item) == ("0/first", "item-5")

    plan = chain_plan(streams=1, probes=())
    outcome = await run_chain(tmp_path, plan, ChainStudy(last), store=DATABASE)
    assert {run.name: run.status for run in outcome.runs}["0/first"] == "done"
    folder = run_folder(tmp_path, PlanLog(tmp_path).graph["0/first"])
    (note,) = [each for each in read_events(folder / "events.jsonl") if each["event"] == "untidy"]
    assert note["text"].startswith("emptying the store failed: InfrastructureError")
