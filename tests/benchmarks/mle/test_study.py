"""The tree study: what its results depend on, what it needs, and what it says beforehand."""

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from counting_sandbox import CountingSandbox
from mle_study import HouseStudy, house_plan
from toy_competition import CHECKSUMS, ID

from langgraft._core.errors import CompetitionError, InputError, SandboxUnavailableError
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.models import MeteredChatModel, make_model
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.mle.plan import MlePlan, runs_of
from langgraft.benchmarks.mle.sandboxes import packages_of
from langgraft.benchmarks.mle.session import models_of
from langgraft.benchmarks.mle.study import MleStudy
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.environments.sandboxes.docker import engine
from langgraft.environments.sandboxes.image.packages import PACKAGES_LABEL, shipped_packages
from langgraft.environments.sandboxes.sandbox import ExecutionResult


def fingerprints(plan: MlePlan) -> Any:
    """Return what the results of a plan depend on."""
    return MleStudy().fingerprints(plan)


def refused(plan: MlePlan, out: Path) -> str:
    """Return what a run is refused with; nothing may be written."""
    study = HouseStudy()
    with pytest.raises(InputError) as refusal:
        asyncio.run(run_plan(prepare(study, plan), out, model_for=study.simulated_model))
    assert not out.exists()
    return str(refusal.value)


@pytest.mark.parametrize("changed", ["data", "grader", "description", "board"])
def test_fingerprints_when_a_competition_changes_then_tell(tmp_path: Path, changed: str) -> None:
    """Data, grader, description and board decide results: changed ones are another study."""
    plan = house_plan(tmp_path)
    before = fingerprints(plan)
    folder = tmp_path / "mine" / ID
    match changed:
        case "data":
            (tmp_path / "data" / ID / "prepared" / "public" / "train.csv").write_text("id\n")
        case "grader":
            (folder / "grade.py").write_text((folder / "grade.py").read_text() + "# Once more.\n")
        case "description":
            (folder / "description.md").write_text("Guess.")
        case "board":
            (folder / "leaderboard.csv").write_text("score\n0.1\n0.2\n0.3\n")
    after = fingerprints(plan)
    assert after["competitions"][ID] != before["competitions"][ID]
    assert {**after, "competitions": {}} == {**before, "competitions": {}}


def test_run_when_there_is_no_engine_then_says_how_to_get_one_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs never run outside of a sandbox because there is none."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    said = refused(house_plan(tmp_path, sandbox="docker"), tmp_path / "out")
    assert "no Docker engine answers" in said
    assert "langgraft sandbox build" in said


def test_notes_when_there_is_no_engine_then_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A preview works without an engine, and tells that a run would not."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    plan = house_plan(tmp_path, sandbox="docker", prepared=False)
    told = MleStudy().notes(plan, tuple(runs_of(plan)))
    assert any("no Docker engine answers" in line for line in told)
    assert any(f"langgraft competitions prepare {ID}" in line for line in told)
    assert any("5 searches of 8 steps" in line for line in told)


def test_notes_when_a_search_has_hours_say_how_long_all_may_take(tmp_path: Path) -> None:
    """What a language model's searches take at the most is known then."""
    plan = house_plan(tmp_path, model="openai:gpt-4.1", hours=24)
    told = MleStudy().notes(plan, tuple(runs_of(plan)))
    assert "tree: a run has at most 24 h, all 5 runs 120 h, one after another" in told


