"""Models of the harness over real HTTP: cached, capped, retried, metered, and honest."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import BaseModel
from storms import clients_closed, kept_port
from warm_python import started_code

from langgraft._core.errors import (
    BudgetExceededError,
    InfrastructureError,
    InputError,
    SettingsError,
)
from langgraft.benchmarks.harness.budget import CallBudget
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.exchange import RetryPolicy, Timing
from langgraft.benchmarks.harness.models import MeteredChatModel, make_model
from langgraft.benchmarks.harness.usage import UsageMeter, metered, replicate_scope
from langgraft.benchmarks.simulated.faults import Fault, FaultKind, failing, rate_limited
from langgraft.benchmarks.simulated.server import ModelServer, serve

Ask = Callable[..., Awaitable[AIMessage]]


class Counter(BaseChatModel):
    """Answers with how often it has been asked: no two answers are alike, as at temperature 1."""

    asked: int = 0

    @property
    def _llm_type(self) -> str:
        return "counter"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked += 1
        if "crash" in messages[-1].text:
            raise ZeroDivisionError("a bug in the model")
        names = [each["function"]["name"] for each in kwargs.get("tools", ())]
        calls = [{"name": name, "args": {}, "id": f"call-{self.asked}"} for name in names]
        half = "\ud83d" if "half" in messages[-1].text else ""
        message = AIMessage(f"answer {self.asked}{half}", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.sleeps: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None

    def time(self) -> float:
        """Seconds since the epoch."""
        return self.now

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Go on without waiting."""
        self.sleeps.append(seconds)
        self.now += seconds
        self.on_sleep()

    async def asleep(self, seconds: float) -> None:
        """Go on without waiting."""
        self.sleep(seconds)

    @property
    def timing(self) -> Timing:
        """This clock, with jitter in the middle of the window."""
        return Timing(clock=self, sleep=self.sleep, asleep=self.asleep, fraction=lambda: 0.5)


@pytest.fixture
def clock() -> FakeTime:
    """Make a clock that does not wait."""
    return FakeTime()


@pytest.fixture(autouse=True)
async def _clients_closed() -> AsyncIterator[None]:
    """Let clients of a test go within its own event loop."""
    async with clients_closed():
        yield


async def ask_async(model: Any, text: str = "hi", **settings: Any) -> AIMessage:
    """Ask a model through its asynchronous face."""
    reply = await model.ainvoke([HumanMessage(text)], **settings)
    assert isinstance(reply, AIMessage)
    return reply


async def ask_sync(model: Any, text: str = "hi", **settings: Any) -> AIMessage:
    """Ask a model through its synchronous face, from a thread."""
    reply = await asyncio.to_thread(model.invoke, [HumanMessage(text)], **settings)
    assert isinstance(reply, AIMessage)
    return reply


