"""What the learner reads off a goal and an observation: words in, facts out."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS

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
