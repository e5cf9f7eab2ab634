"""Runs shared by several processes: the same bytes, whoever dies."""

import asyncio
import os
import shutil
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest
import storms
from chain_study import ChainPlan, ChainStudy, chain_plan, log_bytes, run_chain
from warm_python import begin_server, forking, started, started_script

from langgraft._core.errors import (
    InfrastructureError,
    RunDirectoryError,
    SettingsError,
    StudyError,
)
from langgraft.benchmarks.harness import directory, processes, schedule
from langgraft.benchmarks.harness.directory import hold_directory, hold_shard
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.processes import Message, Work, Worker
from langgraft.benchmarks.harness.progress import NoProgress, ProgressEvent
from langgraft.benchmarks.harness.schedule import Shard
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.benchmarks.simulated.faults import Fault, FaultKind
from langgraft.benchmarks.simulated.server import serve
from langgraft.benchmarks.studies import read_plan
from langgraft.cli.serving import learners

pytestmark = pytest.mark.kill  # each process takes seconds to start


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have processes forked with everything loaded; the tests without it are of their start, too."""
    begin_server()
    monkeypatch.setattr(processes, "get_context", forking)


def helpers(out: Path) -> list[int]:
    """Return the processes that carry out runs in a directory: each holds the lock of its number."""
    held = {}
    for line in Path("/proc/locks").read_text("ascii").splitlines():
        kind, *_, process, place, _, _ = line.split()[1:]
        if kind == "FLOCK":
            held[place] = int(process)
    return [
        held[place] for place in map(_place, sorted(out.glob("process-*.lock"))) if place in held
    ]


def _place(file: Path) -> str:
    """Return what `/proc/locks` calls a file."""
    found = file.stat()
    return f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text("utf-8")
    except OSError:
        return ""


class Killing(NoProgress):
    """Kills a process after some of the items that are committed; keeps what is noted."""

    def __init__(self, out: Path, *after: int) -> None:
        self.killed: list[int] = []
        self.notes: list[str] = []
        self._out = out
        self._after = after
        self._items = 0

    def report(self, event: ProgressEvent) -> None:
        """Count an item, or keep a note."""
        if event.kind == "note":
            self.notes.append(event.text)
        if event.kind == "item":
            self._items += 1
            if self._items in self._after:
                # The one killed before may take a while to be gone.
                living = (each for each in helpers(self._out) if each not in self.killed)
                self.killed.append(next(living))
                os.kill(self.killed[-1], signal.SIGKILL)


class Losing(ChainStudy):
    """Loses its database at one item."""

    def __init__(self) -> None:
        super().__init__(lose)


def lose(run: str, item: str) -> None:
    """Fail at one item of one run."""
    if (run, item) == ("0/first", "item-3"):
        msg = "the database went away"
        raise InfrastructureError(msg)


async def test_plan_when_shared_by_processes_then_logs_are_the_same_bytes(tmp_path: Path) -> None:
    """Who carries out a run decides nothing; sources are waited for across processes."""
    plan = chain_plan(streams=3, probes=(0, 3))
    await run_chain(tmp_path / "one", plan)
    outcome = await run_chain(tmp_path / "two", plan, processes=2)
    assert outcome.complete
    assert log_bytes(tmp_path / "one") == log_bytes(tmp_path / "two")
    assert verify_directory(tmp_path / "two") == []


@pytest.mark.usefixtures("forked")
async def test_process_when_killed_then_its_runs_go_on_in_another(tmp_path: Path) -> None:
    """Two processes killed in the middle of items lose nothing that was committed."""
    plan = chain_plan(pause=0.05)
    told = Killing(tmp_path / "two", 3, 20)
    outcome = await run_chain(tmp_path / "two", plan, processes=2, progress=told)
    assert len(set(told.killed)) == 2
    assert outcome.complete
    # Where something was still on its way to it, the system says so; and one may be long in dying.
    deaths = [note for note in told.notes if "out of reach" not in note]
    assert [note.split(": ")[0][-5:] for note in deaths] == [" died", " died"]
    await run_chain(tmp_path / "one", plan)
    assert log_bytes(tmp_path / "one") == log_bytes(tmp_path / "two")


async def test_calls_of_two_processes_are_as_many_as_allowed_also_once_one_died(
    tmp_path: Path,
) -> None:
    """One limit holds for both: neither has more for the other, and what a dead one held is given back.

    How many a server bears is judged by the calls of all (`test_inflight.py`).
    """
    path = storms.write_plan(tmp_path / "plan.yaml", runs=1, items=1, test_items=2)
    prepared = prepare(*read_plan(path))
    seen, begun, killed = list[int](), asyncio.Event(), 0

    def slow(call: int) -> Fault:
        seen.append(server.under_way)
        if call == 10:
            begun.set()
        # There is time to kill one of them; and later on a call waits for one beside it, until two were seen.
        later = call - killed >= 20 and 2 not in seen[killed + 20 :]
        waits = later if killed else call >= 10
        return Fault(FaultKind.SLOW_FIRST_BYTE, seconds=1.0 if waits else 0.05)

    async with serve(learners(prepared), faults=slow) as server:
        words = ("run", path, "--out", tmp_path / "out", "--base-url", server.base_url)
        more = ("--processes", 2, "--concurrency", 2)
        with await asyncio.to_thread(started, *words, *more) as running:
            await begun.wait()
            os.kill(helpers(tmp_path / "out")[0], signal.SIGKILL)
            killed = len(seen)
            ended = await asyncio.to_thread(running.ended)
        assert ended.returncode == 0, ended.stderr
    # In between, what the dead one had asked is answered.
    assert max(seen[:killed]) <= max(seen[killed + 20 :]) == 2
    assert verify_directory(tmp_path / "out") == []


class Dying(ChainStudy):
    """Dies at some items of a run.

    Args:
        items: Which.
        marks: Folder with a mark of each death, of which each item has one; `None`: they have many.
    """

    def __init__(self, *items: str, marks: Path | None = None) -> None:
        super().__init__(partial(die, items, marks))


def die(items: Sequence[str], marks: Path | None, run: str, item: str) -> None:
    """End the process at items of one run."""
    if run != "0/first" or item not in items:
        return
    if marks is not None:
        if (marks / item).exists():
            return
        (marks / item).touch()
    os._exit(1)


@pytest.mark.usefixtures("forked")
async def test_processes_when_they_die_now_and_then_are_started_anew_as_often_as_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines that come and go stop no plan, as long as items are committed in between."""
    monkeypatch.setattr(processes, "_DEATHS", 1)
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    plan, study = chain_plan(streams=1), Dying("item-1", "item-3", "item-5", marks=deaths)
    outcome = await run_chain(tmp_path / "out", plan, study, start=processes._Spawned)
    assert _names(deaths) == ["item-1", "item-3", "item-5"]
    assert outcome.complete
    await run_chain(tmp_path / "one", plan)
    assert log_bytes(tmp_path / "out") == log_bytes(tmp_path / "one")


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("forked")
async def test_processes_when_all_die_at_one_item_stop_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that kills whoever works on it is named by its run, and not paid for again and again."""
    monkeypatch.setattr(processes, "_DEATHS", 1)
    with pytest.raises(StudyError, match="2 processes died that carried out runs, '0/first' last"):
        await run_chain(tmp_path, chain_plan(streams=1), Dying("item-3"), start=processes._Spawned)


@pytest.mark.usefixtures("forked")
async def test_run_when_the_world_fails_in_a_process_then_others_go_on(tmp_path: Path) -> None:
    """What ends a run there is told here as if it had ended here."""
    outcome = await run_chain(tmp_path, chain_plan(), Losing(), processes=2)
    found = {run.name: (run.status, run.message) for run in outcome.runs}
    assert found["0/first"][0] == "failed"
    assert "the database went away" in found["0/first"][1]
    assert found["1/third"][0] == "done"


async def test_plan_when_it_cannot_be_sent_then_says_so_and_runs_nothing(tmp_path: Path) -> None:
    """A study that holds a function of its caller runs in one process only."""
    study = ChainStudy(lambda _run, _item: None)
    with pytest.raises(SettingsError, match="cannot be carried out by 2 processes"):
        await run_chain(tmp_path, chain_plan(), study, processes=2)
    assert not list((tmp_path / "runs").iterdir())


class Mute(NoProgress):
    """Keeps a note; starts processes of which the first is not heard of any more after an item, and works on."""

    def __init__(self) -> None:
        self.note: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.mute: SpawnProcess | None = None
        self.run = ""
        """One that it works on."""

    def report(self, event: ProgressEvent) -> None:
        """Keep what is noted first."""
        if event.kind == "note" and not self.note.done():
            self.note.set_result(event.text)

    def start(self, number: int, work: Work) -> Worker:
        """Start one, out of reach or not."""
        spawned = processes._Spawned(number, work)
        if self.mute is None:
            self.mute, receive = spawned._process, spawned.receive

            def muted() -> Sequence[Message]:
                messages = receive()
                events = [told for _, told in messages if isinstance(told, ProgressEvent)]
                if events:
                    self.run = events[0].run
                    raise EOFError
                return messages

            spawned.receive = muted  # type: ignore[method-assign]
        return spawned


@pytest.mark.usefixtures("forked")
async def test_process_when_out_of_reach_then_its_runs_wait_until_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two never write into one run, even if one of them is believed dead."""
    monkeypatch.setattr(processes, "_LOOK_SECONDS", 0.1)
    plan, out, told = chain_plan(pause=0.1), tmp_path / "out", Mute()
    running = asyncio.create_task(
        run_chain(out, plan, processes=2, start=told.start, progress=told)
    )
    assert await told.note == "process 0 is out of reach and still works: waiting for its end"
    log = run_folder(out, PlanLog(out).graph[told.run]) / "items.jsonl"
    while len(log.read_bytes().splitlines()) < plan.items:
        assert not running.done()
        await asyncio.sleep(0.05)
    assert not running.done()
    assert told.mute is not None
    told.mute.kill()
    assert (await running).complete
    await run_chain(tmp_path / "one", plan)
    assert log_bytes(out) == log_bytes(tmp_path / "one")


