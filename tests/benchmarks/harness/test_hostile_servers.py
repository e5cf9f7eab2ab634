"""What a server may do to a run: drip, flood, and answer with what is no answer."""

import asyncio
import gzip
import io
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from storms import clients_closed

from langgraft._core.errors import MOST_CHARACTERS, InfrastructureError, InputError, PlanError
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.exchange import RetryPolicy
from langgraft.benchmarks.harness.failures import TOLD
from langgraft.benchmarks.harness.models import MeteredChatModel, make_model
from langgraft.benchmarks.harness.plans import plan_from_data
from langgraft.benchmarks.harness.usage import metered
from langgraft.benchmarks.simulated.babyai import SimulatedBabyAI
from langgraft.benchmarks.simulated.faults import Fault, FaultKind
from langgraft.benchmarks.simulated.server import CallRecord
from langgraft.benchmarks.simulated.server import serve as serve_model
from langgraft.benchmarks.studies import studies

Ask = Callable[[MeteredChatModel], Awaitable[Any]]

ONCE = RetryPolicy(total_seconds=0.0)
TWICE = RetryPolicy(first_seconds=0.01, total_seconds=300.0)
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


async def ask_async(model: MeteredChatModel) -> Any:
    """Ask through the asynchronous face."""
    return await model.ainvoke("hi")


async def ask_sync(model: MeteredChatModel) -> Any:
    """Ask through the synchronous face, from a thread."""
    return await asyncio.to_thread(model.invoke, "hi")


@pytest.fixture(autouse=True)
async def _clients_closed() -> AsyncIterator[None]:
    """Let clients of a test go within its own event loop."""
    async with clients_closed():
        yield
    while _OTHERS:
        await _OTHERS.pop().root_async_client.close()