@pytest.fixture(params=[ask_async, ask_sync], ids=["async", "sync"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Ask in both ways."""
    asking: Ask = request.param
    return asking


def connect(
    server: ModelServer, clock: FakeTime | None = None, **settings: Any
) -> MeteredChatModel:
    """Reach a server as a plan reaches a real one."""
    if clock is not None:
        settings["timing"] = clock.timing
    return make_model(
        "openai:simulated", base_url=server.base_url, api_key="none", temperature=1.0, **settings
    )


def billed(usage: UsageMeter, *names: str) -> tuple[Any, ...]:
    """Pick figures of a bill."""
    bill = usage.billing()
    return tuple(bill[name] for name in names)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (rate_limited(), "rate_limit"),
        (failing(500), "http_500"),
        (failing(502), "http_502"),
        (failing(503), "http_503"),
        (Fault(FaultKind.SLOW_FIRST_BYTE), "connection"),
        (Fault(FaultKind.STALL), "connection"),
        (Fault(FaultKind.RESET), "connection"),
        (Fault(FaultKind.TRUNCATED_JSON), "broken_reply"),
        (Fault(FaultKind.HTML), "broken_reply"),
        (Fault(FaultKind.EMPTY_CHOICES), "broken_reply"),
        (Fault(FaultKind.FINISH_REASON, reason="error"), "provider_error"),
    ],
    ids=lambda value: value.kind + str(value.status) if isinstance(value, Fault) else value,
)
async def test_call_when_a_fault_is_transient_then_it_is_asked_again_and_answered(
    ask: Ask, clock: FakeTime, fault: Fault, reason: str
) -> None:
    """Two faults in a row cost two waits and lose nothing; every call is counted once."""
    silent = fault.kind in (FaultKind.SLOW_FIRST_BYTE, FaultKind.STALL)
    faults = lambda _: fault if len(clock.sleeps) < 2 else None  # noqa: E731
    async with serve(Counter(), faults=faults) as server:
        model = connect(server, clock, timeout=0.75 if silent else 300.0)

        def be_patient() -> None:
            """Leave the good third reply its time: the limit is real."""
            if len(clock.sleeps) == 2:
                inner: Any = model.inner
                inner.root_client.timeout = inner.root_async_client.timeout = 300.0

        clock.on_sleep = be_patient
        with metered() as usage:
            reply = await ask(model)
    assert reply.text.startswith("answer")
    # A silent call may end before it arrives, where the machine is busy.
    assert len(server.calls) in ((1, 2, 3) if silent else (3,))
    assert clock.sleeps == [0.5, 1.0]
    assert billed(usage, "attempts", "failures", "waited_seconds") == (3, {reason: 2}, 1.5)
    assert usage.totals()["replies"] == 1


@pytest.mark.parametrize(
    ("limit", "wait"),
    [
        (rate_limited(retry_after="7"), 7.5),
        (rate_limited(retry_after_ms="250"), 0.75),
        (rate_limited(retry_after="121"), 121.5),
        # A date is held against the reply's own, and so against the server's clock.
        (rate_limited(retry_after="Tue, 14 Nov 2023 22:14:20 GMT"), 0.5),
    ],
)
async def test_call_when_the_provider_names_a_wait_then_it_is_honored(
    ask: Ask, clock: FakeTime, limit: Fault, wait: float
) -> None:
    """Seconds, milliseconds, a date, and waits longer than the client itself accepts."""
    async with serve(Counter(), faults=[limit]) as server:
        await ask(connect(server, clock))
    assert clock.sleeps == [wait]
    assert len(server.calls) == 2


async def test_call_when_faults_outlast_patience_then_it_is_infrastructure(
    ask: Ask, clock: FakeTime
) -> None:
    """A provider that fails for 15 minutes costs the item, with one line that says so."""
    started = clock.now
    async with serve(Counter(), faults=lambda _: failing(503)) as server:
        with pytest.raises(InfrastructureError) as caught:
            await ask(connect(server, clock))
    assert 840 < clock.now - started <= 900
    assert f"{len(server.calls)} attempts (http_503)" in str(caught.value)
    assert server.base_url in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_call_when_a_storm_lasts_ten_minutes_then_no_call_is_lost(clock: FakeTime) -> None:
    """Rate limits, server errors and resets for ten minutes are waited out."""
    storm = [rate_limited(), failing(502), Fault(FaultKind.RESET)]
    end = clock.now + 600

    def weather(index: int) -> Fault | None:
        return storm[index % 3] if clock.now < end else None

    async with serve(Counter(), faults=weather) as server:
        reply = await ask_async(connect(server, clock))
    assert reply.text == "answer 1"
    assert clock.now - end < 60


async def test_call_when_nobody_listens_then_it_gives_up_after_a_minute(
    ask: Ask, clock: FakeTime
) -> None:
    """A mistyped URL is reported soon, and the message says what to check."""
    started = clock.now
    with kept_port() as port:
        url = f"http://127.0.0.1:{port}/v1"
        model = make_model("openai:simulated", base_url=url, api_key="none", timing=clock.timing)
        with pytest.raises(InfrastructureError, match="check base_url and the network"):
            await ask(model)
    assert clock.now - started <= 60


async def test_call_when_a_provider_was_there_before_then_its_absence_is_waited_out(
    clock: FakeTime,
) -> None:
    """A server that restarts is not mistaken for a mistyped URL."""
    with kept_port() as port:
        async with serve(Counter(), port=port) as server:
            model = connect(server, clock)
            await ask_async(model)
        started = clock.now
        with pytest.raises(InfrastructureError):
            await ask_async(model)
    assert clock.now - started > 800


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        (failing(401, code="invalid_api_key", message="bad key"), "bad key; check the API key"),
        (failing(403), "check the API key"),
        (failing(404, code="model_not_found"), "check the model's name"),
        (failing(400, code="unsupported_parameter"), "check the model's settings"),
        (failing(429, code="insufficient_quota"), "check the account's credit"),
    ],
    ids=["401", "403", "404", "400", "quota"],
)
async def test_call_when_refused_for_good_then_it_stops_in_one_line_at_once(
    ask: Ask, clock: FakeTime, fault: Fault, hint: str
) -> None:
    """What would fail for every item alike is the user's to mend: one call, one line."""
    async with serve(Counter(), faults=[fault]) as server:
        with pytest.raises(InputError, match=hint) as caught:
            await ask(connect(server, clock))
    assert len(server.calls) == 1
    assert clock.sleeps == []
    assert "'openai:simulated'" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "reason", "replies_paid"),
    [
        (failing(400, code="context_length_exceeded"), "context_length", False),
        (failing(400, code="content_filter"), "content_filter", False),
        (Fault(FaultKind.FINISH_REASON, reason="content_filter"), "content_filter", True),
    ],
    ids=["context", "filtered prompt", "filtered reply"],
)
async def test_call_when_the_model_fails_by_its_own_doing_then_an_empty_reply_says_why(
    ask: Ask, clock: FakeTime, tmp_path: Path, fault: Fault, reason: str, *, replies_paid: bool
) -> None:
    """Such a call is scored, so it returns; it is neither repeated nor kept."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter(), faults=[fault]) as server:
            with metered() as usage:
                reply = await ask(connect(server, clock, responses=responses))
        assert len(responses) == 0
    assert len(server.calls) == 1
    assert reply.content == ""
    assert reply.response_metadata["failure"]["kind"] == "model_behavior"
    assert reply.response_metadata["failure"]["reason"] == reason
    assert billed(usage, "failures") == ({reason: 1},)
    assert (usage.totals()["completion_tokens"] != 0) == replies_paid


async def test_call_when_the_reply_is_cut_off_then_it_is_returned_and_not_kept(
    ask: Ask, tmp_path: Path
) -> None:
    """A truncated reply is the agent's to judge, and the next time is asked anew."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter(), faults=[Fault(FaultKind.FINISH_REASON)]) as server:
            model = connect(server, responses=responses)
            cut, whole, kept = [await ask(model) for _ in range(3)]
    assert cut.response_metadata["finish_reason"] == "length"
    assert [cut.text, whole.text, kept.text] == ["answer 1", "answer 2", "answer 2"]
    assert len(server.calls) == 2


