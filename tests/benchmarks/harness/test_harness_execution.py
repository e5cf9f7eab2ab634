"""Running a plan: order, independence of concurrency, failures, stopping."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from chain_study import (
    ChainPlan,
    ChainSession,
    ChainStudy,
    chain_plan,
    log_bytes,
    run_chain,
)
from langchain_core.language_models import BaseChatModel
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.errors import (
    BudgetExceededError,
    InfrastructureError,
    RunDirectoryError,
    SettingsError,
    StudyError,
)
from langgraft.benchmarks.harness import execute
from langgraft.benchmarks.harness.log import PlanLog, read_events, run_folder, start_deltas
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.progress import NoProgress, ProgressEvent, RunOutcome
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import ItemOutcome, PlannedRun, RunGraph, RunSpec
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.memory.model import MemoryDelta, Remove, SetState


class Recorder(NoProgress):
    """Keeps the events it is told."""

    def __init__(self) -> None:
        self.events: list[ProgressEvent] = []

    @override
    def report(self, event: ProgressEvent) -> None:
        self.events.append(event)


def failing(
    run: str, item: str, error: BaseException, times: int = 1
) -> Callable[[str, str], None]:
    """Raise `error` the first `times` times that an item of a run is worked through."""
    left = [times]

    def before_item(this_run: str, this_item: str) -> None:
        if (this_run, this_item) == (run, item) and left[0]:
            left[0] -= 1
            raise error

    return before_item


def all_bytes(out: Path) -> dict[Path, bytes]:
    """Return what every file of a directory holds."""
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def statuses(runs: Iterable[RunOutcome]) -> dict[str, str]:
    """Return the status of each run."""
    return {run.name: run.status for run in runs}


async def test_plan_when_run_then_every_item_is_committed(tmp_path: Path) -> None:
    """A plan ends with all items committed and nothing to complain of."""
    outcome = await run_chain(tmp_path)
    assert outcome.complete
    assert outcome.exit_code == 0
    assert outcome.summary() == "60 of 60 items committed; runs: 10 done"
    assert verify_directory(tmp_path) == []


@pytest.mark.parametrize("concurrency", [1, 5, 48])
async def test_plan_when_concurrency_differs_then_logs_are_equal(
    tmp_path: Path, concurrency: int
) -> None:
    """How many runs and items go on at once changes no byte."""
    plan = chain_plan(pause=0.002, probes=(0, 1, 3, 6))
    await run_chain(tmp_path / "a", plan)
    await run_chain(tmp_path / "b", plan, concurrency=concurrency)
    assert log_bytes(tmp_path / "a") == log_bytes(tmp_path / "b")


async def test_plan_when_run_again_then_nothing_is_repeated(tmp_path: Path) -> None:
    """A finished plan is run again without opening a run or writing a byte."""
    await run_chain(tmp_path)
    before = all_bytes(tmp_path)
    study = ChainStudy(failing("0/first", "item-0", AssertionError("asked again")))
    assert (await run_chain(tmp_path, study=study)).complete
    assert all_bytes(tmp_path) == before


async def test_results_when_source_is_given_then_depend_on_its_bank(tmp_path: Path) -> None:
    """A run starts from the bank its source left, cut where the plan says."""
    await run_chain(tmp_path)
    log = PlanLog(tmp_path)
    assert log.results("0/second")[0]["bank"] == log.bank("0/first").digest
    assert log.results("0/probe-3")[5]["bank"] == log.bank("0/first", 3).digest
    assert log.results("0/probe-0")[0]["bank"] == log.bank("0/first", 0).digest
    assert log.results("0/third")[0]["bank"] == log.bank("0/second", 3).digest
    assert log.bank("0/probe-3") == log.bank("0/first", 3)


async def test_probe_when_its_items_are_committed_then_starts_before_its_source_ends(
    tmp_path: Path,
) -> None:
    """A probe after three items waits for those three, not for the end of the stream."""
    recorder = Recorder()
    await run_chain(tmp_path, chain_plan(streams=1, pause=0.02), progress=recorder)
    told = [(event.kind, event.run) for event in recorder.events]
    assert told.index(("run", "0/probe-3")) < told.index(("run_end", "0/first"))


async def test_frozen_run_when_items_end_out_of_order_then_committed_in_order(
    tmp_path: Path,
) -> None:
    """Items of a frozen run are side by side, and their log is in order all the same."""
    under_way: list[tuple[str, str]] = []
    most = 0

    class Counting(ChainStudy):
        @override
        def open(self, *args: object, **kwargs: object) -> "CountingSession":
            session = super().open(*args, **kwargs)  # type: ignore[arg-type]
            assert isinstance(session, ChainSession)
            return CountingSession(session)

    class CountingSession:
        def __init__(self, inner: ChainSession) -> None:
            self.inner = inner

        async def run_item(self, index: int, item_id: str) -> ItemOutcome:
            nonlocal most
            under_way.append(("", item_id))
            most = max(most, len(under_way))
            try:
                return await self.inner.run_item(index, item_id)
            finally:
                under_way.remove(("", item_id))

        async def aclose(self) -> None:
            await self.inner.aclose()

    plan = chain_plan(streams=1, pause=0.01)
    await run_chain(tmp_path, plan, Counting(), concurrency=3)
    assert most == 3
    order = [record.index for record in PlanLog(tmp_path).records("0/probe-3")]
    assert order == list(range(6))


async def test_infrastructure_failure_when_it_lasts_then_only_dependents_wait(
    tmp_path: Path,
) -> None:
    """A failure of the world stops its run and what starts from it; the rest goes on."""
    study = ChainStudy(failing("0/first", "item-4", InfrastructureError("sandbox lost")))
    recorder = Recorder()
    outcome = await run_chain(tmp_path / "a", study=study, progress=recorder)
    assert statuses(outcome.runs) == {
        "0/first": "failed",
        "0/second": "blocked",
        "0/third": "blocked",
        "0/probe-0": "done",
        "0/probe-3": "done",
        "1/first": "done",
        "1/second": "done",
        "1/third": "done",
        "1/probe-0": "done",
        "1/probe-3": "done",
    }
    (failed,) = outcome.problems
    assert (failed.done, failed.message) == (4, "item 'item-4': sandbox lost")
    assert outcome.exit_code == 1
    assert [event.text for event in recorder.events if event.kind == "failed"] == [failed.message]
    assert verify_directory(tmp_path / "a") == []

    assert (await run_chain(tmp_path / "a", study=study)).complete
    await run_chain(tmp_path / "b")
    assert log_bytes(tmp_path / "a") == log_bytes(tmp_path / "b")


async def test_infrastructure_failure_when_in_frozen_run_then_items_before_are_kept(
    tmp_path: Path,
) -> None:
    """Side by side or not, what comes before the failing item is committed, nothing after it."""
    study = ChainStudy(failing("0/probe-0", "item-2", InfrastructureError("lost")))
    outcome = await run_chain(tmp_path, study=study, concurrency=6)
    assert [run.done for run in outcome.problems] == [2]
    assert PlanLog(tmp_path).n_done == 60 - 4


async def test_budget_when_exceeded_then_plan_stops_in_order(tmp_path: Path) -> None:
    """An exhausted budget lets items under way finish and starts no other."""
    study = ChainStudy(failing("0/first", "item-1", BudgetExceededError("5 dollars spent")))
    outcome = await run_chain(tmp_path, study=study, concurrency=1)
    assert statuses(outcome.runs)["0/first"] == "capped"
    assert statuses(outcome.runs)["0/second"] == "blocked"
    assert statuses(outcome.runs)["1/first"] == "waiting"
    assert outcome.exit_code == 1
    assert not outcome.interrupted


@pytest.mark.parametrize(
    "error", [ValueError("bad luck"), KeyError("x"), asyncio.CancelledError(), TimeoutError()]
)
async def test_bug_when_an_item_raises_then_plan_stops_and_names_it(
    tmp_path: Path, error: BaseException
) -> None:
    """A bug stops the plan with run and item named; what was committed is kept."""
    study = ChainStudy(failing("1/second", "item-2", error))
    with pytest.raises(StudyError, match="run '1/second', item 'item-2'") as caught:
        await run_chain(tmp_path / "a", study=study)
    assert (caught.value.run, caught.value.item) == ("1/second", "item-2")
    assert len(PlanLog(tmp_path / "a").results("1/second")) == 2
    assert verify_directory(tmp_path / "a") == []
    await run_chain(tmp_path / "a")
    await run_chain(tmp_path / "b")
    assert log_bytes(tmp_path / "a") == log_bytes(tmp_path / "b")


async def test_input_error_when_a_study_refuses_a_setting_then_comes_through(
    tmp_path: Path,
) -> None:
    """What the user got wrong stays an input error, with the run in a note."""
    study = ChainStudy(failing("0/first", "item-0", SettingsError("no such model")))
    with pytest.raises(SettingsError, match="no such model") as caught:
        await run_chain(tmp_path, study=study)
    assert caught.value.__notes__ == ["in run '0/first', item 'item-0'"]


class Meddling(ChainStudy):
    """Returns an outcome of the test's choice from the third item of each `runs` on."""

    def __init__(self, runs: str, outcome: ItemOutcome) -> None:
        super().__init__()
        self._runs = runs
        self._meddled = outcome

    @override
    def open(self, *args: object, **kwargs: object) -> ChainSession:
        session = super().open(*args, **kwargs)  # type: ignore[arg-type]
        assert isinstance(session, ChainSession)
        name = args[1].name  # type: ignore[attr-defined]
        run_item = session.run_item

        async def meddle(index: int, item_id: str) -> ItemOutcome:
            if index < 2 or self._runs not in name:
                return await run_item(index, item_id)
            return self._meddled

        session.run_item = meddle  # type: ignore[method-assign]
        return session


