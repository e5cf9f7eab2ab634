"""Runs of a tree study: searches that end the same however often they are cut off."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from chain_study import log_bytes
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from mle_study import HouseStudy, errors_of, fails, house_plan
from toy_competition import ID

from langgraft._core.errors import InfrastructureError
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.progress import PlanOutcome
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.benchmarks.mle.agents.base import Parts
from langgraft.benchmarks.mle.agents.settings import TreeSettings
from langgraft.benchmarks.mle.execute_agent import find
from langgraft.benchmarks.mle.plan import MlePlan, runs_of
from langgraft.benchmarks.mle.sandboxes import EXECUTIONS, make_sandbox
from langgraft.benchmarks.mle.session import list_submissions
from langgraft.environments.competitions.grading import grade_jsonl
from langgraft.environments.sandboxes.cached import CachedSandbox, ExecutionCache
from langgraft.environments.sandboxes.sandbox import ExecutionResult, Job
from langgraft.memory.model import Episode, ErrorRecord, Outcome
from langgraft.memory.providers.coding import CodingMemory
from langgraft.memory.providers.coding.provider import coding_preset


def run(plan: MlePlan, out: Path, study: HouseStudy, **options: Any) -> PlanOutcome:
    """Run a plan to its end, or to its first failure."""
    prepared = prepare(study, plan)
    given = {"store": "memory", **options}
    return asyncio.run(run_plan(prepared, out, model_for=study.simulated_model, **given))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[MlePlan, Path, HouseStudy]:
    """Return a plan that ran without a disturbance, its directory, and what was asked."""
    folder = tmp_path_factory.mktemp("whole")
    plan = house_plan(folder, steps=6, width=2, candidates=2)
    study = HouseStudy()
    assert run(plan, folder / "out", study).complete
    return plan, folder / "out", study


def results(out: Path, name: str) -> list[Any]:
    """Return the results of a run."""
    return list(PlanLog(out).results(name))


class Crash:
    """Fails at the call of a model with this number, once."""

    def __init__(self, at: int) -> None:
        self._left = count(at - 1, -1)

    def __call__(self, sample: str) -> None:
        """Count a call, and fail at the one that is to."""
        if next(self._left) == 0:  # in threads
            raise InfrastructureError(f"the network is away at {sample}")


@pytest.mark.kill
def test_plan_when_cut_off_in_the_middle_of_searches_then_ends_in_the_same_bytes(
    whole: tuple[MlePlan, Path, HouseStudy], tmp_path: Path
) -> None:
    """With two programs in flight a failure costs what was in flight, and changes no byte."""
    plan, out, undisturbed = whole
    first = HouseStudy(Crash(15))
    again = tmp_path / "out"
    assert not run(plan, again, first, concurrency=1).complete
    second = HouseStudy()
    assert run(plan, again, second).complete
    assert log_bytes(again) == log_bytes(out)
    assert verify_directory(again) == []
    # At most what was in flight is asked again: a wave of two, with their corrections.
    asked = len(first.asked) + len(second.asked)
    assert len(undisturbed.asked) <= asked <= len(undisturbed.asked) + 6


@pytest.mark.matrix
def test_plan_when_run_over_chroma_then_ends_in_the_same_bytes(
    whole: tuple[MlePlan, Path, HouseStudy], tmp_path: Path
) -> None:
    """Where banks lie meanwhile changes nothing."""
    plan, out, _ = whole
    assert run(plan, tmp_path / "out", HouseStudy(), store="chroma", concurrency=1).complete
    assert log_bytes(tmp_path / "out") == log_bytes(out)


def test_run_when_done_then_keeps_what_was_chosen_and_nothing_to_go_on_with(
    whole: tuple[MlePlan, Path, HouseStudy],
) -> None:
    """Submission and program of the chosen node are files; the work of the search is gone."""
    _, out, study = whole
    log = PlanLog(out)
    for planned in log.graph:
        folder = run_folder(out, planned)
        assert not (folder / "work").exists()
        (item,) = planned.spec.item_ids
        (result,) = results(out, planned.name)
        nodes = {node["id"]: node for node in result["journal"]}
        assert (folder / "kept" / item / "solution.py").read_text() == nodes[result["chosen"]][
            "code"
        ]
        report = result["report"]
        assert report["valid_submission"]
        assert report["submission_exists"]
        assert not {"created_at", "submission_path"} & set(report)
        assert len(result["candidates"]) == 2
    assert len(study.sandboxes) == 0


def test_submissions_when_listed_then_are_graded_again_as_they_were(
    whole: tuple[MlePlan, Path, HouseStudy], tmp_path: Path
) -> None:
    """The list is MLE-bench's, and gives the grades of the log."""
    plan, out, _ = whole
    log = PlanLog(out)
    listed = list_submissions(log, tmp_path / "report").read_text().splitlines()
    graded = grade_jsonl(listed, plan.registry()).competition_reports
    searches = [run.name for run in log.runs if run.factors["phase"] == "search"]
    expected = [results(out, name)[0]["report"]["score"] for name in searches]
    assert [each.score for each in graded] == expected


