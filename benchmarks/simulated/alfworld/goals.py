"""What the learner is asked to do: goal sentences in, kinds of goal out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS


class Kind(StrEnum):
    """The kinds of goal the learner knows, as it words them."""

    PLACE = "put a thing in its place"
    CLEAN = "put a clean thing in its place"
    HEAT = "put a hot thing in its place"
    COOL = "put a cool thing in its place"
    PAIR = "put two things of a kind in their place"
    LIGHT = "look at a thing under a lamp"


TREATED = frozenset({Kind.CLEAN, Kind.HEAT, Kind.COOL})
"""Kinds of goal for which something has to be done to the thing first."""
VERBS: Mapping[Kind, str] = {Kind.CLEAN: "clean", Kind.HEAT: "heat", Kind.COOL: "cool"}
STATIONS: Mapping[Kind, str] = {
    Kind.CLEAN: "sinkbasin",
    Kind.HEAT: "microwave",
    Kind.COOL: "fridge",
}
"""Where it is done."""

_LINE = re.compile(r"your task is to:[ \t]*([^\n]+)", re.IGNORECASE)
_WANTED = {"clean": Kind.CLEAN, "hot": Kind.HEAT, "heat": Kind.HEAT, "cool": Kind.COOL}
_IN = r"(?:in/on|in|on|into|to) (?:an? |the |some )?"
_SENTENCES = (
    re.compile(rf"put an? (?P<how>clean|hot|cool) (?P<thing>\w+) {_IN}(?P<place>\w+)"),
    re.compile(
        rf"(?P<how>clean|heat|cool) (?:some|an?|the) (?P<thing>\w+) and put it {_IN}(?P<place>\w+)"
    ),
    re.compile(rf"(?:put|find) (?P<how>two) (?P<thing>\w+) (?:and put them )?{_IN}(?P<place>\w+)"),
    re.compile(
        r"(?P<how>look at|examine) (?:an? |the |some )?(?P<thing>\w+)"
        r" (?:under|with) (?:an? |the )?(?P<place>\w+)"
    ),
    re.compile(rf"(?P<how>put) (?:some|an?|the) (?P<thing>\w+) {_IN}(?P<place>\w+)"),
)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked for."""

    kind: Kind
    thing: str
    """What is wanted, without a number: `mug`."""
    place: str
    """Where it belongs, without a number: `fridge`; the lamp, where one is to be looked under."""

    @property
    def words(self) -> str:
        """The goal in a few words."""
        match self.kind:
            case Kind.LIGHT:
                return f"look at a {self.thing} under a {self.place}"
            case Kind.PAIR:
                return f"put two {self.thing}s in a {self.place}"
            case Kind.PLACE:
                return f"put a {self.thing} in a {self.place}"
        how = {Kind.CLEAN: "clean", Kind.HEAT: "hot", Kind.COOL: "cool"}[self.kind]
        return f"put a {how} {self.thing} in a {self.place}"


@lru_cache(maxsize=CACHED_TEXTS)
def parse_goal(text: str) -> Goal | None:
    """Read a goal, alone or behind `Your task is to:`; `None` where it is of no known kind."""
    line = _LINE.search(text)
    words = (line.group(1) if line else text).lower()
    for sentence in _SENTENCES:
        if found := sentence.search(words):
            return Goal(_kind_of(found["how"]), found["thing"], found["place"])
    return None


def asks_for_a_task(text: str) -> bool:
    """Say whether a text sets a task, rather than telling of one."""
    return _LINE.search(text) is not None


def _kind_of(how: str) -> Kind:
    if how == "two":
        return Kind.PAIR
    if how == "put":
        return Kind.PLACE
    return _WANTED.get(how, Kind.LIGHT)
