"""The HTTP server that puts any chat model behind OpenAI's protocol, faults included."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from openai import AsyncOpenAI

from langgraft._core.errors import InputError
from langgraft.benchmarks.harness.exchange import RetryPolicy
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.harness.usage import metered
from langgraft.benchmarks.simulated.alfworld import SimulatedALFWorld
from langgraft.benchmarks.simulated.babyai import SimulatedBabyAI
from langgraft.benchmarks.simulated.clerk import SimulatedClerk
from langgraft.benchmarks.simulated.faults import (
    Fault,
    FaultKind,
    FaultPlan,
    FaultScript,
    failing,
    rate_limited,
    read_faults,
)
from langgraft.benchmarks.simulated.server import ModelServer, serve
from langgraft.memory.embedders.named import HashingEmbeddings

TWICE = RetryPolicy(first_seconds=0.01, total_seconds=300.0)
LOOK = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}


class Looker(BaseChatModel):
    """Looks if it can and has not, else repeats what it was told last."""

    @property
    def _llm_type(self) -> str:
        return "looker"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if kwargs.get("tools") and not isinstance(messages[-1], ToolMessage):
            call = {"name": "look", "args": {"at": "door"}, "id": "call-1"}
            message = AIMessage("", tool_calls=[call])
        else:
            message = AIMessage(f"{messages[-1].type} said {messages[-1].text}")
        return ChatResult(generations=[ChatGeneration(message=message)])


async def post(
    server: ModelServer, *, leaves: bool = False, **body: Any
) -> tuple[int, dict[str, str], str]:
    """Send a request and return status, headers and body; or leave once the body has begun."""
    request = {"model": "any", "messages": [{"role": "user", "content": "hi there"}], **body}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/chat/completions", json=request) as response,
    ):
        headers = {name.lower(): value for name, value in response.headers.items()}
        text = (await response.content.readany()).decode() if leaves else await response.text()
        return response.status, headers, text


async def ask(server: ModelServer, path: str, body: dict[str, Any]) -> Any:
    """Send a request to another path and return what comes back."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/{path}", json=body) as response,
    ):
        return await response.json()


def events(text: str) -> list[dict[str, Any]]:
    """Read the chunks of a stream, which ends with `[DONE]`."""
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


