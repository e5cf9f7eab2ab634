"""Instances: ids, families, splits, AgentGym's index, and what is refused."""

import math
import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langgraft._core.canonical import digest
from langgraft._core.errors import MissingExtraError, SettingsError
from langgraft.benchmarks.simulated.babyai import SimulatedBabyAI
from langgraft.environments import BabyAI, BabyAIEnvironment, TextEnvironment, TextTask
from langgraft.environments.babyai import FAMILIES, LEVELS, Semantics, data_index, instance_of
from langgraft.graphs.react import build_react_agent

KNOWN_STARTS = "11937bf04d4cae5cd6db54e304ead1cb0daaca6b09565cdd89e8ee7826b1c570"


def test_splits_when_listed_then_they_are_200_and_100_disjoint_tasks_by_seed() -> None:
    """Train is seeds 0-199 and test is seeds 200-299 of either family, in order."""
    worlds = BabyAI()
    for domain in FAMILIES:
        train, test = worlds.tasks(domain, "train"), worlds.tasks(domain, "test")
        assert [task.id for task in train] == [f"{domain}/{seed}" for seed in range(200)]
        assert [task.id for task in test] == [f"{domain}/{seed}" for seed in range(200, 300)]
        assert {task.split for task in train} == {"train"}
        assert {task.split for task in test} == {"test"}
        assert {task.domain for task in train + test} == {domain}


def test_factory_when_given_a_listed_task_then_the_episode_is_that_instance() -> None:
    """A task id leads to its level, seed, split and the protocol's attributes."""
    episode = BabyAI(max_rounds=7)("babyai/find_obj/203")
    assert isinstance(episode, TextEnvironment)
    assert episode.task == TextTask("babyai/find_obj/203", "babyai/find_obj", "test")
    assert (episode.level, episode.seed) == ("BabyAI-FindObjS7-v0", 203)
    assert (episode.semantics, episode.max_rounds) == ("compat", 7)


def test_instructions_when_read_then_they_name_the_actions_and_no_reply_format() -> None:
    """The rules name AgentGym's actions, `pick up` in two words, and leave the format open."""
    text = BabyAI()("babyai/find_obj/0").instructions
    for action in ("turn left", "move forward", "go to <obj> <id>", "pick up <obj> <id>"):
        assert f"- {action}" in text
    assert "toggle and go through <door> <id>" in text
    for absent in ("pickup", "drop", "Thought", "Action:"):
        assert absent not in text


def test_instances_when_built_again_then_they_are_the_ones_recorded() -> None:
    """The first and last worlds of every split are the same on every machine and version."""
    worlds = BabyAI()
    starts = [
        worlds(f"{domain}/{seed}").reset().observation
        for domain in ("babyai/action_obj_door", "babyai/find_obj", "babyai/pickup_loc")
        for seed in (0, 1, 17, 199, 200, 299)
    ]
    assert digest(starts) == KNOWN_STARTS


def test_families_when_compared_with_minigrid_then_are_its_levels() -> None:
    """Each level it has is a family of its own name, and each family is a level it can build."""
    assert len(set(FAMILIES.values())) == len(FAMILIES) == 97
    gym = pytest.importorskip("gymnasium")
    pytest.importorskip("minigrid")
    levels = {name for name in gym.registry if name.startswith("BabyAI-")}
    assert levels == set(FAMILIES.values()) - {"BabyAI-GoToObjS6-v0"}
    assert FAMILIES["babyai/go_to_local_s5_n2"] == "BabyAI-GoToLocalS5N2-v0"
    assert FAMILIES["babyai/go_to_obj_s6_v1"] == "BabyAI-GoToObjS6-v1"
    for domain, level in FAMILIES.items():
        assert BabyAIEnvironment(level, 0).task.id == f"{domain}/0"
        assert BabyAI()(f"{domain}/299").level == level


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(sorted(FAMILIES)), st.integers(0, 299), st.sampled_from(["compat", "fixed"]))
def test_family_when_any_then_is_played_the_same_way_twice(
    domain: str, seed: int, semantics: Semantics
) -> None:
    """An episode of any level takes the actions it offers, and is the same when begun again."""
    episode = BabyAI(semantics)(f"{domain}/{seed}")

    def play() -> list[str]:
        shown = episode.reset()
        seen, actions = [shown.observation], shown.actions
        for turn in range(8):
            after = episode.step(actions[(seed + 3 * turn) % len(actions)])
            seen.append(after.observation)
            actions = after.actions
            if after.done:
                break
        return seen

    assert play() == play()
    episode.close()


@pytest.mark.parametrize("domain", ["babyai/boss_level", "babyai/put_next_s5_n2_carrying"])
def test_learner_when_in_another_level_then_plays_on(domain: str) -> None:
    """The simulated learner knows two families; in others it does what it can."""
    agent = build_react_agent(SimulatedBabyAI(seed=1), environment=BabyAI())
    assert len(agent.invoke({"task_id": f"{domain}/3"})["steps"]) > 1


