"""The next action: simple rules over what was seen, done and decided."""

from collections.abc import Iterator

from langgraft.benchmarks.simulated.alfworld.goals import STATIONS, TREATED, VERBS, Kind
from langgraft.benchmarks.simulated.alfworld.habits import Care, Habits
from langgraft.benchmarks.simulated.alfworld.observations import kind_of
from langgraft.benchmarks.simulated.alfworld.scene import Scene
from langgraft.benchmarks.simulated.alfworld.search import search_step

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
