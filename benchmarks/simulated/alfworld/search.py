"""Where the learner looks for a thing next."""

from collections.abc import Sequence

from langgraft.benchmarks.simulated.alfworld.habits import Habits, Search
from langgraft.benchmarks.simulated.alfworld.places import rank_of
from langgraft.benchmarks.simulated.alfworld.scene import Scene
from langgraft.benchmarks.simulated.alfworld.sight import kind_of


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
