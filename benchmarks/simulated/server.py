"""An OpenAI-compatible HTTP server in front of LangChain chat models, with faults on demand.

It lets a model that needs no key be reached exactly as a real one is: through
`init_chat_model("openai:simulated", base_url=server.base_url, api_key="none")`, a client and
a socket. Faults make it fail as providers fail, and its log says how often it was really asked.

It answers `/v1/chat/completions` (plain and streamed, with tools), `/v1/embeddings` by
`HashingEmbeddings`, and `/v1/models`. A request is answered by the model that it names; by any other
name, by the first one that understands it. `temperature`, `seed`, `tools`, `tool_choice` and `stop` go
on to the model.
"""

import asyncio
import base64
import json
import math
import os
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
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

from langgraft._core.canonical import JSON, seeded_fraction, text_digest
from langgraft._core.effects import SystemClock
from langgraft._core.errors import MissingExtraError
from langgraft._core.files import disk_errors, write_all
from langgraft.benchmarks.harness.usage import is_count
from langgraft.benchmarks.simulated.chat import SimulatedChatModel
from langgraft.benchmarks.simulated.faults import STALL_SECONDS, Fault, FaultKind, FaultPlan
from langgraft.memory.embedders.named import HashingEmbeddings

try:
    from aiohttp import web
except ModuleNotFoundError as error:
    msg = (
        f"the model server needs `{error.name}`, which is not installed: "
        "pip install 'langgraft[bench]'"
    )
    raise MissingExtraError(msg) from error

MODEL_NAME = "simulated"
"""The name under which a single model is served."""
EMBEDDINGS_NAME = "hashing"
CALL_ID = "x-client-request-id"
"""The header in which a client names a call: OpenAI's."""
_DRIP_SECONDS = 0.05
"""From byte to byte."""
_BLOCK = 1 << 18
"""Bytes that are sent at a time of a reply that floods."""


@dataclass(slots=True)
class CallRecord:
    """One request as the server saw it, and how far it was answered."""

    index: int
    path: str
    """The last part of the URL: `completions`, `embeddings`."""
    request: Mapping[str, Any]
    """The JSON body."""
    headers: Mapping[str, str]
    """Header names in lower case."""
    fault: Fault | None
    digest: str
    """Of the body: repeated requests have the same."""
    began: float
    """Seconds since the epoch."""
    status: int | None = None
    """Of the response; `None` where none was begun."""
    whole: bool = False
    """Whether all of the response was sent."""
    tokens: tuple[int, int] | None = None
    """Prompt and completion tokens, as a response that was sent whole tells them."""
    seconds: float = 0.0
    """How long it took."""

    def as_json(self) -> dict[str, JSON]:
        """Return its line of the call log."""
        prompt, completion = self.tokens or (None, None)
        return {
            "call": self.index,
            "id": self.headers.get(CALL_ID),
            "request": self.digest,
            "path": self.path,
            "model": str(self.request.get("model")),
            "stream": bool(self.request.get("stream")),
            "fault": self.fault.label if self.fault else None,
            "status": self.status,
            "whole": self.whole,
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "time": round(self.began, 6),
            "seconds": round(self.seconds, 6),
        }


_INVALID: Final = "invalid_request"
_MOST_WHOLE: Final = 2**63
_MOST_DIMENSIONS: Final = 65_536


class _BadRequestError(Exception):
    def __init__(self, message: str, code: str = _INVALID) -> None:
        super().__init__(message)
        self.code = code


_Answer: TypeAlias = "Callable[[CallRecord], Any]"


