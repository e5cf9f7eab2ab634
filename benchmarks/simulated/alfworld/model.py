"""The chat model: messages in, a reply in the asked form out; lessons of attempts, and what they are worth.

After a failure the right cause is seen with a set probability; otherwise the inference is wrong
or vague, as people's and models' inferences are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from langgraft.benchmarks.simulated.alfworld.advice import counsel_for, habits_advised, parse_advice
from langgraft.benchmarks.simulated.alfworld.habits import (
    Care,
    Goal,
    Habits,
    Kind,
    asks_for_a_task,
    parse_goal,
    parse_view,
    read_plan,
    settle,
    state_plan,
)
from langgraft.benchmarks.simulated.alfworld.play import (
    Attempt,
    Turn,
    lacks_step,
    next_action,
    parse_attempt,
    places_in,
    scene_of,
    shown_by,
)
from langgraft.benchmarks.simulated.chat import Sampling
from langgraft.benchmarks.simulated.conversation import Conversation, Dice, Opening, WorldLearner
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
    in_form,
    parse_reflection,
    validation_reply,
    write_lessons,
)


class Topic(StrEnum):
    """What a lesson can be about."""

    STEP = "step"
    STEP_NOT_PLACING = "step, not placing alone"
    STRAIGHT = "straight"
    ELSEWHERE = "elsewhere"
    FOUND_ON = "found on"
    LIKELY = "likely"
    OPEN = "open"
    SEARCH_VAGUE = "search vague"
    COMMONPLACE = "commonplace"

    @property
    def of_search(self) -> bool:
        """Whether it is about finding the thing rather than about dealing with it."""
        return self in {Topic.FOUND_ON, Topic.LIKELY, Topic.OPEN, Topic.SEARCH_VAGUE}


SITUATIONS: Mapping[Kind, tuple[str, ...]] = {
    Kind.PLACE: (
        "the task is to put a {thing} or the like somewhere",
        "you are asked to put a thing in or on a {place}",
    ),
    Kind.CLEAN: (
        "the task asks for a clean {thing} in some place",
        "you have to clean a thing such as a {thing} and put it somewhere",
    ),
    Kind.HEAT: (
        "the task asks for a hot {thing} in some place",
        "you have to heat a thing such as a {thing} and put it somewhere",
    ),
    Kind.COOL: (
        "the task asks for a cool {thing} in some place",
        "you have to cool a thing such as a {thing} and put it somewhere",
    ),
    Kind.PAIR: (
        "the task asks for two things of a kind in one place",
        "you have to put two {thing}s somewhere",
    ),
    Kind.LIGHT: (
        "the task is to examine a {thing} with a lamp",
        "you have to look at a thing such as a {thing} under a {place}",
    ),
}
"""Kind of goal → clauses that can follow `when`."""

SEARCHING: tuple[str, ...] = (
    "you have to find a {thing}",
    "you are looking for a thing such as a {thing}",
    "you are to find something that is not in sight",
)
"""Clauses for lessons about searching."""

STEPS: Mapping[Kind, tuple[str, ...]] = {
    Kind.CLEAN: (
        "Take it to a sinkbasin and use 'clean <thing> with <sinkbasin>' before you put it down.",
        "Only at a sinkbasin does 'clean <thing> with <sinkbasin>' work; do it before the rest.",
        "Clean it with the sinkbasin first; then bring it where it belongs.",
    ),
    Kind.HEAT: (
        "Take it to a microwave and use 'heat <thing> with <microwave>' before you put it down.",
        "Heat it with the microwave first; then bring it where it belongs.",
    ),
    Kind.COOL: (
        "Take it to a fridge and use 'cool <thing> with <fridge>' before you put it down.",
        "Cool it with the fridge first; then bring it where it belongs.",
    ),
    Kind.PAIR: (
        "Carry one at a time: put the first in its place, and then go back for the other one.",
        "One hand holds one thing. Bring them one after the other to the same place.",
    ),
    Kind.LIGHT: (
        "Hold it, go to the lamp, and use the {place}.",
        "With the thing in hand, switch on the lamp; that is all it takes.",
    ),
}
"""Kind of goal → what its step is, and when it is to be done."""

PREFER: Mapping[Kind, tuple[str, ...]] = {
    Kind.CLEAN: ("Prefer to clean it with a sinkbasin first over putting it down as it is.",),
    Kind.HEAT: ("Prefer to heat it with a microwave first over putting it down as it is.",),
    Kind.COOL: ("Prefer to cool it with a fridge first over putting it down as it is.",),
    Kind.PAIR: ("Prefer to carry one at a time over stopping after the first.",),
    Kind.LIGHT: (
        "Prefer to use the lamp with the thing in hand over examining it beside the lamp.",
    ),
}
"""Kind of goal → its step, as the better of two ways."""

LESSONS: Mapping[Topic, tuple[str, ...]] = {
    Topic.STRAIGHT: (
        "Take it, go straight to where it belongs, and put it down. Nothing else is needed.",
        "Once it is in hand, go to the place that was named and set it down there.",
    ),
    Topic.ELSEWHERE: (
        "If nothing comes of putting it down, take it up and try another place of the same kind.",
        "Make sure that it is the right thing, and that it lies in the right place.",
    ),
    Topic.FOUND_ON: (
        "Check the {found} early: it is likely to be there.",
        "Look on or in a {found} before other places.",
    ),
    Topic.LIKELY: (
        "Check countertops, tables and other open surfaces first, where such things usually are.",
        "Start with the likely places, what lies in the open first, not in the order of the list.",
    ),
    Topic.OPEN: (
        "Open closed cabinets and drawers as you pass, since it may be inside.",
        "Look inside: open each closed place when you stand before it.",
    ),
    Topic.SEARCH_VAGUE: (
        "Searching can take many moves. Be efficient.",
        "Remember what was seen, and do not waste moves.",
    ),
    Topic.COMMONPLACE: (
        "Choose actions that are available, and word them exactly.",
        "Think about the task again where nothing seems to happen.",
        "Work step by step and watch what each action leads to.",
    ),
}


NAMES_STEP = 0.7
"""Chance that, after a success, the step that the goal asked for is thought worth noting."""
SEES_STEP = 0.5
"""Chance to find, after a failure, that the step was left out or done wrongly."""
COMPARES_STEP = 0.9
"""The same where a success can be compared with the failure."""
SEES_SEARCH = 0.5
"""Chance to find how the search should have gone."""


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


def lessons_of(review: Review, dice: Dice) -> str:
    """Return the lessons of an attempt as a JSON list."""
    goal = review.goal
    found = [*places_in(review.attempt), *(places_in(review.other) if review.other else ())]

    def wordings(topic: Topic) -> tuple[Sequence[str], Sequence[str]]:
        if topic is Topic.COMMONPLACE:
            return ("nothing seems to work",), LESSONS[topic]
        situations = SEARCHING if topic.of_search else SITUATIONS[goal.kind]
        by_kind = {Topic.STEP: STEPS, Topic.STEP_NOT_PLACING: PREFER}.get(topic)
        return situations, by_kind[goal.kind] if by_kind else LESSONS[topic]

    return write_lessons(
        _topics(review, dice),
        wordings,
        {"thing": goal.thing, "place": goal.place, "found": found[0] if found else "place"},
        dice,
        commonplace=Topic.COMMONPLACE,
        limit=review.limit,
    )


def _attempt(reported: ReportedAttempt) -> Attempt:
    result = "success" if reported.success else "failure"
    return parse_attempt(f"Task: {reported.task}\n{reported.trajectory}\nResult: {result}")


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


_STRAIGHT = frozenset(LESSONS[Topic.STRAIGHT])


def score_lessons(prompt: str, dice: Dice) -> str | None:
    """Return the scores a prompt of `validate` asks for; `None` where the task is of no known kind.

    It sees no more than the prompt shows, and misses and mistakes some of that, as the learner of
    BabyAI does: vague lessons pass now and then, so do wrong ones, and some good ones score too low.
    """

    def judge_for(reported: ReportedAttempt) -> Judge | None:
        goal = parse_goal(reported.task)
        return None if goal is None else partial(_opinion, goal, _attempt(reported))

    return validation_reply(prompt, judge_for, dice)


def _opinion(goal: Goal, attempt: Attempt, lesson: Shown, coin: Coin) -> Opinion:
    advice = parse_advice(f"When {lesson.when_to_use}: {lesson.text}")
    advised = habits_advised(advice, goal.kind)
    if _speaks_against(attempt, goal, advised) and coin("wrong seen", SEES_WRONG):
        return CONTRADICTED
    says_nothing = (
        advised == Habits()
        and not any(part.opens for part in advice)
        and lesson.text not in _STRAIGHT
    )
    if says_nothing and coin("vague seen", SEES_VAGUE):
        return VAGUE
    return DOUBTED if coin("doubted", DOUBTS) else BORNE_OUT


def _speaks_against(attempt: Attempt, goal: Goal, advised: Habits) -> bool:
    """Say whether a lesson advises what failed, or against what worked."""
    if goal.kind is Kind.PLACE or advised.care is None:
        return False
    if attempt.success:
        return advised.care is not shown_by(attempt, goal.kind).care
    return advised.care is Care.OMIT and lacks_step(attempt, goal.kind)


MODEL_NAME = "simulated-alfworld"
MIMICRY = 0.8
"""How often the example of a written-out attempt is followed, where nothing else is said."""


class SimulatedALFWorld(WorldLearner):
    """A rule-based learner that plays ALFWorld. It is not a language model.

    `model_name` is what logs call it.

        model = SimulatedALFWorld(seed=42, mimicry=0.4)
        agent = build_react_agent(model, environment=ALFWorld(), memory=memory)

    It reads messages only: instructions in the system prompt, the task, notes recalled from
    memory where there are any, what it sees, and what it did before. What it can do,
    and what it does not know, is in `docs/simulated-models.md`.
    """

    model_name: str = MODEL_NAME
    mimicry: float = Field(default=MIMICRY, ge=0, le=1)
    """Chance, per episode, to go about a task as a successful attempt in the notes did."""

    world: ClassVar = "alfworld"
    idle: ClassVar = "look"
    at_a_loss: ClassVar = "I can only do household tasks in words, and I do not understand this."

    @override
    def scores(self, prompt: str, dice: Dice) -> str | None:
        return score_lessons(prompt, dice)

    @override
    def lessons(self, prompt: str, dice: Dice) -> str | None:
        review = parse_review(prompt)
        return None if review is None else in_form(prompt, lessons_of(review, dice))

    @override
    def played(
        self, conversation: Conversation, opening: Opening, sampling: Sampling
    ) -> str | None:
        # Draws belong to the task, whatever is recalled for it.
        seen, dice = opening.observation, self.dice(opening.observation, sampling)
        goal = parse_goal(seen) if asks_for_a_task(seen) else None
        if goal is None:
            return None
        turns = [Turn(each.action, parse_view(each.observation)) for each in conversation.exchanges]
        scene = scene_of(goal, parse_view(seen), turns)
        declared = read_plan(goal.kind, conversation.thoughts)
        counsel = counsel_for(goal.kind, goal.thing, opening.notes)
        habits, led = settle(goal, counsel, declared, dice, self.mimicry)
        thought = state_plan(goal, habits, declared, led=led)
        return f"Thought: {thought}\nAction: {next_action(scene, habits)}"
