"""What the learner makes of finished attempts: lessons, and what lessons are worth.

After a failure the right alternative is seen with a set probability; otherwise the inference
is wrong or vague, as people's and models' inferences are. A success and a failure side by side,
at goals of one kind, show more often what made the difference.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from langgraft.benchmarks.simulated.babyai.advice import (
    Attempt,
    form_of,
    habits_advised,
    habits_of,
    parse_advice,
    parse_attempt,
    search_of,
)
from langgraft.benchmarks.simulated.babyai.habits import (
    DOOR_KINDS,
    Door,
    Goal,
    Habits,
    Kind,
    Search,
    Spelling,
    is_target,
    parse_goal,
)
from langgraft.benchmarks.simulated.conversation import Dice
from langgraft.benchmarks.simulated.reflecting import (
    BORNE_OUT,
    CONTRADICTED,
    DOUBTED,
    DOUBTS,
    SEES_VAGUE,
    SEES_WRONG,
    VAGUE,
    Coin,
    Judge,
    Opinion,
    ReportedAttempt,
    Shown,
    parse_reflection,
    validation_reply,
    write_lessons,
)


class Topic(StrEnum):
    """What a lesson can be about."""

    SPELL_JOINED = "spell joined"
    SPELL_VAGUE = "spell vague"
    OPEN_BY_TOGGLE = "open by toggle"
    OPEN_BY_TOGGLE_ONLY = "open by toggle only"
    FACING_IS_NOT_OPENING = "facing is not opening"
    OPEN_WRONG = "open wrong"
    STOP_AT_DOOR = "stop at door"
    DOOR_VAGUE = "door vague"
    GO_TO_OBJECT = "go to object"
    FOUND_HERE = "found here"
    FOUND_ELSEWHERE = "found elsewhere"
    NOT_HERE = "not here"
    SEARCH_ON = "search on"
    LOOK_CLOSER = "look closer"
    SEARCH_VAGUE = "search vague"
    COMMONPLACE = "commonplace"

    @property
    def of_search(self) -> bool:
        """Whether it is about finding the thing rather than about dealing with it."""
        return self in _OF_SEARCH


_OF_SEARCH = {
    Topic.FOUND_HERE,
    Topic.FOUND_ELSEWHERE,
    Topic.NOT_HERE,
    Topic.SEARCH_ON,
    Topic.LOOK_CLOSER,
    Topic.SEARCH_VAGUE,
}

SITUATIONS: Mapping[tuple[Kind, bool], tuple[str, ...]] = {
    (Kind.TAKE, False): (
        "the goal is to pick up an object such as a {type}",
        "you have to pick up a {type} or a similar object",
        "asked to pick up something, for example a {type}",
    ),
    (Kind.TAKE, True): (
        "the goal is to pick up a {type} and it is not in view",
        "you have to pick up an object like a {type} that you cannot see yet",
    ),
    (Kind.OPEN, False): (
        "the goal is to open a door",
        "you have to open a door of a given color",
    ),
    (Kind.OPEN, True): (
        "the goal is to open a door and it is not in view",
        "you have to open a door that you cannot see yet",
    ),
    (Kind.REACH_DOOR, False): (
        "the goal is to go to a door",
        "you only have to go to a door of a given color",
    ),
    (Kind.REACH_DOOR, True): (
        "the goal is to go to a door and it is not in view",
        "you have to go to a door that you cannot see yet",
    ),
    (Kind.REACH_OBJECT, False): (
        "the goal is to go to an object such as a {type}",
        "you have to go to a {type}",
    ),
    (Kind.REACH_OBJECT, True): (
        "the goal is to go to a {type} and it is not in view",
        "you have to go to an object like a {type} that you cannot see yet",
    ),
}
"""Kind of goal, and whether the lesson is about searching → clauses that can follow `when`."""

LESSONS: Mapping[Topic, tuple[str, ...]] = {
    Topic.SPELL_JOINED: (
        "Write 'pickup <object> <number>' as one word, exactly as listed. With a space it fails.",
        "Use 'pickup' with name and number of the {type}; 'pick up' in two words is rejected.",
        "The action that works is spelled 'pickup', in a single word, with the number at the end.",
    ),
    Topic.SPELL_VAGUE: (
        "Go to the {type} first and make sure that you face it before you try to take it.",
        "The action may be rejected several times. Check the name and the number of the {type}.",
        "Move closer and try again when an action is not recognized.",
    ),
    Topic.OPEN_BY_TOGGLE: (
        "Go to the door first, then use 'toggle'. The goal is reached at the moment it opens.",
        "Walk up to it with 'go to', then 'toggle' it and do nothing more.",
        "Use 'go to' with the name of the door and then the plain action 'toggle'.",
    ),
    Topic.OPEN_BY_TOGGLE_ONLY: (
        "'toggle and go through' does not complete it. Go to the door and use plain 'toggle'.",
        "Use 'go to' and then 'toggle' instead of 'toggle and go through'.",
    ),
    Topic.FACING_IS_NOT_OPENING: (
        "Standing before it is not enough. Use 'toggle' once you face the door.",
        "After walking up to the door, use the action 'toggle'.",
    ),
    Topic.OPEN_WRONG: (
        "Use 'toggle and go through' early, and make sure that you really get to the other side.",
        "Go through the door and come back if the goal does not end at once.",
    ),
    Topic.STOP_AT_DOOR: (
        "Use 'go to' with the name of the door and stop in front of it. Do not go through it.",
        "The action 'go to' is all that is needed; there is no need to open anything.",
        "Go to the door and stop there. 'toggle and go through' does not count.",
    ),
    Topic.DOOR_VAGUE: (
        "Be careful which door you choose, as several may look alike.",
        "Doors take more attempts than expected. Plan the moves in advance.",
    ),
    Topic.GO_TO_OBJECT: (
        "Use 'go to' with the name and number of the {type}; the goal ends when you face it.",
        "Go to the {type} directly with the action from the list.",
    ),
    Topic.FOUND_HERE: (
        "Turn around in place until the {type} comes into view; it is in the same room.",
        "Look around by turning left a few times. The {type} is in this room.",
    ),
    Topic.FOUND_ELSEWHERE: (
        "Leave the room and go through closed doors into other rooms until the {type} is in sight.",
        "It is in another room: use 'toggle and go through' on doors not used yet, room by room.",
        "Explore the rooms not seen yet by going through their doors; do not stay where you are.",
    ),
    Topic.NOT_HERE: (
        "Turning around does not help. Go through closed doors into rooms not seen yet.",
        "Leave this room early and explore other rooms through their doors.",
    ),
    Topic.SEARCH_ON: (
        "Open doors one after another and visit each room only once; explore unseen rooms first.",
        "Keep going through closed doors into new rooms, and do not go back to old ones.",
    ),
    Topic.LOOK_CLOSER: (
        "Turn around in place and look around more carefully before anything else.",
        "Stay calm and turn left step by step, so that nothing in the room is missed.",
    ),
    Topic.SEARCH_VAGUE: (
        "Searching can take many moves. Be efficient.",
        "Remember what was seen, and do not waste moves.",
    ),
    Topic.COMMONPLACE: (
        "Read the list of available actions with care and choose one of them.",
        "Think about the goal again and do not repeat an action that failed.",
        "Work step by step and watch how the description changes.",
    ),
}


SEES_SPELLING = 0.6
"""Chance to find the listed spelling after refused ones."""
SEES_DOOR = 0.5
"""Chance to find what should have been done with a door."""
SEES_SEARCH = 0.5
"""Chance to find how the search should have gone."""
SEES_DIFFERENCE = 0.8
"""Chance to find what made the difference between a success and a failure side by side."""


@dataclass(frozen=True, slots=True)
class Review:
    """A finished attempt, to be learned from."""

    goal: Goal
    attempt: Attempt
    success: bool
    limit: int
    """Most lessons asked for."""
    other: "Review | None" = None
    """One that it is to be compared with, where there is one."""


def parse_review(prompt: str) -> Review | None:
    """Read a prompt that shows a finished attempt; `None` where it is something else."""
    shown = parse_reflection(prompt)
    review = _review(shown.attempt, shown.limit) if shown else None
    if shown is None or review is None or shown.other is None:
        return review
    return replace(review, other=_review(shown.other, shown.limit))


def _review(reported: ReportedAttempt, limit: int) -> Review | None:
    goal = parse_goal(reported.task)
    attempt = parse_attempt(reported.trajectory)
    return None if goal is None else Review(goal, attempt, reported.success, limit)


def lessons_of(review: Review, dice: Dice) -> str:
    """Return the lessons of an attempt as a JSON list."""
    topics = [*_compared(review, dice)]
    if not topics:
        topics = [*(_worked(review) if review.success else _failed(review, dice))]

    def wordings(topic: Topic) -> tuple[Sequence[str], Sequence[str]]:
        common = topic is Topic.COMMONPLACE
        situations = SITUATIONS[review.goal.kind, topic.of_search]
        return ("nothing seems to work",) if common else situations, LESSONS[topic]

    return write_lessons(
        topics,
        wordings,
        {"type": review.goal.type},
        dice,
        commonplace=Topic.COMMONPLACE,
        limit=review.limit,
    )


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


def score_lessons(prompt: str, dice: Dice) -> str | None:
    """Return the scores a prompt of `validate` asks for; `None` where it is not about BabyAI.

    It sees no more than the prompt shows, and misses and mistakes some of that: a lesson that advises
    nothing passes now and then, so does one that the attempt speaks against, and of the others some
    are scored too low.
    """

    def judge_for(reported: ReportedAttempt) -> Judge | None:
        goal = parse_goal(reported.task)
        return None if goal is None else partial(_opinion, goal, reported)

    return validation_reply(prompt, judge_for, dice)


def _opinion(goal: Goal, reported: ReportedAttempt, lesson: Shown, coin: Coin) -> Opinion:
    advice = parse_advice(f"When {lesson.when_to_use}: {lesson.text}")
    if not any(part.do | part.dont for part in advice):
        return VAGUE if coin("vague seen", SEES_VAGUE) else BORNE_OUT
    advised, avoided = habits_advised(advice, goal.kind)
    shown = _shown(parse_attempt(reported.trajectory), goal, success=reported.success)
    pairs = (
        (advised.spelling, shown.spelling),
        (advised.door, shown.door),
        (advised.search, shown.search),
    )
    known = [(option, tried) for option, tried in pairs if tried is not None]
    if reported.success:
        against = any(o not in {None, tried} or tried in avoided for o, tried in known)
    else:
        against = any(option is tried for option, tried in known)
    if against and coin("wrong seen", SEES_WRONG):
        return CONTRADICTED
    return DOUBTED if coin("doubted", DOUBTS) else BORNE_OUT


def _shown(attempt: Attempt, goal: Goal, *, success: bool) -> Habits:
    """Return the ways of acting that led to the goal, or that failed on the way to it."""
    shown = habits_of(attempt)
    if success:
        return shown
    views = [attempt.first, *(turn.view for turn in attempt.turns)]
    seen = any(is_target(goal, thing) for view in views for thing in view.things)
    if not seen:
        return Habits(search=search_of(attempt))
    refused = [form_of(turn.action) for turn in attempt.turns if turn.failed]
    spelling = Spelling.SPACED if Spelling.SPACED in refused else None
    return Habits(spelling=spelling, door=shown.door)
