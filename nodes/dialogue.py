"""Nodes of a graph and dialogues with a chat model, written once for threads and event loops.

A `Dialogue` yields a `Request`, is sent the `Response`, and returns a value. It calls nothing itself:
`run_dialogue` and `arun_dialogue` hold it with a model, or with none, `responding` as a part of a
larger program, and `dialogue_node` as a node of a graph.

Two drafts of a search may have the very same prompt, and a cache of replies would hand out the
first one's again. So each model call of a search or run has a sample's name (`SAMPLE`) in its metadata: caches
add it to their keys, simulated models to their random numbers, and traces show it. A failure of the model is
there a response of its own rather than the end of a run.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from inspect import signature
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar, overload

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ValidationError
from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Effect, Program, ado, arun, do, relay, run
from langgraft._core.errors import SettingsError
from langgraft.nodes.replies import encodable, reply_text

Update = dict[str, Any]
"""What a node returns: new values for some keys of the state."""

SAMPLE: Final = "langgraft_sample"
"""Metadata of a model call: `<episode_id>/<node id>/<what>`."""

S = TypeVar("S")


class Node(Runnable[S, Update], Generic[S]):
    """A node made of a function and its async twin; without one, the function runs in a thread.

    LangGraph takes one function or the other; a `RunnableLambda` takes both and costs more than
    most nodes do.
    """

    def __init__(
        self,
        name: str,
        call: Callable[[S], Update],
        acall: Callable[[S], Awaitable[Update]] | None = None,
    ) -> None:
        self.name = name
        self._call = call
        self._acall = acall

    @classmethod
    def running(
        cls, name: str, begin: Callable[[S], Program[Effect, Update]], *, in_threads: bool = False
    ) -> "Node[S]":
        """Make the node that runs a program about the state; what it returns is the update.

        Args:
            name: Its name in traces.
            begin: Begins the program.
            in_threads: Whether it reads and writes contents between its effects; see `arun`.
        """

        def call(state: S) -> Update:
            return run(begin(state), do)

        async def acall(state: S) -> Update:
            return await arun(begin(state), ado, in_threads=in_threads)

        return cls(name, call, acall)

    @override
    def invoke(self, input: S, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the node."""
        return self._call(input)

    @override
    async def ainvoke(
        self, input: S, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Update:
        """Run the node's async twin, or the node in a thread."""
        if self._acall is None:
            return await super().ainvoke(input, config, **kwargs)
        return await self._acall(input)


def sample_config(episode_id: str, node_id: str, what: str) -> RunnableConfig:
    """Return the settings of a model call that name its sample.

    Args:
        episode_id: The search or run.
        node_id: The program or step that the call is about.
        what: What the call is for: `write`, `review`, `diagnose`, `judge` …
    """
    return RunnableConfig(metadata={SAMPLE: f"{episode_id}/{node_id}/{what}"})


T = TypeVar("T")

Model: TypeAlias = Runnable[LanguageModelInput, BaseMessage]
"""What is asked: a chat model, or one that tools are bound to, retries are added to …"""

ChatModel: TypeAlias = Annotated[
    Model | str, "a chat model, or the name of one such as 'openai:gpt-4.1-mini'"
]
"""A model, or what LangChain's `init_chat_model` makes one of."""

FAILURE_SHOWN = 300
"""Most characters kept of what a provider says about a failure."""
NO_MODEL: Final = "there is no model to ask"
"""Failure of a response where there is nobody to ask."""
UNREADABLE: Final = "unreadable"
"""Failure of a reply whose call has arguments that are JSON and no object: no message can hold it."""
CUT_SHORT: Final = "the reply was cut off where the longest possible one ends: say less"
"""What a model is told of a reply that is truncated, beside what is wrong with it."""
_OVERFLOW: Final = "context_length"
_TRUNCATED: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"}
)
"""Why a reply ended, in providers' words, in lower case."""
_MESSAGES: Final = ("AIMessage", "AIMessageChunk")


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is sent."""

    messages: list[BaseMessage]
    what: str
    """What the call is for; a second call for the same is another sample."""


@dataclass(frozen=True, slots=True)
class Response:
    """What came of a request."""

    text: str
    failure: str = ""
    """Why there is no reply: refusal, filter, context exceeded; the model's own doing."""
    cut: bool = False
    """It ended where the model's limit on a reply was."""
    overflow: bool = False
    """There is no reply since the request is longer than what the model can read."""
    message: BaseMessage | None = None
    """The reply as it came, with its tool calls and what it cost; `None` where none came."""


Dialogue: TypeAlias = Generator[Request, Response, T]
Sample: TypeAlias = tuple[str, str]
"""Whose the calls of a dialogue are: the search or run, and the program or step."""


