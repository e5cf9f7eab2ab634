"""A plan that others run, as its directory tells."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from chain_study import ChainStudy, chain_plan, run_chain
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InfrastructureError, RunDirectoryError
from langgraft.benchmarks.harness.budget import CallBudget
from langgraft.benchmarks.harness.directory import hold_directory, hold_shard, locked
from langgraft.benchmarks.harness.log import checked_line
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.harness.watching import PlanWatch, groups_of
from langgraft.benchmarks.studies import studies

USAGE = {
    "attempts": 3,
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "picodollars": 5 * 10**11,
    "failures": {"rate_limit": 2},
    "failures_told": {"rate_limit": "slow down"},
}


class Clock:
    """A clock that a test moves."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def time(self) -> float:
        """Return the time."""
        return self.now

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


def event(kind: str, time: float, **fields: Any) -> bytes:
    """Return a line of events."""
    return checked_line(json.dumps({"event": kind, "time": time, **fields}))


def item(index: int, time: float, **fields: Any) -> bytes:
    """Return the event of a committed item."""
    told = {"index": index, "item_id": f"item-{index}", "data": {"usage": USAGE}}
    return event("item", time, **told | fields)


@pytest.fixture
async def begun(tmp_path: Path) -> Path:
    """Return the directory of a plan of which nothing was done, but the first run's folder is there."""

    def refuse(_run: str, _item: str) -> None:
        raise InfrastructureError("no engine")

    await run_chain(tmp_path, chain_plan(streams=1), ChainStudy(refuse))
    for folder in (tmp_path / "runs").iterdir():
        (folder / "events.jsonl").unlink()
    return tmp_path


def events_of(out: Path, name: str = "0/first") -> Path:
    """Return where the events of a run lie."""
    (run,) = [each.run for each in PlanWatch(out).runs if each.run.name == name]
    folder = out / "runs" / run.id
    folder.mkdir(exist_ok=True)
    return folder / "events.jsonl"


def contents(folder: Path) -> dict[Path, bytes]:
    """Return every file below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_watch_when_a_plan_ran_has_counted_all_and_changed_nothing(tmp_path: Path) -> None:
    """Items, runs and states are those of the log, by condition and in all."""
    await run_chain(tmp_path, chain_plan(streams=2))
    before = contents(tmp_path)
    watch = PlanWatch(tmp_path)
    watch.look()
    assert watch.complete
    assert (watch.all.done, watch.all.planned, watch.states["done"]) == (60, 60, 10)
    assert {run.state for run in watch.runs} == {"done"}
    assert watch.line() == "60/60 items (100%), 10/10 runs done"
    assert contents(tmp_path) == before


async def test_watch_when_items_fail_tells_by_class_and_ends_once_nobody_works(
    tmp_path: Path,
) -> None:
    """A run that was stopped says by what; a minute later the plan has ended, until it goes on."""

    def refuse(run: str, item: str) -> None:
        if (run, item) == ("0/first", "item-3"):
            raise InfrastructureError("no answer", reason="http_503")

    await run_chain(tmp_path, chain_plan(streams=1), ChainStudy(refuse))
    clock = Clock()
    watch = PlanWatch(tmp_path, clock)
    watch.look()
    clock.now = watch.recent[0][0] + 59
    assert not watch.stopped
    clock.now += 2
    assert watch.stopped
    assert not watch.complete
    assert watch.all.errors == {"http_503": 1}
    assert "no answer" in watch.all.examples["http_503"]
    first = next(run for run in watch.runs if run.run.name == "0/first")
    assert (first.state, first.counts.done, "item-3" in first.problem) == ("stopped", 3, True)
    await run_chain(tmp_path, chain_plan(streams=1))
    watch.look()
    assert (watch.complete, watch.stopped, watch.all.done, first.problem) == (True, False, 30, "")


def test_watch_when_whoever_ran_a_plan_died_says_that_nobody_runs_it(begun: Path) -> None:
    """A killed process writes no last event, but its lock is free; looking takes it from nobody."""
    events_of(begun).write_bytes(event("opened", 1.0, committed=0) + item(0, 2.0))
    watch = PlanWatch(begun, Clock(3.0))
    prepared = prepare(ChainStudy(), chain_plan(streams=1))
    with hold_directory(begun, prepared):
        watch.look()
        assert (watch.states["under way"], "nobody" in watch.line()) == (1, False)
    watch.look()
    assert (watch.states["under way"], watch.states["stopped"]) == (0, 1)
    assert "1 stopped, nobody is running it" in watch.line()
    with hold_shard(begun, prepared, 0, 2):
        with events_of(begun).open("ab") as file:
            file.write(event("opened", 4.0, committed=1))
        watch.look()
        assert (watch.states["under way"], "nobody" in watch.line()) == (1, False)


@given(st.lists(st.integers(1, 400), max_size=30), st.integers(0, 6))
def test_watch_when_it_looks_at_any_moment_counts_each_event_once(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], done: int
) -> None:
    """However a file grows between two looks, what is counted in the end is what it holds."""
    out = tmp_path_factory.getbasetemp() / "begun"
    path = events_of(out)
    lines = [event("opened", 1.0, committed=0), *(item(n, 2.0 + n) for n in range(done))]
    data = b"".join(lines)
    path.write_bytes(b"")
    watch = PlanWatch(out)
    for size in [*sizes, len(data)]:
        with path.open("ab") as file:
            start = file.tell()
            file.write(data[start : start + size])
        with locked(out):
            watch.look()
    assert (watch.all.done, watch.all.calls, watch.all.tokens) == (done, 3 * done, 120 * done)
    assert watch.all.errors["rate_limit"] == 2 * done
    assert (watch.damaged, watch.states["under way"]) == (0, 1)


@pytest.fixture(autouse=True)
async def _shared(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make the directory that examples of a property share."""
    out = tmp_path_factory.getbasetemp() / "begun"
    if not out.exists():
        await run_chain(out, chain_plan(streams=1))
        for folder in (out / "runs").iterdir():
            shutil.rmtree(folder)


