"""One study on every store: where banks lie shows in no byte of the results."""

import asyncio
import shutil
import signal
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import yaml
from warm_python import started

from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.progress import ProgressEvent
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.memory.bank import banks_under
from langgraft.memory.stores.named import open_store

pytestmark = pytest.mark.matrix  # whole studies over other stores

STUDY = ContinualStudy()
INDIVIDUAL = {"granularity": "individual", "top_k": 3}
PLAN: dict[str, Any] = {
    "study": "continual",
    "conditions": [
        {"name": "raw", "provider": "trajectory"},
        {"name": "ind", "provider": "insight", "settings": INDIVIDUAL},
        {"name": "step", "provider": "insight", "settings": {**INDIVIDUAL, "requery_interval": 4}},
    ],
    "controls": [{"control": "shuffled", "of": "ind"}],
    "probes": [{"retrieval": "step", "pool": "ind"}],
    "train_items": 2,
    "test_items": 1,
    "runs": 1,
    "baseline_runs": 1,
    "rerun": False,
    "sequences": ["A>B"],
}


def play(out: Path, store: str, **changes: Any) -> Path:
    """Run the plan with the simulated learner over a store."""
    learner = ContinualPlan.model_validate(PLAN)
    plan = ContinualPlan.model_validate({**PLAN, **changes})
    outcome = asyncio.run(
        run_plan(
            prepare(STUDY, plan),
            out,
            model_for=lambda _, run: STUDY.simulated_model(learner, run),
            store=store,
        )
    )
    assert outcome.complete
    return out


def logs(out: Path) -> dict[str, bytes]:
    """Return the committed items of each run."""
    return {
        run.name: (out / "runs" / run.id / "items.jsonl").read_bytes() for run in PlanLog(out).graph
    }


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the plan over LangGraph's own store."""
    return play(tmp_path_factory.mktemp("study") / "run", "memory")


@pytest.fixture(scope="module")
def expected(played: Path) -> dict[str, bytes]:
    """Return its items."""
    return logs(played)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> str:
    """Return the name of a store."""
    servers = {"postgresql": "postgres_uri", "chroma server": "chroma_url"}
    if request.param not in servers:
        return str(request.param)
    return str(request.getfixturevalue(servers[request.param]))


# In memory, synchronously, is what is expected; over Chroma `tests/cli` plays a plan too.
@pytest.mark.parametrize(
    ("store", "model"),
    [
        pytest.param("chroma", "openai:asynchronous", marks=pytest.mark.matrix),
        pytest.param("postgresql", "simulated", marks=pytest.mark.matrix),
        pytest.param("chroma server", "simulated", marks=pytest.mark.matrix),
    ],
    indirect=["store"],
)
def test_items_when_banks_lie_elsewhere_then_are_the_same_bytes(
    store: str, model: str, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """Every store gives what `memory` gives, as sync graph and as async one; it is left empty."""
    out = play(tmp_path / "run", store, model=model)
    assert logs(out) == expected
    assert verify_directory(out) == []
    left = f"chroma:{out / 'store'}" if store == "chroma" else store
    with open_store(left) as opened:
        for prefix in (("langgraft-runs",), banks_under(("langgraft-runs",))):
            assert opened.search(prefix) == []


def test_probe_when_played_then_asks_as_one_condition_does_in_the_banks_of_the_other(
    played: Path,
) -> None:
    """step@ind asks every four steps, as step does, and finds what ind has filed."""
    log = PlanLog(played)
    for task in "AB":
        bank = set(log.bank("ind/0/train A>B").items)
        for result in log.results(f"step@ind/0/test {task} after A>B"):
            receipts: Any = result["recalls"]
            rounds: Any = result["rounds"]
            assert [receipt["step"] for receipt in receipts] == [*range(0, rounds, 4)]
            found = {item for receipt in receipts for item in receipt["item_ids"]}
            assert found
            assert found <= bank


@pytest.mark.kill
def test_run_when_killed_over_chroma_and_gone_on_with_elsewhere_then_is_the_same_bytes(
    expected: dict[str, bytes], tmp_path: Path
) -> None:
    """What a kill leaves in an embedded store harms neither it nor the run, in memory or there."""
    plan, out = tmp_path / "plan.yaml", tmp_path / "run"
    plan.write_text(yaml.safe_dump(PLAN))
    while True:
        with started("run", plan, "--out", out, "--store", "chroma") as process:
            while process.poll() is None and not _train_item_is_committed(out):
                time.sleep(0.005)
            process.kill()
            if process.wait() != 0:
                break
        shutil.rmtree(out)  # it came to its end before it could be killed
    assert process.returncode == -signal.SIGKILL
    assert 0 < PlanLog(out).n_done < PlanLog(out).n_planned
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    assert logs(play(out, "memory")) == expected
    assert logs(play(copy, "chroma")) == expected


class Severing:
    """Ends the connections of a program at the first item that training commits."""

    def __init__(self, server: str, program: str) -> None:
        self._server = server
        self._program = program
        self.severed = 0

    def report(self, event: ProgressEvent) -> None:
        """End them once."""
        if event.kind != "item" or "/train " not in event.run or self.severed:
            return
        with psycopg.connect(self._server, autocommit=True) as other:
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
            ended = other.execute(f"{query} application_name = %s".encode(), [self._program])
            self.severed = len(ended.fetchall())

    def close(self) -> None:
        """Do nothing."""


def test_run_when_the_database_is_lost_then_stops_unscored_and_ends_the_same_elsewhere(
    postgres_uri: str, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """A lost connection is a failure of the world: nothing wrong is committed, and one can go on."""
    named = urlsplit(postgres_uri)
    options = "&".join(filter(None, [named.query, "application_name=to_be_severed"]))
    severing = Severing(postgres_uri, "to_be_severed")
    prepared = prepare(STUDY, ContinualPlan.model_validate(PLAN))
    outcome = asyncio.run(
        run_plan(
            prepared,
            tmp_path / "run",
            model_for=STUDY.simulated_model,
            store=named._replace(query=options).geturl(),
            progress=severing,
        )
    )
    assert severing.severed >= 1  # that of the store, and that which holds the lock of its bank
    statuses = {run.status for run in outcome.runs}
    assert "failed" in statuses
    assert statuses <= {"done", "failed", "blocked", "waiting"}
    assert any("does not answer" in run.message for run in outcome.runs)
    assert logs(play(tmp_path / "run", "memory")) == expected


def _train_item_is_committed(out: Path) -> bool:
    if not (out / "manifest.json").exists():
        return False
    return any(run.done for run in PlanLog(out).progress() if "/train " in run.name)
