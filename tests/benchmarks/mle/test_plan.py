"""Plans of tree studies: what they say, what they refuse, and the runs they expand to."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from mle_study import house_plan
from toy_competition import ID

from langgraft._core.errors import CompetitionError, PlanError
from langgraft.benchmarks.cli.plan_choice import read_plan, shipped_plans
from langgraft.benchmarks.harness.plans import load_plan, prepare
from langgraft.benchmarks.harness.study import Plan
from langgraft.benchmarks.mle.conditions import NAMED
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.runs import runs_of
from langgraft.benchmarks.mle.study import MleStudy
from langgraft.benchmarks.studies import studies
from langgraft.memory.providers.coding.presets import coding_preset


def written(folder: Path, **fields: Any) -> Plan:
    """Write a plan file and load it."""
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump({"study": "mle", **fields}))
    return load_plan(path, studies())[1]


def refusal(folder: Path, **fields: Any) -> str:
    """Return the one line that a plan file is refused with."""
    with pytest.raises(PlanError) as refused:
        written(folder, **fields)
    return str(refused.value).partition(": ")[2]


def test_plan_when_it_says_nothing_then_has_the_published_settings(tmp_path: Path) -> None:
    """Table 6 of the paper, with AIDE's own defaults where it is silent, on all that ships."""
    plan = written(tmp_path)
    assert isinstance(plan, MlePlan)
    assert (plan.steps, plan.seconds, plan.debug_probability, plan.debug_depth) == (
        30,
        7200,
        0.5,
        3,
    )
    assert (plan.drafts, plan.folds, plan.width, plan.candidates) == (5, 5, 1, 1)
    assert plan.competitions == (
        "denoising",
        "digits",
        "phrases",
        "textures",
        "visits",
        "weather",
    )
    assert plan.sandbox == "docker"
    assert plan.program_limits.cpus == 1
    assert plan.program_limits.seconds == 7200


def test_conditions_when_named_in_yaml_then_off_is_a_word(tmp_path: Path) -> None:
    """YAML makes a truth value of `off`; a plan that names the condition means the condition."""
    path = tmp_path / "plan.yaml"
    path.write_text(
        "study: mle\nmemory: [off, cold, {name: late, start: warm, preset: scheduled,"
        " settings: {from_step: 3}}, {name: none, start: off}]\n"
    )
    _, plan = load_plan(path, studies())
    assert isinstance(plan, MlePlan)
    assert [(each.name, each.start) for each in plan.memory] == [
        ("off", "off"),
        ("cold", "cold"),
        ("late", "warm"),
        ("none", "off"),
    ]
    late = plan.condition("late").architecture().describe()
    assert late == coding_preset("scheduled").model_copy(update={"from_step": 3}).describe()


def test_conditions_when_cold_and_warm_are_compared_then_differ_in_the_bank_alone() -> None:
    """What each is told and when is equal: the settings are the same ones."""
    assert NAMED["cold"].architecture() == NAMED["warm"].architecture()


REFUSED = [
    ({"memory": ["of"]}, "no memory condition is called 'of'"),
    ({"memory": []}, "at least one"),
    ({"memory": ["warm", "warm"]}, "distinct"),
    ({"memory": ["placebo"]}, "is of 'warm', which is no condition of the plan"),
    ({"memory": [{"name": "x", "preset": "nonsense"}]}, "no preset 'nonsense'"),
    ({"memory": [{"name": "x", "provider": "coding", "preset": "implied"}]}, "not both"),
    ({"memory": [{"name": "x", "provider": "trajectory", "settings": {"k": 1}}]}, "top_k"),
    ({"memory": [{"name": "x", "start": "off", "preset": "implied"}]}, "no memory to set up"),
    ({"memory": [{"name": "x", "start": "cold", "resampled": True}]}, "resampled"),
    ({"memory": [{"name": "build"}]}, "none 'build'"),
    ({"memory": [{"name": "x", "control": "placebo"}]}, "belong together"),
    ({"seeds": [0, 100], "build_seeds": [100]}, "seeds [100] build banks and are compared"),
    ({"seeds": [0, 0]}, "once"),
    ({"seeds": [-1]}, "0 or more"),
    ({"build_seeds": []}, "no build_seeds"),
    ({"competitions": ["../etc"]}, "cannot be the id"),
    ({"limits": {"seconds": 5}}, "`seconds` of an execution"),
    ({"limits": {"memory": 5}}, "memory"),
    ({"agents": ["forest"]}, "agents"),
    ({"feedback_model": "openai:gpt-4.1"}, "not for the simulated model"),
    ({"model": "openai:o3", "feedback_base_url": "http://x"}, "no feedback_model"),
    ({"steps": 0}, "steps"),
    ({"sandbox": "host"}, "sandbox"),
]


