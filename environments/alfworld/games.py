"""A game: what the engine needs to play one household task, and what it is about."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError

Dialect: TypeAlias = Literal["put", "move"]
"""How a game wants things set down: `put X in/on Y` (release json_2.1.1) or `move X to Y` (json_2.1.2)."""

FAMILIES: Final[dict[str, str]] = {
    "pick_and_place": "pick_and_place_simple",
    "look_at_obj": "look_at_obj_in_light",
    "pick_clean_then_place": "pick_clean_then_place_in_recep",
    "pick_heat_then_place": "pick_heat_then_place_in_recep",
    "pick_cool_then_place": "pick_cool_then_place_in_recep",
    "pick_two_obj": "pick_two_obj_and_place",
}
"""Task family, by the short names that ReAct introduced → ALFWorld's task type."""

WORLDS: Final = ("alfworld", "alfworld-generated")
"""The first parts of task ids: released games, and games of our own making."""


@dataclass(frozen=True, slots=True)
class Game:
    """One `game.tw-pddl`, read and checked; nothing of TextWorld is needed to hold it."""

    name: str
    """What task ids call it: the trial's folder name, or the seed of a generated game."""
    family: str
    """A key of `FAMILIES`."""
    split: str
    """The split that lists it; `spare` where it is training data that no split was dealt."""
    goal: str
    """The goal sentence, such as `put a clean bowl in fridge`."""
    dialect: Dialect
    domain: str
    """The PDDL domain."""
    grammar: str
    """The text grammar, with the goal sentence in its place."""
    problem: str
    """The PDDL problem."""
    walkthrough: tuple[str, ...] = ()
    """Commands that win the game, where the data has them."""
    source: str = ""
    """Where it was read from, for error messages."""
    world: str = "alfworld"
    """One of `WORLDS`."""

    def as_data(self) -> dict[str, JSON]:
        """Return the game as the JSON of a `game.tw-pddl` file holds it."""
        return {
            "pddl_domain": self.domain,
            "grammar": self.grammar,
            "pddl_problem": self.problem,
            "solvable": True,
            "walkthrough": list(self.walkthrough),
        }


def check_family(family: str) -> None:
    """Refuse a family that there is not.

    Raises:
        SettingsError: There is no such family.
    """
    if family not in FAMILIES:
        raise SettingsError(f"no ALFWorld task family {family!r}; there are {', '.join(FAMILIES)}")
