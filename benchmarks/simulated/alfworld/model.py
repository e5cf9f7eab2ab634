"""The chat model: messages in, a reply in the asked form out."""

from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from langgraft.benchmarks.simulated.alfworld.advice import counsel_for
from langgraft.benchmarks.simulated.alfworld.habits import read_plan, settle, state_plan
from langgraft.benchmarks.simulated.alfworld.observations import (
    asks_for_a_task,
    parse_goal,
    parse_view,
)
from langgraft.benchmarks.simulated.alfworld.play import next_action
from langgraft.benchmarks.simulated.alfworld.reflect import lessons_of, parse_review, score_lessons
from langgraft.benchmarks.simulated.alfworld.scene import Turn, scene_of
from langgraft.benchmarks.simulated.chat import Sampling
from langgraft.benchmarks.simulated.conversation import Conversation, Dice, Opening, WorldLearner

MODEL_NAME = "simulated-alfworld"
MIMICRY = 0.8
"""How often the example of a written-out attempt is followed, where nothing else is said."""


class SimulatedALFWorld(WorldLearner):
    """A rule-based learner that plays ALFWorld. It is not a language model.

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
        return None if review is None else lessons_of(review, dice)

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
