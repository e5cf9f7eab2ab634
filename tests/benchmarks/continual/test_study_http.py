"""The continual study with a model behind a socket: the same items, whatever the network does."""

import asyncio
import json
import re
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.language_models import BaseChatModel
from storms import clients_closed, kept_port
from warm_python import Ended, ran, started

from langgraft._core.errors import InputError, PlanError
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.exchange import Timing
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.models import RESPONSES, make_model
from langgraft.benchmarks.harness.progress import (
    NoProgress,
    PlanOutcome,
    Progress,
    ProgressEvent,
)
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.benchmarks.simulated.babyai import SimulatedBabyAI
from langgraft.benchmarks.simulated.faults import Fault, FaultKind, FaultPlan, failing, rate_limited
from langgraft.benchmarks.simulated.server import ModelServer, serve
from langgraft.benchmarks.studies import choose

pytestmark = pytest.mark.matrix  # whole studies over HTTP

SEED = 42
PLAN = {
    "study": "continual",
    "title": "Smallest over HTTP",
    "seed": SEED,  # with one repetition every run of the simulated model has this seed
    "train_items": 1,
    "test_items": 1,
    "runs": 1,
    "baseline_runs": 1,
    "rerun": False,
    "sequences": ["A>B"],
    "conditions": [{"name": "agg", "provider": "insight"}],
}
MODEL = "openai:simulated"
RESET = Fault(FaultKind.RESET)


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        """Seconds since the epoch."""
        return self.now

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Go on without waiting."""
        self.now += seconds
        await asyncio.sleep(0)

    @property
    def timing(self) -> Timing:
        """This clock, with jitter in the middle of the window."""
        return Timing(clock=self, asleep=self.sleep, fraction=lambda: 0.5)


@pytest.fixture(autouse=True)
async def _clients_closed() -> AsyncIterator[None]:
    """Let clients of a test go within its own event loop."""
    async with clients_closed():
        yield


class Noting(NoProgress):
    """Notes whether an item was committed."""

    committed = False

    def report(self, event: ProgressEvent) -> None:
        """Note it."""
        self.committed |= event.kind == "item"


async def command(plan: Path, out: Path, base_url: str, *more: str) -> Ended:
    """Run the plan from the command line, in a process of its own, beside the server of this one."""
    return await asyncio.to_thread(ran, "run", plan, "--out", out, "--base-url", base_url, *more)


def logs(out: Path) -> dict[Path, bytes]:
    """Return the committed items of all runs, byte by byte."""
    return {path.relative_to(out): path.read_bytes() for path in out.rglob("items.jsonl")}


async def attempt(
    plan: Path, out: Path, base_url: str, clock: FakeTime, progress: Progress | None = None
) -> PlanOutcome:
    """Run the plan as the command line does, on a clock that does not wait."""
    prepared = choose(str(plan), model=MODEL, base_url=base_url, limit=None)
    with ResponseCache(out.parent / f"{out.name}.sqlite") as responses:
        model: BaseChatModel = make_model(
            MODEL,
            base_url=base_url,
            temperature=prepared.plan.temperature,
            max_tokens=prepared.plan.max_tokens,
            responses=responses,
            timing=clock.timing,
        )
        return await run_plan(prepared, out, model_for=lambda _plan, _run: model, progress=progress)


@pytest.fixture
def port() -> Iterator[int]:
    """Return a port for a server that goes down and comes back."""
    with kept_port() as number:
        yield number


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the plan as a file."""
    path = tmp_path_factory.mktemp("plan") / "smallest.yaml"
    path.write_text(yaml.safe_dump(PLAN))
    return path


@pytest.fixture(scope="module")
def expected(plan: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, bytes]:
    """Return the items of the same plan with the learner in the same process."""
    prepared = choose(str(plan), model=None, base_url=None, limit=None)
    out = tmp_path_factory.mktemp("inside") / "run"
    outcome = asyncio.run(run_plan(prepared, out, model_for=prepared.study.simulated_model))
    assert outcome.complete
    return logs(out)


@pytest.mark.matrix
async def test_command_when_the_model_is_behind_http_then_items_are_those_of_the_learner_itself(
    plan: Path, expected: dict[Path, bytes], tmp_path: Path
) -> None:
    """One command over HTTP; then, with nobody listening, its kept replies give the same bytes."""
    out, fresh = tmp_path / "run", tmp_path / "fresh"
    async with serve(SimulatedBabyAI(seed=SEED)) as server:
        url = server.base_url
        ended = await command(plan, out, url, "--model", MODEL)
    assert ended.returncode == 0, ended.stderr
    assert logs(out) == expected
    assert "The model is simulated." in (out / "report" / "index.html").read_text()
    assert verify_directory(out) == []
    assert (out / "report" / "index.html").exists()
    _check_requests(server)

    # The file alone: what a user copies must hold every reply.
    shutil.copy(out / RESPONSES, tmp_path / "fresh.sqlite")
    with ResponseCache(tmp_path / "fresh.sqlite") as kept:
        assert len(kept) == len(server.calls)
    outcome = await attempt(plan, fresh, url, FakeTime())
    assert outcome.complete
    assert logs(fresh) == expected
    await _check_replays(plan, expected, out, url)


