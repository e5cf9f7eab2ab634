"""The chat model: messages in, a reply in the asked form out."""

from typing import ClassVar

from typing_extensions import override

from langgraft.benchmarks.simulated.babyai.advice import counsel_for
from langgraft.benchmarks.simulated.babyai.attempts import Turn
from langgraft.benchmarks.simulated.babyai.habits import (
    Habits,
    Spelling,
    read_plan,
    settle,
    state_plan,
)
from langgraft.benchmarks.simulated.babyai.observations import Kind, parse_goal, parse_view
from langgraft.benchmarks.simulated.babyai.play import Scene, next_action
from langgraft.benchmarks.simulated.babyai.reflect import lessons_of, parse_review, score_lessons
from langgraft.benchmarks.simulated.chat import Sampling
from langgraft.benchmarks.simulated.conversation import Conversation, Dice, Opening, WorldLearner

MODEL_NAME = "simulated-babyai"


class SimulatedBabyAI(WorldLearner):
    """A rule-based learner that plays BabyAI in words. It is not a language model.

        model = SimulatedBabyAI(seed=42)
        agent = build_react_agent(model, environment=BabyAI(), memory=memory)

    It reads messages only: instructions in the system prompt, the goal, notes recalled from
    memory where there are any, what it sees, and what it did before. What it can do,
    and what it does not know, is in `docs/simulated-models.md`.
    """

    model_name: str = MODEL_NAME
    world: ClassVar = "babyai"
    idle: ClassVar = "check available actions"
    at_a_loss: ClassVar = "I can only play BabyAI in words, and I do not understand this."

    @override
    def scores(self, prompt: str, dice: Dice) -> str | None:
        return score_lessons(prompt, dice)

    @override
    def lessons(self, prompt: str, dice: Dice) -> str | None:
        review = parse_review(prompt)
        return None if review is None else lessons_of(review, dice)

    @override
    def played(
        self, conversation: Conversation, opening: Opening, sampling: Sampling
    ) -> str | None:
        seen = opening.observation
        goal = parse_goal(seen) if "goal:" in seen.lower() else None
        if goal is None:
            return None
        turns = [Turn(each.action, parse_view(each.observation)) for each in conversation.exchanges]
        scene = Scene(goal, parse_view(seen), turns)
        dice = self.dice(opening.whole, sampling)
        declared = read_plan(conversation.thoughts)
        taking = goal.kind is Kind.TAKE
        known = declared.or_else(_instructed(conversation.system)) if taking else declared
        habits = settle(goal, counsel_for(goal.kind, opening.notes), known, dice)
        thought = state_plan(goal, habits, declared)
        return f"Thought: {thought}\nAction: {next_action(scene, habits, dice)}"


def _instructed(system: str) -> Habits:
    """Take the spelling from the instructions, where they have the right one."""
    words = system.lower()
    joined = "pickup" in words and "pick up <" not in words
    return Habits(spelling=Spelling.JOINED if joined else None)