CHANGE = (MemoryDelta((SetState("key", 1),)),)
MISFIT = (MemoryDelta((Remove("nothing", "of that name"),)),)


@pytest.mark.parametrize(
    ("runs", "outcome", "complaint"),
    [
        ("probe", ItemOutcome({}, CHANGE), "changes memory in a run whose bank is frozen"),
        ("first", ItemOutcome({}, MISFIT), "'nothing' is removed in a bank that does not"),
        ("first", ItemOutcome({"score": float("nan")}), "cannot be committed"),
        ("first", ItemOutcome({"score": object()}), "cannot be committed"),  # type: ignore[dict-item]
    ],
)
async def test_outcome_when_it_cannot_be_kept_then_nothing_is_committed(
    tmp_path: Path, runs: str, outcome: ItemOutcome, complaint: str
) -> None:
    """Results that are no JSON, deltas that do not fit and changes to a frozen bank are bugs."""
    with pytest.raises(StudyError, match=complaint) as caught:
        await run_chain(tmp_path, study=Meddling(runs, outcome))
    assert len(PlanLog(tmp_path).results(caught.value.run)) == 2
    assert verify_directory(tmp_path) == []


async def test_frozen_run_when_deltas_are_empty_then_accepted(tmp_path: Path) -> None:
    """Deltas without a change are no change."""
    outcome = ItemOutcome({}, (MemoryDelta(), MemoryDelta()))
    assert (await run_chain(tmp_path, study=Meddling("probe", outcome))).complete
    assert verify_directory(tmp_path) == []