class ModelServer:
    """The server under way; made by `serve`.

    Attributes:
        base_url: What a client takes as `base_url`; ends with `/v1`.
        calls: Every call so far, in the order of arrival; empty where they are written to a file.
        count: How many there were.
        under_way: Requests that are answered now.
        most_at_once: Most that were under way at the same time.
    """

    def __init__(
        self,
        models: Mapping[str, BaseChatModel],
        faults: FaultPlan,
        noise: float,
        call_log: int | None,
        log_path: Path,
    ) -> None:
        self.base_url = ""
        self.calls: list[CallRecord] = []
        self.count = 0
        self.most_at_once = 0
        self._models = models
        self._faults = faults
        self._noise = noise
        self._asked: Counter[str] = Counter()
        self._call_log = call_log
        self._log_path = log_path
        self._clock = SystemClock()
        self.under_way = 0

    async def list_models(self, _request: web.Request) -> web.Response:
        """Answer `GET /v1/models`."""
        kept = {"object": "model", "created": 0, "owned_by": "langgraft"}
        entries = [{"id": name, **kept} for name in (*self._models, EMBEDDINGS_NAME)]
        return web.json_response({"object": "list", "data": entries})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /v1/chat/completions`."""
        return await self._serve(request, self._completion)

    async def embed(self, request: web.Request) -> web.StreamResponse:
        """Answer `POST /v1/embeddings`."""
        return await self._serve(request, _embedded)

    async def _serve(self, request: web.Request, answer: _Answer) -> web.StreamResponse:
        body = await request.read()
        began = self._clock.monotonic()
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        call = self._record(request, body)
        try:
            return await self._respond(request, call, answer)
        except ConnectionResetError:  # the client has gone: there is nobody to tell
            return web.Response()
        finally:
            self.under_way -= 1
            call.seconds = self._clock.monotonic() - began
            if self._call_log is not None:
                line = json.dumps(call.as_json(), separators=(",", ":")).encode() + b"\n"
                with disk_errors("write", self._log_path):
                    write_all(self._call_log, line)

    def _record(self, request: web.Request, body: bytes) -> CallRecord:
        try:
            asked = json.loads(body, parse_constant=_no_number)
        except (ValueError, RecursionError):
            asked = None
        index = self.count
        self.count += 1
        call = CallRecord(
            index=index,
            path=request.path.rpartition("/")[2],
            request=asked if isinstance(asked, dict) else {},
            headers={name.lower(): value for name, value in request.headers.items()},
            fault=self._fault(index),
            digest=text_digest(body.decode("utf-8", "replace"))[:16],
            began=self._clock.time(),
        )
        if self._call_log is None:
            self.calls.append(call)
        return call

    def _fault(self, index: int) -> Fault | None:
        if callable(self._faults):
            return self._faults(index)
        return self._faults[index] if index < len(self._faults) else None

    async def _respond(
        self, request: web.Request, call: CallRecord, answer: _Answer
    ) -> web.StreamResponse:
        fault = call.fault
        if fault is not None:
            if fault.kind is FaultKind.RESET:
                _reset(request)
                return web.Response()
            if fault.kind is FaultKind.DRIP_HEAD:
                await _drip_head(request, fault.seconds)
                return web.Response()
            if fault.kind is FaultKind.SLOW_FIRST_BYTE:
                await asyncio.sleep(fault.seconds)
            elif (failure := _failure(fault)) is not None:
                return await _send(request, call, failure)
        try:
            _check_fields("", call.request, _FIELDS)
            reply = _with_fault(await answer(call), fault)
        except RecursionError:
            return await _send(request, call, _error(400, "it is nested too deeply", _INVALID))
        except ContextOverflowError as error:
            return await _send(request, call, _error(400, str(error), "context_length_exceeded"))
        except _BadRequestError as error:
            return await _send(request, call, _error(400, str(error), error.code))
        if call.request.get("stream"):
            return await _stream(request, reply, call)
        return await _send(request, call, _Sent(json.dumps(reply).encode()), reply)

    async def _completion(self, call: CallRecord) -> dict[str, Any]:
        body = call.request
        if body.get("n") not in (None, 1):
            raise _BadRequestError("`n` must be 1")
        try:
            messages = messages_of(body["messages"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _BadRequestError(f"`messages` cannot be read: {error}") from error
        name, model = self._model_for(body, messages)
        given = {name: body[name] for name in _PASSED_ON if body.get(name) is not None}
        if body.get("tool_choice") == "none":
            given = {name: value for name, value in given.items() if not name.startswith("tool")}
        try:
            # Not `ainvoke`, whose callbacks nobody hears: they take twice as long as a reply.
            result = await model._agenerate(  # noqa: SLF001
                messages, _stop_words(body), **self._drawn(given, call)
            )
        except ValueError as error:
            raise _BadRequestError(str(error)) from error
        message = result.generations[0].message
        assert isinstance(message, AIMessage)
        _check_form(message, body.get("response_format"))
        return _completion(_with_usage(message, messages), call, name)

    def _model_for(
        self, body: Mapping[str, Any], messages: Sequence[BaseMessage]
    ) -> tuple[str, BaseChatModel]:
        named = str(body.get("model"))
        if named in self._models:
            return named, self._models[named]
        *others, last = self._models.items()
        tools = body.get("tools") or ()
        for name, model in others:
            if isinstance(model, SimulatedChatModel) and model.understands(messages, tools):
                return name, model
        return last

    def _drawn(self, given: Mapping[str, Any], call: CallRecord) -> Mapping[str, Any]:
        """Return the settings of a call, which noise makes another draw now and then."""
        if not self._noise or given.get("temperature") != 0:
            return given
        said = text_digest(json.dumps(call.request, sort_keys=True))
        times = self._asked[said]
        self._asked[said] += 1
        if seeded_fraction("noise", said, times) >= self._noise:
            return given
        seed = int(seeded_fraction("seed", said, times) * 2**31)
        return {**given, "temperature": 1.0, "seed": seed}


_PASSED_ON = ("tools", "tool_choice", "temperature", "seed")


@asynccontextmanager
async def serve(
    model: BaseChatModel | Mapping[str, BaseChatModel],
    *,
    faults: FaultPlan = (),
    noise: float = 0.0,
    call_log: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[ModelServer]:
    """Serve a model, or several by name, until the block ends.

    Args:
        model: Answers the calls that no fault takes.
        faults: What goes wrong, and when.
        noise: The share of calls at temperature 0 that are answered as if drawn above it, each
            time anew: what providers do.
        call_log: File that gets a line of JSON a call when it ended; instead of `calls`.
        host: Where to listen.
        port: Where to listen; 0 lets the system choose.

    Raises:
        RunDirectoryError: The call log cannot be written.
    """
    models = {MODEL_NAME: model} if isinstance(model, BaseChatModel) else model
    log = None
    if call_log is not None:
        with disk_errors("open for writing", call_log):
            log = os.open(call_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    server = ModelServer(models, faults, noise, log, call_log or Path())
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_get("/v1/models", server.list_models)
    app.router.add_post("/v1/chat/completions", server.complete)
    app.router.add_post("/v1/embeddings", server.embed)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=1024).start()
        server.base_url = f"http://{host}:{runner.addresses[0][1]}/v1"
        yield server
    finally:
        await runner.cleanup()
        if log is not None:
            os.close(log)


# What is sent -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sent:
    """A response in one piece."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] | None = None
    content_type: str = "application/json"


def _failure(fault: Fault) -> _Sent | None:
    """Return what is sent for the faults that need no reply of the model; `None` for the others."""
    match fault.kind:
        case FaultKind.STATUS:
            return _error(fault.status, fault.message, fault.code, fault.headers)
        case FaultKind.BODY:
            return _Sent(fault.body, fault.status, fault.headers)
        case FaultKind.ERROR_IN_REPLY:
            return _error(200, fault.message, fault.code)
        case FaultKind.HTML:
            page = b"<!doctype html><title>Sign in</title><p>Please sign in to the network."
            return _Sent(page, content_type="text/html")
        case _:
            return None


def _error(
    status: int, message: str, code: str | None, headers: Mapping[str, str] | None = None
) -> _Sent:
    error = {"message": message, "type": "error", "param": None, "code": code}
    return _Sent(json.dumps({"error": error}).encode(), status, headers)


def _reset(request: web.Request) -> None:
    """Close the connection with an RST: no lingering, then abort."""
    transport = request.transport
    if transport is not None:
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()


async def _drip_head(request: web.Request, seconds: float) -> None:
    """Send a head that does not end, and close the connection."""
    transport = request.transport
    assert transport is not None
    transport.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(int(seconds / _DRIP_SECONDS)):
        transport.write(b"x")
        await asyncio.sleep(_DRIP_SECONDS)
    transport.abort()


async def _send(
    request: web.Request, call: CallRecord, sent: _Sent, reply: Mapping[str, Any] | None = None
) -> web.StreamResponse:
    """Send a response in one piece, or what its fault leaves of it."""
    kind = call.fault.kind if call.fault else None
    body, headers = sent.body, {"Content-Type": sent.content_type, **(sent.headers or {})}
    if kind is FaultKind.TRUNCATED_JSON:
        body, reply = body[: len(body) // 2], None
    blanks = _blanks(call)
    response = web.StreamResponse(status=sent.status, headers=headers)
    response.content_length = blanks + len(body)
    await response.prepare(request)
    call.status = sent.status
    await _flood(response, b" ", blanks)
    if kind is FaultKind.STALL:
        await response.write(body[: len(body) // 2])
        await asyncio.sleep(STALL_SECONDS)
    if kind is FaultKind.DRIP:
        assert call.fault is not None
        body = await _drip(response, body, call.fault.seconds)
    await response.write_eof(body)
    _sent_whole(call, reply)
    return response


def _blanks(call: CallRecord) -> int:
    return call.fault.size if call.fault and call.fault.kind is FaultKind.LARGE else 0


async def _flood(response: web.StreamResponse, blank: bytes, size: int) -> None:
    for start in range(0, size, _BLOCK):
        await response.write(blank * min(_BLOCK, size - start))


async def _drip(response: web.StreamResponse, body: bytes, seconds: float) -> bytes:
    """Send byte by byte for so long; return what is left."""
    for place in range(min(len(body), int(seconds / _DRIP_SECONDS))):
        await response.write(body[place : place + 1])
        await asyncio.sleep(_DRIP_SECONDS)
    return body[int(seconds / _DRIP_SECONDS) :]


def _sent_whole(call: CallRecord, reply: Mapping[str, Any] | None) -> None:
    call.whole = True
    usage = (reply or {}).get("usage") or {}
    told = usage.get("prompt_tokens"), usage.get("completion_tokens", 0)
    if is_count(told[0]) and is_count(told[1]):
        call.tokens = told[0], told[1]


def _with_fault(reply: dict[str, Any], fault: Fault | None) -> dict[str, Any]:
    """Return a good reply with its fault in it."""
    match fault.kind if fault else None:
        case FaultKind.EMPTY_CHOICES:
            return {**reply, "choices": []}
        case FaultKind.WRONG_MODEL:
            return {**reply, "model": "another-model"}
        case FaultKind.MISSING_USAGE:
            return {name: value for name, value in reply.items() if name != "usage"}
        case FaultKind.ODD_USAGE:
            odd = {"prompt_tokens": "many", "completion_tokens": -1, "total_tokens": 0.5}
            return {**reply, "usage": odd}
        case FaultKind.FINISH_REASON if reply.get("choices"):
            assert fault is not None
            return {
                **reply,
                "choices": [{**reply["choices"][0], "finish_reason": fault.reason}],
            }
        case _:
            return reply


async def _stream(
    request: web.Request, reply: dict[str, Any], call: CallRecord
) -> web.StreamResponse:
    """Send a reply as server-sent events, a word at a time."""
    wants_usage = (call.request.get("stream_options") or {}).get("include_usage", False)
    chunks = _chunks(reply, with_usage=wants_usage)
    fault = call.fault
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    call.status = 200
    await _flood(response, b"\n", _blanks(call))
    for position, chunk in enumerate(chunks):
        line = f"data: {json.dumps(chunk)}\n\n".encode()
        if fault is not None and position == len(chunks) // 2:
            if fault.kind is FaultKind.STALL:
                await asyncio.sleep(STALL_SECONDS)
            if fault.kind is FaultKind.TRUNCATED_JSON:
                await response.write_eof(line[: len(line) // 2])
                _sent_whole(call, None)
                return response
            if fault.kind is FaultKind.DRIP:
                line = await _drip(response, line, fault.seconds)
        await response.write(line)
    await response.write_eof(b"data: [DONE]\n\n")
    _sent_whole(call, reply if wants_usage else None)
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


# Requests ---------------------------------------------------------------------------------------


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST_WHOLE


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _are_texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(map(_is_text, value)))


def _is_content(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(_is_object(each) and "type" in each for each in value)
    )


_Form: TypeAlias = "tuple[str, Callable[[Any], bool]] | Mapping[str, _Form] | list[_Form]"
_TEXT, _FLAG, _WHOLE = (
    ("a text", _is_text),
    ("true or false", _is_flag),
    ("a whole number", _is_whole),
)
_NUMBER, _OBJECT = ("a number", _is_number), ("an object", _is_object)
_FUNCTION: Final[Mapping[str, _Form]] = {
    "name": _TEXT,
    "description": _TEXT,
    "parameters": _OBJECT,
    "arguments": _TEXT,
    "strict": _FLAG,
}
_FIELDS: Final[Mapping[str, _Form]] = {
    "model": _TEXT,
    "messages": [
        {
            "role": _TEXT,
            "content": ("a text or a list of parts", _is_content),
            "name": _TEXT,
            "tool_call_id": _TEXT,
            "tool_calls": [{"id": _TEXT, "type": _TEXT, "function": _FUNCTION}],
        }
    ],
    "tools": [{"type": _TEXT, "function": _FUNCTION}],
    "tool_choice": ("a text or an object", lambda value: _is_text(value) or _is_object(value)),
    "stream": _FLAG,
    "stream_options": {"include_usage": _FLAG},
    "stop": ("a text or a list of texts", _are_texts),
    "response_format": {"type": _TEXT},
    **dict.fromkeys(("temperature", "top_p", "presence_penalty", "frequency_penalty"), _NUMBER),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "n", "seed", "top_logprobs"), _WHOLE),
    **dict.fromkeys(("dimensions",), _WHOLE),
    **dict.fromkeys(("parallel_tool_calls", "logprobs", "store"), _FLAG),
    **dict.fromkeys(("user", "encoding_format", "reasoning_effort", "service_tier"), _TEXT),
    **dict.fromkeys(("metadata", "logit_bias"), _OBJECT),
}
"""The fields of requests whose types are checked, and those within them."""


def _check_fields(where: str, given: Any, form: _Form) -> None:
    """Refuse a field of another type; `null` is no value.

    Raises:
        _BadRequestError: One is; the message names it.
    """
    if isinstance(form, tuple):
        words, fits = form
        if not fits(given):
            raise _BadRequestError(f"`{where}` must be {words}")
    elif isinstance(form, list):
        if not isinstance(given, list):
            raise _BadRequestError(f"`{where}` must be a list")
        for place, each in enumerate(given):
            _check_fields(f"{where}[{place}]", each, form[0])
    else:
        if not isinstance(given, Mapping):
            raise _BadRequestError(f"`{where}` must be an object")
        for name, inside in form.items():
            if given.get(name) is not None:
                _check_fields(f"{where}.{name}".lstrip("."), given[name], inside)


# Replies ----------------------------------------------------------------------------------------


def _stop_words(body: Mapping[str, Any]) -> list[str] | None:
    stop = body.get("stop")
    return [stop] if isinstance(stop, str) else stop


def _check_form(message: AIMessage, form: Any) -> None:
    """Refuse a reply that is no JSON object where one was asked for: rules write none to order."""
    if not isinstance(form, Mapping) or form.get("type") in (None, "text") or message.tool_calls:
        return
    try:
        written = json.loads(message.text)
    except (ValueError, RecursionError):
        written = None
    if not isinstance(written, dict):
        msg = (
            f"the model's reply has not the `response_format` {form['type']!r}: it is made by rules"
        )
        raise _BadRequestError(msg)


def _with_usage(message: AIMessage, messages: Sequence[BaseMessage]) -> AIMessage:
    """Count tokens at four characters each when the model did not."""
    if message.usage_metadata is not None:
        return message
    prompt, reply = count_tokens_approximately(messages), count_tokens_approximately([message])
    usage = {"input_tokens": prompt, "output_tokens": reply, "total_tokens": prompt + reply}
    return message.model_copy(update={"usage_metadata": usage})


def _completion(message: AIMessage, call: CallRecord, model_name: str) -> dict[str, Any]:
    """Write a reply of the model in the provider's format."""
    data = message_json(message)
    finish = message.response_metadata.get("finish_reason") or (
        "tool_calls" if data.get("tool_calls") else "stop"
    )
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


async def _embedded(call: CallRecord) -> dict[str, Any]:
    """Answer a request for vectors."""
    asked, size = call.request.get("input"), call.request.get("dimensions")
    texts = [asked] if isinstance(asked, str) else asked
    if size is not None and not 0 < size <= _MOST_DIMENSIONS:
        raise _BadRequestError(f"`dimensions` must be from 1 to {_MOST_DIMENSIONS:,}")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        msg = "`input` must be texts, not tokens: of LangChain's client, check_embedding_ctx_length=False"
        raise _BadRequestError(msg)
    try:
        rows = (HashingEmbeddings() if size is None else HashingEmbeddings(size)).vectors(texts)
    except ValueError as error:
        raise _BadRequestError(str(error)) from error
    packed = call.request.get("encoding_format") == "base64"
    vectors = [_packed(row) if packed else row.tolist() for row in rows]
    tokens = sum((len(text) + 3) // 4 for text in texts)
    return {
        "object": "list",
        "model": EMBEDDINGS_NAME,
        "data": [
            {"object": "embedding", "index": place, "embedding": vector}
            for place, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _packed(row: Any) -> str:
    return base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode()


# Calls of tools -------------------------------------------------------------------------------


def messages_of(data: Any) -> list[BaseMessage]:
    """Return the messages of a request.

    Raises:
        ValueError: They are no messages.
    """
    if not isinstance(data, list) or not data or not all(isinstance(each, dict) for each in data):
        msg = "they are a list of objects with `role` and `content`"
        raise ValueError(msg)
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