def test_watch_when_a_run_is_deleted_or_begun_anew_counts_anew(begun: Path) -> None:
    """What is no longer there is no longer counted."""
    path = events_of(begun)
    path.write_bytes(event("opened", 1.0, committed=0) + item(0, 2.0) + item(1, 3.0))
    watch = PlanWatch(begun)
    watch.look()
    assert watch.all.done == 2
    path.write_bytes(event("opened", 4.0, committed=0))
    watch.look()
    watch.look()
    assert (watch.all.done, watch.all.calls) == (0, 0)
    shutil.rmtree(path.parent)
    watch.look()
    assert (watch.states["waiting"], watch.recent) == (5, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
NAMES = ("index", "text", "reason", "success", "committed", "data", "item_id", "time")
USAGES = st.fixed_dictionaries({"usage": st.dictionaries(st.sampled_from([*USAGE]), JSON) | JSON})
ODD = st.dictionaries(st.sampled_from(NAMES), JSON | USAGES)


@given(st.lists(st.tuples(st.sampled_from(("opened", "item", "failed", "closed", "x")), ODD)))
def test_watch_when_events_hold_anything_goes_on(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, dict[str, Any]]]
) -> None:
    """Whoever wrote the directory cannot break whoever watches it, nor make counts impossible."""
    out = tmp_path_factory.getbasetemp() / "begun"
    path = events_of(out)
    lines = [checked_line(json.dumps({"event": kind} | fields)) for kind, fields in events]
    path.write_bytes(b"".join([*lines, b"no event\n"]))
    watch = PlanWatch(out)
    watch.look()
    assert watch.damaged == 1
    assert 0 <= watch.all.done <= 6
    assert 0 <= watch.all.successes <= watch.all.scored
    watch.line()
    assert all((run.seconds_left() or 0) >= 0 for run in watch.runs)
    assert len(watch.recent) <= 20


def test_time_left_when_a_plan_rested_is_told_from_its_pace(begun: Path) -> None:
    """A night between two commands is no sign of how fast items go."""
    path = events_of(begun)
    times = [0.0, 10.0, 20.0, 40_000.0, 40_010.0]
    path.write_bytes(b"".join(item(index, time) for index, time in enumerate(times)))
    clock = Clock(40_011.0)
    watch = PlanWatch(begun, clock)
    with locked(begun):
        watch.look()
    left = watch.seconds_left()
    assert left is not None
    assert 250 <= left < 400  # 25 items of 10 s, and a little
    assert "5/30 items (17%), 0/5 runs done, about" in watch.line()
    assert "no event" not in watch.line()
    assert "15 calls, 600 tokens, 2.50 dollars; 10 rate_limit" in watch.line()
    clock.now += 1300
    assert "no event for 20 min" in watch.line()


def test_successes_when_items_tell_are_counted_and_others_are_not(begun: Path) -> None:
    """A score is what went well of what was scored; of a simulated learner or none there may be neither."""
    path = events_of(begun)
    path.write_bytes(item(0, 1.0, success=True) + item(1, 2.0, success=False) + item(2, 3.0))
    watch = PlanWatch(begun)
    watch.look()
    assert watch.all.score == "1 of 2"


def test_spend_when_shards_count_for_themselves_is_added_up(begun: Path) -> None:
    """What real models were asked for is the sum over all files of the directory."""
    for part, calls in (("-0-of-2", 2), ("-1-of-2", 3)):
        budget = CallBudget(path=begun / f"spent{part}.sqlite")
        for _ in range(calls):
            budget.reserve(10, 5)
        budget.close()
    watch = PlanWatch(begun)
    assert watch.spent() == {"calls": 5, "tokens": 50, "dollars": pytest.approx(25e-12)}


def test_watch_when_there_is_no_run_directory_is_refused(tmp_path: Path) -> None:
    """One line says what is missing."""
    with pytest.raises(RunDirectoryError, match="manifest"):
        PlanWatch(tmp_path)


def test_groups_when_agents_and_pairs_differ_are_told_apart() -> None:
    """A condition is named with the agent and with the pair, where there are several."""

    def run(name: str, **factors: str) -> RunSpec:
        return RunSpec("s", name, factors, ("i",))

    one = run("a", condition="raw", kind="train", pair="p")
    assert groups_of([one]) == {"a": ("raw", "train")}
    two = groups_of([one, run("b", condition="raw", kind="train", pair="q")])
    assert two == {"a": ("p/raw", "train"), "b": ("q/raw", "train")}
    several = groups_of([run("a", memory="m", agent="x", phase="f"), run("b", agent="y")])
    assert several == {"a": ("x/m", "f"), "b": ("y/", "")}


@pytest.mark.parametrize(
    ("study", "result", "good"),
    [
        ("continual", {"success": True}, True),
        ("continual", {"success": 1}, None),
        ("transplant", {"success": False}, False),
        ("mle", {"report": {"any_medal": True}}, True),
        ("mle", {"report": None}, None),
        ("ablation", {"solved": False}, False),
        ("ablation", {"skipped": True}, None),
    ],
)
def test_success_when_a_study_is_asked_is_what_its_items_are_scored_by(
    study: str, result: dict[str, Any], good: bool | None
) -> None:
    """A goal, an answer, a medal, a task; what is none of them is not scored."""
    assert studies()[study].went_well(result) is good
