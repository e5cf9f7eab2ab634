"""Plans of tree studies: what they say, what they refuse, and the runs they expand to."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from mle_study import house_plan
from toy_competition import ID

from langgraft._core.errors import CompetitionError, PlanError
from langgraft.benchmarks.harness.plans import load_plan, prepare
from langgraft.benchmarks.harness.study import Plan
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.settings import ChainSettings, MlabSettings, TreeSettings
from langgraft.benchmarks.mle.conditions import NAMED
from langgraft.benchmarks.mle.plan import MlePlan, runs_of
from langgraft.benchmarks.mle.study import MleStudy
from langgraft.benchmarks.studies import choose, read_plan, shipped_plans, studies
from langgraft.memory.providers.coding.provider import coding_preset
from langgraft.nodes.search import AIDEPolicy, EvolutionPolicy
from langgraft.nodes.search.policy import identity_of


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
    (tree,) = plan.agents
    assert isinstance(tree, TreeSettings)
    assert (tree.steps, tree.debug_probability, tree.debug_depth) == (30, 0.5, 3)
    assert (tree.drafts, tree.folds, tree.width, tree.candidates) == (5, 5, 1, 1)
    assert plan.seconds_of(tree) == 7200
    assert plan.competitions == (
        "denoising",
        "digits",
        "phrases",
        "textures",
        "visits",
        "weather",
    )
    assert plan.sandbox == "docker"
    assert plan.limits_of(tree).cpus == 1
    assert plan.limits_of(tree).seconds == 7200


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, [7200, 86400, 4 * 3600]),
        ({"seconds": 60}, [60, 60, 60]),
        ({"seconds": 60, "chain": 600}, [60, 600, 60]),
    ],
    ids=["published", "of the plan", "of an agent"],
)
def test_seconds_when_nobody_names_them_then_each_agent_has_its_original_s(
    tmp_path: Path, fields: dict[str, Any], seconds: list[float]
) -> None:
    """AIDE alone stops an execution after two hours; the others' may take what their run has left."""
    chain = {"name": "chain", "seconds": fields.pop("chain", None)}
    plan = written(tmp_path, agents=["tree", chain, {"name": "mlab", "hours": 4}], **fields)
    assert isinstance(plan, MlePlan)
    assert [plan.limits_of(each).seconds for each in plan.agents] == seconds


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
    ({"packages": ["torch\nObey."]}, "packages"),
    ({"packages": ["$task"]}, "packages"),
    ({"agents": [{"name": "tree", "hours": 0}]}, "hours"),
    (
        {"agents": [{"name": "tree", "use_all_time": False}]},
        "no setting of this agent, but of chain",
    ),
    (
        {"agents": [{"name": "mlab", "invalid_is_bug": False}]},
        "no setting of this agent, but of tree",
    ),
    ({"agents": ["forest"]}, "no agent is called 'forest'; there are tree, chain, mlab"),
    ({"agents": [{"name": ["tree"]}]}, "no agent is called"),
    ({"agents": []}, "at least one"),
    ({"agents": "chain"}, "agents: give a list, as in `agents: [tree, {name: chain"),
    ({"agents": [{"chain": {"steps": 5}}]}, "an agent is its name, or a section with a `name`"),
    ({"agents": [None]}, "an agent is its name, or a section with a `name`"),
    ({"agents": [{"name": "chain", "recoveries": 5}]}, "on_stuck is not `recover`"),
    ({"agents": ["chain", {"name": "chain", "steps": 5}]}, "each agent may be given once"),
    (
        {"agents": [{"name": "chain", "drafts": 5}]},
        "chain: `drafts` is no setting of this agent, but of tree",
    ),
    ({"agents": [{"name": "chain", "dollars": 5}]}, "needs prompt_price and completion_price"),
    ({"agents": [{"name": "mlab", "dollars": 5, "prompt_price": 5}]}, "needs prompt_price and"),
    ({"agents": [{"name": "mlab", "prompt_price": 5}]}, "no limit in `dollars`"),
    ({"agents": [{"name": "mlab", "seeds": [101]}]}, "seeds [101] build banks and are compared"),
    ({"agents": [{"name": "mlab", "build_seeds": []}]}, "no build_seeds"),
    ({"agents": [{"name": "tree", "model": "openai:o3"}]}, "tree's model is not for the simulated"),
    ({"model": "openai:o3", "agents": [{"name": "tree", "base_url": "http://x"}]}, "no model"),
    (
        {"model": "openai:o3", "agents": [{"name": "tree", "model": "simulated"}]},
        "cannot be the simulated one",
    ),
    ({"agents": [{"name": "mlab", "memory": ["rerun"]}]}, "'rerun' is no condition of the plan"),
    ({"agents": [{"name": "mlab", "memory": []}]}, "at least one"),
    (
        {"memory": ["warm", "placebo"], "agents": [{"name": "mlab", "memory": ["placebo"]}]},
        "has the control 'placebo' and not 'warm'",
    ),
    ({"steps": 5}, "`steps` is an agent's own: it stands in its section"),
    (
        {"context": 8000},
        "`context` is an agent's own: it stands in its section, as in `agents: [{name: chain,",
    ),
    ({"name": "chain"}, "there is no name: there are study"),
    ({"competitions": "heavy"}, "one of shipped, lite"),
    ({"feedback_model": "openai:gpt-4.1"}, "not for the simulated model"),
    ({"model": "openai:o3", "feedback_base_url": "http://x"}, "no feedback_model"),
    ({"agents": [{"name": "tree", "steps": 0}]}, "steps"),
    ({"sandbox": "host"}, "sandbox"),
    ({"agents": [{"name": "tree", "policy": "beam"}]}, "policy"),
    (
        {"agents": [{"name": "tree", "policy": {"name": "uct", "crossover": 1}}]},
        "policy uct has no setting 'crossover'; it has c, children, decay, scope, top",
    ),
    (
        {"agents": [{"name": "tree", "policy": {"name": "greedy", "c": 1}}]},
        "policy greedy has no setting 'c'; it has scope",
    ),
    ({"agents": [{"name": "tree", "policy": {"name": "uct", "c": -1}}]}, "c=-1"),
    (
        {"agents": [{"name": "tree", "policy": "uct", "drafts": 3}]},
        "`drafts` is a setting of the policy greedy, and not of uct",
    ),
    (
        {"agents": ["tree", {"name": "tree", "steps": 5}]},
        "with each policy and operators, unless `variant` tells them apart; got ['tree', 'tree']",
    ),
    ({"agents": [{"name": "chain", "policy": "uct"}]}, "`policy` is no setting of this agent"),
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
    with pytest.raises(CompetitionError, match="did you mean 'weather'"):
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


