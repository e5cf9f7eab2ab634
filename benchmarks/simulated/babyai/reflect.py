"""Lessons from a finished attempt: what worked, or what failed and perhaps what would work.

After a failure the right alternative is seen with a set probability; otherwise the inference
is wrong or vague, as people's and models' inferences are. A success and a failure side by side,
at goals of one kind, show more often what made the difference.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from langgraft.benchmarks.simulated.babyai.attempts import (
    Attempt,
    form_of,
    habits_of,
    parse_attempt,
    search_of,
)
from langgraft.benchmarks.simulated.babyai.habits import Door, Search, Spelling
from langgraft.benchmarks.simulated.babyai.lessons import LESSONS, SITUATIONS, Topic
from langgraft.benchmarks.simulated.babyai.observations import (
    DOOR_KINDS,
    Goal,
    Kind,
    is_target,
    parse_goal,
)
from langgraft.benchmarks.simulated.dice import Dice
from langgraft.benchmarks.simulated.reflecting import ReportedAttempt, parse_reflection

SEES_SPELLING = 0.6
"""Chance to find the listed spelling after refused ones."""
SEES_DOOR = 0.5
"""Chance to find what should have been done with a door."""
SEES_SEARCH = 0.5
"""Chance to find how the search should have gone."""
SEES_DIFFERENCE = 0.8
"""Chance to find what made the difference between a success and a failure side by side."""
ADDS_COMMONPLACE = 0.3
"""Chance of one more lesson that says nothing of use."""


@dataclass(frozen=True, slots=True)
class Review:
    """A finished attempt, to be learned from."""

    goal: Goal
    attempt: Attempt
    success: bool
    other: "Review | None" = None
    """One that it is to be compared with, where there is one."""


def parse_review(prompt: str) -> Review | None:
    """Read a prompt that shows a finished attempt; `None` where it is something else."""
    shown = parse_reflection(prompt)
    review = _review(shown.attempt) if shown else None
    if shown is None or review is None or shown.other is None:
        return review
    return replace(review, other=_review(shown.other))


def _review(told: ReportedAttempt) -> Review | None:
    goal = parse_goal(told.task)
    return None if goal is None else Review(goal, parse_attempt(told.trajectory), told.success)


def write_lessons(review: Review, dice: Dice, limit: int) -> str:
    """Return the lessons of an attempt as a JSON list."""
    topics = [*_compared(review, dice)]
    if not topics:
        topics = [*(_worked(review) if review.success else _failed(review, dice))]
    if dice.coin("commonplace", ADDS_COMMONPLACE):
        topics.append(Topic.COMMONPLACE)
    kept = list(dict.fromkeys(topics))[:limit]
    lessons = [_word(topic, review.goal, dice) for topic in kept]
    return json.dumps(lessons, indent=1)


def _word(topic: Topic, goal: Goal, dice: Dice) -> dict[str, str]:
    situation = _variant(SITUATIONS[goal.kind, topic.of_search], dice, f"when {topic}")
    if topic is Topic.COMMONPLACE:
        situation = "nothing seems to work"
    lesson = _variant(LESSONS[topic], dice, f"lesson {topic}")
    return {
        "when_to_use": situation.format(type=goal.type),
        "lesson": lesson.format(type=goal.type),
    }


def _variant(options: Sequence[str], dice: Dice, name: str) -> str:
    return options[int(dice.fraction(name) * len(options))]


def _compared(review: Review, dice: Dice) -> Iterator[Topic]:
    """Say what the one that reached its goal did and the other did not, where that is seen."""
    other = review.other
    if other is None or other.goal.kind is not review.goal.kind or other.success == review.success:
        return
    won, lost = (review, other) if review.success else (other, review)
    if dice.coin("difference seen", SEES_DIFFERENCE):
        shared = set(_worked(lost))
        yield from (topic for topic in _worked(won) if topic not in shared)


def _worked(review: Review) -> Iterator[Topic]:
    habits = habits_of(review.attempt)
    if review.goal.kind is Kind.TAKE and habits.spelling is Spelling.JOINED:
        yield Topic.SPELL_JOINED
    elif review.goal.kind is Kind.OPEN and habits.door is Door.TOGGLE:
        yield Topic.OPEN_BY_TOGGLE
    elif review.goal.kind is Kind.REACH_DOOR and habits.door is Door.FACE:
        yield Topic.STOP_AT_DOOR
    elif review.goal.kind is Kind.REACH_OBJECT:
        yield Topic.GO_TO_OBJECT
    if habits.search in {Search.LEAVE, Search.SURVEY}:
        yield Topic.FOUND_ELSEWHERE
    elif habits.search is Search.STAY:
        yield Topic.FOUND_HERE


def _failed(review: Review, dice: Dice) -> Iterator[Topic]:
    turns = review.attempt.turns
    views = [review.attempt.first, *(turn.view for turn in turns)]
    if not any(is_target(review.goal, thing) for view in views for thing in view.things):
        yield _search_topic(review.attempt, dice)
    elif review.goal.kind is Kind.TAKE:
        # Only refused spellings hint at the right one; other failures hint at nothing.
        if any(turn.failed and isinstance(form_of(turn.action), Spelling) for turn in turns):
            seen = dice.coin("spelling seen", SEES_SPELLING)
            yield Topic.SPELL_JOINED if seen else Topic.SPELL_VAGUE
    elif review.goal.kind in DOOR_KINDS:
        yield _door_topic(review, dice)
    else:
        yield Topic.COMMONPLACE


def _door_topic(review: Review, dice: Dice) -> Topic:
    door = habits_of(review.attempt).door
    seen = dice.coin("door seen", SEES_DOOR)
    if review.goal.kind is Kind.REACH_DOOR:
        return Topic.STOP_AT_DOOR if seen and door is Door.PASS else Topic.DOOR_VAGUE
    if seen:
        return Topic.OPEN_BY_TOGGLE_ONLY if door is Door.PASS else Topic.FACING_IS_NOT_OPENING
    return Topic.OPEN_WRONG if door is Door.PASS else Topic.DOOR_VAGUE


def _search_topic(attempt: Attempt, dice: Dice) -> Topic:
    seen = dice.coin("search seen", SEES_SEARCH)
    if search_of(attempt) in {Search.LEAVE, Search.SURVEY}:
        return Topic.SEARCH_ON if seen else Topic.SEARCH_VAGUE
    return Topic.NOT_HERE if seen else Topic.LOOK_CLOSER