async def test_complete_when_asked_then_the_model_answers_in_the_providers_format() -> None:
    """A plain request gets a plain completion with token counts."""
    async with serve({"looker": Looker()}) as server:
        status, _, text = await post(server)
    reply = json.loads(text)
    assert status == 200
    assert reply["model"] == "looker"
    assert reply["choices"][0]["message"]["content"] == "human said hi there"
    assert reply["choices"][0]["finish_reason"] == "stop"
    usage = reply["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0


async def test_complete_when_tools_are_given_then_calls_and_results_go_both_ways() -> None:
    """Tool calls come out in the provider's format, and their results are understood."""
    async with serve(Looker()) as server:
        _, _, text = await post(server, tools=[LOOK])
        choice = json.loads(text)["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        function = choice["message"]["tool_calls"][0]["function"]
        assert (function["name"], json.loads(function["arguments"])) == ("look", {"at": "door"})
        told = [
            {"role": "user", "content": "look"},
            choice["message"],
            {"role": "tool", "tool_call_id": "call-1", "content": "it is open"},
        ]
        _, _, text = await post(server, messages=told, tools=[LOOK])
    assert json.loads(text)["choices"][0]["message"]["content"] == "tool said it is open"


async def test_complete_when_streamed_then_the_pieces_add_up() -> None:
    """A stream holds the same text, the reason it ended, and the usage if asked for."""
    async with serve(Looker()) as server:
        _, headers, text = await post(server, stream=True, stream_options={"include_usage": True})
        _, _, bare = await post(server, stream=True)
        _, _, calling = await post(server, stream=True, tools=[LOOK])
    assert headers["content-type"] == "text/event-stream"
    chunks = events(text)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == "human said hi there"
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["total_tokens"] > 0
    assert all("usage" not in chunk for chunk in events(bare))
    assert events(calling)[1]["choices"][0]["delta"]["tool_calls"][0]["id"] == "call-1"


async def test_models_when_listed_then_the_served_one_is_there() -> None:
    """Clients that look for models first find one."""
    async with (
        serve({"looker": Looker()}) as server,
        aiohttp.ClientSession() as session,
        session.get(f"{server.base_url}/models") as response,
    ):
        listed = await response.json()
    assert [entry["id"] for entry in listed["data"]] == ["looker", "hashing"]


@pytest.mark.parametrize(
    "faults",
    [
        [None, failing(503)],
        lambda index: failing(503) if index == 1 else None,
    ],
)
async def test_faults_when_planned_then_the_log_says_which_call_met_which(
    faults: FaultPlan,
) -> None:
    """A list and a function describe the same plan; calls beyond a list meet no fault."""
    async with serve(Looker(), faults=faults) as server:
        statuses = [(await post(server, seed=number))[0] for number in range(3)]
    assert statuses == [200, 503, 200]
    assert [call.request["seed"] for call in server.calls] == [0, 1, 2]
    assert [call.fault is None for call in server.calls] == [True, False, True]
    assert server.calls[0].headers["content-type"] == "application/json"


async def test_fault_when_rate_limited_then_status_headers_and_code_are_as_given() -> None:
    """All forms of `Retry-After` can be sent."""
    limits = [
        rate_limited(),
        rate_limited(retry_after="121"),
        rate_limited(retry_after_ms="250"),
        rate_limited(retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
    ]
    async with serve(Looker(), faults=limits) as server:
        replies = [await post(server) for _ in limits]
    assert {status for status, _, _ in replies} == {429}
    assert "retry-after" not in replies[0][1]
    assert replies[1][1]["retry-after"] == "121"
    assert replies[2][1]["retry-after-ms"] == "250"
    assert replies[3][1]["retry-after"].endswith("GMT")
    assert json.loads(replies[0][2])["error"]["code"] == "rate_limit_exceeded"


async def test_fault_when_the_reply_is_spoiled_then_it_is_spoiled_as_named() -> None:
    """Each kind of bad reply with status 200 is what its name says."""
    kinds = [FaultKind.TRUNCATED_JSON, FaultKind.HTML, FaultKind.EMPTY_CHOICES]
    kinds += [FaultKind.FINISH_REASON, FaultKind.MISSING_USAGE]
    async with serve(Looker(), faults=[Fault(kind) for kind in kinds]) as server:
        replies = [await post(server) for _ in kinds]
    assert {status for status, _, _ in replies} == {200}
    cut, page, empty, length, uncounted = (text for _, _, text in replies)
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut)
    assert page.startswith("<!doctype html>")
    assert json.loads(empty)["choices"] == []
    assert json.loads(length)["choices"][0]["finish_reason"] == "length"
    assert "usage" not in json.loads(uncounted)


async def test_fault_when_the_connection_is_reset_then_the_client_gets_no_reply() -> None:
    """The connection ends without a byte."""
    async with serve(Looker(), faults=[Fault(FaultKind.RESET)]) as server:
        with pytest.raises(aiohttp.ClientConnectionError):
            await post(server)
    assert len(server.calls) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_fault_when_the_body_stalls_then_it_begins_and_never_ends(*, stream: bool) -> None:
    """A stalled reply has a status and half a body; the server ends all the same."""
    async with serve(Looker(), faults=[Fault(FaultKind.STALL)]) as server:
        body = {"model": "any", "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{server.base_url}/chat/completions", json=body) as response,
        ):
            assert response.status == 200
            assert await response.content.readany()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(response.content.read(), 0.1)


async def test_fault_when_the_first_byte_is_slow_then_the_reply_still_comes() -> None:
    """Slowness alone spoils nothing, and calls under way at once are counted."""
    all_there = asyncio.Barrier(3)

    class Meeting(Looker):
        async def _agenerate(self, messages: list[BaseMessage], *args: Any, **how: Any) -> Any:
            await all_there.wait()
            return self._generate(messages, *args, **how)

    slow = Fault(FaultKind.SLOW_FIRST_BYTE, seconds=0.05)
    async with serve(Meeting(), faults=[slow, slow, slow]) as server, asyncio.timeout(300):
        replies = await asyncio.gather(*(post(server) for _ in range(3)))
    assert [status for status, _, _ in replies] == [200, 200, 200]
    assert server.most_at_once == 3


async def test_fault_when_a_good_reply_is_odd_then_it_is_odd_as_named() -> None:
    """Another model's name, counts that are none, an error with status 200, blanks without end."""
    faults = [
        Fault(FaultKind.WRONG_MODEL),
        Fault(FaultKind.ODD_USAGE),
        Fault(FaultKind.ERROR_IN_REPLY, code="rate_limit_exceeded"),
        Fault(FaultKind.LARGE, size=3_000_000),
        Fault(FaultKind.DRIP, seconds=0.1),
    ]
    async with serve(Looker(), faults=faults) as server:
        replies = [await post(server) for _ in faults]
    assert {status for status, _, _ in replies} == {200}
    wrong, odd, error, large, dripped = (json.loads(text) for _, _, text in replies)
    assert wrong["model"] != "simulated"
    assert odd["usage"]["completion_tokens"] < 0
    assert error["error"]["code"] == "rate_limit_exceeded"
    assert len(replies[3][2]) > 3_000_000
    assert large["choices"] == dripped["choices"] == odd["choices"]


async def test_calls_when_logged_then_each_has_a_line_of_how_it_was_answered(
    tmp_path: Path,
) -> None:
    """Id, fault, status, tokens said; a call that its client left is not whole, and said nothing."""
    log = tmp_path / "calls.jsonl"
    faults = [None, failing(503), Fault(FaultKind.STALL), Fault(FaultKind.RESET, name="gone")]
    async with serve(Looker(), faults=faults, call_log=log) as server:
        for number in range(4):
            with contextlib.suppress(aiohttp.ClientError):
                await post(server, seed=number // 2, leaves=number == 2)
        assert server.calls == []
        assert server.count == 4
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines.sort(key=lambda line: line["call"])  # each is written as its call has ended
    assert [(line["call"], line["fault"], line["status"], line["whole"]) for line in lines] == [
        (0, None, 200, True),
        (1, "status", 503, True),
        (2, "stall", 200, False),
        (3, "gone", None, False),
    ]
    assert lines[0]["prompt_tokens"] > 0
    assert all(line["prompt_tokens"] is None for line in lines[1:])
    assert lines[0]["request"] == lines[1]["request"] != lines[2]["request"]


async def test_call_when_named_by_its_client_then_the_log_has_the_name(tmp_path: Path) -> None:
    """Requests of the harness's models are known by the id that their events tell."""
    log = tmp_path / "calls.jsonl"
    async with serve(Looker(), faults=[Fault(FaultKind.EMPTY_CHOICES)], call_log=log) as server:
        model = make_model("openai:any", base_url=server.base_url, api_key="none", retry=TWICE)
        with metered() as usage:
            await asyncio.to_thread(model.invoke, "hi there")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    told = [[line["id"], line["prompt_tokens"], line["completion_tokens"]] for line in lines]
    billing: Any = usage.billing()
    assert [[name, *tokens] for name, _, *tokens in billing["calls"]] == told
    assert [reason for _, reason, *_ in billing["calls"]] == ["broken_reply", ""]
    assert billing["prompt_tokens"] == 2 * told[0][1] > 0  # what nobody could use was paid, too


async def test_embeddings_when_asked_by_openais_client_then_are_those_of_the_hashing_embedder() -> (
    None
):
    """Vectors come as base64 or as numbers, and tokens in the place of texts are refused."""
    texts = ["a red door", "nothing"]
    async with (
        serve(Looker()) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="none") as client,
    ):
        found = await client.embeddings.create(model="hashing", input=texts)
        vectors = [each.embedding for each in found.data]
        assert np.allclose(vectors, HashingEmbeddings().embed_documents(texts))
        plain = await ask(server, "embeddings", {"input": "a red door", "dimensions": 8})
        assert len(plain["data"][0]["embedding"]) == 8
        assert (
            "not tokens" in (await ask(server, "embeddings", {"input": [[1]]}))["error"]["message"]
        )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"n": 2}, "`n` must be 1"),
        ({"messages": "hi"}, "`messages`"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "`messages`"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
async def test_complete_when_asked_for_what_there_is_not_then_says_so(
    body: dict[str, Any], said: str
) -> None:
    """A request that cannot be answered as asked is refused, with status 400."""
    async with serve(Looker()) as server:
        status, _, text = await post(server, **body)
    assert status == 400
    assert said in json.loads(text)["error"]["message"]


async def test_tools_when_the_choice_is_none_then_are_not_shown_to_the_model() -> None:
    """`tool_choice: none` is a request without tools."""
    async with serve(Looker()) as server:
        _, _, text = await post(server, tools=[LOOK], tool_choice="none")
    assert json.loads(text)["choices"][0]["finish_reason"] == "stop"


async def test_model_when_several_are_served_then_is_found_by_name_or_by_what_is_asked() -> None:
    """`simulated` is whoever understands; a name is that model."""
    served = {"babyai": SimulatedBabyAI(), "alfworld": SimulatedALFWorld(), "looker": Looker()}
    home = "You are in the middle of a room.\n\nYour task is to: put a mug in sidetable."
    grid = "Your goal: pick up the red ball\nIn front of you in this room, you can see nothing."
    async with serve(served) as server:
        answered = {}
        for name, text in {"simulated": home, "any": grid, "alfworld": grid, "else": "hi"}.items():
            said = await post(server, model=name, messages=[{"role": "user", "content": text}])
            answered[name] = json.loads(said[2])["model"]
    assert answered == {
        "simulated": "alfworld",
        "any": "babyai",
        "alfworld": "alfworld",
        "else": "looker",
    }


@pytest.mark.parametrize(("temperature", "noise"), [(0, 0.0), (0, 0.5), (0.7, 0.5)])
async def test_reply_when_noisy_then_differs_now_and_then_at_temperature_zero_alone(
    temperature: float, noise: float
) -> None:
    """The same request, again and again: as a provider answers, and the same in a second server."""
    grid = (
        "Your goal: pick up the red ball\nIn front of you in this room, you can see a red ball 1."
    )
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": grid}],
        "temperature": temperature,
    }
    series = []
    for _ in range(2):
        async with serve(SimulatedBabyAI(), noise=noise) as server:
            texts = [json.loads((await post(server, **body))[2]) for _ in range(30)]
        series.append([text["choices"][0]["message"]["content"] for text in texts])
    assert series[0] == series[1]
    assert (len(set(series[0])) > 1) == (temperature == 0 and noise > 0)


