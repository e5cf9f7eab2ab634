"""What the learner reads off a goal and an observation, and the ways of acting in which it can be right or wrong.

The weights are the learner's declared ignorance; they are the same whatever the world holds. What it
means to do it states in its thoughts, and keeps to what it said.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from langgraft._core.canonical import seeded_fraction
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS, Dice


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


class Care(StrEnum):
    """What becomes of the step that a goal asks for besides taking a thing and putting it down."""

    DO = "do"
    """It is done: the thing is cleaned, heated or cooled; the second one fetched; the lamp lit."""
    OMIT = "omit"
    """It is left out."""
    FUMBLE = "fumble"
    """The thing is put where it should be treated, and taken up again."""


class Search(StrEnum):
    """In which order it looks for a thing."""

    LIKELY = "likely"
    """Where such things usually are, what is in the open first; then what has to be opened."""
    LISTED = "listed"
    """As the room is described, one after the other, opening what is closed."""
    PASSING = "passing"
    """As the room is described; what is closed is left for the end."""


class Grasp(StrEnum):
    """How well it knows of itself what a task asks for: a matter of the task, not of the day."""

    FIRM = "firm"
    UNSURE = "unsure"
    LOST = "lost"


GRASP_WEIGHTS: Mapping[Grasp, float] = {Grasp.FIRM: 0.5, Grasp.UNSURE: 0.15, Grasp.LOST: 0.35}
"""Shares of the tasks whose goal asks for a step of its own."""
KNOWS: Mapping[Grasp, float] = {Grasp.FIRM: 0.97, Grasp.UNSURE: 0.5, Grasp.LOST: 0.05}
"""Chance to think of the step unaided."""
FUMBLES = 0.2
"""Chance that a thing is treated wrongly where its treatment would be left out."""
YIELDS = 0.1
"""Chance that a firm grasp gives way to an attempt that does without the step."""
HEEDS_FAILURE = 0.5
"""Chance to see, in a failed attempt at the same kind of goal that is followed, that the step was
missing."""
SEARCH_WEIGHTS: Mapping[Search, float] = {
    Search.LIKELY: 0.7,
    Search.LISTED: 0.2,
    Search.PASSING: 0.1,
}


@dataclass(frozen=True, slots=True)
class Habits:
    """How it means to go about an episode; `None` where it does not arise or nothing is said."""

    care: Care | None = None
    search: Search | None = None
    first: tuple[str, ...] = ()
    """Kinds of places to look at before all others."""
    spare: Kind | None = None
    """A treatment that nobody asked for."""

    def or_else(self, other: "Habits") -> "Habits":
        """Fill what is open from `other`."""
        return Habits(
            self.care or other.care,
            self.search or other.search,
            self.first or other.first,
            self.spare or other.spare,
        )


@dataclass(frozen=True, slots=True)
class Counsel:
    """What memory says about one kind of goal."""

    advised: Habits = field(default_factory=Habits)
    """What lines of advice say."""
    shown: Habits = field(default_factory=Habits)
    """What the first successful attempt shows."""
    lacking: bool = False
    """Whether a failed attempt at the same kind of goal did without the step."""
    opens: bool = False
    """Whether some line says to open what is closed."""


def grasp_of(goal: Goal, task: str) -> Grasp:
    """Say how well it understands a task: by the task's own text, the same for every seed."""
    left = seeded_fraction("alfworld", "grasp", goal.kind, task) * sum(GRASP_WEIGHTS.values())
    for grasp, weight in GRASP_WEIGHTS.items():
        left -= weight
        if left < 0:
            return grasp
    return Grasp.LOST


def settle(
    goal: Goal, counsel: Counsel, declared: Habits, dice: Dice, mimicry: float
) -> tuple[Habits, bool]:
    """Decide on the habits of an episode, and say whether an attempt's example decided on the step.

    What is advised comes first, then what the learner said before in this episode, then the
    example of an attempt, if it is followed, then a draw.
    """
    shown = _followed(counsel, dice) if dice.coin("mimicry", mimicry) else Habits()
    known = counsel.advised.or_else(declared)
    care, led = known.care, False
    if goal.kind is Kind.PLACE:
        care = None
    elif care is None:
        own = grasp_of(goal, dice.text)
        led = shown.care is not None and _gives_way(own, shown.care, dice)
        care = shown.care if led else _draw_care(own, dice)
        if care is Care.OMIT and goal.kind in TREATED and dice.coin("fumble", FUMBLES):
            care = Care.FUMBLE
    search = known.search or dice.pick("search", SEARCH_WEIGHTS)
    if counsel.opens and search is Search.PASSING:
        search = Search.LISTED
    spare = shown.spare if goal.kind is Kind.PLACE else None
    return Habits(care, search, known.first or shown.first, spare), led