def test_levels_when_all_forty_are_reset_then_each_gives_a_goal_and_actions() -> None:
    """Every level of AgentGym's table can be played, the renamed one included."""
    assert len(set(LEVELS)) == 40
    ids = set()
    for data_idx in range(40):
        episode = BabyAIEnvironment.from_data_idx(data_idx)
        start = episode.reset()
        assert start.observation.startswith(f"Your goal: {start.instruction}\n")
        assert start.actions[:2] == ("turn left", "turn right")
        ids.add(episode.task.id)
    assert len(ids) == 40


def test_data_idx_when_it_names_the_two_families_then_it_is_agentgyms() -> None:
    """Seed s of ActionObjDoor is 40 s + 29, of FindObjS7 40 s + 30."""
    assert instance_of(40 * 17 + 29) == ("BabyAI-ActionObjDoor-v0", 17)
    assert instance_of(40 * 17 + 30) == ("BabyAI-FindObjS7-v0", 17)


@given(st.integers(0, 10**6))
def test_data_idx_when_turned_into_an_instance_then_it_can_be_turned_back(data_idx: int) -> None:
    """Level and seed say the same as the index."""
    assert data_index(*instance_of(data_idx)) == data_idx


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: BabyAI()("babyai/find_obj/300"), "300"),
    (lambda: BabyAI()("babyai/find_obj/-1"), "-1"),
    (lambda: BabyAI()("babyai/find_obj/007"), "007"),
    (lambda: BabyAI()("babyai/find_obj/\u0661"), "find_obj"),
    (lambda: BabyAI()("babyai/find_obj"), "find_obj"),
    (lambda: BabyAI()("alfworld/clean/1"), "alfworld"),
    (lambda: BabyAI()(""), "''"),
    (lambda: BabyAI().tasks("babyai/find_object", "train"), "did you mean 'babyai/find_obj'"),
    (lambda: BabyAI()("babyai/goto_red_ball/3"), "did you mean 'babyai/go_to_red_ball'"),
    (lambda: BabyAI().tasks("babyai/find_obj", "valid"), "valid"),
    (lambda: BabyAI("fast"), "fast"),  # type: ignore[arg-type]
    (lambda: BabyAI(max_rounds=0), "max_rounds must be"),
    (
        lambda: BabyAIEnvironment("BabyAI-ActionObjDor-v0", 1),
        "did you mean 'BabyAI-ActionObjDoor-v0'",
    ),
    (lambda: BabyAIEnvironment("MiniGrid-Empty-5x5-v0", 1), "MiniGrid-Empty-5x5-v0"),
    (lambda: BabyAIEnvironment("CartPole-v1", 1), "CartPole-v1"),
    (lambda: BabyAIEnvironment("", 1), "''"),
    (lambda: BabyAIEnvironment("BabyAI-GoTo-v0", -1), "seed must be"),
    (lambda: BabyAIEnvironment("BabyAI-GoTo-v0", True), "seed must be"),
    (lambda: BabyAIEnvironment("BabyAI-GoTo-v0", 1.0), "seed must be"),  # type: ignore[arg-type]
    (lambda: BabyAIEnvironment("BabyAI-GoTo-v0", 1, "strict"), "strict"),  # type: ignore[arg-type]
    (lambda: BabyAIEnvironment("BabyAI-GoTo-v0", 1, max_rounds=0), "max_rounds must be"),
    (lambda: BabyAIEnvironment.from_data_idx(-1), "data_idx must be"),
    (lambda: data_index("BabyAI-GoTo-v0", 1), "BabyAI-GoTo-v0"),
    (lambda: data_index("BabyAI-Open-v0", -2), "seed must be"),
]


@pytest.mark.parametrize(("build", "named"), BAD)
def test_bad_input_when_given_then_a_settings_error_names_it(
    build: Callable[[], object], named: str
) -> None:
    """Unknown levels, seeds, semantics, families, splits and ids are refused by name."""
    with pytest.raises(SettingsError) as caught:
        build()
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_difficulty_is_the_moves_to_win_and_infinite_where_no_solver_wins() -> None:
    """Mazes take more than a step to a door; boxes and circles end, and come last."""
    world = BabyAI()
    assert world.difficulty("babyai/action_obj_door/4") == 1
    assert world.difficulty("babyai/find_obj/1") > 50
    assert world.difficulty("babyai/unlock_to_unlock/4") == math.inf  # never ends by itself
    assert world.difficulty("babyai/key_in_box/0") == math.inf
    with pytest.raises(SettingsError, match="no task 'babyai/find_obj/x'"):
        world.difficulty("babyai/find_obj/x")


def test_extra_when_minigrid_is_missing_then_the_error_gives_the_pip_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Building an episode without minigrid says what to install."""
    monkeypatch.setitem(sys.modules, "minigrid", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'langgraft\[babyai\]'"):
        BabyAI()("babyai/find_obj/0")


def test_step_when_no_episode_runs_then_it_is_refused() -> None:
    """Before `reset`, after the end and after `close` a step raises and says what to do."""
    episode = BabyAI()("babyai/action_obj_door/0")
    with pytest.raises(RuntimeError, match=r"action_obj_door/0: call reset\(\)"):
        episode.step("turn left")
    episode.reset()
    assert episode.step("go to grey closed door 1").done
    with pytest.raises(RuntimeError, match="has ended"):
        episode.step("turn left")
    episode.reset()
    episode.close()
    episode.close()
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        episode.step("turn left")
