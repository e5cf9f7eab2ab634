"""What `fixed` puts right, each next to what `compat` does."""

import random
import re

import pytest

from langgraft.environments.babyai import LEVELS, BabyAIEnvironment
from langgraft.environments.text import Transition

ACTION_OBJ_DOOR = "BabyAI-ActionObjDoor-v0"
NAMED = re.compile(r"(go to|pickup|go through|toggle and go through) (.* \d+)")


def play(level: str, seed: int, semantics: str, *actions: str) -> Transition:
    """Play a script and return the last transition."""
    episode = BabyAIEnvironment(level, seed, semantics)  # type: ignore[arg-type]
    episode.reset()
    for action in actions:
        transition = episode.step(action)
    return transition


@pytest.mark.parametrize("seed", [0, 20], ids=["go to the grey door", "open the grey door"])
def test_toggle_and_go_through_when_it_earns_success_then_fixed_keeps_it(seed: int) -> None:
    """The option stops at the move that completes the mission instead of walking past it."""
    action = "toggle and go through grey closed door 1"
    compat = play(ACTION_OBJ_DOOR, seed, "compat", action)
    fixed = play(ACTION_OBJ_DOOR, seed, "fixed", action)
    assert (compat.success, compat.done, compat.reward) == (False, False, 0.0)
    assert (fixed.success, fixed.done) == (True, True)
    assert fixed.reward > 0.9
    assert "\n The task is completed.\n" in fixed.observation


def test_late_success_when_worth_less_than_half_then_only_fixed_ends() -> None:
    """A success past 0.556 of the steps counts in both and ends the episode in `fixed`."""
    spin = ["turn left"] * 48
    compat = play("BabyAI-GoToRedBallGrey-v0", 26, "compat", *spin, "go to red ball 1")
    fixed = play("BabyAI-GoToRedBallGrey-v0", 26, "fixed", *spin, "go to red ball 1")
    assert 0 < compat.reward <= 0.5
    assert compat.success
    assert fixed.success
    assert (compat.done, fixed.done) == (False, True)


def test_failed_mission_when_the_wrong_thing_is_taken_then_only_fixed_says_so() -> None:
    """A strict level fails for good: `compat` calls it completed and plays on."""
    script = ("go to green box 1", "pickup green box 1")
    compat = play("BabyAI-PickupDistDebug-v0", 3, "compat", *script)
    fixed = play("BabyAI-PickupDistDebug-v0", 3, "fixed", *script)
    assert "The task is completed." in compat.observation
    assert "The task has failed." in fixed.observation
    assert (compat.done, compat.success) == (False, False)
    assert (fixed.done, fixed.success) == (True, False)


def test_time_when_it_runs_out_then_only_fixed_ends() -> None:
    """`compat` ignores the level's own limit of steps."""
    spin = ["turn left"] * 64
    assert not play("BabyAI-GoToRedBallGrey-v0", 26, "compat", *spin).done
    fixed = play("BabyAI-GoToRedBallGrey-v0", 26, "fixed", *spin)
    assert (fixed.done, fixed.success) == (True, False)
    assert "The time is up." in fixed.observation


def test_pick_up_when_written_in_two_words_then_only_fixed_takes_it() -> None:
    """The spelling of the instructions works in `fixed`, next to that of the list."""
    assert not play(ACTION_OBJ_DOOR, 0, "compat", "pick up red ball 1").info["valid"]
    two, one = (
        play(ACTION_OBJ_DOOR, 0, "fixed", action)
        for action in ("Pick up red ball 1", "pickup red ball 1")
    )
    assert "You are carrying a red ball." in two.observation
    assert two == one


def test_go_to_when_already_facing_then_only_fixed_lets_the_world_look_again() -> None:
    """A mission can be completed without turning away first: one empty step passes."""
    script = ("go to blue closed door 1", "go to blue closed door 1")
    compat = play(ACTION_OBJ_DOOR, 7, "compat", *script)
    fixed = play(ACTION_OBJ_DOOR, 7, "fixed", *script)
    assert compat.observation.startswith("No change in state.")
    assert fixed.observation.startswith("In front of you")
    steps = play(ACTION_OBJ_DOOR, 7, "fixed", script[0]).info["steps"]
    assert compat.info["steps"] == steps
    assert fixed.info["steps"] == steps + 1  # type: ignore[operator]


def test_full_hand_when_the_level_starts_so_then_fixed_does_not_show_it_twice() -> None:
    """The thing in the hand is not on the floor as well."""
    level = "BabyAI-PutNextS7N4Carrying-v0"
    for seed in range(20):
        compat = BabyAIEnvironment(level, seed).reset().observation
        fixed = BabyAIEnvironment(level, seed, "fixed").reset().observation
        load = re.search(r"You are carrying a (.*)\.", fixed)
        assert load is not None
        assert fixed.count(f"There is a {load[1]} ") <= compat.count(f"There is a {load[1]} ")
    fixed = BabyAIEnvironment(level, 1, "fixed").reset().observation
    compat = BabyAIEnvironment(level, 1).reset().observation
    assert compat.count("There is a blue key ") == fixed.count("There is a blue key ") + 1


def test_refused_action_when_a_late_success_came_before_then_fixed_pays_nothing_again() -> None:
    """Only `compat` repeats a reward; its score grows with every refusal."""
    script = (*["turn left"] * 48, "go to red ball 1", "dance")
    compat = play("BabyAI-GoToRedBallGrey-v0", 26, "compat", *script)
    assert compat.reward > 0
    assert compat.info["score"] == 2 * compat.reward
    fixed = play(ACTION_OBJ_DOOR, 0, "fixed", "turn left", "dance")
    assert (fixed.reward, fixed.info["valid"]) == (0.0, False)


@pytest.mark.parametrize("level", LEVELS[::3])
def test_options_when_played_at_random_in_fixed_then_each_ends_as_its_name_says(
    level: str,
) -> None:
    """Ids are the description's; going ends facing, taking ends holding, passing ends inside."""
    for seed in (1, 2):
        chance = random.Random(seed)
        episode = BabyAIEnvironment(level, seed, "fixed")
        start = episode.reset()
        actions, text = start.actions, start.observation
        for _ in range(15):
            seen = set(re.findall(r"There is a (.*?\d+) ", text.partition("\nAvailable")[0]))
            named = {m[2] for action in actions if (m := NAMED.fullmatch(action))}
            assert named <= seen or "You can take" in text
            action = chance.choice(actions)
            transition = episode.step(action)
            assert transition.info["valid"]
            actions, text = transition.actions, transition.observation
            if transition.done:
                break
            kind, thing = m.groups() if (m := NAMED.fullmatch(action)) else ("", "")
            if kind == "go to":
                name = thing.rpartition(" ")[0]
                assert f"a {name} 1 right in front of you 1 steps away" in text
            elif kind == "pickup":
                assert f"You are carrying a {thing.rpartition(' ')[0]}." in text