@pytest.mark.parametrize(("fields", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_plan_when_it_asks_for_the_impossible_then_is_refused_in_a_line(
    tmp_path: Path, fields: dict[str, Any], why: str
) -> None:
    """What is wrong is named, in one line, when the file is read."""
    said = refusal(tmp_path, **fields)
    assert why in said
    assert "\n" not in said


def test_plan_when_a_competition_is_unknown_then_those_near_it_are_named(tmp_path: Path) -> None:
    """A misspelled id is refused when the plan is expanded, before anything runs."""
    with pytest.raises(CompetitionError, match="did you mean weather"):
        MleStudy().expand(MlePlan(competitions=("wether",), data_dir=tmp_path))


def test_runs_when_listed_then_warm_ones_start_from_the_build_of_their_competition(
    tmp_path: Path,
) -> None:
    """Each condition has each seed once; banks come from other seeds, and from one run each."""
    own = {"name": "tr", "provider": "trajectory", "start": "warm"}
    plan = house_plan(
        tmp_path,
        prepared=False,
        memory=["off", "cold", "warm", "scheduled", "placebo", own],
        seeds=[3, 4],
        build_seeds=[7, 8],
    )
    runs = {run.name: run for run in runs_of(plan)}
    builds = {name: run for name, run in runs.items() if run.factors["phase"] == "build"}
    assert {name: run.item_ids for name, run in builds.items()} == {
        f"build/{ID}": ("seed-7", "seed-8"),
        f"build-tr/{ID}": ("seed-7", "seed-8"),
    }
    assert len(runs) == 2 + 6 * 2
    sources = {
        str(run.factors["memory"]): run.source and run.source.run
        for run in runs.values()
        if run.factors["phase"] == "search"
    }
    assert sources == {
        "off": None,
        "cold": None,
        "warm": f"build/{ID}",
        "scheduled": f"build/{ID}",
        "placebo": f"build/{ID}",
        "tr": f"build-tr/{ID}",
    }
    assert runs[f"warm/{ID}/seed-3"].item_ids == ("seed-3",)


def test_plan_when_data_lies_elsewhere_then_is_the_same_plan(tmp_path: Path) -> None:
    """Where data and folders lie is no part of what is studied: the manifests are equal."""
    manifests = []
    for place in ("here", "there"):
        plan = house_plan(tmp_path / place, image="none")
        manifests.append(prepare(MleStudy(), plan).manifest)
    assert manifests[0] == manifests[1]
    assert "data" not in prepare(MleStudy(), plan).resolved


@pytest.mark.parametrize("name", ["demo-mle", "mle-shipped"])
def test_plan_when_it_ships_then_expands(name: str) -> None:
    """The plans that ship are read and expanded; written out in full they are the same plans."""
    study, plan = read_plan(shipped_plans()[name])
    assert study.name == "mle"
    assert {run.factors["memory"] for run in study.expand(plan)} >= {"off", "cold", "warm"}
    assert MlePlan.model_validate(plan.model_dump(mode="json")) == plan
