"""Agents that work step by step in a study: one shell around them and the tree."""

import asyncio
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from chain_study import log_bytes
from langgraph.store.memory import InMemoryStore
from step_study import STEPS, StepStudy, step_plan
from toy_competition import ID
from typing_extensions import override

from langgraft._core.errors import InfrastructureError, InputError, SandboxFailureError
from langgraft.benchmarks.harness.conversations import Choice
from langgraft.benchmarks.harness.inspect_logs import write_inspect
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.progress import PlanOutcome
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.benchmarks.mle.agents.base import Parts
from langgraft.benchmarks.mle.agents.steps import messages_of
from langgraft.benchmarks.mle.execute_agent import find
from langgraft.benchmarks.mle.plan import MlePlan, runs_of
from langgraft.benchmarks.mle.sandboxes import Lent, make_sandbox
from langgraft.environments.sandboxes.sandbox import Kernel, Sandbox
from langgraft.memory.providers.coding import CodingMemory
from langgraft.memory.providers.coding.provider import coding_preset
from langgraft.nodes.chain.deps import ChainPrompts
from langgraft.nodes.mlab.deps import MLABPrompts
from langgraft.nodes.workbench.log import StepRecord

pytestmark = pytest.mark.matrix  # whole studies

AGENTS = ("chain", "mlab")


def run(plan: MlePlan, out: Path, study: StepStudy, **options: Any) -> PlanOutcome:
    """Run a plan to its end, or to its first failure."""
    given = {"store": "memory", **options}
    prepared = prepare(study, plan)
    return asyncio.run(run_plan(prepared, out, model_for=study.simulated_model, **given))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[MlePlan, Path, StepStudy]:
    """Return a plan that ran without a disturbance, its directory, and the study."""
    folder = tmp_path_factory.mktemp("steps")
    plan, study = step_plan(folder), StepStudy()
    assert run(plan, folder / "out", study).complete
    return plan, folder / "out", study


def result(out: Path, name: str) -> Any:
    """Return the one result of a run."""
    (found,) = PlanLog(out).results(name)
    return found


def test_prompts_when_an_agent_asks_with_them_then_the_manifest_names_all() -> None:
    """A run is not gone on with where one has changed, and the refusal says which."""
    made: tuple[Any, ...] = (ChainPrompts(), MLABPrompts())
    told: Any = StepStudy().fingerprints(
        MlePlan(agents=("chain", "mlab"), competitions=("weather",), sandbox="subprocess")
    )
    asked = {getattr(each, named.name).name for each in made for named in fields(each)}
    assert asked <= told["prompts"].keys()


@pytest.mark.parametrize("agent", AGENTS)
def test_result_when_an_agent_works_step_by_step_then_is_a_list_of_steps(
    whole: tuple[MlePlan, Path, StepStudy], agent: str
) -> None:
    """What all agents have, and in the place of a journal the steps and why they ended."""
    found = result(whole[1], f"{agent}/off/{ID}/seed-0")
    assert {"competition", "metric", "report", "usage", "validation"} <= found.keys()
    assert (found["agent"], found["ended"], found["attempts"]) == (agent, "steps", 1)
    assert not {"journal", "chosen"} & found.keys()
    steps = [StepRecord.model_validate(each) for each in found["steps"]]
    assert [each.step for each in steps] == list(range(STEPS))
    assert found["report"]["valid_submission"]
    assert found["validation"] is not None


def test_runs_when_done_then_leave_their_events_and_submission_and_no_sandbox(
    whole: tuple[MlePlan, Path, StepStudy],
) -> None:
    """Files to look at, beside those of the harness; the work to go on with is gone."""
    _, out, study = whole
    for planned in PlanLog(out).graph:
        (item,) = planned.spec.item_ids
        kept = run_folder(out, planned) / "kept" / item
        events = [json.loads(line) for line in (kept / "events.jsonl").read_text().splitlines()]
        assert [event["id"] for event in events] == list(range(len(events)))
        assert "submission.csv" in (kept / "solution.py").read_text()
        assert (kept / "submission.csv").exists()
        assert not (run_folder(out, planned) / "work").exists()
    assert len(study.sandboxes) == 0


def test_inspect_when_agents_call_tools_shows_each_call_and_what_came_of_it(
    whole: tuple[MlePlan, Path, StepStudy], tmp_path: Path
) -> None:
    """The events that are kept of a run become messages; a tool answers the call before it."""
    plan, out, study = whole
    made = write_inspect(study, plan, PlanLog(out), tmp_path, Choice(), with_memory=True)
    assert made.logs == made.samples == len(PlanLog(out).graph)
    for path in tmp_path.iterdir():
        with zipfile.ZipFile(path) as archive:
            (name,) = [each for each in archive.namelist() if each.startswith("samples/")]
            messages = json.loads(archive.read(name))["messages"]
        called: dict[str, str] = {}
        for each in messages:
            for call in each.get("tool_calls", ()):
                assert isinstance(call["arguments"], dict)
                called[call["id"]] = call["function"]
            if each["role"] == "tool":
                assert called.pop(each["tool_call_id"]) == each["function"]
        assert any(each["role"] == "tool" for each in messages)


