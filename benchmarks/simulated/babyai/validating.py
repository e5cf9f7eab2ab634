"""What the learner thinks of lessons, by the attempt that they were drawn from.

It sees no more than the prompt shows, and misses and mistakes some of that: a lesson that advises
nothing passes now and then, so does one that the attempt speaks against, and of the others some
are scored too low.
"""

from functools import partial

from langgraft.benchmarks.simulated.babyai.advice import habits_advised, parse_advice
from langgraft.benchmarks.simulated.babyai.attempts import (
    Attempt,
    form_of,
    habits_of,
    parse_attempt,
    search_of,
)
from langgraft.benchmarks.simulated.babyai.habits import Habits, Spelling
from langgraft.benchmarks.simulated.babyai.observations import Goal, is_target, parse_goal
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


def score_lessons(prompt: str, dice: Dice) -> str | None:
    """Return the scores a prompt of `validate` asks for; `None` where it is not about BabyAI."""
    told = parse_validation(prompt)
    goal = parse_goal(told.task) if told else None
    if told is None or goal is None:
        return None
    return validation_reply(prompt, partial(_opinion, goal, dice))


def _opinion(goal: Goal, dice: Dice, told: ReportedAttempt, lesson: Shown) -> Opinion:
    advice = parse_advice(f"When {lesson.when_to_use}: {lesson.text}")

    def coin(name: str, chance: float) -> bool:
        return dice.coin(f"{name} {lesson.text}", chance)

    if not any(part.do | part.dont for part in advice):
        return VAGUE if coin("vague seen", SEES_VAGUE) else BORNE_OUT
    advised, avoided = habits_advised(advice, goal.kind)
    shown = _shown(parse_attempt(told.trajectory), goal, success=told.success)
    pairs = (
        (advised.spelling, shown.spelling),
        (advised.door, shown.door),
        (advised.search, shown.search),
    )
    known = [(option, tried) for option, tried in pairs if tried is not None]
    if told.success:
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
