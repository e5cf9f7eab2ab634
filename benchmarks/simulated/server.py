"""An OpenAI-compatible HTTP server in front of any LangChain chat model, with faults on demand.

It lets a model that needs no key be reached exactly as a real one is: through
`init_chat_model("openai:simulated", base_url=server.base_url, api_key="none")`, a client and
a socket. A fault plan makes it fail as providers fail, and its log says how often it was
really asked.
"""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    InvalidToolCall,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.messages.utils import count_tokens_approximately

from langgraft._core.canonical import JSON
from langgraft._core.errors import MissingExtraError

STALL_SECONDS = 3600.0
"""How long a stalled reply would last; the client or the end of the server cuts it short."""


class FaultKind(StrEnum):
    """The ways a call can go wrong."""

    STATUS = "status"
    """An HTTP error: `status`, `headers` and `code` say which."""
    SLOW_FIRST_BYTE = "slow_first_byte"
    """A good reply that begins only after `seconds`."""
    STALL = "stall"
    """The body stops in the middle and never goes on."""
    RESET = "reset"
    """The connection is reset (TCP RST) before any reply."""
    TRUNCATED_JSON = "truncated_json"
    """A complete HTTP reply whose JSON ends in the middle."""
    HTML = "html"
    """A web page with status 200, as a misconfigured proxy sends."""
    EMPTY_CHOICES = "empty_choices"
    """A well-formed reply without a choice."""
    FINISH_REASON = "finish_reason"
    """A good reply with `finish_reason` set to `reason`."""
    MISSING_USAGE = "missing_usage"
    """A good reply without token counts."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call."""

    kind: FaultKind
    status: int = 500
    """HTTP status, for `STATUS`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Extra response headers, for `STATUS`."""
    code: str | None = None
    """The provider's error code, for `STATUS`: `context_length_exceeded` …"""
    message: str = "fault injected on purpose"
    """The provider's error text, for `STATUS`."""
    seconds: float = STALL_SECONDS
    """How long `SLOW_FIRST_BYTE` waits."""
    reason: str = "length"
    """The reported reason, for `FINISH_REASON`: `length`, `content_filter` …"""


def rate_limited(**headers: str) -> Fault:
    """Return a 429; `_` in a header name stands for `-`: `rate_limited(retry_after="1")`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault(
        FaultKind.STATUS,
        status=429,
        headers=named,
        code="rate_limit_exceeded",
        message="too many requests",
    )


def failing(status: int, *, code: str | None = None, message: str = "the server failed") -> Fault:
    """Return an HTTP error."""
    return Fault(FaultKind.STATUS, status=status, code=code, message=message)


FaultPlan: TypeAlias = "Sequence[Fault | None] | Callable[[int], Fault | None]"
"""Faults of the first calls in order (`None`: none), or a function of the call's index."""


try:
    from aiohttp import web
except ModuleNotFoundError as error:
    msg = (
        f"the model server needs `{error.name}`, which is not installed: "
        "pip install 'langgraft[bench]'"
    )
    raise MissingExtraError(msg) from error


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One request as the server saw it."""

    index: int
    request: Mapping[str, Any]
    """The JSON body."""
    headers: Mapping[str, str]
    """Header names in lower case."""
    fault: Fault | None


class ModelServer:
    """The server under way; made by `serve`.

    Attributes:
        base_url: What a client takes as `base_url`; ends with `/v1`.
        calls: Every request for a completion so far, in the order of arrival.
        most_at_once: Most requests that were under way at the same time.
    """

    def __init__(self, model: BaseChatModel, faults: FaultPlan, model_name: str) -> None:
        self.base_url = ""
        self.calls: list[CallRecord] = []
        self.most_at_once = 0
        self._model = model
        self._faults = faults
        self._model_name = model_name
        self._under_way = 0

    async def list_models(self, _request: web.Request) -> web.Response:
        """Answer `GET /v1/models`."""
        entry = {"id": self._model_name, "object": "model", "created": 0, "owned_by": "langgraft"}
        return web.json_response({"object": "list", "data": [entry]})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /v1/chat/completions`."""
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            return await self._complete(request)
        finally:
            self._under_way -= 1

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        call = await self._record(request)
        fault = call.fault
        if fault is not None:
            failure = await _failure(request, fault)
            if failure is not None:
                return failure
        try:
            message = await self._answer(call.request)
        except ContextOverflowError as error:
            return _error_response(400, str(error), code="context_length_exceeded")
        except ValueError as error:
            return _error_response(400, str(error), code="invalid_request")
        reply = _completion(message, call, self._model_name)
        if call.request.get("stream"):
            return await _stream(request, reply, call)
        return await _whole(request, reply, fault)

    async def _record(self, request: web.Request) -> CallRecord:
        body = await request.json()
        index = len(self.calls)
        headers = {name.lower(): value for name, value in request.headers.items()}
        call = CallRecord(index, body, headers, self._fault(index))
        self.calls.append(call)
        return call

    def _fault(self, index: int) -> Fault | None:
        if callable(self._faults):
            return self._faults(index)
        return self._faults[index] if index < len(self._faults) else None

    async def _answer(self, body: Mapping[str, Any]) -> AIMessage:
        messages = messages_of(body["messages"])
        passed_on = {name: body[name] for name in ("tools", "tool_choice") if name in body}
        message = await self._model.ainvoke(messages, stop=_stop_words(body), **passed_on)
        return _with_usage(message, messages)


