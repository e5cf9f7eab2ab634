"""What the learner reads off a goal and an observation: words in, facts out."""

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


_NAME = r"[a-z]+ \d+"
_LISTED = re.compile(r"\s*AVAILABLE ACTIONS:", re.IGNORECASE)
_ROOM = re.compile(r"you are in the middle of a room\.[^,]*, you see ([^\n]*)", re.IGNORECASE)
_INSIDE = re.compile(rf"\b(?:on|in) (?:the )?({_NAME}), you see ([^\n.]*)", re.IGNORECASE)
_OPEN = re.compile(rf"\bthe ({_NAME}) is open\. in it, you see ([^\n.]*)", re.IGNORECASE)
_CLOSED = re.compile(rf"\bthe ({_NAME}) is closed", re.IGNORECASE)
_THING = re.compile(rf"\b({_NAME})")
_TAKEN = re.compile(rf"you pick up the ({_NAME}) from the ({_NAME})", re.IGNORECASE)
_SET_DOWN = re.compile(rf"you (?:put|move) the ({_NAME}) (?:in/on|to) the ({_NAME})", re.IGNORECASE)
_TREATED = re.compile(rf"you (clean|heat|cool) the ({_NAME}) using", re.IGNORECASE)
_LIT = re.compile(rf"you turn on the ({_NAME})", re.IGNORECASE)
_A_THING = r"(?:(?:the|an?|some) )?([a-z]+(?: \d+)?)"
_TOLD = (
    (
        re.compile(
            rf"(?:take|pick(?:ed)? up|grab(?:bed)?) {_A_THING} (?:from|off|out of|in|on) {_A_THING}"
        ),
        r"you pick up the {0} from the {1}",
    ),
    (
        re.compile(
            rf"(?:put|move|set|drop) {_A_THING}(?: down)? (?:in/on|into|onto|inside|in|on"
            rf"|to) {_A_THING}"
        ),
        r"you move the {0} to the {1}",
    ),
    (re.compile(rf"(clean|heat|cool|wash) {_A_THING}"), "you {0} the {1} using"),
    (
        re.compile(r"(?:use|turn on|switch on|toggle) (?:the )?(\w*lamp(?: \d+)?)"),
        "you turn on the {0}",
    ),
)
"""How an action is worded, or told of → what the world says when it is done."""
_VERBS = ("clean", "heat", "cool")
_REFUSED = ("nothing happen", "reply in the form")


@dataclass(frozen=True, slots=True)
class View:
    """One observation."""

    room: tuple[str, ...] = ()
    """What stands around, where it tells: `cabinet 3`, in its own order."""
    inside: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What lies in or on something, by name."""
    opened: str = ""
    closed: str = ""
    taken: tuple[str, str] | None = None
    """A thing, and where it was taken from."""
    set_down: tuple[str, str] | None = None
    """A thing, and where it was put."""
    treated: tuple[str, str] | None = None
    """`clean`, `heat` or `cool`, and the thing."""
    lit: str = ""
    """The lamp that was switched on."""
    refused: bool = False
    """Whether the action before it was none, or changed nothing."""


@lru_cache(maxsize=CACHED_TEXTS)
def parse_view(text: str) -> View:
    """Read an observation; a text of another make gives an empty view."""
    words = _LISTED.split(text, maxsplit=1)[0].lower()
    room = _ROOM.search(words)
    opened, closed = _OPEN.search(words), _CLOSED.search(words)
    inside = [*_INSIDE.finditer(words), *([opened] if opened else [])]
    lit = _LIT.search(words)
    return View(
        room=_names(room.group(1)) if room else (),
        inside=tuple((found.group(1), _names(found.group(2))) for found in inside),
        opened=opened.group(1) if opened else "",
        closed=closed.group(1) if closed else "",
        taken=_two(_TAKEN, words),
        set_down=_two(_SET_DOWN, words),
        treated=_two(_TREATED, words),
        lit=lit.group(1) if lit else "",
        refused=any(mark in words for mark in _REFUSED),
    )


@lru_cache(maxsize=CACHED_TEXTS)
def imagined(action: str) -> View:
    """Return what would be seen if an action did what it says."""
    for words, said in _TOLD:
        if found := words.match(action):
            names = [re.sub(r"^wash$", "clean", each) for each in found.groups()]
            names = [each if " " in each or each in _VERBS else f"{each} 1" for each in names]
            return parse_view(said.format(*names))
    return View()


def kind_of(name: str) -> str:
    """Return a name without its number: `cabinet 3` → `cabinet`."""
    return name.partition(" ")[0]


def _names(text: str) -> tuple[str, ...]:
    return tuple(_THING.findall(text))


def _two(pattern: re.Pattern[str], words: str) -> tuple[str, str] | None:
    found = pattern.search(words)
    return (found.group(1), found.group(2)) if found else None