async def test_call_when_the_error_is_nobodys_then_it_is_unscored_and_not_repeated(
    ask: Ask, clock: FakeTime
) -> None:
    """An unknown error of the inner model is reported with its cause, once."""
    inner = Counter()
    model = MeteredChatModel(inner=inner, identity={"model": "counter"}, timing=clock.timing)
    with pytest.raises(
        InfrastructureError, match=r"1 attempt .ZeroDivisionError.: a bug"
    ) as caught:
        await ask(model, "crash")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert inner.asked == 1


@pytest.mark.parametrize("call_seconds", [None, 60.0])
async def test_call_when_it_has_no_deadline_then_is_made_where_it_is_asked_for(
    ask: Ask, call_seconds: float | None
) -> None:
    """A model of this process is called without a thread; its errors, time-outs too, are its own."""
    asked_in: list[threading.Thread] = []

    class Here(Counter):
        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            asked_in.append(threading.current_thread())
            if "late" in messages[-1].text:
                raise TimeoutError("the model's own")
            return super()._generate(messages, *args, **kwargs)

    patience = RetryPolicy(total_seconds=0, unreachable_seconds=0)
    model = MeteredChatModel(
        inner=Here(), identity={"model": "here"}, call_seconds=call_seconds, retry=patience
    )
    model.invoke("hello")
    assert (asked_in == [threading.current_thread()]) is (call_seconds is None)
    assert (await ask(model, "hello")).text == "answer 2"
    with pytest.raises(InfrastructureError, match="the model's own"):
        await ask(model, "late")