async def test_stop_when_set_then_items_under_way_finish(tmp_path: Path) -> None:
    """Asked to stop, a plan commits what is under way and starts nothing."""
    stop = asyncio.Event()

    def ask(run: str, item: str) -> None:
        if (run, item) == ("0/first", "item-2"):
            stop.set()

    outcome = await run_chain(tmp_path / "a", study=ChainStudy(ask), stop=stop, concurrency=1)
    assert outcome.interrupted
    assert outcome.exit_code == 130
    assert statuses(outcome.runs)["0/first"] == "interrupted"
    assert PlanLog(tmp_path / "a").progress()[0].done == 3
    await run_chain(tmp_path / "a")
    await run_chain(tmp_path / "b")
    assert log_bytes(tmp_path / "a") == log_bytes(tmp_path / "b")


async def test_stop_when_items_take_too_long_then_they_are_dropped(tmp_path: Path) -> None:
    """Items that outlast the grace are dropped, uncommitted, and run again later."""
    stop = asyncio.Event()
    stop.set()
    early = await run_chain(tmp_path, chain_plan(pause=600), stop=stop)
    assert set(statuses(early.runs).values()) == {"waiting", "blocked"}

    class Stopping(ChainStudy):
        @override
        def open(self, *args: object, **kwargs: object) -> ChainSession:
            session = super().open(*args, **kwargs)  # type: ignore[arg-type]
            assert isinstance(session, ChainSession)
            run_item = session.run_item

            async def stopped(index: int, item_id: str) -> ItemOutcome:
                stop.set()
                return await run_item(index, item_id)

            session.run_item = stopped  # type: ignore[method-assign]
            return session

    stop.clear()
    # One at a time: no other run is still being opened as the plan ends.
    late = await run_chain(
        tmp_path, chain_plan(pause=600), Stopping(), stop=stop, concurrency=1, grace=0.1
    )
    assert late.interrupted
    assert statuses(late.runs)["0/first"] == "interrupted"
    assert PlanLog(tmp_path).results("0/first") == []
    assert verify_directory(tmp_path) == []


