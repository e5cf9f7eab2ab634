"""Where things usually are, and where the learner looks for one next."""

from collections.abc import Mapping, Sequence

from langgraft.benchmarks.simulated.alfworld.habits import Habits, Search
from langgraft.benchmarks.simulated.alfworld.observations import kind_of
from langgraft.benchmarks.simulated.alfworld.scene import Scene

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