async def test_call_when_cancelled_then_it_ends_at_once_and_its_reservation_is_returned() -> None:
    """Cancelling is no failure: nothing is repeated, nothing stays set aside."""
    slow = Fault(FaultKind.SLOW_FIRST_BYTE, seconds=300)
    budget = CallBudget(max_tokens=1000)
    arrived = asyncio.Event()

    def take_long(_: int) -> Fault:
        arrived.set()
        return slow

    async with serve(Counter(), faults=take_long) as server:
        model = connect(server, budget=budget, max_tokens=100)
        task = asyncio.create_task(model.ainvoke("hi"))
        await asyncio.wait_for(arrived.wait(), 300)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert budget.spent() == {"calls": 1, "tokens": 0, "dollars": 0.0}
    assert len(server.calls) == 1


async def test_cache_when_asked_again_then_the_answer_is_the_same_and_free(
    ask: Ask, tmp_path: Path
) -> None:
    """A hit has the same content and token counts, and is billed nothing."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter()) as server:
            model = connect(server, responses=responses)
            with metered() as first:
                paid = await ask(model)
            with metered() as second:
                free = await ask(model)
    assert len(server.calls) == 1
    assert paid.content == free.content == "answer 1"
    assert first.totals() == second.totals()
    assert billed(first, "attempts", "cache_hits") == (1, 0)
    assert billed(second, "attempts", "cache_hits", "prompt_tokens") == (0, 1, 0)
    assert paid.usage_metadata is not None
    assert free.usage_metadata == {**paid.usage_metadata, "total_cost": 0}
    assert paid.id != free.id


async def test_cache_when_replicates_ask_then_each_gets_its_own_answer(
    ask: Ask, tmp_path: Path
) -> None:
    """At temperature above zero repetitions differ; repeating a repetition does not."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter()) as server:
            model = connect(server, responses=responses)
            answers = []
            for name in ("run-0", "run-1", "run-0"):
                with replicate_scope(name):
                    answers.append((await ask(model)).text)
    assert answers == ["answer 1", "answer 2", "answer 1"]
    assert len(server.calls) == 2


async def test_cache_when_a_conversation_is_replayed_then_every_turn_is_a_hit(
    tmp_path: Path,
) -> None:
    """Ids, token counts and the marks of a hit in earlier turns do not change the question."""

    async def converse(model: MeteredChatModel) -> list[str]:
        messages: list[BaseMessage] = [HumanMessage("hi")]
        for _ in range(3):
            reply = await model.ainvoke(messages)
            messages += [reply, HumanMessage("go on")]
        return [message.text for message in messages]

    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter()) as server:
            model = connect(server, responses=responses)
            assert await converse(model) == await converse(model)
    assert len(server.calls) == 3


@pytest.mark.parametrize(
    ("settings", "shared"),
    [
        ({"timeout": 5.0}, True),
        ({"retry": RetryPolicy(total_seconds=1.0)}, True),
        ({"max_tokens": 17}, False),
        ({"seed": 7}, False),
    ],
)
async def test_cache_when_another_setting_differs_then_only_sampling_separates(
    tmp_path: Path, settings: dict[str, Any], *, shared: bool
) -> None:
    """Time limits and patience do not change what a model says; sampling does."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter()) as server:
            await ask_async(connect(server, responses=responses))
            await ask_async(connect(server, responses=responses, **settings))
    assert len(server.calls) == (1 if shared else 2)


async def test_cache_when_tools_or_stop_words_differ_then_the_request_does(tmp_path: Path) -> None:
    """What is sent beside the messages is part of the question; a time limit is not."""

    @tool
    def look() -> str:
        """Look around."""
        return ""

    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter()) as server:
            model = connect(server, responses=responses)
            bound = model.bind_tools([look])
            for _ in range(2):
                await ask_async(model)
                await ask_async(model, stop=["."])
                await ask_async(model, timeout=9.0)
                calling = await ask_async(bound)
    assert len(server.calls) == 3
    assert [call["name"] for call in calling.tool_calls] == ["look"]


async def test_cache_when_two_ask_at_once_then_both_get_the_first_answer(tmp_path: Path) -> None:
    """Whoever finishes second is given what was kept, so that replays agree with the run."""
    slow = Fault(FaultKind.SLOW_FIRST_BYTE, seconds=0.1)
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter(), faults=[slow, slow]) as server:
            model = connect(server, responses=responses)
            replies = await asyncio.gather(ask_async(model), ask_async(model))
    assert len(server.calls) == 2
    assert replies[0].text == replies[1].text


ASKER = """
import sys
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.usage import replicate_scope
from langgraft.benchmarks.harness.models import make_model