def _followed(counsel: Counsel, dice: Dice) -> Habits:
    """Return what attempts show: a success by its example, a failure by what it lacks."""
    if counsel.lacking and dice.coin("heeds failure", HEEDS_FAILURE):
        return counsel.shown.or_else(Habits(care=Care.DO))
    return counsel.shown


def _gives_way(own: Grasp, shown: Care, dice: Dice) -> bool:
    """Say whether the example of an attempt goes before what it knows of itself."""
    return shown is Care.DO or own is not Grasp.FIRM or dice.coin("yields", YIELDS)


def _draw_care(own: Grasp, dice: Dice) -> Care:
    return Care.DO if dice.coin("care", KNOWS[own]) else Care.OMIT


_DO: Mapping[Kind, str] = {
    **{
        kind: f"Before I put it down, I {verb} it with the {STATIONS[kind]}."
        for kind, verb in VERBS.items()
    },
    Kind.PAIR: "I carry one of them there, and then come back for the other.",
    Kind.LIGHT: "I hold it next to the lamp and switch the lamp on.",
}
_OMIT: Mapping[Kind, str] = {
    **dict.fromkeys(VERBS, "I take it and put it where it belongs."),
    Kind.PAIR: "I take it and put it where it belongs.",
    Kind.LIGHT: "I take it to the lamp and examine it there.",
}
_FUMBLE: Mapping[Kind, str] = {
    kind: f"I put it into the {station} first and take it out again."
    for kind, station in STATIONS.items()
}
_LED = "In the notes it went like this."
_ENOUGH: Mapping[Kind, str] = {
    Kind.CLEAN: "It lies on a clean surface, so it should be clean enough.",
    Kind.HEAT: "It should be warm enough as it is.",
    Kind.COOL: "It should be cool enough as it is.",
}
_SEARCH: Mapping[Search, str] = {
    Search.LIKELY: "I look first where such things usually are.",
    Search.LISTED: "I look at one place after the other.",
    Search.PASSING: "I look at one place after the other, and leave what is closed for the end.",
}
_FIRST = "Before other places I look at: {}."
_READ_FIRST = re.compile(re.escape(_FIRST).replace(r"\{\}", r"([a-z, ]+)"))
_SPARE = "On the way I {0} it with the {1}, as in the notes."


def state_plan(goal: Goal, habits: Habits, declared: Habits, *, led: bool) -> str:
    """Write a thought: the goal, and whatever part of the plan was not said before.

    Args:
        goal: What is asked for.
        habits: What it means to do.
        declared: What it said before.
        led: Whether an attempt in the notes decided on the step.
    """
    parts = [f"The task is to {goal.words}."]
    if habits.search and habits.search is not declared.search:
        parts.append(_SEARCH[habits.search])
    if habits.first and habits.first != declared.first:
        parts.append(_FIRST.format(", ".join(habits.first)))
    if habits.care and habits.care is not declared.care:
        parts += _on_care(goal.kind, habits.care, led=led)
    if habits.spare and habits.spare is not declared.spare:
        parts.append(_SPARE.format(VERBS[habits.spare], STATIONS[habits.spare]))
    return " ".join(parts)


def _on_care(kind: Kind, care: Care, *, led: bool) -> list[str]:
    words = {Care.DO: _DO, Care.OMIT: _OMIT, Care.FUMBLE: _FUMBLE}[care][kind]
    if not led:
        return [words]
    enough = [_ENOUGH[kind]] if care is Care.OMIT and kind in _ENOUGH else []
    return [_LED, words, *enough]


def read_plan(kind: Kind, thoughts: Sequence[str]) -> Habits:
    """Return what the learner said last about each part of its plan."""
    plan = Habits()
    for thought in reversed(thoughts):
        plan = plan.or_else(_plan_in(kind, thought))
    return plan


@lru_cache(maxsize=CACHED_TEXTS)
def _plan_in(kind: Kind, thought: str) -> Habits:
    said = {Care.DO: _DO, Care.OMIT: _OMIT, Care.FUMBLE: _FUMBLE}
    first = _READ_FIRST.search(thought)
    searched = [option for option, words in _SEARCH.items() if words in thought]
    return Habits(
        next((care for care, by in said.items() if kind in by and by[kind] in thought), None),
        searched[0] if searched else None,
        tuple(first.group(1).split(", ")) if first else (),
        next((k for k in VERBS if _SPARE.format(VERBS[k], STATIONS[k]) in thought), None),
    )
