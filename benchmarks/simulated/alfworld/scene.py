"""An episode as the learner knows it: the scene at one moment, and attempts written out as text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from langgraft.benchmarks.simulated.alfworld.habits import (
    TREATED,
    VERBS,
    Care,
    Goal,
    Habits,
    Kind,
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