url, path = sys.argv[1:]
with ResponseCache(path) as responses, replicate_scope("run-0"):
    model = make_model("openai:simulated", base_url=url, temperature=1.0, responses=responses)
    for number in range(5):
        print(model.invoke(f"question {number}").text)
"""


async def run_asker(server: ModelServer, path: Path) -> list[str]:
    """Ask five questions in a process of its own."""
    environment = {**os.environ, "OPENAI_API_KEY": ""}
    with started_code(ASKER, server.base_url, path, environment=environment) as process:
        done = await asyncio.to_thread(process.ended)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


async def test_cache_when_processes_ask_then_they_share_answers_also_after_a_restart(
    tmp_path: Path,
) -> None:
    """Two processes side by side agree, and who opens the file later pays for nothing."""
    path = tmp_path / "replies.sqlite"
    async with serve(Counter()) as server:
        first, second = await asyncio.gather(run_asker(server, path), run_asker(server, path))
        calls = len(server.calls)
        with ResponseCache(path) as responses, replicate_scope("run-0"):
            model = make_model(
                "openai:simulated",
                base_url=server.base_url,
                temperature=1.0,
                responses=responses,
            )
            third = [(await model.ainvoke(f"question {number}")).text for number in range(5)]
    assert first == second == third
    assert 5 <= calls <= 10
    assert len(server.calls) == calls


async def test_cache_when_read_only_then_a_new_question_is_an_error_without_a_call(
    ask: Ask, tmp_path: Path
) -> None:
    """A replay never reaches the provider."""
    path = tmp_path / "replies.sqlite"
    async with serve(Counter()) as server:
        with ResponseCache(path) as responses:
            await ask(connect(server, responses=responses), "known")
        with ResponseCache(path, "read_only") as responses:
            model = connect(server, responses=responses)
            assert (await ask(model, "known")).text == "answer 1"
            with pytest.raises(InputError, match="no reply is kept"):
                await ask(model, "new")
    assert len(server.calls) == 1


async def test_cache_when_read_only_then_a_model_needs_no_key_and_no_server(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has the replies replays them, by any name under which they were asked for."""
    path = tmp_path / "replies.sqlite"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-something")
    async with serve(Counter()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with ResponseCache(path) as responses:
            await ask(make_model("openai:simulated", responses=responses))
    monkeypatch.delenv("OPENAI_API_KEY")
    with ResponseCache(path, "read_only") as responses:
        model = make_model("openai:simulated", responses=responses)
        assert (await ask(model)).text == (await model.ainvoke("hi", user="me")).text == "answer 1"
        monkeypatch.delenv("OPENAI_BASE_URL")
        with pytest.raises(InputError, match=r"identity.base_url .kept 'http://127.0.0.1"):
            await ask(make_model("openai:simulated", responses=responses))


async def test_budget_when_the_cap_on_calls_is_reached_then_no_call_is_made(
    ask: Ask, clock: FakeTime, tmp_path: Path
) -> None:
    """Repeated attempts count, hits do not, and the call that would exceed it never leaves."""
    budget = CallBudget(max_calls=3)
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter(), faults=[failing(503)]) as server:
            model = connect(server, clock, budget=budget, responses=responses)
            for text in ("one", "two", "one", "two"):
                await ask(model, text)
            with pytest.raises(BudgetExceededError, match="cap of 3 calls"):
                await ask(model, "three")
    assert len(server.calls) == 3


async def test_budget_when_tokens_run_out_then_the_worst_case_is_what_counts(ask: Ask) -> None:
    """A call starts only if its prompt and the longest reply fit; what it used is settled."""
    budget = CallBudget(max_tokens=100)
    async with serve(Counter()) as server:
        model = connect(server, budget=budget, max_tokens=80)
        with metered() as usage:
            await ask(model)
        assert budget.spent()["tokens"] == sum(billed(usage, "prompt_tokens", "completion_tokens"))
        with pytest.raises(BudgetExceededError, match="cap of 100 tokens"):
            await ask(model, "a rather longer question than before, in many words " * 3)
    assert len(server.calls) == 1


