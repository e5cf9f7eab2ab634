"""The ways of acting in which the learner can be right or wrong, and how it comes by them.

For each question there is a set of options, of which one is drawn for an episode. The weights
are the learner's declared ignorance; they are the same whatever the world holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from langgraft.benchmarks.simulated.babyai.sight import DOOR_KINDS, Goal, Kind
from langgraft.benchmarks.simulated.dice import Dice


class Spelling(StrEnum):
    """How it writes that it takes something."""

    SPACED = "spaced"
    """`pick up …`, as instructions have it, and other words for it when that is refused."""
    NOTICE = "notice"
    """`pick up …` once; when that is refused, as the list of available actions has it."""
    JOINED = "joined"
    """`pickup …`. Never drawn: this has to be learned or read."""


class Door(StrEnum):
    """What it does with a door it was sent to."""

    PASS = "pass"  # noqa: S105  (not a password)
    """`toggle and go through`, or `go through` where it is open."""
    TOGGLE = "toggle"
    """`go to`, then `toggle`."""
    FACE = "face"
    """`go to`, and stop there."""


class Search(StrEnum):
    """What it does while the goal is out of sight."""

    STAY = "stay"
    """Turns around in place, in the room it is in."""
    WANDER = "wander"
    """Steps and turns without a plan."""
    SURVEY = "survey"
    """Looks around once, then goes through doors into unseen rooms."""
    LEAVE = "leave"
    """Goes through doors into unseen rooms at once. Never drawn."""
    GUESS = "guess"
    """Tries the goal blindly between turns, as if it were at hand. Never drawn."""


Option = TypeVar("Option", Spelling, Door, Search)

SPELLING_WEIGHTS: Mapping[Spelling, float] = {
    Spelling.SPACED: 0.5,
    Spelling.NOTICE: 0.5,
}
DOOR_WEIGHTS: Mapping[Kind, Mapping[Door, float]] = {
    Kind.OPEN: {Door.PASS: 0.6, Door.TOGGLE: 0.3, Door.FACE: 0.1},
    Kind.REACH_DOOR: {Door.PASS: 0.5, Door.FACE: 0.5},
}
SEARCH_WEIGHTS: Mapping[Search, float] = {
    Search.STAY: 0.4,
    Search.WANDER: 0.25,
    Search.SURVEY: 0.35,
}


@dataclass(frozen=True, slots=True)
class Habits:
    """One option for each question; `None` where it does not arise or nothing is said."""

    spelling: Spelling | None = None
    door: Door | None = None
    search: Search | None = None

    def or_else(self, other: "Habits") -> "Habits":
        """Fill what is open from `other`."""
        return Habits(
            self.spelling or other.spelling, self.door or other.door, self.search or other.search
        )


@dataclass(frozen=True, slots=True)
class Counsel:
    """What memory says about one kind of goal."""

    advised: Habits = field(default_factory=Habits)
    avoided: frozenset[Spelling | Door | Search] = frozenset()
    """Options said to fail, where nothing better is said."""


def settle(goal: Goal, counsel: Counsel, declared: Habits, dice: Dice) -> Habits:
    """Decide on the habits of an episode.

    What memory advises comes first, then what the learner said before in this episode, then
    a draw among the options not advised against.
    """
    kept = Habits(
        None if declared.spelling in counsel.avoided else declared.spelling,
        None if declared.door in counsel.avoided else declared.door,
        None if declared.search in counsel.avoided else declared.search,
    )
    known = counsel.advised.or_else(kept)
    spelling, door, search = known.spelling, known.door, known.search
    if goal.kind is not Kind.TAKE:
        spelling = None
    elif spelling is None:
        spelling = dice.pick("spelling", _without(SPELLING_WEIGHTS, counsel))
        if spelling is Spelling.NOTICE and Spelling.SPACED in counsel.avoided:
            spelling = Spelling.JOINED
    if goal.kind not in DOOR_KINDS:
        door = None
    elif door is None:
        door = dice.pick("door", _without(DOOR_WEIGHTS[goal.kind], counsel))
    return Habits(spelling, door, search or dice.pick("search", _without(SEARCH_WEIGHTS, counsel)))


def _without(weights: Mapping[Option, float], counsel: Counsel) -> Mapping[Option, float]:
    left = {option: w for option, w in weights.items() if option not in counsel.avoided}
    return left or weights
