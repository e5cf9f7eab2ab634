"""The HTTP server that puts any chat model behind OpenAI's protocol, faults included."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langgraft.benchmarks.simulated.faults import Fault, FaultKind, FaultPlan, failing, rate_limited
from langgraft.benchmarks.simulated.server import ModelServer, serve

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


async def post(server: ModelServer, **body: Any) -> tuple[int, dict[str, str], str]:
    """Send a request and return status, headers and body."""
    request = {"model": "any", "messages": [{"role": "user", "content": "hi there"}], **body}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/chat/completions", json=request) as response,
    ):
        headers = {name.lower(): value for name, value in response.headers.items()}
        return response.status, headers, await response.text()


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
    slow = Fault(FaultKind.SLOW_FIRST_BYTE, seconds=0.05)
    async with serve(Looker(), faults=[slow, slow, slow]) as server:
        replies = await asyncio.gather(*(post(server) for _ in range(3)))
    assert [status for status, _, _ in replies] == [200, 200, 200]
    assert server.most_at_once == 3
