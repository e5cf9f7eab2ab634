"""The chat model: messages in, a reply in the asked form out."""

import re
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

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
from langgraft.benchmarks.simulated.babyai.reflect import parse_review, write_lessons
from langgraft.benchmarks.simulated.babyai.validating import score_lessons
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.conversation import (
    digest_of,
    harmless_reply,
    read_conversation,
)
from langgraft.benchmarks.simulated.dice import Dice
from langgraft.benchmarks.simulated.judging import judging_reply

MODEL_NAME = "simulated-babyai"
_AT_A_LOSS = "I can only play BabyAI in words, and I do not understand this."
_LIMIT = re.compile(r"at most (\d+) lessons?", re.IGNORECASE)
_DEFAULT_LIMIT = 3


class SimulatedBabyAI(SimulatedChatModel):
    """A rule-based learner that plays BabyAI in words. It is not a language model.

        model = SimulatedBabyAI(seed=42)
        agent = build_react_agent(model, environment=BabyAI(), memory=memory)

    It reads messages only: instructions in the system prompt, the goal, notes recalled from
    memory where there are any, what it sees, and what it did before. The package's docstring
    says what it can do and what it does not know.
    """

    model_name: str = MODEL_NAME

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Play, reflect or judge; the name of a sample makes no difference to it."""
        return answer(messages, seed=sampling.seed, sampled=sampling.sampled)


def answer(messages: Sequence[BaseMessage], *, seed: int, sampled: bool) -> str:
    """Return the reply to a conversation.

    Args:
        messages: The whole conversation.
        seed: Picks the draws.
        sampled: Whether to draw at all, or to take what is most likely.
    """
    talk = read_conversation(messages)
    opening = talk.opening
    if opening is not None:
        dice = Dice(seed, sampled, digest_of(opening.whole), "babyai")
        if (scores := score_lessons(opening.whole, dice)) is not None:
            return scores
        if (judged := judging_reply(opening.whole)) is not None:
            return judged
        if review := parse_review(opening.whole):
            return write_lessons(review, dice, _limit(opening.whole))
        told = opening.observation
        goal = parse_goal(told) if "goal:" in told.lower() else None
        if goal is not None:
            turns = [Turn(each.action, parse_view(each.observation)) for each in talk.exchanges]
            scene = Scene(goal, parse_view(told), turns)
            return _play(scene, _instructed(talk.system), opening.notes, talk.thoughts, dice)
    return harmless_reply(talk.whole, "check available actions", _AT_A_LOSS)


def _play(scene: Scene, instructed: Habits, notes: str, thoughts: Sequence[str], dice: Dice) -> str:
    declared = read_plan(thoughts)
    counsel = counsel_for(scene.goal.kind, notes)
    known = declared
    if scene.goal.kind is Kind.TAKE:
        known = declared.or_else(instructed)
    habits = settle(scene.goal, counsel, known, dice)
    thought = state_plan(scene.goal, habits, declared)
    return f"Thought: {thought}\nAction: {next_action(scene, habits, dice)}"


def _instructed(system: str) -> Habits:
    """Take the spelling from the instructions, where they have the right one."""
    words = system.lower()
    joined = "pickup" in words and "pick up <" not in words
    return Habits(spelling=Spelling.JOINED if joined else None)


def _limit(prompt: str) -> int:
    found = _LIMIT.search(prompt)
    return int(found.group(1)) if found else _DEFAULT_LIMIT
