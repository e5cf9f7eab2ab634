"""An episode as the learner knows it, attempts written out too, and the next action: simple rules over both."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from langgraft.benchmarks.simulated.alfworld.habits import (
    STATIONS,
    TREATED,
    VERBS,
    Care,
    Goal,
    Habits,
    Kind,
    Search,
    View,
    imagined,
    kind_of,
    parse_goal,
    parse_view,
)
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS
from langgraft.benchmarks.simulated.notes import read_attempt

_GO = "go to "


@dataclass(frozen=True, slots=True)
class Turn:
    """One action and what came of it."""

    action: str
    view: View


@dataclass(slots=True)
class Scene:
    """What the learner knows at one moment of an episode."""

    goal: Goal
    room: tuple[str, ...]
    """What stands around, in the order in which it was told."""
    turns: Sequence[Turn]
    at: str = ""
    """Where it stands; empty at the start."""
    held: str = ""
    """What it holds; empty for nothing."""
    seen: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What lay there when it last looked."""
    closed: set[str] = field(default_factory=set)
    """What it found closed and has not opened."""
    treated: set[tuple[str, str]] = field(default_factory=set)
    """What it has done to things: `("clean", "mug 1")`."""
    set_down: list[tuple[str, str]] = field(default_factory=list)
    """Things it has put down, and where, in order."""
    lit: set[str] = field(default_factory=set)
    """Lamps it has switched on."""

    @property
    def holds_wanted(self) -> bool:
        """Whether it holds a thing that the goal asks for."""
        return kind_of(self.held) == self.goal.thing

    def of_kind(self, kind: str) -> list[str]:
        """Return what of a kind stands around."""
        return [name for name in self.room if kind_of(name) == kind]

    def lying(self, kind: str) -> Iterator[tuple[str, str]]:
        """Yield things of a kind that it has seen, and where they are."""
        for place, names in self.seen.items():
            for name in names:
                if kind_of(name) == kind:
                    yield name, place

    def refusals(self, action: str) -> int:
        """Count how often an action changed nothing."""
        return sum(1 for turn in self.turns if turn.action == action and turn.view.refused)

    def tried(self, action: str) -> bool:
        """Say whether it has done something before."""
        return any(turn.action == action for turn in self.turns)


def scene_of(goal: Goal, first: View, turns: Sequence[Turn]) -> Scene:
    """Go through an episode from its beginning."""
    scene = Scene(goal, first.room, turns)
    for turn in turns:
        _take_in(scene, turn)
    return scene


def _take_in(scene: Scene, turn: Turn) -> None:
    view = turn.view
    scene.room = scene.room or view.room
    if turn.action.startswith(_GO) and not view.refused:
        scene.at = turn.action.removeprefix(_GO)
    scene.seen.update(view.inside)
    scene.closed.discard(view.opened)
    if view.closed:
        scene.closed.add(view.closed)
    if view.taken:
        thing, place = view.taken
        scene.held = thing
        scene.seen[place] = tuple(name for name in scene.seen.get(place, ()) if name != thing)
    if view.set_down:
        thing, place = view.set_down
        scene.held = ""
        scene.set_down.append(view.set_down)
        scene.seen[place] = (*scene.seen.get(place, ()), thing)
    if view.treated:
        scene.treated.add(view.treated)
    if view.lit:
        scene.lit.add(view.lit)


