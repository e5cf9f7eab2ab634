"""TextWorld's planner as an oracle."""

import dataclasses

import pytest
from alfworld_cases import game_of, needs_alfworld

from langgraft._core.errors import GameError
from langgraft.environments.alfworld.environment import open_engine
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.planner import plan

pytestmark = needs_alfworld


def with_goal(game: Game, goal: str) -> Game:
    """Give a game another goal in PDDL."""
    start, _ = game.problem.split("(:goal")
    return dataclasses.replace(game, problem=f"{start}(:goal {goal}))")


@pytest.mark.parametrize("family", ["pick_clean_then_place", "look_at_obj"])
def test_plan_when_played_wins(family: str) -> None:
    """Its commands are admissible, and the last one reaches the goal."""
    game = game_of(family, seed=5)
    engine = open_engine(game)
    frame = engine.reset()
    commands = plan(game)
    for command in commands:
        assert command in frame.commands
        assert not frame.won
        frame = engine.step(command)
    assert frame.won


def test_plan_when_there_is_none_says_so() -> None:
    """A goal that nothing leads to is an error."""
    game = with_goal(game_of(), "(exists (?o - object) (and (isHot ?o) (isSliced ?o)))")
    with pytest.raises(GameError, match="cannot be won"):
        plan(game)


def test_plan_when_the_goal_holds_at_the_start_is_empty() -> None:
    """Nothing has to be done."""
    game = with_goal(game_of(), "(exists (?r - receptacle) (openable ?r))")
    assert plan(game) == ()
