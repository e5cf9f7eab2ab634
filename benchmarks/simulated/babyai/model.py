"""The chat model: messages in, a reply in the asked form out."""

import re
from collections.abc import Sequence
from functools import lru_cache

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langgraft._core.canonical import text_digest
from langgraft.benchmarks.simulated.babyai.attempts import Turn
from langgraft.benchmarks.simulated.babyai.habits import Dice, Habits, Spelling, settle
from langgraft.benchmarks.simulated.babyai.play import next_action
from langgraft.benchmarks.simulated.babyai.recalled import counsel_for
from langgraft.benchmarks.simulated.babyai.reflect import parse_review, write_lessons
from langgraft.benchmarks.simulated.babyai.scene import Scene
from langgraft.benchmarks.simulated.babyai.sight import CACHED_TEXTS, Kind, parse_goal, parse_view
from langgraft.benchmarks.simulated.babyai.words import read_plan, state_plan
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.judging import judging_reply
from langgraft.memory.recall import BLOCK_END, BLOCK_START, strip_block

MODEL_NAME = "simulated-babyai"
_ACTION = re.compile(r"^[ \t]*Action:[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
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
    texts = [message.text for message in messages]
    first = next((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), None)
    if first is not None:
        opening = texts[first]
        if (judged := judging_reply(opening)) is not None:
            return judged
        dice = Dice(seed, sampled, _digest(opening))
        if review := parse_review(opening):
            return write_lessons(review, dice, _limit(opening))
        notes, observation = _notes_and_observation(opening)
        goal = parse_goal(observation) if "goal:" in observation.lower() else None
        if goal is not None:
            system = "\n".join(m.text for m in messages[:first] if isinstance(m, SystemMessage))
            turns, thoughts = _history(messages[first + 1 :], texts[first + 1 :])
            scene = Scene(goal, parse_view(observation), turns)
            return _play(scene, _instructed(system), notes, thoughts, dice)
    return _harmless("\n".join(texts))


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


@lru_cache(maxsize=CACHED_TEXTS)
def _digest(text: str) -> str:
    return text_digest(text.encode("utf-8", "replace").decode("utf-8"))


@lru_cache(maxsize=CACHED_TEXTS)
def _notes_and_observation(opening: str) -> tuple[str, str]:
    """Take recalled notes and the first observation apart."""
    notes = opening.partition(BLOCK_START)[2].partition(BLOCK_END)[0]
    return notes, strip_block(opening)


def _history(messages: Sequence[BaseMessage], texts: Sequence[str]) -> tuple[list[Turn], list[str]]:
    """Pair each action with the observation after it; collect the learner's own words."""
    turns: list[Turn] = []
    thoughts: list[str] = []
    action: str | None = None
    for message, text in zip(messages, texts, strict=True):
        if isinstance(message, AIMessage):
            found = _ACTION.search(text)
            action = found.group(1).strip().lower() if found else ""
            thoughts.append(text)
        elif isinstance(message, HumanMessage) and action is not None:
            turns.append(Turn(action, parse_view(text)))
            action = None
    return turns, thoughts


def _limit(prompt: str) -> int:
    found = _LIMIT.search(prompt)
    return int(found.group(1)) if found else _DEFAULT_LIMIT


def _harmless(prompt: str) -> str:
    """Answer what it does not understand, in the form that is asked for."""
    words = prompt.lower()
    if "json list" in words or "json array" in words or "[]" in words:
        return "[]"
    if "json" in words:
        return "{}"
    if "action:" in words:
        return "Thought: I do not understand the task.\nAction: check available actions"
    return "I can only play BabyAI in words, and I do not understand this."
