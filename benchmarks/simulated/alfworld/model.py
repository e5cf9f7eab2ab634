"""The chat model: messages in, a reply in the asked form out."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from pydantic import Field

from langgraft.benchmarks.simulated.alfworld.advice import counsel_for
from langgraft.benchmarks.simulated.alfworld.goals import Goal, asks_for_a_task, parse_goal
from langgraft.benchmarks.simulated.alfworld.habits import settle
from langgraft.benchmarks.simulated.alfworld.observations import parse_view
from langgraft.benchmarks.simulated.alfworld.play import next_action
from langgraft.benchmarks.simulated.alfworld.reflect import parse_review, write_lessons
from langgraft.benchmarks.simulated.alfworld.scene import Turn, scene_of
from langgraft.benchmarks.simulated.alfworld.validating import score_lessons
from langgraft.benchmarks.simulated.alfworld.words import read_plan, state_plan
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.conversation import (
    Conversation,
    Opening,
    digest_of,
    harmless_reply,
    read_conversation,
)
from langgraft.benchmarks.simulated.dice import Dice
from langgraft.benchmarks.simulated.judging import judging_reply

MODEL_NAME = "simulated-alfworld"
MIMICRY = 0.8
"""How often the example of a written-out attempt is followed, where nothing else is said."""
_AT_A_LOSS = "I can only do household tasks in words, and I do not understand this."


class SimulatedALFWorld(SimulatedChatModel):
    """A rule-based learner that plays ALFWorld. It is not a language model.

        model = SimulatedALFWorld(seed=42, mimicry=0.4)
        agent = build_react_agent(model, environment=ALFWorld(), memory=memory)

    It reads messages only: instructions in the system prompt, the task, notes recalled from
    memory where there are any, what it sees, and what it did before. The package's docstring
    says what it can do and what it does not know.
    """

    model_name: str = MODEL_NAME
    mimicry: float = Field(default=MIMICRY, ge=0, le=1)
    """Chance, per episode, to go about a task as a successful attempt in the notes did."""

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Play, reflect or judge; the name of a sample makes no difference to it."""
        talk = read_conversation(messages)
        opening = talk.opening
        if opening is not None:
            dice = self._dice(opening.whole, sampling)
            if (scores := score_lessons(opening.whole, dice)) is not None:
                return scores
            if (judged := judging_reply(opening.whole)) is not None:
                return judged
            if review := parse_review(opening.whole):
                return write_lessons(review, dice)
            told = opening.observation
            goal = parse_goal(told) if asks_for_a_task(told) else None
            if goal is not None:
                return self._play(goal, talk, opening, self._dice(told, sampling))
        return harmless_reply(talk.whole, "look", _AT_A_LOSS)

    def _dice(self, text: str, sampling: Sampling) -> Dice:
        return Dice(sampling.seed, sampling.sampled, digest_of(text), "alfworld")

    def _play(self, goal: Goal, talk: Conversation, opening: Opening, dice: Dice) -> str:
        """Decide on the next action; draws belong to the task, whatever is recalled for it."""
        turns = [Turn(each.action, parse_view(each.observation)) for each in talk.exchanges]
        scene = scene_of(goal, parse_view(opening.observation), turns)
        declared = read_plan(goal.kind, talk.thoughts)
        counsel = counsel_for(goal.kind, goal.thing, opening.notes)
        habits, led = settle(goal, counsel, declared, dice, self.mimicry)
        thought = state_plan(goal, habits, declared, led=led)
        return f"Thought: {thought}\nAction: {next_action(scene, habits)}"
