"""TextWorld's own games: made by seed, played as text."""

import importlib.util
import os
import subprocess
import sys

import pytest

from langgraft._core.errors import MissingExtraError, PlanError, SettingsError
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.environments import TextEnvironment, TextTask, Transition
from langgraft.environments.textworld import CHALLENGES, TextWorldGames

pytestmark = pytest.mark.matrix  # every generated game

WORLDS = TextWorldGames()
PLAN = {"tasks": {"A": "textworld/coin_collector", "B": "textworld/simple"}}
needs_textworld = pytest.mark.skipif(
    importlib.util.find_spec("textworld") is None,
    reason="needs TextWorld: pip install 'langgraft[alfworld]'",
)
SHOW = """
from langgraft.environments.textworld import TextWorldGames
episode = TextWorldGames()("textworld/coin_collector/3")
print(episode.reset().observation, episode.walkthrough)
"""


def test_tasks_when_listed_then_are_200_and_100_by_seed() -> None:
    """Nothing of TextWorld is needed to list them."""
    for family in CHALLENGES:
        train, test = (WORLDS.tasks(f"textworld/{family}", each) for each in ("train", "test"))
        assert (len(train), len(test)) == (200, 100)
        assert len({task.id for task in (*train, *test)}) == 300
        assert test[0] == TextTask(f"textworld/{family}/200", f"textworld/{family}", "test")


@pytest.mark.matrix
@needs_textworld
@pytest.mark.parametrize(
    "family",
    [
        pytest.param(each, marks=() if each == "coin_collector" else pytest.mark.matrix)
        for each in CHALLENGES
    ],
)
def test_game_when_its_walkthrough_is_followed_then_is_won(family: str) -> None:
    """Each challenge plays: no banner, no prompt, commands on offer, and a win at the end alone."""
    episode = WORLDS(f"textworld/{family}/200")
    assert isinstance(episode, TextEnvironment)
    start = episode.reset()
    assert start.observation.startswith(start.instruction)
    assert not any(sign in start.observation for sign in ("$$", "\n>", "0/1"))
    assert "Available actions: " in start.observation
    shown: list[Transition] = []
    for command in episode.walkthrough:
        assert not shown or not (shown[-1].done or shown[-1].success)
        shown.append(episode.step(command))
    assert (shown[-1].success, shown[-1].done, shown[-1].reward) == (True, True, 1.0)
    assert WORLDS.difficulty(f"textworld/{family}/200") == len(shown)
    assert not any("RESTART" in each.observation for each in shown)
    with pytest.raises(RuntimeError, match="call reset"):
        episode.step("look")
    assert episode.reset() == start
    episode.close()


@needs_textworld
@pytest.mark.parametrize(
    "command", ["dance wildly", "", "restart", "QUIT", "tw-print score", "täke cöin", "x" * 9999]
)
def test_command_when_it_is_none_then_is_answered_and_changes_nothing(command: str) -> None:
    """Neither nonsense nor a command to the interpreter ends the game or spoils it."""
    episode = WORLDS("textworld/coin_collector/200")
    start = episode.reset()
    after = episode.step(command)
    assert not after.done
    assert not after.success
    assert after.actions == start.actions
    assert not after.info.get("valid", False)
    for each in episode.walkthrough:
        after = episode.step(each)
    assert after.success
    episode.close()


@pytest.mark.matrix
@needs_textworld
def test_game_when_made_in_another_process_then_is_the_same() -> None:
    """A seed is a game, whatever the hashes of that process and the games before it."""
    shown = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    episode = WORLDS("textworld/coin_collector/3")
    assert shown == f"{episode.reset().observation} {episode.walkthrough}\n"


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("textworld/coin_collecter/3", "did you mean 'textworld/coin_collector'"),
        ("textworld/simple/300", "seed from 0 to 299"),
        ("textworld/simple/../3", "no task family"),
        ("simple/3", "no task family 'simple'"),
    ],
)
def test_task_when_there_is_none_then_the_error_names_it(task: str, says: str) -> None:
    """Before anything is made."""
    with pytest.raises(SettingsError, match=says):
        WORLDS(task)


def test_extra_when_it_is_missing_then_the_error_gives_the_pip_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Making a game without TextWorld says what to install."""
    monkeypatch.setitem(sys.modules, "textworld.challenges", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'langgraft\[alfworld\]'"):
        TextWorldGames()("textworld/simple/0")


def test_study_when_of_textworld_then_needs_a_real_model() -> None:
    """It has no simulated learner, and runs are listed for a model."""
    study = ContinualStudy()
    with pytest.raises(PlanError, match="'textworld' has no simulated learner: name a model"):
        study.check(ContinualPlan.model_validate(PLAN))
    plan = ContinualPlan.model_validate({**PLAN, "model": "openai:some"})
    study.check(plan)
    run = next(run for run in study.expand(plan) if run.name == "raw/0/train A")
    assert run.length == 200
    assert study.most_calls(plan, run) == 200 * 50
    assert {"textworld", "jericho"} <= set(study.packages(plan))


@needs_textworld
def test_study_when_of_textworld_then_its_rules_are_in_the_manifest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the games are made with decides results."""
    plan = ContinualPlan.model_validate({**PLAN, "model": "openai:some"})
    before = ContinualStudy().fingerprints(plan)["world"]
    monkeypatch.setitem(CHALLENGES["coin_collector"], "level", 106)
    assert ContinualStudy().fingerprints(plan)["world"] != before
