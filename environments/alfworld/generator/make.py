"""Making a game of a family and a seed."""

import random

from langgraft.environments.alfworld.games import FAMILIES, Dialect, Game
from langgraft.environments.alfworld.generator.household import draw_household
from langgraft.environments.alfworld.generator.package import installed_package
from langgraft.environments.alfworld.generator.problem import write_problem
from langgraft.environments.alfworld.generator.walkthrough import walk_through

UNKNOWN_GOAL = "UNKNOWN GOAL"
"""What the package's grammar has where a game has its goal sentence."""


def make_game(family: str, seed: int, split: str = "train") -> Game:
    """Make the game of a family and a seed: the same on every machine and Python.

    Raises:
        MissingExtraError: alfworld is not installed.
    """
    package = installed_package()
    rng = random.Random(f"{FAMILIES[family]}/{seed}")  # noqa: S311
    household = draw_household(family, rng, package)
    goal = rng.choice(package.goals[family].sentences).format(
        obj=household.sought.lower(),
        recep=household.target.lower(),
        toggle=household.lamp.kind.lower() if household.lamp else "",
    )
    dialect: Dialect = "move" if "move {o} to {r}" in package.grammar else "put"
    return Game(
        name=str(seed),
        family=family,
        split=split,
        goal=goal,
        dialect=dialect,
        domain=package.domain,
        grammar=package.grammar.replace(UNKNOWN_GOAL, goal),
        problem=write_problem(household, f"{FAMILIES[family]}_{seed}", package),
        walkthrough=walk_through(household, dialect, package),
        source=f"generated game {family}/{seed}",
        world="alfworld-generated",
    )