OURS = "(those of our own image, whether this machine has them or not)"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, f"packages: {', '.join(shipped_packages())} {OURS}"),
        ({"packages": ["torch 2.9", "timm"]}, "packages: torch 2.9, timm (named by the plan)"),
        ({"packages": []}, "packages: none (named by the plan)"),
        ({"sandbox": "docker"}, "packages: those of the image, which cannot be looked at now"),
    ],
)  # fmt: skip
def test_notes_when_agents_are_told_of_packages_say_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], said: str
) -> None:
    """Before anything is paid it is seen what a model will think that it has."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    plan = house_plan(tmp_path, **fields)
    assert said in MleStudy().notes(plan, tuple(runs_of(plan)))


def test_prompts_when_the_plan_names_packages_tell_of_these(tmp_path: Path) -> None:
    """In place of those that the image has."""
    study, plan = HouseStudy(), house_plan(tmp_path, memory=["off"], packages=["torch 2.9", "timm"])
    run = run_plan(
        prepare(study, plan), tmp_path / "out", model_for=study.simulated_model, store="memory"
    )
    assert asyncio.run(run).complete
    written = [text for sample, text in study.asked if sample.endswith("/write")]
    assert written
    assert all("installed, among others: torch 2.9, timm.\n" in text for text in written)


def test_packages_when_an_image_has_no_label_are_asked_of_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox that keeps results runs the program that lists them once; a label is taken first."""
    api = LabelledImage({PACKAGES_LABEL: '["torch", "timm"]'})
    monkeypatch.setattr(engine, "connect", lambda: api)
    plan = house_plan(tmp_path, sandbox="docker", prepared=False)
    below = CountingSandbox(
        lambda *_: ExecutionResult(0, '{"named": ["monai", "pip"], "needed": []}', "", 1.0)
    )
    with CachedSandbox(below, tmp_path / "executions.sqlite") as sandbox:
        assert packages_of(plan, sandbox) == ("torch", "timm")
        assert not below.jobs
        api.labels.clear()
        line = "langgraft-sandbox:latest has no label that names them; it is asked as the first run"
        told = MleStudy().notes(plan, tuple(runs_of(plan)))
        assert any(each.startswith(f"packages: {line}") for each in told)
        assert packages_of(plan, sandbox) == packages_of(plan, sandbox) == ("monai",)
    assert len(below.jobs) == 1


class LabelledImage:
    """An engine with one image, as docker-py answers for it."""

    def __init__(self, labels: dict[str, str]) -> None:
        self.labels = labels
        self.api = self
        self.base_url = "http+docker://localhost"

    def inspect_image(self, image: str) -> dict[str, Any]:
        """Describe the image."""
        return {"Id": "sha256:0", "Config": {"Labels": self.labels or None}}

    def info(self) -> dict[str, Any]:
        """Say that nothing can be enforced."""
        return {}

    def close(self) -> None:
        """Do nothing."""


def test_check_when_the_image_is_missing_then_says_how_to_build_it(docker_image: str) -> None:
    """An image that nobody built is named, with the command that makes one."""
    with pytest.raises(SandboxUnavailableError, match="langgraft sandbox build"):
        MleStudy.check_engine(MlePlan(image="nobody/built-this"))


def test_run_when_data_of_ones_own_is_not_prepared_then_says_the_command(tmp_path: Path) -> None:
    """The command that is told prepares the data at the place where the plan looks for it."""
    said = refused(house_plan(tmp_path, prepared=False), tmp_path / "out")
    assert f"langgraft competitions prepare {ID}" in said
    assert f"--data-dir {tmp_path / 'data'} --folder {tmp_path / 'mine'}" in said


def lite_plan(folder: Path, **changes: Any) -> MlePlan:
    """Return a plan of two of MLE-bench's competitions, of which no data is here."""
    two = ["dog-breed-identification", "spooky-author-identification"]
    fields = {"competitions": [*two, ID], "folders": [folder / "mine"], "data_dir": folder / "data"}
    return house_plan(folder, **{**fields, **changes})


def test_run_when_several_competitions_are_not_prepared_then_says_all_at_once(
    tmp_path: Path,
) -> None:
    """One line names them, how their data is made, and how to go without it."""
    plan = lite_plan(tmp_path)
    said = refused(plan, tmp_path / "out")
    assert "2 competitions is not prepared (dog-breed-identification, spooky-author" in said
    assert f"`mlebench prepare -c ID --data-dir {tmp_path / 'data'}`" in said
    assert "only_prepared" in said
    assert any(said in line for line in MleStudy().notes(plan, tuple(runs_of(plan))))


def test_plan_when_only_what_is_prepared_is_wanted_then_tells_what_it_left_out(
    tmp_path: Path,
) -> None:
    """The runs are those of the data that is there, and the manifest names the others."""
    plan = lite_plan(tmp_path, only_prepared=True)
    assert {run.factors["competition"] for run in MleStudy().expand(plan)} == {ID}
    prepared = prepare(MleStudy(), plan)
    told: Any = prepared.manifest["fingerprints"]
    assert told["left_out"] == ["dog-breed-identification", "spooky-author-identification"]
    assert list(told["competitions"]) == [ID]
    MleStudy().make_ready(plan)
    nothing = lite_plan(tmp_path, only_prepared=True, competitions=["dog-breed-identification"])
    with pytest.raises(CompetitionError, match="nothing is: the data of dog-breed") as refusal:
        MleStudy().expand(nothing)
    assert "leaves out" not in str(refusal.value)  # that is what was asked for