@pytest.mark.usefixtures("forked")
async def test_process_when_it_writes_to_another_folder_then_the_plan_is_refused(
    tmp_path: Path,
) -> None:
    """A folder of that name on another machine is not the run directory, however alike."""
    out, alike = tmp_path / "out", tmp_path / "alike"
    with hold_directory(out, prepare(ChainStudy(), chain_plan())):
        shutil.copytree(out, alike)

    def start(number: int, work: Work) -> Worker:
        return processes._Spawned(number, replace(work, out=alike))

    with pytest.raises(RunDirectoryError, match="is not the folder that the other machine writes"):
        await run_chain(out, processes=1, start=start)
    assert not list((alike / "runs").iterdir())


SCRIPT = """
import asyncio, sys
from pathlib import Path
from chain_study import chain_plan, run_chain

if __name__ == "__main__":
    asyncio.run(run_chain(Path(sys.argv[1]), chain_plan(streams=4, pause=600), processes=2))
"""


def test_directory_when_its_holder_is_killed_is_free_once_the_others_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody writes into a run that another process has taken over."""
    monkeypatch.setattr(directory, "_ORPHAN_SECONDS", 300.0)
    script, out = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT, "utf-8")
    support = Path(__file__).parents[2] / "support"
    environment = os.environ | {"PYTHONPATH": str(support)}
    with started_script(script, out, environment=environment) as process:
        while len(helpers(out)) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        orphans = helpers(out)
        os.kill(orphans[0], signal.SIGSTOP)  # one that does not notice for a while
        process.kill()
    prepared = prepare(ChainStudy(), chain_plan(streams=4, pause=600))
    threading.Timer(1.0, os.kill, (orphans[0], signal.SIGCONT)).start()
    with hold_directory(out, prepared):
        assert not any(_command(each) for each in orphans)


async def test_shards_when_both_are_done_have_written_the_bytes_of_one_plain_run(
    tmp_path: Path,
) -> None:
    """Each run is one shard's, and a shard that is begun again goes on."""
    plan = chain_plan(streams=3, probes=(0, 3))
    await run_chain(tmp_path / "one", plan)
    out = tmp_path / "shards"
    outcomes = await asyncio.gather(
        *(run_chain(out, plan, shard=Shard(index, 2)) for index in range(2))
    )
    assert all(each.complete for each in outcomes)
    names = [{run.name for run in each.runs} for each in outcomes]
    assert names[0] | names[1] == set(log_bytes(out))
    assert not names[0] & names[1]
    assert log_bytes(out) == log_bytes(tmp_path / "one")
    assert verify_directory(out) == []


