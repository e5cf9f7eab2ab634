"""What the learner reads off a goal and an observation, and the ways of acting in which it can be right or wrong.

For each question there is a set of options, of which one is drawn for an episode. The weights
are the learner's declared ignorance; they are the same whatever the world holds.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS, Dice

OBJECTS = "key|ball|box"
COLORS = "red|green|blue|purple|yellow|grey"

_GOAL_LINE = re.compile(r"your goal:[ \t]*(.+)", re.IGNORECASE)
_GOAL = re.compile(
    rf"(go to|open|pick up|pickup) (?:the|a|an) (?:({COLORS}) )?(door|{OBJECTS})", re.IGNORECASE
)
_THING = re.compile(
    rf"there is an? ((?:({COLORS}) )?(?:(open|closed|locked) )?(\w+)) (\d+) "
    r"(?:right in front of you (\d+) steps?|(\d+) steps? in front of you and (\d+) steps?)",
    re.IGNORECASE,
)
_BARRIER = re.compile(r"facing an? (?:wall|box) (\d+) steps?", re.IGNORECASE)
_LIST = re.compile(r"available actions: *\[(.*)\]", re.IGNORECASE)
_QUOTED = re.compile(r'"([^"]+)"')
_SPOKEN_LIST = re.compile(r"take the following actions: (.+)", re.IGNORECASE)


class Kind(StrEnum):
    """The kinds of goal the learner knows, as it words them."""

    TAKE = "pick up an object"
    OPEN = "open a door"
    REACH_OBJECT = "go to an object"
    REACH_DOOR = "go to a door"


DOOR_KINDS = frozenset({Kind.OPEN, Kind.REACH_DOOR})
OBJECT_KINDS = frozenset({Kind.TAKE, Kind.REACH_OBJECT})


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked for."""

    kind: Kind
    color: str
    """Empty where any color will do."""
    type: str
    """`door`, `key`, `ball` or `box`."""

    @property
    def name(self) -> str:
        """The thing in question, as far as the goal names it."""
        return f"{self.color} {self.type}".strip()


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing in an observation."""

    label: str
    """Name and number, as actions want them: `red closed door 1`."""
    color: str
    state: str
    """`open`, `closed` or `locked` for a door, else empty."""
    type: str
    ahead: int
    """Steps in front."""
    aside: int
    """Steps to the left or right."""

    @property
    def at_hand(self) -> bool:
        """Whether it is the very next thing in front."""
        return self.ahead == 1 and self.aside == 0


@dataclass(frozen=True, slots=True)
class View:
    """One observation."""

    things: tuple[Seen, ...]
    actions: tuple[str, ...]
    """The actions on offer."""
    barrier: int
    """Steps to the wall or box straight ahead; 0 where none is mentioned."""
    described: bool
    """Whether it says what is in sight; an answer to a refused action does not."""
    refused: bool
    """Whether it refuses the action before it."""
    unchanged: bool
    """Whether it says that the action before it changed nothing."""


@lru_cache(maxsize=CACHED_TEXTS)
def parse_goal(text: str) -> Goal | None:
    """Read a goal, with or without `Your goal:` before it; `None` where it is of no known kind."""
    line = _GOAL_LINE.search(text)
    found = _GOAL.search(line.group(1) if line else text)
    if found is None:
        return None
    verb, color, kind = (group.lower() if group else "" for group in found.groups())
    if verb == "open":
        return Goal(Kind.OPEN, color, kind) if kind == "door" else None
    if verb == "go to":
        return Goal(Kind.REACH_DOOR if kind == "door" else Kind.REACH_OBJECT, color, kind)
    return None if kind == "door" else Goal(Kind.TAKE, color, kind)


@lru_cache(maxsize=CACHED_TEXTS)
def parse_view(text: str) -> View:
    """Read an observation; a text of another make gives an empty view."""
    listed = _LIST.search(text)
    spoken = None if listed else _SPOKEN_LIST.search(text)
    if listed:
        actions = tuple(_QUOTED.findall(listed.group(1)))
    else:
        actions = tuple(spoken.group(1).strip().split(", ")) if spoken else ()
    words = text[: listed.start()] if listed else text
    things = tuple(_seen(found) for found in _THING.finditer(words))
    barrier = _BARRIER.search(words)
    low = words.lower()
    return View(
        things=things,
        actions=actions,
        barrier=int(barrier.group(1)) if barrier else 0,
        described="carrying" in low and "room" in low,
        refused="not recognized" in low or "you cannot " in low or "you can't" in low,
        unchanged="no change in state" in low,
    )


def _seen(found: re.Match[str]) -> Seen:
    name, color, state, kind, number, straight, ahead, aside = found.groups()
    return Seen(
        label=f"{name} {number}",
        color=color or "",
        state=state or "",
        type=kind,
        ahead=int(straight or ahead),
        aside=int(aside or 0),
    )


def is_target(goal: Goal, thing: Seen) -> bool:
    """Say whether a thing is one the goal asks for."""
    return thing.type == goal.type and goal.color in {"", thing.color}


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


_SPELLING: Mapping[Spelling, str] = {
    Spelling.SPACED: "I take things with the words of the instructions.",
    Spelling.NOTICE: "I take things as instructed, with an eye on the list of actions.",
    Spelling.JOINED: "I write 'pickup' as one word.",
}
_DOOR: Mapping[Door, str] = {
    Door.PASS: "I walk right through the door.",
    Door.TOGGLE: "I walk up to the door and toggle it.",
    Door.FACE: "I walk up to the door and stop there.",
}
_SEARCH: Mapping[Search, str] = {
    Search.STAY: "If it is out of sight, I turn around in this room.",
    Search.WANDER: "If it is out of sight, I wander about.",
    Search.SURVEY: "If it is out of sight, I look around once and then try the doors.",
    Search.LEAVE: "If it is out of sight, I go through doors into rooms not seen yet.",
    Search.GUESS: "It should be close by, so I try it directly.",
}


def state_plan(goal: Goal, habits: Habits, declared: Habits) -> str:
    """Write a thought: the goal, and whatever part of the plan was not said before."""
    parts = [f"The goal is to {goal.kind}: the {goal.name}."]
    if habits.spelling and habits.spelling is not declared.spelling:
        parts.append(_SPELLING[habits.spelling])
    if habits.door and habits.door is not declared.door:
        parts.append(_DOOR[habits.door])
    if habits.search and habits.search is not declared.search:
        parts.append(_SEARCH[habits.search])
    return " ".join(parts)


def read_plan(thoughts: Sequence[str]) -> Habits:
    """Return what the learner said last about each part of its plan."""
    plan = Habits()
    for thought in reversed(thoughts):
        plan = plan.or_else(_plan_in(thought))
        if plan.search and (plan.spelling or plan.door):
            break
    return plan


@lru_cache(maxsize=CACHED_TEXTS)
def _plan_in(thought: str) -> Habits:
    return Habits(
        next((option for option, words in _SPELLING.items() if words in thought), None),
        next((option for option, words in _DOOR.items() if words in thought), None),
        next((option for option, words in _SEARCH.items() if words in thought), None),
    )