async def test_session_when_closing_fails_then_results_stand_and_it_is_noted(
    tmp_path: Path,
) -> None:
    """A session that cannot free what it holds changes no result and is noted."""

    class Sticky(ChainStudy):
        @override
        def open(self, *args: object, **kwargs: object) -> ChainSession:
            session = super().open(*args, **kwargs)  # type: ignore[arg-type]
            assert isinstance(session, ChainSession)

            async def stuck() -> None:
                raise RuntimeError("stuck")

            session.aclose = stuck  # type: ignore[method-assign]
            return session

    recorder = Recorder()
    assert (await run_chain(tmp_path, study=Sticky(), progress=recorder)).complete
    notes = [event.text for event in recorder.events if event.kind == "note"]
    assert notes == ["closing failed: RuntimeError: stuck"] * 10


async def test_study_when_it_cannot_open_a_run_then_run_is_named(tmp_path: Path) -> None:
    """A bug on opening a run is reported with the run's name."""

    def no_model(plan: ChainPlan, run: RunSpec) -> BaseChatModel:
        raise LookupError("no model")

    study = ChainStudy()
    prepared = prepare(study, chain_plan())
    with pytest.raises(StudyError, match="cannot be opened: LookupError: no model"):
        await run_plan(prepared, tmp_path, model_for=no_model)


async def test_torn_record_when_resumed_then_dropped_and_noted(tmp_path: Path) -> None:
    """A record cut by a crash is dropped on resuming, which says so, and is written anew."""
    await run_chain(tmp_path)
    whole = log_bytes(tmp_path)
    folder = run_folder(tmp_path, PlanLog(tmp_path).graph["0/second"])
    (folder / "DONE.json").unlink()
    (folder / "items.jsonl").write_bytes(whole["0/second"][:-7])
    recorder = Recorder()
    await run_chain(tmp_path, progress=recorder)
    notes = [event.text for event in recorder.events if event.kind == "note"]
    assert len(notes) == 1
    assert notes[0].endswith("bytes of an unfinished record")
    assert log_bytes(tmp_path) == whole