async def _check_replays(plan: Path, expected: dict[Path, bytes], out: Path, url: str) -> None:
    """Play the plan from an export of its replies, by two processes; by one where some are lacking."""
    replay = out.parent / "replay.jsonl"
    assert ran("cache", "export", out, "--out", replay).returncode == 0
    head, first, *rest, _ = replay.read_bytes().splitlines(keepends=True)
    assert ran("cache", "import", replay, out.parent / "whole.sqlite").returncode == 0
    few = out.parent / "few.jsonl"
    few.write_bytes(b"".join([head, *rest, b'{"replies":%d}\n' % len(rest)]))
    assert ran("cache", "import", few, out.parent / "few.sqlite").returncode == 0

    again = ("--model", MODEL, "--processes", "2", "--replay")
    ended = await command(plan, out.parent / "again", url, *again, str(out.parent / "whole.sqlite"))
    assert ended.returncode == 0, ended.stderr
    assert logs(out.parent / "again") == expected
    once = ("--model", MODEL, "--replay", str(out.parent / "few.sqlite"))
    ended = await command(plan, out.parent / "less", url, *once)
    assert ended.returncode == 2
    lacks = json.loads(first)["key"][:12]
    told = (
        rf"few.sqlite: no reply is kept for this request of node '\w+' \(.*key {lacks}\): the most"
    )
    assert re.search(told + " similar one .* in run '.*', item '.*'", ended.stderr), ended.stderr


@pytest.mark.matrix
async def test_command_when_calls_are_capped_then_stops_before_the_cap_and_goes_on_with_a_higher_one(
    plan: Path, expected: dict[Path, bytes], tmp_path: Path
) -> None:
    """What committed items have cost counts when the command is given again."""
    out, chosen = tmp_path / "run", ("--model", MODEL)
    async with serve(SimulatedBabyAI(seed=SEED)) as server:
        ended = await command(plan, out, server.base_url, *chosen, "--max-calls", "4")
        assert ended.returncode != 0
        assert "the cap of 4 calls would be exceeded" in ended.stderr
        assert 0 < len(server.calls) <= 4
        again = await command(plan, out, server.base_url, *chosen, "--max-calls", "1000")
    assert again.returncode == 0, again.stderr
    assert logs(out) == expected


@pytest.mark.kill
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (FaultKind.DRIP_HEAD, ("1", "{}")),
        (FaultKind.STALL, ("2", '{"streaming": true}')),
    ],
)
async def test_command_when_interrupted_while_the_server_drips_then_ends_and_goes_on_later(
    plan: Path, expected: dict[Path, bytes], tmp_path: Path, kind: FaultKind, how: tuple[str, str]
) -> None:
    """No reply comes for an hour, a call may take a quarter of one, and Ctrl-C waits for neither."""
    out, again, met = tmp_path / "run", False, asyncio.Event()
    more = ("--model", MODEL, "--processes", how[0], "--model-settings", how[1])

    def drips(call: int) -> Fault | None:
        if call < 20 or again:
            return None
        met.set()
        return Fault(kind)

    async with serve(SimulatedBabyAI(seed=SEED), faults=drips) as server:
        words = ("run", plan, "--out", out, "--base-url", server.base_url)
        with await asyncio.to_thread(started, *words, *more) as process:
            await met.wait()
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(300):  # a third of what a call may take
                stopped = await asyncio.to_thread(process.ended)
        assert stopped.returncode == 130, stopped.stderr
        assert PlanLog(out).n_done < PlanLog(out).n_planned
        again = True
        ended = await command(plan, out, server.base_url, "--model", MODEL, *more[-2:])
    assert ended.returncode == 0, ended.stderr
    assert logs(out) == expected


def _check_requests(server: ModelServer) -> None:
    """Check that every request is sampled as the plan says, and asked as its own client does."""
    for call in server.calls:
        assert call.headers["authorization"] == "Bearer none"
        assert call.request["model"] == "simulated"
        assert call.request["temperature"] == 0.5
        assert call.request["max_completion_tokens"] == 4096
        assert [message["role"] for message in call.request["messages"][-1:]] == ["user"]


