"""Talking with a model in a graph: each call has a name, and a failure of the model is heard.

A `Talk` yields what to ask and is sent what was said; it calls nothing itself, so that the same
one serves sync and async. What reads and writes contents happens between its calls, and with
`atalk` in a thread, so that no event loop waits for a disk.
"""

from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program, ado, arun, do, relay, run
from langgraft.nodes.chat_models import Model
from langgraft.nodes.node import Node, S, Update
from langgraft.nodes.replies import encodable, reply_text
from langgraft.nodes.sampling import sample_config
from langgraft.nodes.structured import Conversation

T = TypeVar("T")

FAILURE_SHOWN = 300
"""Most characters kept of what a provider says about a failure."""
_OVERFLOW: Final = "context_length"
UNREADABLE: Final = "unreadable"
"""Failure of a reply whose call has arguments that are JSON and no object: no message can hold it."""
_MESSAGES: Final = ("AIMessage", "AIMessageChunk")


@dataclass(frozen=True, slots=True)
class Ask:
    """A question."""

    messages: list[BaseMessage]
    what: str
    """What the call is for; a second call for the same is another sample."""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply."""

    text: str
    failure: str = ""
    """Why there is none: refusal, filter, context exceeded; the model's own doing."""
    cut: bool = False
    """It ended where the model's limit on a reply was."""
    overflow: bool = False
    """There is none since the question is longer than what the model can read."""
    message: BaseMessage | None = None
    """The reply as it came, with its tool calls and what it cost; `None` where none came."""


Talk: TypeAlias = Generator[Ask, Said, T]
Begin: TypeAlias = Callable[[S], Talk[Update]]
Name: TypeAlias = Callable[[S], tuple[str, str]]
"""Names whose sample a call is: the search, and the program."""


def spoken(conversation: Conversation[T], what: str) -> Talk[T]:
    """Hold a conversation of `langgraft.nodes.structured` as part of a talk."""

    def answer(messages: list[BaseMessage]) -> Generator[Ask, Said, str]:
        return (yield Ask(messages, what)).text

    return relay(conversation, answer)


@checked
def dialogue_node(name: str, model: Model, begin: Begin[S], whose: Name[S]) -> Node[S]:
    """Make the node that talks about the state; the talk's result is the update."""

    def talking(state: S) -> Program[Call, Update]:
        return (yield from held_with(begin(state), model, *whose(state)))

    return Node.running(name, talking, in_threads=True)


def held_with(held: Talk[T], model: Model, episode_id: str, node_id: str) -> Program[Call, T]:
    """Return the program that holds a talk with a model; its calls are samples of that node.

    It raises whatever calling the model raises, other than that the context is too long, or that a
    call in the reply has arguments that are no object.
    """
    calls: Counter[str] = Counter()

    def answer(ask: Ask) -> Program[Call, Said]:
        calls[ask.what] += 1
        number = calls[ask.what]
        what = ask.what if number == 1 else f"{ask.what}/{number}"
        config = sample_config(episode_id, node_id, what)
        try:
            return heard((yield Call(model.invoke, model.ainvoke, ask.messages, config)))
        except ContextOverflowError as error:
            told = f"{_OVERFLOW}: {encodable(str(error))}"[:FAILURE_SHOWN]
            return Said("", told, overflow=True)
        except ValidationError as error:
            # A reply that the provider's client makes no message of: arguments that are no object.
            if error.title not in _MESSAGES:
                raise
            return Said("", UNREADABLE)

    return relay(held, answer)


def talk(held: Talk[T], model: Model, episode_id: str, node_id: str) -> T:
    """Talk with a model; see `held_with`."""
    return run(held_with(held, model, episode_id, node_id), do)


async def atalk(held: Talk[T], model: Model, episode_id: str, node_id: str) -> T:
    """Do what `talk` does, without blocking."""
    return await arun(held_with(held, model, episode_id, node_id), ado, in_threads=True)


def heard(message: BaseMessage) -> Said:
    """Hear a message: its text, or why there is none."""
    told: Any = message.response_metadata
    failure = told.get("failure")
    reason = told.get("finish_reason") or told.get("stop_reason")
    cut = reason in ("length", "max_tokens")
    if isinstance(failure, dict):
        parts = [str(failure.get(key) or "") for key in ("reason", "detail")]
        told_failure = encodable(": ".join(filter(None, parts)))[:FAILURE_SHOWN] or "no reply"
        return Said("", told_failure, overflow=failure.get("reason") == _OVERFLOW, message=message)
    text = reply_text(message)
    refusal = message.additional_kwargs.get("refusal")
    if not text.strip() and isinstance(refusal, str) and refusal:
        return Said("", f"refusal: {encodable(refusal)}"[:FAILURE_SHOWN], message=message)
    if not text.strip() and reason == "content_filter":
        return Said("", "content_filter", message=message)
    return Said(text, cut=cut, message=message)