@asynccontextmanager
async def serve(
    model: BaseChatModel,
    *,
    faults: FaultPlan = (),
    model_name: str = "simulated",
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[ModelServer]:
    """Serve `model` until the block ends.

    Args:
        model: Answers the calls that no fault takes.
        faults: What goes wrong, and when.
        model_name: The name replies and `/v1/models` carry.
        host: Where to listen.
        port: Where to listen; 0 lets the system choose.
    """
    server = ModelServer(model, faults, model_name)
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_get("/v1/models", server.list_models)
    app.router.add_post("/v1/chat/completions", server.complete)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        server.base_url = f"http://{host}:{runner.addresses[0][1]}/v1"
        yield server
    finally:
        await runner.cleanup()


async def _failure(request: web.Request, fault: Fault) -> web.StreamResponse | None:
    """Act out the faults that need no reply of the model; `None` for the others."""
    match fault.kind:
        case FaultKind.STATUS:
            return _error_response(
                fault.status, fault.message, code=fault.code, headers=fault.headers
            )
        case FaultKind.HTML:
            page = "<!doctype html><title>Sign in</title><p>Please sign in to the network."
            return web.Response(text=page, content_type="text/html")
        case FaultKind.RESET:
            _reset(request)
            return web.Response()
        case FaultKind.SLOW_FIRST_BYTE:
            await asyncio.sleep(fault.seconds)
            return None
        case _:
            return None


def _error_response(
    status: int, message: str, *, code: str | None, headers: Mapping[str, str] | None = None
) -> web.Response:
    error = {"message": message, "type": "error", "param": None, "code": code}
    return web.json_response({"error": error}, status=status, headers=headers)


def _reset(request: web.Request) -> None:
    """Close the connection with an RST: no lingering, then abort."""
    transport = request.transport
    if transport is not None:
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


def _stop_words(body: Mapping[str, Any]) -> list[str] | None:
    stop = body.get("stop")
    return [stop] if isinstance(stop, str) else stop


def _with_usage(message: AIMessage, messages: Sequence[BaseMessage]) -> AIMessage:
    """Count tokens at four characters each when the model did not."""
    if message.usage_metadata is not None:
        return message
    prompt, reply = count_tokens_approximately(messages), count_tokens_approximately([message])
    usage = {"input_tokens": prompt, "output_tokens": reply, "total_tokens": prompt + reply}
    return message.model_copy(update={"usage_metadata": usage})


def _completion(message: AIMessage, call: CallRecord, model_name: str) -> dict[str, Any]:
    """Write a reply of the model in the provider's format, with its fault in it."""
    fault = call.fault
    data = message_json(message)
    finish = message.response_metadata.get("finish_reason") or (
        "tool_calls" if data.get("tool_calls") else "stop"
    )
    if fault is not None and fault.kind is FaultKind.FINISH_REASON:
        finish = fault.reason
    choice = {"index": 0, "message": data, "finish_reason": finish, "logprobs": None}
    reply: dict[str, Any] = {
        "id": f"chatcmpl-{call.index}",
        "object": "chat.completion",
        "created": 0,
        "model": model_name,
        "choices": [choice],
        "usage": _usage(message),
    }
    fingerprint = message.response_metadata.get("system_fingerprint")
    if fingerprint is not None:
        reply["system_fingerprint"] = fingerprint
    if fault is not None and fault.kind is FaultKind.EMPTY_CHOICES:
        reply["choices"] = []
    if fault is not None and fault.kind is FaultKind.MISSING_USAGE:
        del reply["usage"]
    return reply


def _usage(message: AIMessage) -> dict[str, JSON]:
    usage = message.usage_metadata
    assert usage is not None
    cached = usage.get("input_token_details", {}).get("cache_read", 0)
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": cached},
    }


