"""Runs on the nodes of a Ray cluster: the same bytes, whoever is lost."""

import json
import os
import pickle
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import storms
import warm_python
from chain_study import ChainStudy, chain_plan, log_bytes, run_chain

from langgraft._core.errors import (
    BudgetExceededError,
    ResumeRefusedError,
    RunDirectoryError,
    SettingsError,
)
from langgraft.benchmarks.harness import processes
from langgraft.benchmarks.harness.budget import CallBudget, read_spent
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.directory import hold_directory
from langgraft.benchmarks.harness.models import PlanModels
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.processes import Work
from langgraft.benchmarks.harness.progress import NoProgress, ProgressEvent

pytest.importorskip("ray", reason="pip install 'langgraft[ray]'")

from langgraft.benchmarks.harness import cluster as clusters

pytestmark = pytest.mark.kill  # a cluster takes seconds to start, and each process

SUPPORT = Path(__file__).parents[2] / "support"


@pytest.fixture(scope="module")
def cluster() -> Iterator[clusters.Cluster]:
    """Begin a cluster on this machine, whose processes find what tests share."""
    with pytest.MonkeyPatch.context() as patch:
        found = [str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(found))
        with clusters.connected("local") as begun:
            yield begun


def actors() -> list[int]:
    """Return the processes of this cluster that carry out runs."""
    found = [os.getpid()]
    for each in found:
        listed = subprocess.run(["pgrep", "-P", str(each)], capture_output=True, check=False)
        found += map(int, listed.stdout.split())
    return [each for each in found if b"ray::_Node" in _command(each)]


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_plan_when_a_worker_is_killed_hard_then_logs_are_those_of_a_plain_run(
    tmp_path: Path, cluster: clusters.Cluster
) -> None:
    """Its runs go on in another one, and what was committed stays."""
    plan = chain_plan(streams=2, items=4, pause=0.2, probes=(0, 3))
    killed: list[int] = []

    class Killing(NoProgress):
        items = 0

        def report(self, event: ProgressEvent) -> None:
            self.items += event.kind == "item"
            if self.items == 3 and event.kind == "item":
                killed.append(actors()[0])
                os.kill(killed[-1], signal.SIGKILL)

    lost = await run_chain(
        tmp_path / "lost", plan, processes=2, start=cluster.start, progress=Killing()
    )
    assert len(killed) == 1
    assert lost.complete
    await run_chain(tmp_path / "plain", plan)
    assert log_bytes(tmp_path / "lost") == log_bytes(tmp_path / "plain")


def test_caps_and_replies_when_nodes_share_no_file_are_one(
    tmp_path: Path, cluster: clusters.Cluster
) -> None:
    """Calls of all nodes count together to the last, and what is answered is never asked again.

    Nor is it where the plan was begun, and is gone on with, by the command alone.
    """
    # A call that is slow because the machine is would be made again.
    plan = storms.write_plan(tmp_path / "plan.yaml", runs=1, items=1, call_seconds=600.0)
    calls, out = tmp_path / "calls.jsonl", tmp_path / "out"
    with storms.served(plan, "--call-log", calls) as url:

        def ran(folder: Path, *options: object) -> tuple[int, int, str]:
            before = len(calls.read_bytes().splitlines()) if calls.exists() else 0
            done = warm_python.ran("run", plan, "--out", folder, "--base-url", url, *options)
            return done.returncode, len(calls.read_bytes().splitlines()) - before, done.stderr

        code, plain, _ = ran(tmp_path / "plain")
        assert code == 0
        alone, cap = plain // 3, 2 * plain // 3
        code, begun, _ = ran(out, "--concurrency", 2, "--max-calls", alone)
        assert (code, begun) == (1, alone)
        address = clusters.ray.get_runtime_context().gcs_address
        on = ("--ray", address, "--processes", 2, "--concurrency", 2)
        code, made, said = ran(out, *on, "--max-calls", cap)
        assert (code, begun + made) == (1, cap)
        assert f"the cap of {cap} calls would be exceeded" in said
        spent = read_spent(out / "spent.sqlite")
        assert spent is not None
        assert spent["calls"] == cap
        code, rest, _ = ran(out)
    assert code == 0
    # A call may have been in flight each time, in either process.
    assert plain <= cap + rest <= plain + 3
    assert log_bytes(out) == log_bytes(tmp_path / "plain")


def test_models_when_kept_for_by_another_open_no_file_of_their_own(
    tmp_path: Path, cluster: clusters.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a node that has neither file, caps hold and the first reply to a request counts."""
    monkeypatch.chdir(tmp_path)
    study, plan = ChainStudy(), chain_plan(model="openai:none")
    spent, replies = Path("spent.sqlite"), Path("responses.sqlite")
    budget = CallBudget(max_calls=2, path=spent)
    opening = partial(ResponseCache, replies)
    models = cluster.keeping(PlanModels(study, plan, budget, None, responses=opening))
    sent: PlanModels = pickle.loads(pickle.dumps(models))
    count, kept = sent.budget, sent.responses()
    assert count is not None
    for _ in range(2):
        count.reserve(10)
        count.settle(10, 7)
    with pytest.raises(BudgetExceededError, match="cap of 2 calls would be exceeded: 2 spent"):
        count.reserve(10)
    assert [kept.find("key"), kept.put("key", "[1]", b""), kept.put("key", "[2]", b"")] == [
        None,
        None,
        "[1]",
    ]
    assert kept.find("key") == "[1]"
    assert read_spent(spent) == {"calls": 2, "tokens": 14, "dollars": 0.0}
    assert ResponseCache(replies).find("key") == "[1]"
    assert count._file is None
    assert kept._file is None


def test_node_when_it_has_other_code_works_on_nothing(tmp_path: Path) -> None:
    """What another machine would do otherwise is refused there."""
    study, plan = ChainStudy(), chain_plan()
    prepared = prepare(study, plan)
    work = Work(prepared, tmp_path / "out", study.simulated_model, 1, "memory")
    with hold_directory(work.out, prepared):
        clusters._check_node(work)
    manifest = work.out / "manifest.json"
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**told, "packages": {**told["packages"], "langgraph": "0"}}))
    with pytest.raises(ResumeRefusedError, match="langgraph"):
        clusters._check_node(work)


async def test_plan_when_a_node_does_not_see_the_directory_ends_with_what_it_says(
    tmp_path: Path, cluster: clusters.Cluster
) -> None:
    """It is not tried again and again on the next node."""

    def elsewhere(number: int, work: Work) -> processes.Worker:
        return cluster.start(number, replace(work, out=tmp_path / "nowhere"))

    with pytest.raises(RunDirectoryError, match="is not there on"):
        await run_chain(tmp_path / "out", processes=1, start=elsewhere)
    assert not list((tmp_path / "out" / "runs").iterdir())


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://head:10001", "no address"])
def test_cluster_when_there_is_none_then_says_so_in_a_line(address: str) -> None:
    """Nobody waits for minutes for a mistyped address."""
    with (
        pytest.raises(SettingsError, match=f"^--ray '{address}': ") as told,
        clusters.connected(address),
    ):
        pass
    assert "\n" not in str(told.value)