async def test_usage_when_the_provider_counts_nothing_then_that_is_said_and_estimated(
    ask: Ask,
) -> None:
    """Missing counts are never taken for zero: the totals say so, and caps use an estimate."""
    budget = CallBudget(max_tokens=1000)
    async with serve(Counter(), faults=[Fault(FaultKind.MISSING_USAGE)]) as server:
        with metered() as usage:
            await ask(connect(server, budget=budget))
    assert usage.totals()["replies_without_usage"] == 1
    assert usage.totals()["prompt_tokens"] == 0
    spent = budget.spent()["tokens"]
    assert isinstance(spent, int)
    assert spent > 0


async def test_calls_when_many_run_at_once_with_faults_then_each_is_counted_once(
    tmp_path: Path, clock: FakeTime
) -> None:
    """What the server saw, what was billed and what the cap counted are the same number."""
    budget = CallBudget(max_calls=1000)

    def weather(index: int) -> Fault | None:
        return failing(503) if index % 3 == 0 else None

    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter(), faults=weather) as server:
            model = connect(server, clock, responses=responses, budget=budget)
            with metered() as usage:
                await asyncio.gather(*(ask_async(model, f"question {n}") for n in range(40)))
        assert len(responses) == 40
    assert budget.spent()["calls"] == billed(usage, "attempts")[0] == len(server.calls)
    assert usage.totals()["replies"] == 40


async def test_call_when_the_reply_is_no_text_then_the_conversation_can_go_on(
    ask: Ask, tmp_path: Path
) -> None:
    """Half a surrogate pair is replaced, or nothing could send or log the reply again."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter()) as server:
            model = connect(server, responses=responses)
            first = await ask(model, "half an emoji, please")
            again = await ask(model, "half an emoji, please")
            await ask(model, first.text)
    assert first.text == again.text == "answer 1\N{REPLACEMENT CHARACTER}"


async def test_agent_when_built_on_a_metered_model_then_tools_and_meter_work(
    tmp_path: Path,
) -> None:
    """LangChain's own agent runs on it, and a second run costs nothing."""

    @tool
    def look() -> str:
        """Look around."""
        return "a door"

    def once(messages: list[BaseMessage]) -> bool:
        return any(message.type == "tool" for message in messages)

    class Looker(Counter):
        def _generate(
            self,
            messages: list[BaseMessage],
            stop: list[str] | None = None,
            run_manager: CallbackManagerForLLMRun | None = None,
            **kwargs: Any,
        ) -> ChatResult:
            tools = () if once(messages) else kwargs.get("tools", ())
            return super()._generate(messages, stop, run_manager, tools=tools)

    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Looker()) as server:
            agent = create_agent(connect(server, responses=responses), [look])
            bills = []
            for _ in range(2):
                with metered() as usage:
                    ended = await agent.ainvoke({"messages": [HumanMessage("what is there?")]})
                bills.append((usage.totals()["replies"], *billed(usage, "attempts", "cache_hits")))
    assert [message.type for message in ended["messages"]] == ["human", "ai", "tool", "ai"]
    assert bills == [(2, 2, 0), (2, 0, 2)]


async def test_structured_output_when_asked_of_a_metered_model_then_it_is_parsed(
    tmp_path: Path,
) -> None:
    """Schemas work through tool calls, cached like any other request."""

    class Choice(BaseModel):
        """A choice."""

        door: str = "left"

    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter()) as server:
            chooser = connect(server, responses=responses).with_structured_output(Choice)
            assert await chooser.ainvoke("choose") == await chooser.ainvoke("choose") == Choice()
    assert len(server.calls) == 1


def test_metered_model_when_its_client_retries_then_it_is_refused() -> None:
    """Nested retries multiply."""
    inner = init_chat_model("openai:simulated", api_key="none", base_url="http://example.test/v1")
    with pytest.raises(SettingsError, match="max_retries=0"):
        MeteredChatModel(inner=inner, identity={"model": "openai:simulated"})


