"""How the learner says what it means to do, in its thoughts; it keeps to what it said."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from langgraft.benchmarks.simulated.babyai.habits import Door, Habits, Search, Spelling
from langgraft.benchmarks.simulated.babyai.sight import Goal
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS

_SPELLING: Mapping[Spelling, str] = {
    Spelling.SPACED: "I take things with the words of the instructions.",
    Spelling.NOTICE: "I take things as instructed, with an eye on the list of actions.",
    Spelling.JOINED: "I write 'pickup' as one word.",
}
_DOOR: Mapping[Door, str] = {
    Door.PASS: "I walk right through the door.",
    Door.TOGGLE: "I walk up to the door and toggle it.",
    Door.FACE: "I walk up to the door and stop there.",
}
_SEARCH: Mapping[Search, str] = {
    Search.STAY: "If it is out of sight, I turn around in this room.",
    Search.WANDER: "If it is out of sight, I wander about.",
    Search.SURVEY: "If it is out of sight, I look around once and then try the doors.",
    Search.LEAVE: "If it is out of sight, I go through doors into rooms not seen yet.",
    Search.GUESS: "It should be close by, so I try it directly.",
}


def state_plan(goal: Goal, habits: Habits, declared: Habits) -> str:
    """Write a thought: the goal, and whatever part of the plan was not said before."""
    parts = [f"The goal is to {goal.kind}: the {goal.name}."]
    if habits.spelling and habits.spelling is not declared.spelling:
        parts.append(_SPELLING[habits.spelling])
    if habits.door and habits.door is not declared.door:
        parts.append(_DOOR[habits.door])
    if habits.search and habits.search is not declared.search:
        parts.append(_SEARCH[habits.search])
    return " ".join(parts)


def read_plan(thoughts: Sequence[str]) -> Habits:
    """Return what the learner said last about each part of its plan."""
    plan = Habits()
    for thought in reversed(thoughts):
        plan = plan.or_else(_plan_in(thought))
        if plan.search and (plan.spelling or plan.door):
            break
    return plan


@lru_cache(maxsize=CACHED_TEXTS)
def _plan_in(thought: str) -> Habits:
    return Habits(
        next((option for option, words in _SPELLING.items() if words in thought), None),
        next((option for option, words in _DOOR.items() if words in thought), None),
        next((option for option, words in _SEARCH.items() if words in thought), None),
    )