def test_run_when_data_differs_from_its_checksums_then_is_refused(tmp_path: Path) -> None:
    """Somebody else's data is not taken for a competition's."""
    plan = house_plan(tmp_path)
    (tmp_path / "mine" / ID / "checksums.yaml").write_text(yaml.safe_dump(CHECKSUMS))
    prepared = tmp_path / "data" / ID / "prepared"
    (prepared / "public" / "train.csv").write_text("id,rooms,price\n")
    with pytest.raises(CompetitionError, match=r"train\.csv differs"):
        MleStudy().make_ready(plan)


def test_make_ready_when_a_competition_ships_then_prepares_it(tmp_path: Path) -> None:
    """Whoever runs a plan of competitions that ship need not prepare anything."""
    plan = MlePlan(competitions=("weather",), data_dir=tmp_path, sandbox="subprocess")
    MleStudy().make_ready(plan)
    assert Registry(tmp_path).get_competition("weather").prepared


def test_feedback_model_when_named_then_shares_cache_and_caps(tmp_path: Path) -> None:
    """A second model is paid once like the first, under the same patience."""
    plan = house_plan(
        tmp_path,
        prepared=False,
        model="openai:o3",
        base_url="http://127.0.0.1:9/v1",
        feedback_model="openai:gpt-4.1",
    )
    with ResponseCache(tmp_path / "cache.sqlite") as cache:
        code = make_model("openai:o3", base_url=plan.base_url, responses=cache)
        acting, found = models_of(plan, plan.agents[0], code)
    assert acting is code
    assert isinstance(found, MeteredChatModel)
    assert found.identity["model"] == "openai:gpt-4.1"
    assert found.responses is cache
    assert found.retry is code.retry


def test_models_when_agents_name_their_own_then_each_has_what_its_section_says(
    tmp_path: Path,
) -> None:
    """As in the paper: o3 and GPT-4.1 for one agent, GPT-4o for another, one cache for all."""
    plan = house_plan(
        tmp_path,
        prepared=False,
        model="openai:o3",
        base_url="http://127.0.0.1:9/v1",
        agents=[
            {"name": "tree", "feedback_model": "openai:gpt-4.1", "temperature": 1},
            {"name": "chain", "model": "openai:gpt-4o", "base_url": "http://127.0.0.1:8/v1"},
            "mlab",
        ],
    )
    with ResponseCache(tmp_path / "cache.sqlite") as cache:
        shared = make_model("openai:o3", base_url=plan.base_url, responses=cache)
        made = {each.name: models_of(plan, each, shared) for each in plan.agents}
    told = {
        name: [
            (
                model.identity["model"],
                model.identity["base_url"][-4:],
                model.identity["temperature"],
            )
            for model in models
            if isinstance(model, MeteredChatModel) and model.responses is cache
        ]
        for name, models in made.items()
    }
    assert told["tree"] == [("openai:o3", "9/v1", 1), ("openai:gpt-4.1", "9/v1", 1)]
    assert told["chain"] == [("openai:gpt-4o", "8/v1", 0.5)]
    assert made["mlab"] == (shared, None)


def test_feedback_model_when_it_cannot_be_then_is_refused_before_anything_runs(
    tmp_path: Path,
) -> None:
    """A misspelled provider is found when the plan is run, not in the middle of it."""
    plan = house_plan(tmp_path, model="openai:o3", base_url="http://127.0.0.1:9/v1")
    plan = plan.model_copy(update={"feedback_model": "opnai:gpt-4.1"})
    assert "opnai" in refused(plan, tmp_path / "out")


def test_run_when_memory_needs_what_an_agent_cannot_give_then_is_refused_before_anything_runs(
    tmp_path: Path,
) -> None:
    """A condition whose runs come last would be refused when all others are paid."""
    lessons = {"name": "lessons", "provider": "insight"}
    said = refused(
        house_plan(tmp_path, agents=["chain"], memory=["off", lessons]), tmp_path / "out"
    )
    assert "condition 'lessons' of the agent chain" in said
    assert "lessons" in said.rpartition("learns from")[2]


def test_study_when_sent_to_another_process_opens_sandboxes_of_its_own() -> None:
    """Several processes may share the searches of a plan."""
    sent: MleStudy = pickle.loads(pickle.dumps(MleStudy()))
    assert len(sent.sandboxes) == 0
