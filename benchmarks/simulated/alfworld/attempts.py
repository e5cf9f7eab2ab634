"""Attempts written out as text, and the ways of acting they show."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from langgraft.benchmarks.simulated.alfworld.goals import TREATED, VERBS, Goal, Kind, parse_goal
from langgraft.benchmarks.simulated.alfworld.habits import Care, Habits
from langgraft.benchmarks.simulated.alfworld.observations import View, imagined, kind_of, parse_view
from langgraft.benchmarks.simulated.alfworld.scene import Scene, Turn, scene_of
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS
from langgraft.benchmarks.simulated.notes import fields_of, succeeded

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
    """Read `Task: … Thought: … Action: … Observation: … Result: …`; any part may be missing."""
    goal, success = None, None
    first = View()
    turns: list[Turn] = []
    action = ""
    for field, value in fields_of(text):
        match field:
            case "Task":
                goal = parse_goal(value)
            case "Action":
                turns += _turn(action, "")
                action = value
            case "Observation" if action:
                turns += _turn(action, value)
                action = ""
            case "Observation" if not turns:
                first = parse_view(value)
                goal = goal or parse_goal(value)
            case "Result":
                success = succeeded(value)
    turns += _turn(action, "")
    whole = all(turn.view.refused or _understood(turn) for turn in turns)
    return Attempt(goal, first, tuple(turns), success, whole)


def _turn(action: str, observation: str) -> list[Turn]:
    """Return a turn, if anything was done; where nothing tells what came of it, it did what it says."""
    seen = parse_view(observation) if observation else imagined(action)
    return [Turn(action, seen)] if action else []


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