async def test_stream_when_asked_then_the_whole_reply_comes_as_one_chunk(tmp_path: Path) -> None:
    """Streaming keeps cache and meter; the reply arrives in one piece."""
    with ResponseCache(tmp_path / "replies.sqlite") as responses:
        async with serve(Counter()) as server:
            model = connect(server, responses=responses)
            texts = [[chunk.text async for chunk in model.astream("hi")] for _ in range(2)]
    assert texts[0] == texts[1]
    assert "".join(texts[0]) == "answer 1"
    assert len(server.calls) == 1


async def test_make_model_when_sampling_is_given_then_it_is_sent(ask: Ask) -> None:
    """What the plan says is what the provider is told, and the client does not retry."""
    async with serve(Counter()) as server:
        await ask(connect(server, max_tokens=17, seed=7))
    request = server.calls[0].request
    assert (request["temperature"], request["seed"]) == (1.0, 7)
    assert request["max_completion_tokens"] == 17
    assert server.calls[0].headers["x-stainless-retry-count"] == "0"


async def test_make_model_when_settings_are_given_then_they_are_sent_and_part_of_it(
    ask: Ask,
) -> None:
    """Reasoning can be switched off, and a reply made with it on is never taken for one without."""
    off = {"reasoning_effort": "low", "extra_body": {"chat_template_kwargs": {"x": False}}}
    async with serve(Counter()) as server:
        made = connect(server, settings=off)
        await ask(made)
        plain = connect(server)
    request = server.calls[0].request
    assert request["reasoning_effort"] == "low"
    assert request["chat_template_kwargs"] == {"x": False}
    assert made.identity == {**plain.identity, "settings": off}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("openai:x", {"settings": {"temperature": 1}}, "'temperature' has a field of its own"),
        ("openai:x", {"settings": {"max_retries": 1}}, "'max_retries' decides how replies are"),
        (
            "openai:x",
            {"settings": {"openai_api_key": "k"}},
            "model_settings.openai_api_key may be a secret",
        ),
        (
            "openai:x",
            {"settings": {"default_headers": {}}},
            "model_settings.default_headers may be a secret",
        ),
        ("nope", {}, "'nope' is not of the form provider:model"),
        ("openai:", {}, "not of the form"),
        ("martian:x", {}, "'martian' is no provider"),
        ("groq:x", {}, "pip install langchain-groq"),
        ("openai:gpt-4o", {}, "'openai:gpt-4o' .*OPENAI_API_KEY"),
        ("openai:gpt-4o", {"base_url": "localhost:8000"}, "base_url: 'localhost:8000' does not"),
        ("openai:gpt-4o", {"api_key": "k", "temperature": "hot"}, "temperature"),
    ],
)
def test_make_model_when_it_cannot_be_built_then_one_line_says_why(
    name: str, settings: dict[str, Any], message: str
) -> None:
    """Each mistake names the string and what to install, set or change."""
    with pytest.raises(InputError, match=message) as caught:
        make_model(name, **settings)
    assert "\n" not in str(caught.value)


async def test_models_when_made_in_one_event_loop_after_another_then_all_are_answered() -> None:
    """A notebook's cell and a script may run a plan twice; no connection of a closed loop is used."""
    async with serve(Counter()) as server:

        async def ask() -> str:
            return (await connect(server).ainvoke("hi")).text

        answers = [await asyncio.to_thread(asyncio.run, ask()) for _ in range(3)]
    assert answers == ["answer 1", "answer 2", "answer 3"]


def test_make_model_when_the_url_comes_from_the_environment_then_it_is_part_of_the_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Replies of two servers are never mistaken for each other."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://example.test/v1/")
    model = make_model("openai:simulated", api_key="none")
    assert model.identity["base_url"] == "http://example.test/v1"
    assert model._llm_type == "openai-chat"
    assert model._identifying_params == model.identity


def test_import_when_nothing_is_called_then_no_client_is_loaded() -> None:
    """Reading the harness costs neither `openai` nor `aiohttp` nor `langchain`."""
    code = (
        "import sys, langgraft.benchmarks.harness.models;"
        "print([m for m in ('openai', 'aiohttp', 'langchain') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