_KNOWN = re.compile(
    r"(?:go|take|pick|put|move|set|drop|open|close|clean|wash|heat|cool|use|turn|switch|toggle|look|examine"
    r"|inventory|check|help|think)\b"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a task, as far as its text tells."""

    goal: Goal | None
    first: View
    turns: tuple[Turn, ...]
    success: bool | None
    """`None` where the text does not say."""
    whole: bool
    """Whether all that was done is understood, so that it tells what was not done, too."""

    @property
    def end(self) -> Scene | None:
        """How things stood at its end; `None` where the goal is not known."""
        return scene_of(self.goal, self.first, self.turns) if self.goal else None


@lru_cache(maxsize=CACHED_TEXTS)
def parse_attempt(text: str) -> Attempt:
    """Read an attempt that is written out.

    Where nothing tells what came of an action, it did what it says.
    """
    written = read_attempt(text)
    goals = map(parse_goal, (written.task, *written.openings))
    turns = tuple(
        Turn(action, parse_view(seen) if seen else imagined(action))
        for action, seen in written.steps
    )
    return Attempt(
        goal=next(filter(None, goals), None),
        first=parse_view(written.openings[-1]) if written.openings else View(),
        turns=turns,
        success=written.success,
        whole=all(turn.view.refused or _understood(turn) for turn in turns),
    )


def _understood(turn: Turn) -> bool:
    return bool(_KNOWN.match(turn.action)) and (
        turn.view != View() or imagined(turn.action) == View()
    )


def shown_by(attempt: Attempt, kind: Kind) -> Habits:
    """Return what a successful attempt shows to somebody with a goal of a kind.

    It is followed as it went: a thing was taken, something was done to it or not, and it was put
    down. Where it was for another kind of goal, what that kind does without is left out.
    """
    if not attempt.success or attempt.goal is None:
        return Habits()
    care = _care_shown(attempt, kind)
    spare = next(treatments_in(attempt), None)
    return Habits(care=care, first=places_in(attempt)[:1], spare=spare)


def lacks_step(attempt: Attempt, kind: Kind) -> bool:
    """Say whether an attempt at a kind of goal failed after its thing was put down without the step."""
    end = attempt.end
    if (
        attempt.success is not False
        or end is None
        or end.goal.kind is not kind
        or not attempt.whole
    ):
        return False
    if kind is Kind.LIGHT:
        return bool(end.held) and not end.lit
    put = {thing for thing, place in end.set_down if kind_of(place) == end.goal.place}
    if kind in TREATED:
        return bool(put) and not end.treated
    return kind is Kind.PAIR and len(put) == 1


def _care_shown(attempt: Attempt, kind: Kind) -> Care | None:
    done = attempt.goal.kind if attempt.goal else None
    if next(treatments_in(attempt), None) if kind in TREATED else done is kind:
        return Care.DO
    left_out = attempt.whole and attempt.end is not None and attempt.end.set_down
    return Care.OMIT if left_out and kind is not Kind.LIGHT else None


def treatments_in(attempt: Attempt) -> Iterator[Kind]:
    """Yield what was done to things in an attempt, in order."""
    for turn in attempt.turns:
        if turn.view.treated:
            yield next(kind for kind in VERBS if VERBS[kind] == turn.view.treated[0])


def places_in(attempt: Attempt) -> tuple[str, ...]:
    """Return the kinds of places where an attempt found the thing that it wanted, the first first."""
    wanted = attempt.goal.thing if attempt.goal else ""
    found = (turn.view.taken for turn in attempt.turns)
    places = [kind_of(taken[1]) for taken in found if taken and kind_of(taken[0]) == wanted]
    return tuple(dict.fromkeys(places))


_SET_DOWN = ("move {0} to {1}", "put {0} in/on {1}")
"""How it says that it puts a thing down: the second where the first is not taken."""
_GIVES_UP = 2
"""Refusals after which it does without."""


def next_action(scene: Scene, habits: Habits) -> str:
    """Decide on the next action."""
    if not scene.held:
        return _fetch(scene, habits)
    if not scene.holds_wanted:
        return _set_down(scene, scene.at or scene.room[0]) if scene.room else "inventory"
    if scene.goal.kind is Kind.LIGHT:
        return _light(scene, habits)
    return next(_on_the_way(scene, habits), None) or _deliver(scene)


def _fetch(scene: Scene, habits: Habits) -> str:
    """Take a thing that is wanted, or look for one; where nothing seems left to do, dither."""
    if _thinks_done(scene, habits):
        return _dither(scene)
    found = _put_aside(scene, habits) or next(_candidates(scene, habits), None)
    if found is None:
        return search_step(scene, habits, scene.goal.thing)
    thing, place = found
    return _at(scene, place) or f"take {thing} from {place}"


def _thinks_done(scene: Scene, habits: Habits) -> bool:
    put = [thing for thing, place in scene.set_down if kind_of(place) == scene.goal.place]
    match scene.goal.kind, habits.care:
        case Kind.LIGHT, _:
            return False
        case Kind.PAIR, Care.DO:
            return False
        case _, Care.DO:
            verb = VERBS[scene.goal.kind]
            return any((verb, thing) in scene.treated for thing in put)
        case _:
            return bool(put)


def _put_aside(scene: Scene, habits: Habits) -> tuple[str, str] | None:
    """Return the thing that it put down to be treated, and where."""
    if habits.care is not Care.FUMBLE or not scene.set_down:
        return None
    thing, place = scene.set_down[-1]
    return None if scene.refusals(f"take {thing} from {place}") else (thing, place)


def _candidates(scene: Scene, habits: Habits) -> Iterator[tuple[str, str]]:
    """Yield things to take; those at their place already only where they have to come back."""
    again = habits.care is Care.DO and scene.goal.kind in TREATED
    for thing, place in scene.lying(scene.goal.thing):
        if kind_of(place) == scene.goal.place and not again:
            continue
        if scene.refusals(f"take {thing} from {place}") < _GIVES_UP:
            yield thing, place


def _on_the_way(scene: Scene, habits: Habits) -> Iterator[str]:
    """Yield what is to be done to the thing in hand before it is put down."""
    goal, thing = scene.goal, scene.held
    kind = habits.spare or (goal.kind if goal.kind in TREATED else None)
    if kind is None or (habits.care in {None, Care.OMIT} and habits.spare is None):
        return
    stations = scene.of_kind(STATIONS[kind])
    if not stations:
        return
    station = scene.at if scene.at in stations else stations[0]
    if habits.care is Care.FUMBLE:
        put_in = any(kind_of(place) == STATIONS[kind] for _, place in scene.set_down)
        if not put_in and goal.place != STATIONS[kind]:
            yield _at(scene, station) or _set_down(scene, station)
    elif (VERBS[kind], thing) not in scene.treated:
        action = f"{VERBS[kind]} {thing} with {station}"
        if scene.refusals(action) < _GIVES_UP:
            yield _at(scene, station, opening=bool(scene.refusals(action))) or action


def _deliver(scene: Scene) -> str:
    """Put the thing in hand where it belongs."""
    places = scene.of_kind(scene.goal.place)
    if not places:
        return search_step(scene, Habits(), scene.goal.thing)
    used = [place for _, place in scene.set_down if place in places]
    ready = [*used[-1:], *([scene.at] if scene.at in places else ()), *places]
    open_to_it = [
        place for place in ready if scene.refusals(_SET_DOWN[1].format(scene.held, place)) == 0
    ]
    place = (open_to_it or ready)[0]
    return _at(scene, place) or _set_down(scene, place)


def _light(scene: Scene, habits: Habits) -> str:
    """Look at the thing in hand by the lamp."""
    lamps = list(scene.lying(scene.goal.place))
    if not lamps:
        return search_step(scene, habits, scene.goal.place)
    lamp, place = lamps[0]
    if way := _at(scene, place):
        return way
    if habits.care is not Care.DO or (lamp in scene.lit and not scene.refusals(f"use {lamp}")):
        return (f"examine {scene.held}", f"examine {place}", "look")[len(scene.turns) % 3]
    return f"use {lamp}"


def _at(scene: Scene, place: str, *, opening: bool = True) -> str | None:
    """Return the next action on the way to an open place; `None` where it stands before it."""
    if scene.at != place:
        return f"go to {place}"
    if opening and place in scene.closed and scene.refusals(f"open {place}") < _GIVES_UP:
        return f"open {place}"
    return None


def _set_down(scene: Scene, place: str) -> str:
    usual, other = (words.format(scene.held, place) for words in _SET_DOWN)
    return other if scene.refusals(usual) > scene.refusals(other) else usual


def _dither(scene: Scene) -> str:
    """Look at what was done, since the task does not end: take the thing up, put it down again."""
    thing, place = scene.set_down[-1]
    since = len(scene.turns) % 4
    if since == 0 and scene.at == place:
        return f"take {thing} from {place}"
    return ("look", f"examine {place}", "inventory", "look")[since]


_OPEN: Sequence[str] = (
    "countertop",
    "diningtable",
    "coffeetable",
    "sidetable",
    "desk",
    "dresser",
    "bed",
    "sofa",
    "armchair",
    "tvstand",
    "stoveburner",
    "coffeemachine",
    "sinkbasin",
    "bathtubbasin",
    "toilet",
    "shelf",
    "cart",
    "ottoman",
    "toaster",
    "toiletpaperhanger",
    "handtowelholder",
    "towelholder",
    "garbagecan",
    "laundryhamper",
)
_SHUT: Sequence[str] = ("fridge", "microwave", "cabinet", "drawer", "safe", "box")
RANKED: Mapping[str, int] = {kind: rank for rank, kind in enumerate((*_OPEN, *_SHUT))}
"""Kinds of places, in the order in which it would look there for just anything."""

OBVIOUS: Mapping[str, tuple[str, ...]] = {
    "book": ("bed", "desk"),
    "cellphone": ("bed", "desk"),
    "cloth": ("countertop", "bathtubbasin"),
    "handtowel": ("handtowelholder",),
    "kettle": ("stoveburner",),
    "laptop": ("bed", "desk"),
    "pan": ("stoveburner",),
    "pillow": ("bed", "sofa"),
    "pot": ("stoveburner",),
    "remotecontrol": ("sofa", "coffeetable"),
    "toiletpaper": ("toilet", "toiletpaperhanger"),
    "towel": ("towelholder",),
    "vase": ("shelf",),
}
"""Things that have a place of their own."""
SURFACES = frozenset(_OPEN[:12])
"""Kinds of places where things lie in the open."""
KINDS = frozenset((*_OPEN, *_SHUT))
"""Kinds of places it knows the names of."""


def rank_of(place: str, thing: str, first: Sequence[str]) -> tuple[int, int]:
    """Return a key by which likely kinds of places come first."""
    preferred = (*first, *OBVIOUS.get(thing, ()))
    if place in preferred:
        return 0, preferred.index(place)
    return 1, RANKED.get(place, len(RANKED))


def search_step(scene: Scene, habits: Habits, thing: str) -> str:
    """Go to the next place that was not looked at, or open it."""
    passing = habits.search is Search.PASSING
    order = _ordered(scene, habits, thing)
    unknown = [place for place in order if place not in scene.seen]
    if passing:
        unknown.sort(key=lambda place: place in scene.closed)
    for place in unknown:
        if scene.refusals(f"go to {place}") or scene.refusals(f"open {place}"):
            continue
        if place != scene.at:
            return f"go to {place}"
        if place in scene.closed:
            return f"open {place}"
        if not scene.tried(f"examine {place}"):
            return f"examine {place}"
    return _again(scene, order)


def _ordered(scene: Scene, habits: Habits, thing: str) -> Sequence[str]:
    """Order the places of a room as the habits say; places shown or advised come first."""
    if habits.search is Search.LIKELY:
        key = {place: rank_of(kind_of(place), thing, habits.first) for place in scene.room}
        return sorted(scene.room, key=lambda place: key[place])
    first = habits.first
    return sorted(
        scene.room,
        key=lambda place: first.index(kind_of(place)) if kind_of(place) in first else len(first),
    )


def _again(scene: Scene, order: Sequence[str]) -> str:
    """Go round once more, for want of anything better."""
    elsewhere = [place for place in order if place != scene.at]
    return f"go to {elsewhere[len(scene.turns) % len(elsewhere)]}" if elsewhere else "look"
