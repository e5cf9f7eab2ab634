"""What the learner thinks of lessons, by the attempt that they were drawn from.

It sees no more than the prompt shows, and misses and mistakes some of that, as the learner of
BabyAI does: vague lessons pass now and then, so do wrong ones, and some good ones score too low.
"""

from functools import partial

from langgraft.benchmarks.simulated.alfworld.advice import habits_advised, parse_advice
from langgraft.benchmarks.simulated.alfworld.attempts import (
    Attempt,
    lacks_step,
    parse_attempt,
    shown_by,
)
from langgraft.benchmarks.simulated.alfworld.goals import Goal, Kind, parse_goal
from langgraft.benchmarks.simulated.alfworld.habits import Care, Habits
from langgraft.benchmarks.simulated.alfworld.lessons import LESSONS, Topic
from langgraft.benchmarks.simulated.dice import Dice
from langgraft.benchmarks.simulated.reflecting import (
    BORNE_OUT,
    CONTRADICTED,
    DOUBTED,
    DOUBTS,
    SEES_VAGUE,
    SEES_WRONG,
    VAGUE,
    Opinion,
    ReportedAttempt,
    Shown,
    parse_validation,
    validation_reply,
)

_STRAIGHT = frozenset(LESSONS[Topic.STRAIGHT])


def score_lessons(prompt: str, dice: Dice) -> str | None:
    """Return the scores a prompt of `validate` asks for; `None` where the task is of no known kind."""
    told = parse_validation(prompt)
    goal = parse_goal(told.task) if told else None
    if told is None or goal is None:
        return None
    return validation_reply(prompt, partial(_opinion, goal, dice))


def _opinion(goal: Goal, dice: Dice, told: ReportedAttempt, lesson: Shown) -> Opinion:
    advice = parse_advice(f"When {lesson.when_to_use}: {lesson.text}")
    advised = habits_advised(advice, goal.kind)
    attempt = parse_attempt(
        f"Task: {told.task}\n{told.trajectory}\nResult: {'success' if told.success else 'failure'}"
    )

    def coin(name: str, chance: float) -> bool:
        return dice.coin(f"{name} {lesson.text}", chance)

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
