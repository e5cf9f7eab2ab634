"""Lessons from finished attempts: what worked, or what failed and perhaps what would work.

After a failure the right cause is seen with a set probability; otherwise the inference is wrong
or vague, as people's and models' inferences are.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langgraft.benchmarks.simulated.alfworld.attempts import (
    Attempt,
    parse_attempt,
    places_in,
    shown_by,
)
from langgraft.benchmarks.simulated.alfworld.goals import Goal, Kind, parse_goal
from langgraft.benchmarks.simulated.alfworld.habits import Care
from langgraft.benchmarks.simulated.alfworld.lessons import (
    LESSONS,
    PREFER,
    SEARCHING,
    SITUATIONS,
    STEPS,
    Topic,
)
from langgraft.benchmarks.simulated.dice import Dice
from langgraft.benchmarks.simulated.reflecting import ReportedAttempt, parse_reflection

NAMES_STEP = 0.7
"""Chance that, after a success, the step that the goal asked for is thought worth noting."""
SEES_STEP = 0.5
"""Chance to find, after a failure, that the step was left out or done wrongly."""
COMPARES_STEP = 0.9
"""The same where a success can be compared with the failure."""
SEES_SEARCH = 0.5
"""Chance to find how the search should have gone."""
ADDS_COMMONPLACE = 0.3
"""Chance of one more lesson that says nothing of use."""


@dataclass(frozen=True, slots=True)
class Review:
    """A finished attempt, to be learned from, and another one beside it where there is one."""

    goal: Goal
    attempt: Attempt
    success: bool
    other: Attempt | None
    limit: int


def parse_review(prompt: str) -> Review | None:
    """Read a prompt that shows a finished attempt; `None` where it is something else."""
    shown = parse_reflection(prompt)
    goal = parse_goal(shown.attempt.task) if shown else None
    if shown is None or goal is None:
        return None
    other = _attempt(shown.other) if shown.other else None
    return Review(goal, _attempt(shown.attempt), shown.attempt.success, other, shown.limit)


def write_lessons(review: Review, dice: Dice) -> str:
    """Return the lessons of an attempt as a JSON list."""
    topics = [*_topics(review, dice)]
    if dice.coin("commonplace", ADDS_COMMONPLACE):
        topics.append(Topic.COMMONPLACE)
    kept = list(dict.fromkeys(topics))[: review.limit]
    return json.dumps([_word(topic, review, dice) for topic in kept], indent=1)


def _attempt(told: ReportedAttempt) -> Attempt:
    result = "success" if told.success else "failure"
    return parse_attempt(f"Task: {told.task}\n{told.trajectory}\nResult: {result}")


def _topics(review: Review, dice: Dice) -> Iterator[Topic]:
    if review.other is not None:
        yield from _compared(review, review.other, dice)
    elif review.success:
        yield from _worked(review, dice)
    else:
        yield from _failed(review, dice)


def _worked(review: Review, dice: Dice) -> Iterator[Topic]:
    if review.goal.kind is Kind.PLACE:
        yield Topic.STRAIGHT
    elif dice.coin("step named", NAMES_STEP):
        yield Topic.STEP
    if places_in(review.attempt):
        yield Topic.FOUND_ON


def _failed(review: Review, dice: Dice) -> Iterator[Topic]:
    if not places_in(review.attempt):
        yield _search_topic(review.attempt, dice)
    elif review.goal.kind is Kind.PLACE:
        yield Topic.SEARCH_VAGUE
    else:
        yield Topic.STEP if dice.coin("step seen", SEES_STEP) else Topic.ELSEWHERE


def _compared(review: Review, other: Attempt, dice: Dice) -> Iterator[Topic]:
    """Compare two attempts: what only the successful one did is what made the difference."""
    if review.success == bool(other.success):
        return
    better = review.attempt if review.success else other
    worse = other if review.success else review.attempt
    if not places_in(worse):
        yield Topic.FOUND_ON if places_in(better) else Topic.LIKELY
    elif _shows_step(better, review.goal) and dice.coin("step compared", COMPARES_STEP):
        yield Topic.STEP_NOT_PLACING
    else:
        yield Topic.ELSEWHERE


def _shows_step(attempt: Attempt, goal: Goal) -> bool:
    return shown_by(attempt, goal.kind).care is Care.DO


def _search_topic(attempt: Attempt, dice: Dice) -> Topic:
    """Say how the search should have gone, as far as it is seen."""
    if not dice.coin("search seen", SEES_SEARCH):
        return Topic.SEARCH_VAGUE
    end = attempt.end
    return Topic.OPEN if end and len(end.closed) > 1 else Topic.LIKELY


def _word(topic: Topic, review: Review, dice: Dice) -> dict[str, str]:
    goal = review.goal
    found = [*places_in(review.attempt), *(places_in(review.other) if review.other else ())]
    situation = _variant(_situations(topic, goal), dice, f"when {topic}")
    lesson = _variant(_wordings(topic, goal), dice, f"lesson {topic}")
    names = {"thing": goal.thing, "place": goal.place, "found": found[0] if found else "place"}
    return {"when_to_use": situation.format(**names), "lesson": lesson.format(**names)}


def _situations(topic: Topic, goal: Goal) -> Sequence[str]:
    if topic is Topic.COMMONPLACE:
        return ("nothing seems to work",)
    return SEARCHING if topic.of_search else SITUATIONS[goal.kind]


def _wordings(topic: Topic, goal: Goal) -> Sequence[str]:
    if topic is Topic.STEP:
        return STEPS[goal.kind]
    return PREFER[goal.kind] if topic is Topic.STEP_NOT_PLACING else LESSONS[topic]


def _variant(options: Sequence[str], dice: Dice, name: str) -> str:
    return options[int(dice.fraction(name) * len(options))]
