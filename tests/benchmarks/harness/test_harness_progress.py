"""What people and programs are told while a plan runs."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from chain_study import chain_plan, run_chain

from langgraft.benchmarks.harness.progress import (
    BarProgress,
    JsonProgress,
    NoProgress,
    PlainProgress,
    PlanOutcome,
    ProgressEvent,
    RunOutcome,
    Tally,
    format_seconds,
    make_progress,
)


class StoppedClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def time(self) -> float:
        """Return the time."""
        return self.now

    def monotonic(self) -> float:
        """Return the time."""
        return self.now


async def test_json_progress_when_plan_runs_then_each_event_is_a_line(tmp_path: Path) -> None:
    """Every event is one JSON object on a line of its own, from the plan to its end."""
    stream = io.StringIO()
    await run_chain(tmp_path, chain_plan(streams=1), progress=JsonProgress(stream))
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    kinds = [event["event"] for event in events]
    assert (kinds[0], kinds[-1]) == ("plan", "end")
    assert (kinds.count("run"), kinds.count("item"), kinds.count("run_end")) == (5, 30, 5)
    first = [event for event in events if event["run"] == "0/first" and event["event"] == "item"]
    assert [event["done"] for event in first] == [1, 2, 3, 4, 5, 6]
    assert [event["text"] for event in first] == [f"item-{number}" for number in range(6)]


async def test_progress_when_plan_is_resumed_then_starts_at_what_is_done(tmp_path: Path) -> None:
    """A plan that is taken up again tells what was already there."""
    await run_chain(tmp_path)
    stream = io.StringIO()
    await run_chain(tmp_path, progress=JsonProgress(stream))
    plan = json.loads(stream.getvalue().splitlines()[0])
    assert (plan["done"], plan["total"]) == (60, 60)


def test_plain_progress_when_events_are_many_then_lines_are_few() -> None:
    """Counts come every few seconds, with the time left; failures come at once."""
    stream, clock = io.StringIO(), StoppedClock()
    plain = PlainProgress(stream, every=5, clock=clock)
    plain.report(ProgressEvent("plan", "", 10, 110))
    for done in range(1, 11):
        clock.now += 1
        plain.report(ProgressEvent("item", "run", done, 100))
    plain.report(ProgressEvent("failed", "run", 10, 100, "item 'x': no network"))
    plain.report(ProgressEvent("end", "", 0, 0, "20 of 110 items committed"))
    plain.close()
    assert stream.getvalue().splitlines() == [
        "10/110 items (9%)",
        "15/110 items (14%), about 1 min 35 s left",
        "20/110 items (18%), about 1 min 30 s left",
        "run: item 'x': no network",
        "20 of 110 items committed",
    ]


def test_cap_when_all_runs_reach_it_then_is_told_once() -> None:
    """Of sixteen runs under way each stops at its own item; one line says why, and other failures stay."""
    stream = io.StringIO()
    plain = PlainProgress(stream, clock=StoppedClock())
    plain.report(ProgressEvent("plan", "", 0, 16))
    cap = {"reason": "BudgetExceededError"}
    for run in range(16):
        plain.report(ProgressEvent("failed", f"run {run}", 0, 1, f"item '{run}': the cap", cap))
    plain.report(ProgressEvent("failed", "run 0", 0, 1, "item 'x': no network"))
    assert stream.getvalue().splitlines()[1:] == [
        "run 0: item '0': the cap",
        "run 0: item 'x': no network",
    ]
    capped = [RunOutcome(f"run {n}", "capped", 0, 1, f"item '{n}': the cap") for n in range(16)]
    failed = RunOutcome("other", "failed", 0, 1, "item 'x': no network")
    assert PlanOutcome((*capped, failed)).reasons == (
        "other: item 'x': no network",
        "item '0': the cap",
    )


def test_tally_when_failures_happen_then_they_are_counted() -> None:
    """The state names failures, and an empty plan is complete."""
    tally = Tally(StoppedClock())
    assert tally.line() == "0/0 items (100%)"
    tally.count(ProgressEvent("plan", "", 0, 4))
    tally.count(ProgressEvent("failed", "run", 0, 4))
    assert tally.line() == "0/4 items (0%); 1 failed"


USED: dict[str, Any] = {"data": {"usage": {"attempts": 2, "prompt_tokens": 900, "completion_tokens": 100,
        "picodollars": 25 * 10**10, "failures": {"rate_limit": 1}}}}  # fmt: skip


def test_progress_when_items_tell_what_they_cost_adds_it_up(tmp_path: Path) -> None:
    """Lines, and JSON for programs, have calls, tokens, dollars and errors by class."""
    lines, rows = io.StringIO(), io.StringIO()
    clock = StoppedClock()
    for each in (PlainProgress(lines, every=1, clock=clock), JsonProgress(rows, clock)):
        each.report(ProgressEvent("plan", "", 0, 4))
        each.report(ProgressEvent("run", "r", 0, 4))
        clock.now += 2
        each.report(ProgressEvent("item", "r", 1, 4, "i", USED))
        clock.now += 2
        each.report(ProgressEvent("item", "r", 2, 4, "j", USED))
        each.report(ProgressEvent("failed", "r", 2, 4, "no", {"reason": "http_500", "text": "no"}))
    spent = "4 calls, 2,000 tokens, 0.50 dollars; 2 rate_limit"
    assert lines.getvalue().splitlines()[-2] == f"2/4 items (50%), about 4 s left; {spent}"
    told = json.loads(rows.getvalue().splitlines()[-1])
    assert (told["calls"], told["tokens"], told["dollars"]) == (4, 2000, 0.5)
    assert told["errors"] == {"rate_limit": 2, "http_500": 1}
    assert told["seconds_left"] == 4


def test_plain_progress_when_it_takes_long_writes_more_and_more_rarely() -> None:
    """A log of days does not become a log of counts."""
    stream, clock = io.StringIO(), StoppedClock()
    plain = PlainProgress(stream, every=5, clock=clock)
    plain.report(ProgressEvent("plan", "", 0, 10**6))
    for done in range(86_400):
        clock.now += 1
        plain.report(ProgressEvent("item", "run", done, 10**6))
    assert 200 < len(stream.getvalue().splitlines()) < 800


def test_bar_when_runs_are_under_way_shows_each_with_its_counts() -> None:
    """A few of them; one that ends makes room for another."""
    stream = io.StringIO()
    bar = BarProgress(stream, StoppedClock())
    bar.report(ProgressEvent("plan", "", 0, 80))
    for number in range(8):
        bar.report(ProgressEvent("run", f"run-{number}", 0, 10))
    bar.report(ProgressEvent("item", "run-1", 1, 10, "i", USED))
    bar.report(ProgressEvent("run_end", "run-0", 10, 10, "done"))
    stream.truncate(0)
    bar.close()
    assert "run-1: 1/10 items (10%); 2 calls, 1,000 tokens, 0.2" in stream.getvalue()
    assert [f"run-{n}" in stream.getvalue() for n in range(8)] == [False, *[True] * 6, False]


async def test_bar_when_plan_runs_then_ends_with_all_items(tmp_path: Path) -> None:
    """The bar takes every event, markup in names included, and closes cleanly."""
    stream = io.StringIO()
    bar = BarProgress(stream)
    await run_chain(tmp_path, chain_plan(streams=1), progress=bar)
    bar.report(ProgressEvent("note", "[bold]", 0, 0, "[/nothing]"))
    bar.close()
    assert "30 of 30 items committed" in stream.getvalue()
    assert "[bold]: [/nothing]" in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (3599, "59 min 59 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_seconds_when_formatted_then_read_well(seconds: float, text: str) -> None:
    """Durations are written for people."""
    assert format_seconds(seconds) == text


def test_progress_when_chosen_then_fits_the_stream() -> None:
    """A pipe gets plain lines; what is asked for by name is what one gets."""
    stream = io.StringIO()
    assert isinstance(make_progress("auto", stream), PlainProgress)
    assert isinstance(make_progress("plain", stream), PlainProgress)
    assert isinstance(make_progress("json", stream), JsonProgress)
    assert isinstance(make_progress("none", stream), NoProgress)
    bar = make_progress("bar", stream)
    assert isinstance(bar, BarProgress)
    bar.close()