@pytest.mark.parametrize("remove_done", [True, False])
async def test_source_when_its_log_is_replaced_then_dependents_refuse(
    tmp_path: Path, remove_done: bool
) -> None:
    """A run never goes on from another bank than the one it started from."""
    await run_chain(tmp_path)
    graph = PlanLog(tmp_path).graph
    first, second = (run_folder(tmp_path, graph[name]) for name in ("0/first", "0/second"))
    (second / "DONE.json").unlink()
    lines = (first / "items.jsonl").read_bytes().splitlines(keepends=True)
    (first / "items.jsonl").write_bytes(b"".join(lines[:4]))
    if not remove_done:
        # One worker: the source is looked at before the run that starts from it.
        with pytest.raises(RunDirectoryError, match="says 6 items"):
            await run_chain(tmp_path, concurrency=1)
        return
    (first / "DONE.json").unlink()
    study = Meddling("first", ItemOutcome({"changed": True}))
    with pytest.raises(RunDirectoryError, match="bank the run started from no longer comes out"):
        await run_chain(tmp_path, study=study)


async def test_events_when_run_then_hold_what_may_differ(tmp_path: Path) -> None:
    """Clocks, durations and hosts are in the events, one line an item, and not in the log."""
    await run_chain(tmp_path)
    folder = run_folder(tmp_path, PlanLog(tmp_path).graph["0/first"])
    with (folder / "events.jsonl").open("ab") as stream:
        stream.write(b'{"event": "to')
    events = list(read_events(folder / "events.jsonl"))
    assert [event["event"] for event in events] == ["opened", "store", *["item"] * 6, "done"]
    assert all("time" in event for event in events)
    assert events[1]["text"] == "memory"
    assert events[2]["data"] == {"slept": 0.0}
    results: list[Mapping[str, JSON]] = PlanLog(tmp_path).results("0/first")
    assert all(set(result) == {"answer", "bank", "known"} for result in results)


@pytest.mark.parametrize("jump", [-3_600.0, 86_400.0])
async def test_plan_when_the_clock_jumps_then_neither_items_nor_deadlines_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """An hour back or a day ahead, twice in a run: the same bytes, and an hour is still an hour."""
    clock, shift = time.time, 0.0

    def leap(_run: str, item: str) -> None:
        nonlocal shift
        shift += jump if item in {"item-1", "item-3"} else 0.0

    monkeypatch.setattr(time, "time", lambda: clock() + shift)
    await run_chain(tmp_path / "whole")
    outcome = await run_chain(tmp_path / "jumped", study=ChainStudy(leap), hours=1)
    assert shift
    assert outcome.complete
    assert log_bytes(tmp_path / "jumped") == log_bytes(tmp_path / "whole")
    assert verify_directory(tmp_path / "jumped") == []
    events = read_events(next((tmp_path / "jumped").glob("runs/*/events.jsonl")))
    seconds = [event["seconds"] for event in events if event["event"] == "item"]
    assert all(0 <= each < abs(jump) for each in seconds)


@pytest.mark.parametrize("when", ["before a run", "as it begins"])
async def test_plan_when_its_directory_goes_away_then_nothing_is_written_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A run that starts when the disk is gone, or goes, is not begun anew beside it."""
    out, away, plan = tmp_path / "out", tmp_path / "away", chain_plan(items=2, probes=())

    class Mover(NoProgress):
        def report(self, event: ProgressEvent) -> None:
            if (when, event.kind, event.run) == ("before a run", "run", "1/first"):
                out.rename(away)

    def start(place: Path, graph: RunGraph, run: PlannedRun) -> Sequence[MemoryDelta]:
        if (when, run.spec.name) == ("as it begins", "1/first"):
            out.rename(away)
            out.mkdir()  # where it was mounted
        return start_deltas(place, graph, run)

    monkeypatch.setattr(execute, "start_deltas", start)
    with pytest.raises(RunDirectoryError, match="mount"):
        await run_chain(out, plan, progress=Mover(), concurrency=1)
    monkeypatch.undo()
    if out.exists():
        out.rmdir()  # nothing is in it
    away.rename(out)
    await run_chain(out, plan)
    await run_chain(tmp_path / "whole", plan)
    assert log_bytes(out) == log_bytes(tmp_path / "whole")