def recalls(out: Path, memory: str) -> list[str]:
    """Return the blocks of memory that the programs of a condition were written with."""
    (result,) = results(out, f"{memory}/{ID}/seed-0")
    return [node["recalled"] for node in result["journal"]]


def test_conditions_when_compared_then_are_told_what_their_names_say(
    whole: tuple[MlePlan, Path, HouseStudy],
) -> None:
    """Off is told nothing, cold nothing at first, warm an error of the build, placebo none."""
    log = whole[1]
    assert set(recalls(log, "off")) == {""}
    assert recalls(log, "cold")[0] == ""
    assert "TypeError" in recalls(log, "warm")[0]
    assert recalls(log, "placebo")[0]
    assert "TypeError" not in "".join(recalls(log, "placebo"))


def test_conditions_when_they_learn_then_their_deltas_say_so(
    whole: tuple[MlePlan, Path, HouseStudy],
) -> None:
    """Build, cold and warm file what they meet; without memory and in a control nothing is filed."""
    log = PlanLog(whole[1])
    filed = {run.name.split("/")[0]: any(*log.deltas(run.name)) for run in log.runs}
    assert filed == {"build": True, "off": False, "cold": True, "warm": True, "placebo": False}


def test_programs_when_conditions_share_them_then_run_once(
    whole: tuple[MlePlan, Path, HouseStudy],
) -> None:
    """Conditions sample alike, so that equal prompts give equal programs, which are known then."""
    plan, out, _ = whole
    log = PlanLog(out)
    programs = [node["code"] for run in log.runs for node in results(out, run.name)[0]["journal"]]
    (tree,) = plan.agents
    assert isinstance(tree, TreeSettings)
    assert len(programs) == 5 * tree.steps
    again = 5 * 2 * tree.candidates  # on fresh splits
    known = len(ExecutionCache(out / "shared" / EXECUTIONS))
    assert known <= len(set(programs)) + again + 1  # and a look at the data


def test_rerun_when_without_memory_then_samples_anew(tmp_path: Path) -> None:
    """The condition that shows what chance alone does has other samples of the same seeds."""
    plan = house_plan(tmp_path, memory=["off", "rerun"], build_seeds=[], steps=2)
    study = HouseStudy()
    run(plan, tmp_path / "out", study)
    codes = [
        [node["code"] for node in results(tmp_path / "out", f"{name}/{ID}/seed-0")[0]["journal"]]
        for name in ("off", "rerun")
    ]
    assert codes[0] != codes[1]


def test_search_when_no_program_works_then_is_graded_as_none(tmp_path: Path) -> None:
    """A run without a submission has a result like any other: not made, no file, no medal."""
    seed = next(n for n in range(99) if fails(f"{ID}/seed-{n}/000/write"))
    plan = house_plan(tmp_path, memory=["off"], build_seeds=[], steps=1, seeds=[seed])
    run(plan, tmp_path / "out", HouseStudy())
    log = PlanLog(tmp_path / "out")
    (result,) = results(tmp_path / "out", f"off/{ID}/seed-{seed}")
    assert result["chosen"] == result["submission_sha256"] == ""
    assert result["validation"] is None
    assert result["report"]["submission_exists"] is False
    assert result["report"]["any_medal"] is False
    (planned,) = log.graph
    assert [*(run_folder(tmp_path / "out", planned) / "kept" / f"seed-{seed}").iterdir()] == []