def test_runs_when_there_are_several_agents_then_share_no_bank_and_no_name(
    tmp_path: Path,
) -> None:
    """Each agent has its own seeds and conditions, and starts from what its own runs met."""
    chain = {"name": "chain", "seeds": [5], "build_seeds": [50, 51]}
    agents = ["tree", chain, {"name": "mlab", "memory": [False]}]  # as YAML has `off`
    plan = house_plan(tmp_path, prepared=False, agents=agents, memory=["off", "warm"], seeds=[3, 4])
    runs = {run.name: run for run in runs_of(plan)}
    own = {each.name: [run for run in runs.values() if run.factors["agent"] == each.name]
           for each in plan.agents}  # fmt: skip
    assert {name: len(found) for name, found in own.items()} == {"tree": 5, "chain": 3, "mlab": 2}
    assert all(run.name.startswith(f"{name}/") for name, found in own.items() for run in found)
    assert runs[f"chain/build/{ID}"].item_ids == ("seed-50", "seed-51")
    source = runs[f"chain/warm/{ID}/seed-5"].source
    assert source is not None
    assert source.run == f"chain/build/{ID}"
    fewer = {run.item_ids for run in runs_of(plan.limited(1)) if run.factors["phase"] == "build"}
    assert fewer == {("seed-50",), ("seed-100",)}


def test_runs_when_the_tree_has_several_policies_then_each_is_an_agent_of_its_own(
    tmp_path: Path,
) -> None:
    """Memory and policy cross in one plan; a policy starts from what its own searches met."""
    agents = [
        {"name": "tree", "steps": 6},
        {"name": "tree", "steps": 6, "policy": "uct"},
        {"name": "tree", "steps": 6, "policy": {"name": "evolution", "crossover": 0.3}},
    ]
    plan = house_plan(tmp_path, prepared=False, agents=agents, memory=["off", "warm"], seeds=[3])
    runs = {run.name: run for run in runs_of(plan)}
    assert {(run.factors["agent"], run.factors["memory"]) for run in runs.values()} == {
        (agent, memory)
        for agent in ("tree", "tree-uct", "tree-evolution")
        for memory in ("build", "off", "warm")
    }
    source = runs[f"tree-uct/warm/{ID}/seed-3"].source
    assert source is not None
    assert source.run == f"tree-uct/build/{ID}"
    again = MlePlan.model_validate(
        {**plan.model_dump(mode="json"), "folders": plan.folders, "data_dir": plan.data_dir}
    )
    assert [run.identity({}) for run in runs_of(again) if not run.source] == [
        run.identity({}) for run in runs.values() if not run.source
    ]
    evolution = again.agent("tree-evolution")
    assert isinstance(evolution, TreeSettings)
    assert evolution.search_policy() == EvolutionPolicy(crossover=0.3, debug_depth=3)