async def test_items_when_calls_fail_now_and_then_are_the_same(
    plan: Path, expected: dict[Path, bytes], tmp_path: Path
) -> None:
    """Rate limits, server errors and lost connections cost time and change nothing."""
    weather = [rate_limited(retry_after="7"), None, failing(500), None, RESET, None, None]
    learner, clock = SimulatedBabyAI(seed=SEED), FakeTime()
    async with serve(learner, faults=lambda call: weather[call % len(weather)]) as server:
        outcome = await attempt(plan, tmp_path / "run", server.base_url, clock)
    assert outcome.complete
    assert logs(tmp_path / "run") == expected
    failed = sum(call.fault is not None for call in server.calls)
    assert failed > 10
    assert clock.now >= 7 * sum(call.fault == weather[0] for call in server.calls)


async def test_run_when_the_server_goes_down_then_is_incomplete_until_it_is_back(
    plan: Path, expected: dict[Path, bytes], tmp_path: Path, port: int
) -> None:
    """What is committed stays; with the server back at its place the rest gets the same bytes."""
    out, learner, told = tmp_path / "run", SimulatedBabyAI(seed=SEED), Noting()
    breaks: FaultPlan = lambda _: RESET if told.committed else None  # noqa: E731
    async with serve(learner, port=port, faults=breaks) as server:
        url = server.base_url
        failing_outcome = await attempt(plan, out, url, FakeTime(), told)
    half = PlanLog(out).n_done
    assert failing_outcome.exit_code == 1
    assert 0 < half < PlanLog(out).n_planned

    down = await attempt(plan, out, url, FakeTime())
    assert down.exit_code == 1
    assert PlanLog(out).n_done == half
    assert {run.status for run in down.runs} == {"done", "failed", "blocked"}
    for problem in down.problems:
        assert url in problem.message
        assert "gave no answer" in problem.message
        assert "check base_url and the network" in problem.message

    async with serve(learner, port=port) as server:
        outcome = await attempt(plan, out, url, FakeTime())
    assert outcome.exit_code == 0
    assert logs(out) == expected
    assert verify_directory(out) == []


async def test_run_when_the_key_is_refused_then_raises_and_loses_nothing(
    plan: Path, expected: dict[Path, bytes], tmp_path: Path, port: int
) -> None:
    """A permanent failure is the user's to mend: what to check, and the rest goes on from there."""
    out, learner, told = tmp_path / "run", SimulatedBabyAI(seed=SEED), Noting()
    refusing: FaultPlan = lambda _: failing(401) if told.committed else None  # noqa: E731
    async with serve(learner, port=port, faults=refusing) as server:
        url = server.base_url
        with pytest.raises(InputError, match=r"refuses the request.*check the API key") as refused:
            await attempt(plan, out, url, FakeTime(), told)
    assert "in run '" in " ".join([str(refused.value), *getattr(refused.value, "__notes__", ())])
    assert 0 < PlanLog(out).n_done < PlanLog(out).n_planned

    async with serve(learner, port=port):
        outcome = await attempt(plan, out, url, FakeTime())
    assert outcome.complete
    assert logs(out) == expected


async def test_run_when_the_key_is_refused_at_once_then_raises_what_the_provider_said(
    plan: Path, tmp_path: Path
) -> None:
    """The library raises where the command prints."""
    refusal = failing(401, message="Incorrect API key provided")
    async with serve(SimulatedBabyAI(), faults=lambda _: refusal) as server:
        with pytest.raises(InputError, match="Incorrect API key provided"):
            await attempt(plan, tmp_path / "run", server.base_url, FakeTime())
    assert PlanLog(tmp_path / "run").n_done == 0


def test_plan_when_a_url_is_given_without_a_model_then_refuses(plan: Path) -> None:
    """Nobody takes the simulated learner's numbers for those of their own server."""
    with pytest.raises(PlanError, match="is not for the simulated model"):
        choose(str(plan), model=None, base_url="http://127.0.0.1:9/v1", limit=None)


def test_plan_when_the_simulated_model_is_asked_for_then_the_plans_url_is_left_out(
    tmp_path: Path,
) -> None:
    """A plan for a server can be tried without it."""
    path = tmp_path / "plan.yaml"
    served_plan: dict[str, Any] = {**PLAN, "model": MODEL, "base_url": "http://127.0.0.1:9/v1"}
    path.write_text(yaml.safe_dump(served_plan))
    chosen = choose(str(path), model="simulated", base_url=None, limit=None).plan
    assert (chosen.model, chosen.base_url) == ("simulated", None)
