"""How the learner says what it means to do, in its thoughts; it keeps to what it said."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from langgraft.benchmarks.simulated.alfworld.goals import STATIONS, VERBS, Goal, Kind
from langgraft.benchmarks.simulated.alfworld.habits import Care, Habits, Search
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS

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
