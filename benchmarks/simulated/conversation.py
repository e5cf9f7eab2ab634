"""A conversation as learners that play worlds read it: notes, observations, what was done so far."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langgraft._core.canonical import text_digest
from langgraft.memory.recall import BLOCK_END, BLOCK_START, strip_block

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
    """Recalled notes, without their frame."""
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
    first = next((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), None)
    if first is None:
        return Conversation("", None, (), (), whole)
    system = "\n".join(m.text for m in messages[:first] if isinstance(m, SystemMessage))
    exchanges, thoughts = _history(messages[first + 1 :], texts[first + 1 :])
    return Conversation(system, _opening(texts[first]), exchanges, thoughts, whole)


@lru_cache(maxsize=CACHED_TEXTS)
def digest_of(text: str) -> str:
    """Return a digest of any text, of one that cannot be encoded too."""
    return text_digest(text.encode("utf-8", "replace").decode("utf-8"))


def harmless_reply(prompt: str, action: str, otherwise: str) -> str:
    """Answer what is not understood, in the form that is asked for.

    Args:
        prompt: All that was said.
        action: What to do where an action is asked for.
        otherwise: What to say where no form is asked for.
    """
    words = prompt.lower()
    if "json list" in words or "json array" in words or "[]" in words:
        return "[]"
    if "json" in words:
        return "{}"
    if "action:" in words:
        return f"Thought: I do not understand the task.\nAction: {action}"
    return otherwise


@lru_cache(maxsize=CACHED_TEXTS)
def _opening(text: str) -> Opening:
    """Take recalled notes and the first observation apart."""
    notes = text.partition(BLOCK_START)[2].partition(BLOCK_END)[0]
    return Opening(text, notes, strip_block(text))


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
            exchanges.append(Exchange(*pending, text))
            pending = None
    return exchanges, thoughts
