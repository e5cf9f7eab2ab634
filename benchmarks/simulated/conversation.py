"""Learners that play worlds: a conversation as they read it, chance by seed, and what they answer.

class SimulatedWorld(WorldLearner):  # says how to play, to draw lessons, and to score them
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Final, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langgraft._core.canonical import seeded_fraction, text_digest
from langgraft.benchmarks.simulated.chat import AtALoss, Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.judging import judging_reply
from langgraft.memory.model import BLOCK_END, BLOCK_START, strip_block

CACHED_TEXTS: Final = 4096
"""How many texts each parser remembers. Parsers are pure: forgetting costs time, nothing else."""

_ACTION = re.compile(r"^[ \t]*Action:[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One reply and the answer to it."""

    reply: str
    action: str
    """What the reply does, in lower case; empty where it does nothing."""
    observation: str


@dataclass(frozen=True, slots=True)
class Opening:
    """The first thing said by the other side."""

    whole: str
    notes: str
    """Recalled notes, without their frame: those that stand last in the conversation."""
    observation: str
    """What is left without them."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages, read."""

    system: str
    """The instructions before the opening."""
    opening: Opening | None
    exchanges: Sequence[Exchange]
    thoughts: Sequence[str]
    """The learner's own words, oldest first."""
    whole: str


def read_conversation(messages: Sequence[BaseMessage]) -> Conversation:
    """Read messages in the order in which agents send them."""
    texts = [message.text for message in messages]
    whole = "\n".join(texts)
    recalled = next(
        (
            m.text
            for m in reversed(messages)
            if isinstance(m, HumanMessage) and BLOCK_START in m.text
        ),
        "",
    )
    first = next((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), None)
    if first is None:
        return Conversation("", None, (), (), whole)
    system = "\n".join(m.text for m in messages[:first] if isinstance(m, SystemMessage))
    exchanges, thoughts = _history(messages[first + 1 :], texts[first + 1 :])
    opening = replace(_opening(texts[first]), notes=_notes(recalled))
    return Conversation(system, opening, exchanges, thoughts, whole)


@lru_cache(maxsize=CACHED_TEXTS)
def digest_of(text: str) -> str:
    """Return a digest of any text, of one that cannot be encoded too."""
    return text_digest(text.encode("utf-8", "replace").decode("utf-8"))


def harmless_reply(prompt: str, action: str, otherwise: str) -> AtALoss:
    """Answer what is not understood, in the form that is asked for.

    Args:
        prompt: All that was said.
        action: What to do where an action is asked for.
        otherwise: What to say where no form is asked for.
    """
    words = prompt.lower()
    if "json list" in words or "json array" in words or "[]" in words:
        return AtALoss("[]")
    if "json" in words:
        return AtALoss("{}")
    if "action:" in words:
        return AtALoss(f"Thought: I do not understand the task.\nAction: {action}")
    return AtALoss(otherwise)


@lru_cache(maxsize=CACHED_TEXTS)
def _opening(text: str) -> Opening:
    """Take recalled notes and the first observation apart."""
    return Opening(text, _notes(text), strip_block(text))


def _notes(text: str) -> str:
    return text.partition(BLOCK_START)[2].partition(BLOCK_END)[0]


def _history(
    messages: Sequence[BaseMessage], texts: Sequence[str]
) -> tuple[list[Exchange], list[str]]:
    """Pair each reply with the observation after it."""
    exchanges: list[Exchange] = []
    thoughts: list[str] = []
    pending: tuple[str, str] | None = None
    for message, text in zip(messages, texts, strict=True):
        if isinstance(message, AIMessage):
            found = _ACTION.search(text)
            pending = text, found.group(1).strip().lower() if found else ""
            thoughts.append(text)
        elif isinstance(message, HumanMessage) and pending is not None:
            exchanges.append(Exchange(*pending, strip_block(text)))
            pending = None
    return exchanges, thoughts


Option = TypeVar("Option")


@dataclass(frozen=True, slots=True)
class Dice:
    """Decides between options by the seed and a text alone.

    At temperature 0 the most likely option is taken, the first one named among equals.
    """

    seed: int
    sampled: bool
    """Whether the temperature is above 0."""
    text: str
    """Digest of the text that the draws belong to."""
    learner: str
    """Whose draws they are: two learners that read the same text draw apart."""

    def fraction(self, name: str) -> float:
        """Return a number in [0, 1) for one question."""
        return seeded_fraction(self.learner, self.seed, self.text, name)

    def pick(self, name: str, weights: Mapping[Option, float]) -> Option:
        """Draw one of the options."""
        if not self.sampled:
            return max(weights, key=lambda option: weights[option])
        left = self.fraction(name) * sum(weights.values())
        for option, weight in weights.items():
            left -= weight
            if left < 0:
                return option
        return next(reversed(list(weights)))

    def coin(self, name: str, chance: float) -> bool:
        """Return true with the given probability; at temperature 0 if that is at least half."""
        return self.fraction(name) < chance if self.sampled else chance >= 0.5  # noqa: PLR2004


class WorldLearner(SimulatedChatModel):
    """A learner that plays a world in words, draws lessons from attempts, and judges notes."""

    world: ClassVar[str]
    """Whose draws they are."""
    idle: ClassVar[str]
    """What it does where it does not understand."""
    at_a_loss: ClassVar[str]
    """What it says then, where no form is asked for."""

    @abstractmethod
    def played(
        self, conversation: Conversation, opening: Opening, sampling: Sampling
    ) -> str | None:
        """Return the next thought and action; `None` where no task of its world is set."""

    @abstractmethod
    def lessons(self, prompt: str, dice: Dice) -> str | None:
        """Return the lessons of the attempt that a prompt shows; `None` to anything else."""

    @abstractmethod
    def scores(self, prompt: str, dice: Dice) -> str | None:
        """Return what lessons are worth, by the attempt beside them; `None` to anything else."""

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Play, reflect or judge; the name of a sample makes no difference to it."""
        conversation = read_conversation(messages)
        opening = conversation.opening
        if opening is not None:
            prompt, dice = opening.whole, self.dice(opening.whole, sampling)
            answers: tuple[Callable[[], str | None], ...] = (
                lambda: self.scores(prompt, dice),
                lambda: judging_reply(prompt),
                lambda: self.lessons(prompt, dice),
                lambda: self.played(conversation, opening, sampling),
            )
            for answer in answers:
                if (reply := answer()) is not None:
                    return reply
        return harmless_reply(conversation.whole, self.idle, self.at_a_loss)

    def dice(self, text: str, sampling: Sampling) -> Dice:
        """Return the dice that belong to a text."""
        return Dice(sampling.seed, sampling.sampled, digest_of(text), self.world)
