"""The simulated BabyAI learner compares attempts and validates lessons, within declared limits."""

from typing import Any

from langgraft.benchmarks.simulated import SimulatedBabyAI
from langgraft.benchmarks.simulated.reflecting import DOUBTS, SEES_VAGUE, SEES_WRONG
from langgraft.memory.model import Attempt, Outcome, Step
from langgraft.nodes.dialogue import run_dialogue
from langgraft.nodes.reflect import distilling
from langgraft.nodes.screening import validating

SEEN = (
    "In front of you in this room, you can see several objects: There is a red closed door 1 right"
    " in front of you 3 steps away. You are not carrying anything."
)
OPEN = "open the red door"
FIRST = Step("", "", f"Your goal: {OPEN}\n{SEEN}")
WON = Attempt(
    (FIRST, Step("", "go to red closed door 1", SEEN), Step("", "toggle", SEEN)),
    Outcome(success=True),
)
LOST = Attempt(
    (FIRST, Step("", "toggle and go through red closed door 1", SEEN)),
    Outcome(success=False, reason="out of rounds"),
)
WHEN = "the goal is to open a door"
RIGHT = "Go to the door first and then use the plain action 'toggle' on it."
WRONG = "Use 'toggle and go through' early, and get to the other side."
VAGUE = "Work step by step and watch how the description changes."
SEEDS = range(100)


def kept(lesson: str, attempt: Attempt) -> float:
    """Return how many of the learners with these seeds keep a lesson."""
    given: list[dict[str, Any]] = [{"text": lesson, "when_to_use": WHEN}]
    judged = [
        run_dialogue(
            validating(given, OPEN, attempt.steps, attempt.outcome), SimulatedBabyAI(seed=seed)
        )
        for seed in SEEDS
    ]
    assert all(each.by == "model" for (each,) in judged)
    return sum(each.kept for (each,) in judged) / len(judged)


def near(share: float, chance: float) -> bool:
    """Say whether a share of the seeds is what a chance leads to expect."""
    return abs(share - chance) < 0.15


def test_lessons_when_validated_are_told_apart_no_better_than_declared() -> None:
    """What is vague or wrong passes now and then, and what is good is lost now and then."""
    assert near(kept(RIGHT, WON), 1 - DOUBTS)
    assert near(kept(RIGHT, LOST), 1 - DOUBTS)
    assert near(kept(VAGUE, WON), 1 - SEES_VAGUE)
    for attempt in (WON, LOST):
        assert near(kept(WRONG, attempt), (1 - SEES_WRONG) * (1 - DOUBTS))


def test_attempts_when_compared_show_more_often_what_made_the_difference() -> None:
    """From the failure alone the right lesson is found half of the time."""

    def found(other: Attempt | None) -> float:
        drawn = [
            run_dialogue(distilling(OPEN, LOST, other=other), SimulatedBabyAI(seed=seed))
            for seed in SEEDS
        ]
        right = [any("'toggle'" in lesson.text for lesson in each.lessons) for each in drawn]
        return sum(right) / len(right)

    assert found(WON) > found(None) + 0.2
    assert found(None) > 0.3