async def test_shard_when_its_runs_read_anothers_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one shard's runs need of another's is looked for until it is there."""
    monkeypatch.setattr(schedule, "_LOOK_SECONDS", 0.05)
    plan, study = chain_plan(streams=1, pause=0.05), Reading()
    out = tmp_path / "shards"
    outcomes = await asyncio.gather(
        *(run_chain(out, plan, study, shard=Shard(index, 2)) for index in range(2))
    )
    assert all(each.complete for each in outcomes)
    assert {len(each.runs) for each in outcomes} == {1, 5}
    await run_chain(tmp_path / "one", plan, study)
    assert log_bytes(out) == log_bytes(tmp_path / "one")


@pytest.mark.parametrize(("held", "asked"), [((0, 2), (0, 2)), ((0, 2), (1, 3)), ((0, 2), None)])
def test_shard_when_somebody_has_its_runs_is_refused(
    tmp_path: Path,
    held: tuple[int, int],
    asked: tuple[int, int] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither the same shard, nor one of another division, nor the whole plan is run beside it."""
    monkeypatch.setattr(directory, "_ORPHAN_SECONDS", 0.2)
    prepared = prepare(ChainStudy(), chain_plan())
    second = (
        hold_directory(tmp_path, prepared)
        if asked is None
        else hold_shard(tmp_path, prepared, *asked)
    )
    refused = pytest.raises(RunDirectoryError, match="another")
    with hold_shard(tmp_path, prepared, *held), refused, second:
        pass
    with hold_directory(tmp_path, prepared):
        pass


class Reading(ChainStudy):
    """Has one run more, which reads what the first one found."""

    def expand(self, plan: ChainPlan) -> tuple[RunSpec, ...]:
        """List the runs of a plan."""
        runs = super().expand(plan)
        last = RunSpec(self.name, "last", {}, ("item-0",), frozen=True, reads=(runs[0].name,))
        return (*runs, last)
