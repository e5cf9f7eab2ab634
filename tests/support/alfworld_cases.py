"""ALFWorld games for tests: ready ones, and ways to damage them."""

import importlib.util
import os
from functools import cache
from typing import Final

import pytest

from langgraft.environments.alfworld.games import FAMILIES, Game
from langgraft.environments.alfworld.generator.make import make_game

PRESENT: Final = all(
    importlib.util.find_spec(module) is not None for module in ("alfworld", "textworld")
)
HOW_TO_GET_IT: Final = "needs the engine of ALFWorld: pip install 'langgraft[alfworld]'"

# Where it is required, what needs it fails without it.
needs_alfworld = pytest.mark.skipif(
    not PRESENT and os.environ.get("LANGGRAFT_REQUIRE_ALFWORLD") != "1", reason=HOW_TO_GET_IT
)
"""Marks a test, or as `pytestmark` a file, that plays or generates games."""


@cache
def game_of(family: str = "pick_clean_then_place", seed: int = 0) -> Game:
    """Return a generated game."""
    return make_game(family, seed)


@cache
def one_of_each() -> tuple[Game, ...]:
    """Return one generated game of every family."""
    return tuple(game_of(family) for family in FAMILIES)
