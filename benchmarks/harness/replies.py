"""Replies of chat models: checked before a client parses them, then read in one vocabulary.

A client waits for as long as bytes drip, and takes as many as come; and what an OpenAI-compatible
server may put into a reply with status 200 (an error, counts that are none) ends in exceptions of any
kind. So each such reply is read here, up to a size and a time, and

* one whose body holds an `error` is refused as the failure that it tells of;
* one that is no chat completion is refused as broken;
* token counts that are no counts are taken out: the usage is unknown.

This hangs on the response hooks of the HTTP client that the SDK is given. What the client makes of a
reply says, whoever the provider, why it ended, whether it is worth keeping, and what it cost.
"""

import atexit
import importlib
import json
import os
import re
import time
from asyncio import AbstractEventLoop
from collections.abc import (
    AsyncIterable,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Protocol
from urllib.request import getproxies
from uuid import uuid4

from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, Generation

from langgraft._core.canonical import JSON
from langgraft._core.texts import in_a_line
from langgraft._core.untrusted import load_json
from langgraft.benchmarks.harness.failures import (
    TOLD,
    Failure,
    FailureKind,
    RefusedReplyError,
    broken_reply,
    reported,
)
from langgraft.benchmarks.harness.usage import TokenCounts, is_count

_ERROR_BYTES: Final = 1 << 16
"""Of what comes with another status than 200; the rest is not read."""


class _Request(Protocol):
    """What is used of a request of `httpx` or `httpx2`, whichever the SDK is made for."""

    headers: MutableMapping[str, str]


class _Response(Protocol):
    """The same of a response."""

    request: _Request
    stream: Any
    status_code: int
    headers: Mapping[str, str]


CALL_ID: Final = "x-client-request-id"
"""The header that names a call to the server: OpenAI's."""


@dataclass(slots=True)
class SentCall:
    """One request that was really sent."""

    id: str
    """What the server was told in the header `CALL_ID`."""
    tokens: TokenCounts | None = None
    """What its reply says that it cost, whether a client can read the rest of it or not."""


_SENT: ContextVar[list[SentCall] | None] = ContextVar("langgraft_sent_calls", default=None)


@contextmanager
def sent_calls() -> Iterator[list[SentCall]]:
    """Collect the requests that are sent in this context by clients made here."""
    sent: list[SentCall] = []
    token = _SENT.set(sent)
    try:
        yield sent
    finally:
        _SENT.reset(token)


def _name_call(request: _Request) -> None:
    sent = _SENT.get()
    if sent is not None:
        sent.append(SentCall(uuid4().hex))
        request.headers[CALL_ID] = sent[-1].id


def _note_tokens(request: _Request, usage: Mapping[str, Any]) -> None:
    """Note what a reply cost, by counts that were found to be some."""
    prompt, made = (usage.get(f"{name}_tokens_details") or {} for name in ("prompt", "completion"))
    for call in _SENT.get() or ():
        if call.id == request.headers.get(CALL_ID):
            call.tokens = TokenCounts(
                usage["prompt_tokens"],
                usage["completion_tokens"],
                prompt.get("cached_tokens") or 0,
                made.get("reasoning_tokens") or 0,
            )


@lru_cache
def bounded_clients(
    base_url: str | None, most_bytes: int, seconds: float, loop: AbstractEventLoop | None
) -> Mapping[str, Any]:
    """Make the HTTP clients of a server: settings of LangChain's OpenAI models.

    They are shared, as LangChain's own are: connections are kept open from call to call.

    Args:
        base_url: The server; each has clients of its own.
        most_bytes: Most bytes of a reply.
        seconds: How long the body of a reply may take.
        loop: The event loop that is running; each has clients of its own, as what one keeps open breaks
            in another.
    """
    del base_url, loop
    sdk = importlib.import_module("openai")

    def read(response: _Response) -> None:
        body = _Body(response, most_bytes, seconds)
        try:
            body.take_from(response.stream)
        finally:
            response.stream.close()
        response.stream = body.checked()

    async def aread(response: _Response) -> None:
        body = _Body(response, most_bytes, seconds)
        try:
            await body.atake_from(response.stream)
        finally:
            await response.stream.aclose()
        response.stream = body.checked()

    async def name(request: _Request) -> None:
        _name_call(request)

    def client(
        kind: str,
        before: Callable[[Any], Any],
        after: Callable[[Any], Awaitable[None] | None],
        **settings: Any,
    ) -> Any:
        hooks = {"request": [before], "response": [after]}
        # A few compressed bytes could stand for gigabytes.
        headers = {"Accept-Encoding": "identity"}
        return getattr(sdk, kind)(event_hooks=hooks, headers=headers, **settings)

    library = _library_of(sdk.DefaultHttpxClient)
    context = _certificates(library, *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
    blocking = client("DefaultHttpxClient", _name_call, read, verify=context)
    atexit.register(blocking.close)
    # Where the environment names a proxy, the library makes its own transport for it.
    spread = {} if getproxies() else {"transport": _Pools(library, context)}
    return {
        "http_client": blocking,
        "http_async_client": client(
            "DefaultAsyncHttpxClient", name, aread, verify=context, **spread
        ),
    }


@lru_cache  # reading them takes most of the time of making a client
def _certificates(library: Any, file: str | None, folder: str | None) -> Any:
    """Return whom to trust, as the library does by itself, which reads both variables."""
    del file, folder
    return library.create_ssl_context()


def _library_of(made: type) -> Any:
    """Return the HTTP library, `httpx` or `httpx2`, that a class is of or derived from."""
    names = (each.__module__.partition(".")[0] for each in made.__mro__)
    return importlib.import_module(next(name for name in names if name.startswith("httpx")))


_POOL: Final = 16
"""Connections of one pool."""
_POOLS: Final = 64
"""Together as many connections as the SDK's own pool has."""
_IDLE_SECONDS: Final = 5.0
"""How long a connection is kept that nobody uses: the library's own."""


@dataclass(slots=True)
class _Pool:
    transport: Any
    calls: set[object] = field(default_factory=set)
    """Those that have, or wait for, one of its connections."""
    left: float = 0.0
    """When the last one ended."""


class _Pools:
    """Transport of an HTTP client: its connections in pools of a few, of which the first are filled first.

    A pool of the library looks at all its connections whenever a call begins or ends, and asks the system
    about each that is idle: a sixth or more of a call's CPU where 256 are in flight.

    Args:
        library: The HTTP library.
        context: Whom it trusts.
    """

    def __init__(self, library: Any, context: Any) -> None:
        self._library = library
        self._context = context
        self._pools: list[_Pool] = []

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request over a connection of the first pool that has one left."""
        await self._close_idle()
        pool, call = self._with_room(), object()
        pool.calls.add(call)

        def ended() -> None:
            pool.calls.discard(call)  # it may be told so twice
            pool.left = time.monotonic()

        try:
            response = await pool.transport.handle_async_request(request)
        except BaseException:
            ended()
            raise
        close = response.stream.aclose

        async def closed() -> None:
            try:
                await close()
            finally:
                ended()

        response.stream.aclose = closed
        return response

    def _with_room(self) -> _Pool:
        for pool in self._pools:
            if len(pool.calls) < _POOL:
                return pool
        if len(self._pools) == _POOLS:
            return min(self._pools, key=lambda pool: len(pool.calls))
        limits = self._library.Limits(max_connections=_POOL, max_keepalive_connections=_POOL)
        made = self._library.AsyncHTTPTransport(verify=self._context, limits=limits)
        self._pools.append(_Pool(made))
        return self._pools[-1]

    async def _close_idle(self) -> None:
        """Close the last pools where nobody used them of late: one closes connections only as it is used."""
        before = time.monotonic() - _IDLE_SECONDS
        while self._pools and not self._pools[-1].calls and self._pools[-1].left < before:
            await self._pools.pop().transport.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        while self._pools:
            await self._pools.pop().transport.aclose()


@dataclass(slots=True)
class _Body:
    """The body of one response."""

    response: _Response
    most_bytes: int
    seconds: float
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0
    _began: float = field(default_factory=time.monotonic)

    def take_from(self, stream: Iterable[bytes]) -> None:
        self._check_encoding()
        for part in stream:
            if not self._take(part):
                break

    async def atake_from(self, stream: AsyncIterable[bytes]) -> None:
        self._check_encoding()
        async for part in stream:
            if not self._take(part):
                break

    def checked(self) -> Any:
        """Return the body as a stream of the response's own library."""
        data = b"".join(self._parts)
        if self._is_reply:
            data = _checked(data, self.response.request)
        return _library_of(type(self.response)).ByteStream(data)

    @property
    def _is_reply(self) -> bool:
        return self.response.status_code == 200  # noqa: PLR2004

    def _check_encoding(self) -> None:
        encoding = self.response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            msg = f"the reply is compressed ({encoding:.80}), which was not asked for"
            raise RefusedReplyError(broken_reply(msg))

    def _take(self, part: bytes) -> bool:
        """Take in what came; say whether more is wanted."""
        self._parts.append(part)
        self._size += len(part)
        if time.monotonic() - self._began > self.seconds:
            msg = f"the reply is not whole after {self.seconds:g} s"
            raise TimeoutError(msg)
        if not self._is_reply:
            return self._size < _ERROR_BYTES
        _refuse_larger(self._size, self.most_bytes)
        return True


def _refuse_larger(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        msg = f"the reply is larger than {most_bytes:,} bytes"
        raise RefusedReplyError(broken_reply(msg))


_EVENT: Final = re.compile(rb"^data:(.*)$", re.MULTILINE)
_NO_CHUNK: Final = "the stream holds what is no chunk of a completion"


def _checked(data: bytes, request: _Request) -> bytes:
    """Return a reply, whole or streamed, without counts that are none; what is neither is left to the client."""
    start = data.lstrip()[:5]
    if start.startswith(b"{"):
        return _checked_object(data, request)
    if start not in {b"data:", b"event"}:
        return data

    def checked(event: re.Match[bytes]) -> bytes:
        told = event[1].strip()
        if told.startswith(b"{"):
            return b"data: " + _checked_object(told, request)
        if told != b"[DONE]":
            raise RefusedReplyError(broken_reply(_NO_CHUNK))
        return event[0]

    return _EVENT.sub(checked, data)


def _checked_object(data: bytes, request: _Request) -> bytes:
    try:
        reply = load_json(data)
    except ValueError as error:
        raise RefusedReplyError(broken_reply(f"the reply cannot be read: {error}")) from error
    if isinstance(reply.get("usage"), Mapping) and _is_usage(reply["usage"]):
        _note_tokens(request, reply["usage"])
    if (failure := _failure(reply)) is not None:
        raise RefusedReplyError(failure)
    if "usage" in reply and not _is_usage(reply["usage"]):
        return json.dumps({**reply, "usage": None}).encode()
    return data


def _failure(reply: Mapping[str, Any]) -> Failure | None:
    if reply.get("error"):
        return reported(reply["error"])
    choices = reply.get("choices", [])
    if isinstance(choices, list) and all(map(_is_choice, choices)):
        return None
    return broken_reply("the reply's choices are no messages")


def _is_choice(choice: Any) -> bool:
    message = choice.get("message", {}) if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        return False
    content, calls = message.get("content"), message.get("tool_calls")
    said = content is None or isinstance(content, str | list)
    return said and (calls is None or (isinstance(calls, list) and all(map(_is_call, calls))))


def _is_call(call: Any) -> bool:
    asked = call.get("function") if isinstance(call, Mapping) else None
    return isinstance(asked, Mapping) and all(
        isinstance(asked.get(name), str) for name in ("name", "arguments")
    )


def _is_usage(usage: Any) -> bool:
    """Say whether a usage holds counts where LangChain looks for them."""
    if not isinstance(usage, Mapping):
        return usage is None
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    maybe = [usage.get("total_tokens")]
    for name in ("prompt_tokens_details", "completion_tokens_details"):
        details = usage.get(name)
        if details is not None and not isinstance(details, Mapping):
            return False
        maybe += (details or {}).values()
    return all(map(is_count, counts)) and all(each is None or is_count(each) for each in maybe)


@dataclass(slots=True)
class Streamed:
    """A reply that comes in chunks, whoever the provider.

    Args:
        most_bytes: Most characters of it.
    """

    most_bytes: int
    _chunks: list[ChatGenerationChunk] = field(default_factory=list)
    _size: int = 0

    def take(self, chunk: ChatGenerationChunk) -> None:
        """Take in what came.

        Raises:
            RefusedReplyError: It is too much.
        """
        self._chunks.append(chunk)
        self._size += _size(chunk.message)
        _refuse_larger(self._size, self.most_bytes)

    def whole(self) -> ChatResult:
        """Return all of it.

        Raises:
            RefusedReplyError: It breaks off: no provider ends a stream without saying why.
        """
        result = (
            generate_from_stream(iter(self._chunks)) if self._chunks else ChatResult(generations=[])
        )
        for generation in result.generations:
            if not (
                finish_reason(generation) or generation.message.response_metadata.get("status")
            ):
                raise RefusedReplyError(broken_reply("the stream breaks off"))
        return result


def not_larger(result: ChatResult, most_bytes: int) -> ChatResult:
    """Return a reply.

    Raises:
        RefusedReplyError: It is too large; of clients other than ours, which read no more, once it is read.
    """
    _refuse_larger(sum(_size(each.message) for each in result.generations), most_bytes)
    return result


def _size(message: BaseMessage) -> int:
    content = message.content
    size = len(content) if isinstance(content, str) else len(repr(content))
    if isinstance(message, AIMessageChunk):
        return size + sum(len(call["args"] or "") for call in message.tool_call_chunks)
    calls = (getattr(message, name, ()) for name in ("tool_calls", "invalid_tool_calls"))
    return size + sum(len(repr(call["args"])) for each in calls for call in each)


FAILURE_KEY = "failure"
"""Where, in `response_metadata`, a reply says that the model failed."""

SIMULATED_FINGERPRINT = "simulated"
"""The `system_fingerprint` in the `response_metadata` of a reply that no language model wrote. It is a
field of OpenAI's format, so that clients hand it on when such a model is served over HTTP."""

_TRUNCATED = {"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"}
_FILTERED = {"content_filter", "safety", "prohibited_content", "blocklist", "recitation"}
_REFUSED = {"refusal"}
_BROKEN = {"error"}


def finish_reason(generation: Generation) -> str | None:
    """Return why a reply ended, in the provider's word, in lower case."""
    places: list[Mapping[str, Any]] = [generation.generation_info or {}]
    if isinstance(generation, ChatGeneration):
        places.append(generation.message.response_metadata)
    for place in places:
        details = place.get("incomplete_details") or {}
        named = (place.get(key) for key in ("finish_reason", "stop_reason", "done_reason"))
        reason = next((word for word in named if word), None) or details.get("reason")
        if reason:
            return str(reason).lower()
    return None


def is_complete(generations: Sequence[Generation]) -> bool:
    """Tell whether replies are worth keeping: none is cut short, filtered, refused or empty.

    An empty reply is the model's answer, but there is nothing to it: it is asked again whenever the
    request comes again.
    """
    bad = _TRUNCATED | _FILTERED | _REFUSED | _BROKEN
    return bool(generations) and all(
        finish_reason(generation) not in bad
        and not _refusal(generation)
        and not _is_empty(generation)
        for generation in generations
    )


def says_simulated(result: ChatResult) -> bool:
    """Tell whether a reply says that a simulated model wrote it."""
    return any(
        generation.message.response_metadata.get("system_fingerprint") == SIMULATED_FINGERPRINT
        for generation in result.generations
    )


def _is_empty(generation: Generation) -> bool:
    if not isinstance(generation, ChatGeneration):
        return not generation.text.strip()
    message = generation.message
    calls = (getattr(message, name, None) for name in ("tool_calls", "invalid_tool_calls"))
    return not any(calls) and not message.text.strip()


def failure_in(result: ChatResult) -> Failure | None:
    """Find the failure that a reply without an error carries inside."""
    if not result.generations:
        return broken_reply("the reply holds no choices")
    for generation in result.generations:
        reason = finish_reason(generation)
        if reason in _BROKEN:
            return Failure(
                FailureKind.PROVIDER_TRANSIENT, "provider_error", f"finished: {reason:.80}"
            )
        if reason in _FILTERED:
            detail = f"the reply was filtered: {reason:.80}"
            return Failure(FailureKind.MODEL_BEHAVIOR, "content_filter", detail)
        if reason in _REFUSED or _refusal(generation):
            return Failure(FailureKind.MODEL_BEHAVIOR, "refusal", _refusal(generation))
    return None


def _refusal(generation: Generation) -> str:
    if not isinstance(generation, ChatGeneration):
        return ""
    return in_a_line(str(generation.message.additional_kwargs.get("refusal") or ""), TOLD)


def tokens_of(result: ChatResult) -> TokenCounts | None:
    """Return the tokens of a result; `None` if the provider did not count them."""
    total: TokenCounts | None = None
    for generation in result.generations:
        # Providers report the usage of the whole call with each of its choices.
        total = total or _counts(getattr(generation.message, "usage_metadata", None))
    return total


def _counts(usage: Any) -> TokenCounts | None:
    """Read token counts; `None` where one of them is none."""
    if not isinstance(usage, Mapping):
        return None
    told, made = usage.get("input_token_details"), usage.get("output_token_details")
    counts = (
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        (told or {}).get("cache_read") or 0,
        (made or {}).get("reasoning") or 0,
    )
    numbers = [each for each in counts if is_count(each)]
    return TokenCounts(*numbers) if len(numbers) == len(counts) else None


def settled(result: ChatResult) -> ChatResult:
    """Move what the provider said beside the messages into them, and drop their ids.

    An id would come back from the cache a second time, and LangGraph takes two messages of
    one id for the same message. Headers of the response, which some clients add, go too: they may
    hold cookies. Halves of surrogate pairs, which no later request could send
    and no log could hold, become U+FFFD.
    """
    generations = []
    for generation in result.generations:
        metadata = {
            **(result.llm_output or {}),
            **(generation.generation_info or {}),
            **generation.message.response_metadata,
        }
        info = generation.generation_info and {**generation.generation_info}
        for each in (metadata, info or {}):
            each.pop("headers", None)
        content = _encodable(generation.message.content)
        update = {"id": None, "content": content, "response_metadata": metadata}
        if _counts(getattr(generation.message, "usage_metadata", None)) is None:
            update["usage_metadata"] = None
        message = generation.message.model_copy(update=update)
        generations.append(ChatGeneration(message=message, generation_info=info))
    return ChatResult(generations=generations)


def _encodable(content: Any) -> Any:
    if not isinstance(content, str):
        return content
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def from_cache(generations: Sequence[Generation]) -> ChatResult:
    """Make a result of kept replies, marked as LangChain marks its own hits: cost zero.

    They may have been imported, so that they are settled as fresh ones are.
    """
    marked = []
    for generation in generations:
        message = getattr(generation, "message", None) or AIMessage(generation.text)
        usage = getattr(message, "usage_metadata", None)
        if usage is not None:
            message = message.model_copy(update={"usage_metadata": {**usage, "total_cost": 0}})
        marked.append(ChatGeneration(message=message, generation_info=generation.generation_info))
    return settled(ChatResult(generations=marked))


def failure_reply(failure: Failure) -> ChatResult:
    """Make the reply of a model that failed by its own doing: empty, and saying why."""
    said: dict[str, JSON] = {
        "kind": failure.kind.value,
        "reason": failure.reason,
        "detail": failure.detail,
    }
    message = AIMessage("", response_metadata={FAILURE_KEY: said})
    return ChatResult(generations=[ChatGeneration(message=message)])