@pytest.fixture(params=[ask_async, ask_sync], ids=["async", "sync"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Ask in both ways."""
    asking: Ask = request.param
    return asking


def completion(content: object = "fine", **fields: object) -> dict[str, Any]:
    """Return a reply in the provider's format."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}
    choice["message"] = {"role": "assistant", "content": content}
    head = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return {**head, "choices": [choice], "usage": USAGE, **fields}


def whole(
    body: bytes | Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Fault:
    """Answer with one body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Fault(FaultKind.BODY, status=status, headers=headers or {}, body=data)


@asynccontextmanager
async def serve(*answers: Fault) -> AsyncIterator[tuple[str, list[CallRecord]]]:
    """Serve answers in order, the last one again and again; yield the URL and what was asked."""

    def in_order(call: int) -> Fault:
        return answers[min(call, len(answers) - 1)]

    async with serve_model(SimulatedBabyAI(), faults=in_order) as server:
        yield server.base_url, server.calls


def model_at(url: str, **settings: Any) -> MeteredChatModel:
    """Reach a server as a plan reaches a real one."""
    return make_model("openai:m", base_url=url, api_key="none", **{"retry": TWICE, **settings})


def of_others(url: str, **settings: Any) -> MeteredChatModel:
    """Reach a server by a client that was made elsewhere, and knows no bounds."""
    from langchain_openai import ChatOpenAI  # noqa: PLC0415  (a second, and not always needed)

    streaming = "settings" in settings
    inner = ChatOpenAI(
        model="m", base_url=url, api_key=lambda: "none", max_retries=0, streaming=streaming
    )
    _OTHERS.append(inner)
    settings.pop("settings", None)
    return MeteredChatModel(inner=inner, identity={"model": "m", "base_url": url}, **settings)


_OTHERS: list[Any] = []
"""Clients of the test that were made elsewhere."""

Connect = Callable[..., MeteredChatModel]
STREAMS = {"settings": {"streaming": True}}


@pytest.mark.parametrize("kind", [FaultKind.DRIP_HEAD, FaultKind.DRIP, FaultKind.STALL])
@pytest.mark.parametrize("how", [{}, STREAMS], ids=["whole", "streamed"])
@pytest.mark.parametrize("connect", [model_at, of_others])
async def test_call_when_the_server_drips_then_ends_at_the_deadline(
    ask: Ask, kind: FaultKind, connect: Connect, how: dict[str, Any]
) -> None:
    """Neither headers nor a body that never end hold a call for longer than it may take."""
    async with serve(Fault(kind)) as (url, asked):
        while not asked:  # where the machine is busy, a call may end before it arrives
            with pytest.raises(
                InfrastructureError, match=r"no(t| whole reply in 0.4 s).*connection|no whole"
            ):
                await ask(connect(url, call_seconds=0.4, retry=ONCE, **how))
    assert {call.request.get("stream", False) for call in asked} == {bool(how)}


@pytest.mark.parametrize("how", [{}, STREAMS], ids=["whole", "streamed"])
@pytest.mark.parametrize("connect", [model_at, of_others])
async def test_call_when_the_reply_is_too_large_then_is_refused_by_any_client(
    ask: Ask, connect: Connect, how: dict[str, Any]
) -> None:
    """A stream is left when it is too much; what came whole enters no log."""
    large = stream("x" * 1000) if how else whole(completion("x" * 1000))
    async with serve(large) as (url, _):
        with pytest.raises(InfrastructureError, match="the reply is larger than 900 bytes"):
            await ask(connect(url, reply_bytes=900, retry=ONCE, **how))


async def test_call_when_a_flood_is_streamed_then_is_not_read(ask: Ask) -> None:
    """Fifty million bytes of nothing before a reply are no reply."""
    async with serve(Fault(FaultKind.LARGE), whole(completion())) as (url, asked):
        with pytest.raises(InfrastructureError, match="the reply is larger than 8,388,608 bytes"):
            await ask(model_at(url, retry=ONCE, **STREAMS))
    assert not asked[0].whole


def stream(*contents: str, ends: bool = True, **fields: object) -> Fault:
    """Answer in chunks."""
    events = [
        {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": each}, "finish_reason": None}],
        }
        for each in contents
    ]
    if ends:
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        events.append({**events[-1], "choices": [last], "usage": USAGE, **fields})
    return events_of(*map(json.dumps, events))


def events_of(*events: str) -> Fault:
    """Answer in events of one's own."""
    body = "".join(f"data: {event}\n\n" for event in (*events, "[DONE]"))
    return whole(body.encode(), headers={"Content-Type": "text/event-stream"})


@pytest.mark.parametrize(
    "broken",
    [
        stream("half of it", ends=False),
        stream("fi", "ne", choices=[5]),
        events_of(json.dumps({"error": {"message": "slow down", "code": "429"}})),
        events_of("[]"),
        events_of("{"),
        events_of(),
    ],
)
async def test_call_when_a_stream_is_no_whole_reply_then_it_is_asked_again(
    ask: Ask, broken: Fault, tmp_path: Path
) -> None:
    """Half a reply is none, and is not kept; nor is an error that comes in a stream."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(broken, stream("fi", "ne")) as (url, asked):
            model = model_at(url, responses=responses, **STREAMS)
            with metered() as meter:
                assert [(await ask(model)).text for _ in range(2)] == ["fine", "fine"]
    assert len(asked) == 2
    assert (meter.totals()["prompt_tokens"], meter.totals()["completion_tokens"]) == (6, 4)


async def test_call_when_counts_in_a_stream_are_none_then_the_reply_counts(ask: Ask) -> None:
    """Odd usage costs no reply, however it comes."""
    async with serve(stream("fine", usage={"prompt_tokens": "many"})) as (url, asked):
        with metered() as meter:
            assert (await ask(model_at(url, **STREAMS))).text == "fine"
    assert len(asked) == 1
    assert meter.totals()["replies_without_usage"] == 1


async def test_call_when_the_server_floods_then_is_not_read_and_not_kept(
    ask: Ask, tmp_path: Path
) -> None:
    """A reply larger than a reply may be is a failed call, and asked for again."""
    large = whole(completion("x" * 300_000))
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(large, whole(completion())) as (url, asked):
            reply = await ask(model_at(url, reply_bytes=200_000, responses=responses))
        assert len(responses) == 1
    assert reply.text == "fine"
    assert len(asked) == 2


async def test_cache_when_a_client_tells_headers_then_they_are_not_kept(tmp_path: Path) -> None:
    """Who exports replies exports no cookies."""
    out = io.BytesIO()
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(whole(completion(), headers={"Set-Cookie": "hunter2"})) as (url, _):
            model = of_others(url, responses=responses)
            inner = model.inner.model_copy(update={"include_response_headers": True})
            reply = await model.model_copy(update={"inner": inner}).ainvoke("hi")
        assert responses.export(out) == (1, 0)
    assert "hunter2" not in f"{reply}{out.getvalue().decode()}"


async def test_call_when_the_reply_is_compressed_then_it_is_not_unpacked(ask: Ask) -> None:
    """A few kilobytes could stand for gigabytes: none are asked for, and none are taken."""
    body = gzip.compress(json.dumps(completion()).encode())
    async with serve(whole(body, headers={"Content-Encoding": "gzip"})) as (url, asked):
        with pytest.raises(InfrastructureError, match="compressed"):
            await ask(model_at(url, retry=ONCE))
    assert asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "error",
    [
        {"message": "slow down", "code": "rate_limit_exceeded"},
        {"message": "slow down", "code": "429"},
        {"message": "upstream is gone", "code": 502},
        {"message": "who knows", "code": "no_such_word"},
        {"message": None, "code": ["odd"]},
        {"metadata": {"raw": "x"}},
        "overloaded",
        ["overloaded"],
    ],
)
async def test_call_when_a_reply_holds_an_error_then_it_is_asked_again(
    ask: Ask, error: object
) -> None:
    """Whatever an error with status 200 looks like, it ends no run."""
    async with serve(whole({"error": error}), whole(completion())) as (url, asked):
        reply = await ask(model_at(url))
    assert reply.text == "fine"
    assert len(asked) == 2


async def test_call_when_a_reply_holds_a_permanent_error_then_stops_at_once(ask: Ask) -> None:
    """A wrong key is a wrong key, wherever the provider writes it."""
    error = {"message": "no such key", "code": "invalid_api_key"}
    async with serve(whole({"error": error})) as (url, asked):
        with pytest.raises(InputError, match="no such key; check the API key"):
            await ask(model_at(url))
    assert len(asked) == 1


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": "x"},
        {"choices": [None]},
        {"choices": [{"message": 5}]},
        {"choices": [{"message": {"role": "assistant", "content": {"a": 1}}}]},
        {"choices": [{"message": {"role": "assistant", "tool_calls": [{"function": 1}]}}]},
        {"choices": None},
        {},
    ],
)
async def test_call_when_a_reply_is_no_completion_then_it_is_asked_again(
    ask: Ask, reply: Mapping[str, Any]
) -> None:
    """What no client could read is a broken reply, whatever the client makes of it."""
    broken = {"id": "1", "object": "chat.completion", **reply}
    async with serve(whole(broken), whole(completion())) as (url, asked):
        assert (await ask(model_at(url))).text == "fine"
    assert len(asked) == 2


async def test_call_when_a_reply_is_nested_without_end_then_it_is_asked_again(ask: Ask) -> None:
    """Depth breaks parsers, and no run."""
    deep = b'{"choices":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    async with serve(whole(deep), whole(completion())) as (url, _):
        assert (await ask(model_at(url))).text == "fine"


@pytest.mark.parametrize(
    "usage",
    [
        "many",
        [1, 2],
        {},
        {**USAGE, "prompt_tokens": "3"},
        {**USAGE, "completion_tokens": -2},
        {**USAGE, "prompt_tokens": None},
        {**USAGE, "total_tokens": 0.5},
        {**USAGE, "prompt_tokens": True},
        {**USAGE, "prompt_tokens": 10**30},
        {**USAGE, "prompt_tokens_details": [1]},
        {**USAGE, "completion_tokens_details": {"reasoning_tokens": "x"}},
    ],
)
async def test_call_when_counts_are_none_then_the_reply_counts_and_usage_is_unknown(
    ask: Ask, tmp_path: Path, usage: object
) -> None:
    """Odd usage fields cost no reply and enter no sum, also when it comes from the cache."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(whole(completion(usage=usage))) as (url, asked):
            model = model_at(url, responses=responses)
            with metered() as meter:
                assert [(await ask(model)).text for _ in range(2)] == ["fine", "fine"]
    assert len(asked) == 1
    totals = meter.totals()
    assert (totals["replies_without_usage"], totals["prompt_tokens"]) == (2, 0)


async def test_call_when_the_reply_is_empty_then_it_is_returned_and_asked_for_again(
    ask: Ask, tmp_path: Path
) -> None:
    """Nothing is an answer of the model's, but none that should be given for ever."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(whole(completion(" \n")), whole(completion())) as (url, asked):
            model = model_at(url, responses=responses)
            texts = [(await ask(model)).text for _ in range(3)]
    assert texts == [" \n", "fine", "fine"]
    assert len(asked) == 2


async def test_error_when_a_server_says_anything_then_is_one_short_printable_line(
    ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty megabytes of escapes become a line, in the error and in the log."""
    said = whole(b"\x1b[2J\x1b]0;owned\x07\xe2\x80\xae" + b"x" * 20_000_000, status=500)
    async with serve(said) as (url, _):
        with pytest.raises(InfrastructureError) as caught:
            await ask(model_at(url, retry=RetryPolicy(first_seconds=0.01, total_seconds=0.05)))
    for text in (str(caught.value), *caplog.messages):
        assert text.isprintable()
        assert len(text) < 2 * TOLD


def test_error_when_a_message_is_long_then_its_middle_is_left_out() -> None:
    """Whatever is quoted, a message keeps its beginning, its end, and a size."""
    error = InputError("path: " + "x" * 20_000_000 + "; do this")
    assert len(str(error)) <= MOST_CHARACTERS
    assert str(error).startswith("path: x")
    assert str(error).endswith("x; do this")


SECRET_URLS = [
    "https://me:hunter2@example.org/v1",
    "https://example.org/v1?key=hunter2",
    "https://example.org/v1#hunter2",
    "me:hunter2@example.org/v1",
    "https://me:hunter2@[::1",
]


@pytest.mark.parametrize("url", SECRET_URLS)
def test_url_when_it_may_hold_a_secret_then_refused_and_never_quoted(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the message nor a traceback shows it, from wherever the URL comes."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    data = {"study": "continual", "model": "openai:m", "base_url": url}
    mle = {"study": "mle", "model": "openai:m", "feedback_model": "openai:m"}
    refused: list[Callable[[], object]] = [
        lambda: make_model("openai:m", base_url=url),
        lambda: plan_from_data(data, studies(), Path("plan.yaml")),
        lambda: plan_from_data({**mle, "feedback_base_url": url}, studies(), Path("plan.yaml")),
    ]
    if url.startswith("https://") and "[" not in url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        refused.append(lambda: make_model("openai:m"))
    for attempt in refused:
        with pytest.raises((InputError, PlanError), match="OPENAI_API_KEY") as caught:
            attempt()
        shown = "".join(traceback.format_exception(caught.value))
        assert "hunter2" not in shown.replace(f'"{url}"', "")
