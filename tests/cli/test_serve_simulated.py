"""`langgraft serve-simulated`: a dry run of the whole stack, and of whatever a provider does."""

import json
import signal
import socket
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import storms
from warm_python import started

from langgraft.benchmarks.studies import choose
from langgraft.cli.app import run_command_line
from langgraft.cli.serving import learners


@pytest.fixture
def refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run the command in this process, and return the one line in which it refuses."""

    def refused(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["langgraft", "serve-simulated", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            run_command_line()
        told = capsys.readouterr()
        assert (ended.value.code, told.out, told.err.count("\n")) == (2, "", 1)
        return told.err

    return refused


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ("demo", ["simulated-babyai"]),
        ("demo-sequences", ["simulated-babyai", "simulated-alfworld"]),
        ("demo-transplant", ["simulated-solver", "simulated-solver#2"]),
        ("demo-mle", ["simulated-data-scientist"]),
        ("demo-mle-chain", ["simulated-engineer"]),
    ],
)
def test_learners_when_a_plan_is_named_are_those_of_its_runs(
    plan: str, expected: list[str]
) -> None:
    """Whoever plays a plan in the process plays it behind the server, but for the seed."""
    if plan == "demo-sequences":
        pytest.importorskip("textworld")
    prepared = choose(plan, model="simulated", base_url=None, limit=None)
    assert list(learners(prepared)) == expected


def test_command_when_started_tells_its_url_and_ends_at_a_signal() -> None:
    """The first line is for programs; Ctrl-C is a good end."""
    with started("serve-simulated", "--port", 0, "--json") as process:
        told = json.loads(process.stdout.readline())
        with urllib.request.urlopen(f"{told['base_url']}/models") as response:
            listed = [entry["id"] for entry in json.load(response)["data"]]
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert listed == [*told["models"], "hashing"]
    assert "simulated-engineer" in listed
    assert (process.returncode, said) == (0, "0 calls\n")


def test_command_when_it_cannot_serve_says_why(tmp_path: Path, refusal: Callable[..., str]) -> None:
    """A port in use, a script that is no good, a log that cannot be written: one line each."""
    script = tmp_path / "faults.yaml"
    script.write_text("faults: [{kind: lightning, rate: 0.1}]")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "cannot listen at 127.0.0.1" in refusal("--port", taken.getsockname()[1])
    assert f"{script}: faults.0.kind" in refusal("--faults", script, "--port", 0)
    assert "calls.jsonl" in refusal("--call-log", tmp_path / "no" / "calls.jsonl", "--port", 0)


@pytest.mark.matrix  # of calls and tokens: `make acceptance ONLY=Caps`
def test_cap_when_many_calls_are_under_way_and_some_fail_then_the_server_counts_no_more(
    tmp_path: Path,
) -> None:
    """Each call is counted before it is made, retries too; and the plan stops near the cap, not far below."""
    plan = storms.write_plan(
        tmp_path / "plan.yaml", runs=2, items=2, max_tokens=256, call_seconds=60
    )
    script = tmp_path / "faults.json"
    # Half as late as in the acceptance run: still many are under way at once.
    late = [{**fault, **({"seconds": 0.5} if "seconds" in fault else {})} for fault in storms.LATE]
    script.write_text(json.dumps({"faults": late}))
    cap = 0.15
    how = ("--concurrency", "64", "--processes", "2", "--max-cost", str(cap))
    stopped = storms.weathered(tmp_path / "stopped", plan, script, *how)
    assert stopped.code == 1, stopped.said
    assert "the cap of 0.15 dollars" in stopped.said
    assert 0.6 * cap < stopped.spent["cost"] <= cap
    assert stopped.most_at_once > 8
    assert stopped.faults.keys() & {"429", "500", "503", "truncated_json"}


@pytest.mark.matrix
def test_plan_when_every_fifth_call_fails_loses_nothing_and_accounts_for_every_call(
    tmp_path: Path,
) -> None:
    """The same bytes as in calm; server and run directory tell the same of each request."""
    plan = storms.write_plan(tmp_path / "plan.yaml", runs=1, items=1, call_seconds=10)
    calm = storms.weathered(tmp_path / "calm", plan, None)
    script = storms.write_script(tmp_path / "faults.json", (*storms.BROKEN, *storms.ODD))
    storm = storms.weathered(tmp_path / "storm", plan, script)
    assert (calm.code, storm.code) == (0, 0), calm.said + storm.said
    assert storm.items == calm.items
    assert len(calm.items) == 9
    assert calm.disagreements() == storm.disagreements() == []
    # Equal requests that are in flight together are each sent: their number is a matter of timing.
    asked, calmly = ({call["request"] for call in each.asked} for each in (storm, calm))
    assert asked == calmly
    assert storm.faults.keys() == {storms.label(fault) for fault in (*storms.BROKEN, *storms.ODD)}