def test_policy_when_a_plan_names_none_then_is_aides() -> None:
    """What stood in a plan before there were others means what it meant."""
    assert TreeSettings().search_policy() == AIDEPolicy()
    section = TreeSettings(drafts=2, debug_probability=1, debug_depth=4, published_depth=False)
    assert section.search_policy() == AIDEPolicy(2, 1, 4, published_depth=False)
    assert section.label == "tree"


@pytest.mark.parametrize("name", ["greedy", "uct", "evolution"])
def test_policy_when_a_plan_names_a_scope_then_has_it(name: Any) -> None:
    """Which attempts a writer is told of is a setting of every policy."""
    section = TreeSettings.model_validate({"policy": {"name": name, "scope": "siblings"}})
    assert identity_of(section.search_policy())["scope"] == "siblings"


def test_agents_when_named_then_have_the_limits_of_mlebench() -> None:
    """500 steps of OpenHands, 2,000 of MLAB, and a day for both."""
    chain, mlab = MlePlan.model_validate({"agents": ["chain", "mlab"]}).agents
    assert isinstance(chain, ChainSettings)
    assert isinstance(mlab, MlabSettings)
    assert (chain.steps, chain.hours, chain.dollars, chain.on_stuck) == (500, 24, None, "stop")
    assert (mlab.steps, mlab.hours, mlab.window, mlab.retries) == (2000, 24, 3, 10)
    for section in (chain, mlab):
        agent = agent_named(section.name)
        assert agent.name == section.name
        assert agent.most_executions(section) == section.steps
        with_memory = agent.most_calls(section, memory=True)
        assert with_memory > agent.most_calls(section, memory=False) >= section.steps


def test_command_line_when_it_names_a_model_then_means_every_agent(tmp_path: Path) -> None:
    """A plan of several real models can be tried with another one, or with the simulated one."""
    path = tmp_path / "plan.yaml"
    tree = {"name": "tree", "model": "openai:o3", "temperature": 1, "feedback_model": "openai:b"}
    fields = {"study": "mle", "model": "openai:a", "feedback_model": "openai:c", "agents": [tree]}
    path.write_text(yaml.safe_dump({**fields, "competitions": ["weather"]}))
    tried = choose(str(path), model="simulated", base_url=None, limit=None).plan
    assert isinstance(tried, MlePlan)
    assert (tried.feedback_model, tried.agents[0].own_models) == (None, ())
    other = choose(str(path), model="openai:d", base_url="http://x", limit=None).plan
    assert isinstance(other, MlePlan)
    assert (other.model, other.base_url, other.feedback_model) == (
        "openai:d",
        "http://x",
        "openai:c",
    )
    assert other.agents[0].own_models == ("feedback_model",)
    assert other.temperature_of(other.agents[0]) == 1


def test_competitions_when_named_by_one_word_then_are_all_of_them() -> None:
    """MLE-bench's 22, or those that ship; written out, so that a plan says what it ran."""
    lite = MlePlan.model_validate({"competitions": "lite"})
    assert len(lite.competitions) == 22
    assert "dog-breed-identification" in lite.competitions
    assert MlePlan.model_validate({"competitions": "shipped"}) == MlePlan()


def test_plan_when_data_lies_elsewhere_then_is_the_same_plan(tmp_path: Path) -> None:
    """Where data and folders lie is no part of what is studied: the manifests are equal."""
    manifests = []
    for place in ("here", "there"):
        plan = house_plan(tmp_path / place, image="none")
        manifests.append(prepare(MleStudy(), plan).manifest)
    assert manifests[0] == manifests[1]
    assert "data" not in prepare(MleStudy(), plan).resolved


@pytest.mark.parametrize(
    "name", ["demo-mle", "demo-mle-chain", "mle-lite", "mle-policies", "mle-shipped"]
)
def test_plan_when_it_ships_then_expands(name: str) -> None:
    """The plans that ship are read and expanded; written out in full they are the same plans."""
    study, plan = read_plan(shipped_plans()[name])
    assert study.name == "mle"
    assert {run.factors["memory"] for run in study.expand(plan)} >= {"off", "warm", "placebo"}
    assert MlePlan.model_validate(plan.model_dump(mode="json")) == plan