def test_messages_when_kept_events_are_damaged_are_refused_and_none_where_there_are_none(
    tmp_path: Path,
) -> None:
    """A search keeps none; a line that is no event is told of with its file."""
    assert messages_of(tmp_path) == ()
    (tmp_path / "events.jsonl").write_text('{"kind":"action"}\n')
    with pytest.raises(InputError, match=r"events\.jsonl: is no list of events"):
        messages_of(tmp_path)


@pytest.mark.parametrize("agent", AGENTS)
def test_memory_when_warm_then_begins_with_what_the_agents_own_build_met(
    whole: tuple[MlePlan, Path, StepStudy], agent: str
) -> None:
    """An agent starts from its own bank; without memory nothing is told and nothing filed."""
    _, out, _ = whole
    log = PlanLog(out)
    assert any(log.deltas(f"{agent}/build/{ID}"))
    assert not any(map(any, log.deltas(f"{agent}/off/{ID}/seed-0")))
    told = [each["recalled"] for each in result(out, f"{agent}/warm/{ID}/seed-0")["steps"]]
    assert "TypeError" in told[0]
    assert {each["recalled"] for each in result(out, f"{agent}/off/{ID}/seed-0")["steps"]} == {""}
    assert PlanLog(out).graph[f"{agent}/warm/{ID}/seed-0"].spec.source is not None


def test_samples_when_agents_are_several_then_are_nobody_elses(
    whole: tuple[MlePlan, Path, StepStudy],
) -> None:
    """Conditions of one agent share their draws, and agents none."""
    asked = {sample.split("/")[0] for sample in whole[2].asked}
    assert asked == set(AGENTS)


@pytest.mark.kill
def test_plan_when_cut_off_in_the_middle_of_runs_then_ends_in_the_same_bytes(
    whole: tuple[MlePlan, Path, StepStudy], tmp_path: Path
) -> None:
    """Workspaces are made anew by doing again what was done; no byte of the log is another."""
    plan, out, undisturbed = whole
    calls = 0

    def away(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 20:  # runs are done, one is under way, and others have not begun
            raise InfrastructureError("the network is away")

    first, second = StepStudy(away), StepStudy()
    assert not run(plan, tmp_path / "out", first, concurrency=1).complete
    assert run(plan, tmp_path / "out", second).complete
    assert log_bytes(tmp_path / "out") == log_bytes(out)
    assert verify_directory(tmp_path / "out") == []
    assert len(first.asked) + len(second.asked) <= len(undisturbed.asked) + 1


class Watched(Lent):
    """Keeps the kernels that were opened in it."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self.opened: list[Kernel] = []

    @override
    async def akernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        self.opened.append(await super().akernel(preload=preload, files=files))
        return self.opened[-1]


async def test_run_when_it_fails_and_goes_on_then_tells_every_step_and_leaves_no_workspace(
    tmp_path: Path,
) -> None:
    """A listener hears of each step when it is whole, and of those before on going on; what a run
    opened in a sandbox that others use, too, is closed when it fails.
    """  # noqa: D205
    plan = step_plan(tmp_path, agents=[{"name": "chain", "steps": 4}], memory=["cold"])
    competition = plan.registry().get_competition(ID)
    memory = CodingMemory(InMemoryStore(), settings=coding_preset("implied"))
    heard: list[int] = []

    def away(sample: str) -> None:
        if "/step-2/" in sample:
            raise InfrastructureError("the network is away")

    with make_sandbox(plan, plan.limits_of(plan.agents[0]), competition) as place:
        sandbox = Watched(place)
        for study in (StepStudy(away), StepStudy()):
            model = study.simulated_model(plan, next(runs_of(plan)))
            parts = Parts(plan, plan.agents[0], competition, sandbox, model, memory=memory)
            given: Any = {"seed": 1, "listen": lambda did: heard.append(did.step)}
            try:
                found = await find(parts, tmp_path / "run", episode_id="toy", **given)
            except InfrastructureError:
                heard.append(-1)
        assert len(sandbox.opened) == 2
        for kernel in sandbox.opened:
            with pytest.raises(SandboxFailureError, match="closed"):
                kernel.execute("1")
    assert heard == [0, 1, -1, 0, 1, 2, 3]
    assert found.resumed
    assert found.came.fields["ended"] == "steps"
