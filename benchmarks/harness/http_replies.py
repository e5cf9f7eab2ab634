"""Replies of OpenAI-compatible servers, bounded and checked before a client parses them.

A client waits for as long as bytes drip, and takes as many as come; and what a server may put into
a reply with status 200 (an error, counts that are none) ends in exceptions of any kind. So each
reply is read here, up to a size and a time, and

* one whose body holds an `error` is refused as the failure that it tells of;
* one that is no chat completion is refused as broken;
* token counts that are no counts are taken out: the usage is unknown.

This hangs on the response hooks of the HTTP client that the SDK is given.
"""

import atexit
import importlib
import json
import time
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Protocol

from langgraft._core.untrusted import load_json
from langgraft.benchmarks.harness.failures import Failure, RefusedReplyError, broken_reply, reported
from langgraft.benchmarks.harness.usage import is_count

_ERROR_BYTES: Final = 1 << 16
"""Of what comes with another status than 200; the rest is not read."""


class _Response(Protocol):
    """What is used of a response of `httpx` or `httpx2`, whichever the SDK is made for."""

    stream: Any
    status_code: int
    headers: Mapping[str, str]


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

    def client(kind: str, hook: Callable[[Any], Awaitable[None] | None]) -> Any:
        hooks = {"response": [hook]}
        # A few compressed bytes could stand for gigabytes.
        return getattr(sdk, kind)(event_hooks=hooks, headers={"Accept-Encoding": "identity"})

    blocking = client("DefaultHttpxClient", read)
    atexit.register(blocking.close)
    return {
        "http_client": blocking,
        "http_async_client": client("DefaultAsyncHttpxClient", aread),
    }


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
            data = _checked(data)
        library = importlib.import_module(type(self.response).__module__.partition(".")[0])
        return library.ByteStream(data)

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
        if self._size > self.most_bytes:
            msg = f"the reply is larger than {self.most_bytes:,} bytes"
            raise RefusedReplyError(broken_reply(msg))
        return True


def _checked(data: bytes) -> bytes:
    """Return a reply without counts that are none; what is no JSON is left to the client."""
    if not data.lstrip().startswith(b"{"):
        return data
    try:
        reply = load_json(data)
    except ValueError as error:
        raise RefusedReplyError(broken_reply(f"the reply cannot be read: {error}")) from error
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