@overload
def chat_model(model: ChatModel, what: str) -> Model: ...
@overload
def chat_model(model: ChatModel | None, what: str) -> Model | None: ...
def chat_model(model: ChatModel | None, what: str) -> Model | None:
    """Return the model that is meant.

    Args:
        model: A model, or its name.
        what: What it was given as, for the message.

    Raises:
        SettingsError: The name is nobody's, or its package or key is missing.
    """
    if not isinstance(model, str):
        return model
    from langchain.chat_models import init_chat_model  # noqa: PLC0415  (whoever has a model needs none of it)

    try:
        # Without a name, LangChain makes a model that is named with each call.
        return init_chat_model(model or "''")
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        msg = (
            f"{what} is no chat model, nor a name that one can be made of, such as"
            f" 'openai:gpt-4.1-mini', got {model!r:.80}: {reason}"
        )
        raise SettingsError(msg) from error


def takes_one_call(model: object) -> bool:
    """Say whether a model can be bound to tools with `parallel_tool_calls=False`.

    That is so where its class names the parameter, as OpenAI's family does; OpenAI's own models
    that only reason (o1, o3, o4) refuse it.
    """
    bind: Any = getattr(type(model), "bind_tools", None)
    if bind is None or "parallel_tool_calls" not in signature(bind).parameters:
        return False
    return not _REASONS.fullmatch(str(getattr(model, "model_name", "")))


_REASONS: Final = re.compile(r"(?:.*/)?o\d(?:-.*)?")


@checked
def dialogue_node(
    name: str,
    model: ChatModel | None,
    begin: Callable[[S], Dialogue[Update]],
    sample: Callable[[S], Sample] | None = None,
) -> Node[S]:
    """Make the node that holds a dialogue about the state; what that returns is the update.

    Args:
        name: Its name in traces.
        model: Any chat model; `None` where the dialogue does without one.
        begin: Begins the dialogue. With samples it may read and write contents between its calls:
            async it goes on in threads then, so that no event loop waits for a disk.
        sample: Names the sample that the calls are; `None` leaves them without a name.
    """
    model = chat_model(model, f"`model` of the node {name!r}")

    def hold(state: S) -> Program[Call, Update]:
        return responding(begin(state), model, None if sample is None else sample(state))

    return Node.running(name, hold, in_threads=sample is not None)


def responding(
    dialogue: Dialogue[T], model: Model | None, sample: Sample | None = None
) -> Program[Call, T]:
    """Return the program that holds a dialogue with a model, or with nobody.

    What calling the model raises is raised. With a sample, two things are failures instead: the
    context is too long, and a call in the reply has arguments that are no object.
    """
    calls: Counter[str] = Counter()

    def respond(request: Request) -> Program[Call, Response]:
        if model is None:
            return Response("", NO_MODEL)
        if sample is None:
            return read_response((yield Call(model.invoke, model.ainvoke, request.messages)))
        calls[request.what] += 1
        number = calls[request.what]
        what = request.what if number == 1 else f"{request.what}/{number}"
        config = sample_config(*sample, what)
        try:
            return read_response(
                (yield Call(model.invoke, model.ainvoke, request.messages, config))
            )
        except ContextOverflowError as error:
            failure = f"{_OVERFLOW}: {encodable(str(error))}"[:FAILURE_SHOWN]
            return Response("", failure, overflow=True)
        except ValidationError as error:
            # A reply that the provider's client makes no message of: arguments that are no object.
            if error.title not in _MESSAGES:
                raise
            return Response("", UNREADABLE)

    return relay(dialogue, respond)


def run_dialogue(dialogue: Dialogue[T], model: Model | None, sample: Sample | None = None) -> T:
    """Hold a dialogue with a model, or with nobody; see `responding`."""
    return run(responding(dialogue, model, sample), do)


async def arun_dialogue(
    dialogue: Dialogue[T], model: Model | None, sample: Sample | None = None
) -> T:
    """Do what `run_dialogue` does, without blocking."""
    return await arun(responding(dialogue, model, sample), ado, in_threads=sample is not None)


def read_response(message: BaseMessage) -> Response:
    """Read a message: its text, or why there is none."""
    metadata: Any = message.response_metadata
    failure = metadata.get("failure")
    reason = _ended_by(metadata)
    if isinstance(failure, dict):
        parts = [str(failure.get(key) or "") for key in ("reason", "detail")]
        why = encodable(": ".join(filter(None, parts)))[:FAILURE_SHOWN] or "no reply"
        return Response("", why, overflow=failure.get("reason") == _OVERFLOW, message=message)
    text = reply_text(message)
    refusal = message.additional_kwargs.get("refusal")
    if not text.strip() and isinstance(refusal, str) and refusal:
        return Response("", f"refusal: {encodable(refusal)}"[:FAILURE_SHOWN], message=message)
    if not text.strip() and reason == "content_filter":
        return Response("", "content_filter", message=message)
    return Response(text, cut=reason in _TRUNCATED, message=message)


def _ended_by(metadata: Any) -> str:
    """Return why a reply ended: in the field of chat completions, of Anthropic's, or of responses."""
    incomplete = metadata.get("incomplete_details")
    detail = incomplete.get("reason") if isinstance(incomplete, dict) else None
    reason = metadata.get("finish_reason") or metadata.get("stop_reason") or detail
    return str(reason or "").lower()