def test_build_when_it_has_two_seeds_then_the_second_knows_the_first(tmp_path: Path) -> None:
    """The searches of a build run follow each other with one bank."""
    plan = house_plan(tmp_path, memory=["warm"], build_seeds=[100, 101], seeds=[0], steps=3)
    study = HouseStudy(Crash(14))
    run(plan, tmp_path / "out", study)  # the bank is folded anew when the run goes on
    second = HouseStudy()
    assert run(plan, tmp_path / "out", second).complete
    first, later = results(tmp_path / "out", f"build/{ID}")
    assert first["journal"][0]["recalled"] == ""
    assert errors_of(str(later["journal"][0]["recalled"]))


async def test_search_when_it_dies_before_any_of_its_checkpoints_then_is_the_same_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a node filed counts also where the checkpoint after it was never written.

    The head of a search's chain is a digest of all its programs, prompts and deltas.
    """
    plan = house_plan(tmp_path, memory=["cold"], steps=4, width=2)
    competition = plan.registry().get_competition(ID)
    model = HouseStudy().simulated_model(plan, next(runs_of(plan)))
    deaths = Deaths(monkeypatch)

    async def searched(folder: Path) -> str:
        memory = CodingMemory(InMemoryStore(), settings=coding_preset("implied"))
        parts = Parts(plan, plan.agents[0], competition, sandbox, model, memory=memory)
        found = await find(parts, folder, episode_id="toy/seed-1", seed=1)
        return f"{found.came.record} {memory.content().digest} {found.usage}"

    with CachedSandbox(
        make_sandbox(plan, plan.limits_of(plan.agents[0]), competition), tmp_path / EXECUTIONS
    ) as sandbox:
        expected = await searched(tmp_path / "whole")
        checkpoints = deaths.seen
        assert checkpoints > 20
        for at in range(1, checkpoints, 7):  # 1, 8, 15, …: nodes of either kind
            deaths.prepare(at)
            with pytest.raises(InfrastructureError):
                await searched(tmp_path / str(at))
            assert await searched(tmp_path / str(at)) == expected, f"died before checkpoint {at}"


async def test_search_when_it_dies_before_it_has_begun_then_keeps_what_memory_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that noted no bank yet takes nothing in it for what others learned meanwhile."""
    plan = house_plan(tmp_path, memory=["warm"], steps=2)
    competition = plan.registry().get_competition(ID)
    model = HouseStudy().simulated_model(plan, next(runs_of(plan)))
    memory = CodingMemory(InMemoryStore(), settings=coding_preset("implied"))
    error = ErrorRecord("pandas", "KeyError: 'rooms'", "Name the column `room_count`.")
    others = Episode(
        id="toy/seed-100/000",
        domain=f"mle/{ID}",
        task_id=ID,
        task="",
        steps=(),
        outcome=Outcome(success=False),
        errors=(error,),
    )
    memory.file(others)
    with make_sandbox(plan, plan.limits_of(plan.agents[0]), competition) as sandbox:
        parts = Parts(plan, plan.agents[0], competition, sandbox, model, memory=memory)

        async def killed(_: Job) -> ExecutionResult:
            raise InfrastructureError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(sandbox, "arun", killed)
            with pytest.raises(InfrastructureError):
                await find(parts, tmp_path / "search", episode_id="toy/seed-1", seed=1)
        found = await find(parts, tmp_path / "search", episode_id="toy/seed-1", seed=1)
    assert found.resumed
    programs: Any = found.came.fields["journal"]
    assert len(programs) == 2
    assert any(item.episode_id == others.id for item in memory.content().items.values())


class Deaths:
    """Fails instead of writing a checkpoint, once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen = 0
        self.at = 0
        write = AsyncSqliteSaver.aput

        async def aput(saver: AsyncSqliteSaver, *args: Any) -> Any:
            self.seen += 1
            if self.seen == self.at:
                raise InfrastructureError("killed")
            return await write(saver, *args)

        monkeypatch.setattr(AsyncSqliteSaver, "aput", aput)

    def prepare(self, at: int) -> None:
        """Fail at the checkpoint of this number from now on."""
        self.seen, self.at = 0, at