async def _whole(
    request: web.Request, reply: dict[str, Any], fault: Fault | None
) -> web.StreamResponse:
    """Send a reply in one piece."""
    body = json.dumps(reply).encode()
    if fault is not None and fault.kind is FaultKind.TRUNCATED_JSON:
        body = body[: len(body) // 2]
    if fault is None or fault.kind is not FaultKind.STALL:
        return web.Response(body=body, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    await asyncio.sleep(STALL_SECONDS)
    return response


async def _stream(
    request: web.Request, reply: dict[str, Any], call: CallRecord
) -> web.StreamResponse:
    """Send a reply as server-sent events, a word at a time."""
    wants_usage = (call.request.get("stream_options") or {}).get("include_usage", False)
    chunks = _chunks(reply, with_usage=wants_usage)
    stalls = call.fault is not None and call.fault.kind is FaultKind.STALL
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for position, chunk in enumerate(chunks):
        if stalls and position == len(chunks) // 2:
            await asyncio.sleep(STALL_SECONDS)
        await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


def _chunks(reply: dict[str, Any], *, with_usage: bool) -> list[dict[str, Any]]:
    """Cut a reply into the chunks of a stream."""
    shared = ("id", "created", "model", "system_fingerprint")
    head = {name: reply[name] for name in shared if name in reply}
    head["object"] = "chat.completion.chunk"
    chunks: list[dict[str, Any]] = []
    for choice in reply["choices"]:
        deltas = [{"role": "assistant", "content": ""}, *_deltas(choice["message"])]
        for delta in deltas:
            part = {"index": 0, "delta": delta, "finish_reason": None}
            chunks.append({**head, "choices": [part]})
        last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        chunks.append({**head, "choices": [last]})
    if with_usage and "usage" in reply:
        chunks.append({**head, "choices": [], "usage": reply["usage"]})
    return chunks


def _deltas(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    words = (message.get("content") or "").split(" ")
    texts = [word if position == 0 else f" {word}" for position, word in enumerate(words)]
    deltas: list[dict[str, Any]] = [{"content": text} for text in texts if text]
    for index, call in enumerate(message.get("tool_calls", ())):
        deltas.append({"tool_calls": [{**call, "index": index}]})
    return deltas


# Calls of tools -------------------------------------------------------------------------------


def messages_of(data: Sequence[Any]) -> list[BaseMessage]:
    """Return the messages of a request.

    Raises:
        ValueError: They are no messages.
    """
    return [_message(each) for each in data]


def message_json(message: AIMessage) -> dict[str, Any]:
    """Return a reply as a provider tells it."""
    data: Any = convert_to_openai_messages(message)
    spoiled = [_call_json(call) for call in message.invalid_tool_calls]
    if spoiled:
        data["tool_calls"] = [*data.get("tool_calls", ()), *spoiled]
    return dict(data)


def _message(data: Any) -> BaseMessage:
    """Read a message; LangChain's reader takes no call that cannot be read."""
    calls = data.get("tool_calls") if isinstance(data, Mapping) else None
    if not calls:
        return convert_to_messages([data])[0]
    whole = [call for call in calls if _readable(call)]
    spoiled = [_spoiled(call) for call in calls if not _readable(call)]
    message = convert_to_messages([{**data, "tool_calls": whole}])[0]
    if spoiled and isinstance(message, AIMessage):
        message.invalid_tool_calls = spoiled
    return message


def _readable(call: Any) -> bool:
    try:
        return isinstance(json.loads(call["function"]["arguments"]), dict)
    except ValueError:
        return False
    except (KeyError, TypeError) as error:
        msg = "a tool call has a function with a name and arguments"
        raise ValueError(msg) from error


def _spoiled(call: Mapping[str, Any]) -> InvalidToolCall:
    function = call["function"]
    return invalid_tool_call(
        name=function.get("name"), args=function["arguments"], id=call.get("id")
    )


def _call_json(call: InvalidToolCall) -> dict[str, Any]:
    function = {"name": call["name"] or "", "arguments": call["args"] or ""}
    return {"type": "function", "id": call["id"], "function": function}
