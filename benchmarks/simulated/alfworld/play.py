"""The next action: simple rules over what was seen, done and decided, and where to look for a thing."""

from collections.abc import Iterator, Mapping, Sequence

from langgraft.benchmarks.simulated.alfworld.habits import (
    STATIONS,
    TREATED,
    VERBS,
    Care,
    Habits,
    Kind,
    Search,
    kind_of,
)
from langgraft.benchmarks.simulated.alfworld.scene import Scene

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