@given(rates=st.lists(st.floats(0.01, 0.2), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_script_when_it_has_rates_then_faults_come_about_as_often(
    rates: list[float], seed: int
) -> None:
    """Rates are shares of all calls, and a script says the same of a call whenever it is asked."""
    faults = tuple(
        Fault(FaultKind.RESET, name=str(place), rate=rate) for place, rate in enumerate(rates)
    )
    script = FaultScript(seed=seed, faults=faults)
    met = [script(call) for call in range(2000)]
    assert met == [script(call) for call in range(2000)]
    for fault in faults:
        assert abs(met.count(fault) / 2000 - fault.rate) < 0.05


def test_script_when_read_then_numbers_come_before_rates(tmp_path: Path) -> None:
    """A file says what happens to which call."""
    path = tmp_path / "faults.yaml"
    path.write_text(
        "faults:\n"
        "  - {kind: status, status: 429, headers: {retry-after: '1'}, rate: 1.0}\n"
        "  - {kind: stall, name: hangs, at: [1]}\n"
    )
    script = read_faults(path)
    assert [fault.label for fault in map(script, range(3)) if fault] == [
        "status",
        "hangs",
        "status",
    ]
    first = script(0)
    assert first is not None
    assert first.headers == {"retry-after": "1"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("faults: [{kind: lightning, rate: 0.1}]", "kind"),
        ("faults: [{kind: reset, rate: 0.1, when: 1}]", "when"),
        ("faults: [{kind: reset}]", "neither `rate` nor `at`"),
        ("faults: [{kind: reset, rate: 0.7}, {kind: stall, rate: 0.7}]", "add up to 1.4"),
        ("faults: [{kind: status, status: 99, rate: 0.1}]", "status"),
        ("faults: [", "line 2"),
        ("x: 1", "x"),
    ],
)
def test_script_when_it_is_no_good_then_says_where(tmp_path: Path, text: str, said: str) -> None:
    """One line names the file and what is wrong."""
    path = tmp_path / "faults.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_faults(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


WRONG: list[Any] = [
    1,
    -1.5,
    True,
    "x",
    [],
    {},
    [1],
    {"a": 1},
    [[]],
    [{}],
    [None],
    {"type": 1},
    10**30,
]
"""A value of each type; which of them is wrong depends on the field."""
TAKEN = {
    "model": (str,),
    "messages": (),
    "stream": (bool,),
    "stream_options": (dict,),
    "temperature": (int, float),
    "max_tokens": (int,),
    "max_completion_tokens": (int,),
    "top_p": (int, float),
    "n": (int,),
    "seed": (int,),
    "stop": (str, list),
    "tools": (list,),
    "tool_choice": (str, dict),
    "response_format": (dict,),
    "logprobs": (bool,),
    "user": (str,),
    "metadata": (dict,),
}


def any_of(*values: Any) -> tuple[Any, ...]:
    """Return values of any types."""
    return values


def bodies() -> list[bytes]:
    """Return requests of which no part is of its type, or that are no requests at all."""
    good = {"model": "any", "messages": [{"role": "user", "content": "hi"}]}
    wrong: list[Any] = [None, [], [good], "x", 1, True, {}, {"messages": None}, {"input": None}]
    for name, kinds in TAKEN.items():
        wrong += [
            {**good, name: value}
            for value in WRONG
            if type(value) not in kinds or value in ([1], [[]], [{}], [None], {"type": 1}, 10**30)
            if not (name == "stop" and value == [])
            if not (
                name in {"tool_choice", "metadata", "stream_options"} and isinstance(value, dict)
            )
            if not (name == "tools" and value == [{}])
        ]
    messages: tuple[Any, ...] = (
        *any_of(
            1, "x", None, [], {}, {"role": 1, "content": "a"}, {"content": "a"}, {"role": "user"}
        ),
        *(
            {"role": "user", "content": each}
            for each in any_of(1, 1.5, True, {}, [1], [None], [{}])
        ),
        *({"role": each, "content": "a"} for each in any_of(None, [], "nobody", "")),
        *(
            {"role": "assistant", "content": "", "tool_calls": each}
            for each in any_of(1, "x", {"a": 1}, [1], [None], [{}], [{"function": 1}])
        ),
        {
            "role": "assistant",
            "tool_calls": [{"id": 1, "function": {"name": "a", "arguments": "{}"}}],
        },
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": {}}}],
        },
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "function": {"name": 5, "arguments": "{}"}}],
        },
        {"role": "tool", "content": "a", "tool_call_id": 5},
        {"role": "tool", "content": "a"},
    )
    wrong += [{**good, "messages": [message]} for message in messages]
    deep = b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    raw = [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"messages": "\xff"}',
        deep,
        b'{"temperature": NaN}',
        b"9" * 9999,
    ]
    tail = b', "messages": [{"role": "user", "content": "hi"}]}'
    raw += [b'{"temperature": 1e999' + tail, b'{"seed": ' + b"9" * 4000 + tail]
    return [*raw, *(json.dumps(each).encode() for each in wrong)]


async def test_request_when_a_part_has_the_wrong_type_then_400_and_the_server_stays_up() -> None:
    """Over HTTP: each answer is an error as OpenAI words them, and the next good request is answered."""
    models = {"babyai": SimulatedBabyAI(), "clerk": SimulatedClerk()}
    async with serve(models) as server, aiohttp.ClientSession() as session:
        for body in bodies():
            url = f"{server.base_url}/chat/completions"
            async with session.post(url, data=body) as response:
                told = await response.json()
                assert response.status == 400, (body[:200], told)
                assert set(told["error"]) == {"message", "type", "param", "code"}
                assert told["error"]["message"]
        for asked in (
            *({"input": each} for each in any_of(None, 1, {}, [1], [[1]], True)),
            *(
                {"input": "a", "dimensions": each}
                for each in any_of("x", 1.5, True, [], -1, 0, 10**12)
            ),
            *any_of({"input": "a", "encoding_format": 1}, []),
        ):
            async with session.post(f"{server.base_url}/embeddings", json=asked) as response:
                assert response.status == 400, asked
        status, _, _ = await post(server, temperature=None, tools=None, stop=["a"], seed=1)
    assert status == 200
