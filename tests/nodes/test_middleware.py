"""Memory for `create_agent`: in the request alone, a bank for each user, every turn filed once."""

import logging
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import Field
from toy_world import LESSONS, RuleModel
from typing_extensions import override

from langgraft import Banks, InsightMemory, MemoryMiddleware, Outcome, TrajectoryMemory
from langgraft._core.errors import InfrastructureError, InputError, SettingsError
from langgraft.memory.model import BLOCK_START
from langgraft.memory.providers.trajectory import TrajectorySettings
from langgraft.memory.trust import QUARANTINED, TrustSettings
from langgraft.nodes.tools import memory_tools

CALL = {"name": "look_up", "args": {"term": "tea"}, "id": "c1"}


class Scripted(BaseChatModel):
    """Answers by a rule, with tools bound or not, and keeps what it was shown."""

    rule: Callable[[Sequence[BaseMessage]], AIMessage]
    seen: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    @override
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    @override
    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.rule(messages))])


def answering() -> Scripted:
    """Make a model that counts the human messages that it is shown."""

    def rule(messages: Sequence[BaseMessage]) -> AIMessage:
        return AIMessage(f"answer {sum(isinstance(each, HumanMessage) for each in messages)}")

    return Scripted(rule=rule)


def looking_up(times: int = 1) -> Scripted:
    """Make a model that calls a tool so many times a turn before it answers."""

    def rule(messages: Sequence[BaseMessage]) -> AIMessage:
        since = list(messages)
        while any(isinstance(each, HumanMessage) for each in since):
            del since[0]
        calls = sum(isinstance(each, ToolMessage) for each in since)
        if calls < times:
            return AIMessage("I look.", tool_calls=[{**CALL, "id": f"c{len(messages)}"}])
        return AIMessage("done")

    return Scripted(rule=rule)


@tool
def look_up(term: str) -> str:
    """Look a term up."""
    return f"{term} is a drink"


@dataclass
class Context:
    """Who asks."""

    user_id: Any


def agent_of(model: Scripted, middleware: MemoryMiddleware, **options: Any) -> Any:
    """Build a user's agent."""
    options = {"store": InMemoryStore(), "checkpointer": InMemorySaver(), **options}
    return create_agent(
        model, options.pop("tools", []), middleware=[middleware], context_schema=Context, **options
    )


def per_user(provider: Any = "trajectory", **options: Any) -> MemoryMiddleware:
    """Give each user a bank."""
    return MemoryMiddleware(provider, user=lambda runtime: runtime.context.user_id, **options)


def ask(agent: Any, text: str, *, thread: str = "t", user: Any = "ada", **fields: Any) -> Any:
    """Ask an agent something in a thread."""
    given = {"messages": [HumanMessage(text, **fields)]}
    return agent.invoke(given, config(thread), context=Context(user))


def config(thread: str = "t") -> Any:
    """Name a conversation."""
    return {"configurable": {"thread_id": thread}}


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what messages say."""
    return [message.text for message in messages]


def banks_in(store: Any, provider: str = "trajectory") -> Banks:
    """Open the banks of a middleware's users."""
    return Banks(store, provider)


def filed(store: Any, user: str = "ada", provider: str = "trajectory") -> list[str]:
    """Return what a user's bank holds."""
    items = banks_in(store, provider)[user].content().items.values()
    return [item.text for item in sorted(items, key=lambda item: item.order_index)]


# What the model is told -------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_memory_is_in_the_prompt_of_its_user_and_nowhere_else(asynchronous: bool) -> None:
    """Another thread of the same user is told; another user is not; no stream or state holds any of it."""
    model, store, saver = answering(), InMemoryStore(), InMemorySaver()
    agent = agent_of(model, per_user(), store=store, checkpointer=saver)
    ask(agent, "what is SECRET tea", thread="one")
    seen: list[Any] = []
    for thread, user in (("two", "ada"), ("three", "bob")):
        given = {"messages": [HumanMessage("what is green tea")]}
        options: Any = {
            "context": Context(user),
            "stream_mode": ["values", "updates", "messages", "custom", "debug", "checkpoints"],
        }
        if asynchronous:
            seen += [chunk async for chunk in agent.astream(given, config(thread), **options)]
        else:
            seen += list(agent.stream(given, config(thread), **options))
    told, other = model.seen[1], model.seen[2]
    assert told[-1].text.startswith("what is green tea\n\n" + BLOCK_START)
    assert "Task: what is SECRET tea" in told[-1].text
    assert texts(other) == ["what is green tea"]
    kept = [seen, *(saver.list(config(thread)) for thread in ("two", "three"))]
    written = "".join(str(list(each)) for each in kept)
    assert "what is green tea" in written
    assert "SECRET" not in written
    assert "recalled_memory" not in written
    assert filed(store) == [
        "Task: what is SECRET tea\nAction: answer 1",
        "Task: what is green tea\nAction: answer 1",
    ]


def test_prompts_of_a_turn_begin_with_the_one_before_and_of_the_next_with_the_question() -> None:
    """Caches of prompts go by what comes first: the block keeps its place, and does not stand in front."""
    model = looking_up(times=3)
    agent = agent_of(model, per_user(), tools=[look_up])
    ask(agent, "what is tea", thread="earlier")
    for text in ("what is green tea", "what is black tea"):
        ask(agent, text)
    for turn in (model.seen[4:8], model.seen[8:12]):
        for before, after in pairwise(turn):
            assert texts(after)[: len(before)] == texts(before)
            assert any(BLOCK_START in text for text in texts(after))
    last, following = texts(model.seen[7]), texts(model.seen[8])
    asked = next(n for n, text in enumerate(last) if BLOCK_START in text)
    assert following[:asked] == last[:asked]
    assert last[asked].startswith(following[asked] + "\n\n" + BLOCK_START)


def test_memory_that_asks_again_does_so_in_the_middle_of_a_turn() -> None:
    """Receipts of all recalls are filed with the turn."""
    model, store = looking_up(times=4), InMemoryStore()
    settings = {"granularity": "individual", "requery_interval": 2}
    middleware = per_user("insight", settings=settings, model=RuleModel(rule=lambda _: LESSONS))
    agent = agent_of(model, middleware, tools=[look_up], store=store)
    ask(agent, "what is tea", thread="one")
    ask(agent, "what is tea", thread="two")
    state = agent.get_state(config("two")).values
    assert [each["step"] for each in state["langgraft_turns"][-1]["receipts"]] == [0, 2, 4]


def test_question_is_not_shown_what_was_learned_from_it() -> None:
    """Asked again in its thread by the same message, edited or not; in another thread it is."""
    model, store = answering(), InMemoryStore()
    agent = agent_of(model, per_user(), store=store)
    for text, thread in (("what is tea", "t"), ("what is TEA", "t"), ("what is tea", "u")):
        ask(agent, text, id="m", thread=thread)
    assert [BLOCK_START in texts(seen)[-1] for seen in model.seen] == [False, False, True]


def test_question_with_parts_keeps_them() -> None:
    """A picture stays, and the block is a part of its own."""
    model = answering()
    agent = agent_of(model, per_user())
    ask(agent, "what is tea", thread="one")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    given = [HumanMessage([{"type": "text", "text": "what tea is this"}, picture])]
    agent.invoke({"messages": given}, config("two"), context=Context("ada"))
    content = model.seen[-1][-1].content
    assert content[:2] == given[0].content
    assert str(content[2]).startswith(f"{{'type': 'text', 'text': '{BLOCK_START}")


def test_app_of_the_readme_has_few_lines_more_and_remembers_in_the_next_process(
    tmp_path: Path,
) -> None:
    """Memory is a few lines of it, and there again in the next process."""
    page = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    section = page.split("## Add memory to an agent you have")[1]
    code = section.split("```python\n")[1].split("```")[0]
    for number in (1, 2):
        said = subprocess.run(
            [sys.executable, "-c", code + "\nprint('held', len(memory['ada'].content().items))"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert said.splitlines()[-1] == f"held {number}"


# What is filed ----------------------------------------------------------------------------


def test_turn_is_an_episode_of_steps_judged_by_the_application() -> None:
    """Tool calls are actions; what the agent itself found in memory is not filed again."""
    store = InMemoryStore()
    memory = TrajectoryMemory(store)
    search = {"name": "search_memory", "args": {"query": "tea"}, "id": "s"}

    def rule(messages: Sequence[BaseMessage]) -> AIMessage:
        calls = {"human": [CALL], "tool": [search]}
        if len(messages) > 3:
            return AIMessage("A drink.")
        return AIMessage("I look.", tool_calls=calls[messages[-1].type])

    middleware = MemoryMiddleware(
        memory, outcome=lambda state: "drink" in state["messages"][-1].text
    )
    agent = agent_of(
        Scripted(rule=rule), middleware, tools=[look_up, *memory_tools(memory)], store=store
    )
    ask(agent, "what is tea")
    (item,) = memory.content().items.values()
    assert item.text.splitlines() == [
        "Task: what is tea",
        "Thought: I look.",
        'Action: look_up({"term":"tea"})',
        "Observation: tea is a drink",
        "Thought: I look.",
        'Action: search_memory({"query":"tea"})',
        "Action: A drink.",
        "Result: success",
    ]


def test_lessons_are_drawn_by_the_model_given_and_not_streamed() -> None:
    """What reflects is not the agent's answer."""
    store = InMemoryStore()
    middleware = per_user("insight", model=Scripted(rule=lambda _: AIMessage(LESSONS)))
    agent = agent_of(answering(), middleware, store=store)
    given = {"messages": [HumanMessage("what is tea")]}
    chunks = list(agent.stream(given, config(), context=Context("ada"), stream_mode="messages"))
    assert {chunk.text for chunk, _ in chunks} == {"answer 1"}
    assert filed(store, provider="insight") == ["- When the corridor is long: walk on\n- count"]


def test_turn_that_broke_off_after_its_answer_is_filed_by_the_next_with_outcome_unknown() -> None:
    """It is filed in a run of its own user only: nobody else's run opens that bank."""
    store = InMemoryStore()

    class Breaks(AgentMiddleware[Any, Any]):
        breaks = True

        def after_model(self, state: Any, runtime: Any) -> None:
            if self.breaks and not state["messages"][-1].tool_calls:
                raise TimeoutError

    breaking, middleware = Breaks(), per_user(outcome=lambda _: Outcome(success=True))
    agent: Any = create_agent(
        looking_up(),
        [look_up],
        middleware=[middleware, breaking],
        context_schema=Context,
        store=store,
        checkpointer=InMemorySaver(),
    )
    with pytest.raises(TimeoutError):
        ask(agent, "what is tea")
    assert filed(store) == []
    breaking.breaks = False
    ask(agent, "what is coffee", user="bob")
    assert filed(store) == []
    assert [text.splitlines()[-1] for text in filed(store, "bob")] == ["Result: success"]
    ask(agent, "what is milk")
    left, other = filed(store)
    assert left.splitlines()[0] == "Task: what is tea"
    assert "Observation: tea is a drink" in left
    assert left.splitlines()[-1] == "Action: done"
    assert other.splitlines()[-1] == "Result: success"


def test_turn_without_an_answer_is_never_filed() -> None:
    """It would be shorter than answered ones, and recalled before them."""
    store, middleware, model = InMemoryStore(), per_user(), answering()
    agent = agent_of(model, middleware, store=store)
    ask(agent, "what is tea", thread="answered")
    model.rule, rule = (lambda _: 1 / 0), model.rule  # type: ignore[assignment, return-value]
    with pytest.raises(ZeroDivisionError):
        ask(agent, "what is tea")
    middleware.flush(agent, config())
    model.rule = rule
    ask(agent, "are you there")
    ask(agent, "what is tea", thread="again")
    assert "answer 1" in texts(model.seen[-1])[-1]
    tasks = [text.splitlines()[0] for text in filed(store)]
    assert tasks == ["Task: what is tea", "Task: are you there", "Task: what is tea"]


@pytest.mark.parametrize("on_refile", ["skip", "replace"])
def test_message_sent_again_is_filed_once(on_refile: Any) -> None:
    """The first episode is kept, or the latest takes its place."""
    store = InMemoryStore()
    agent = agent_of(answering(), per_user(on_refile=on_refile), store=store)
    for text in ("what is tea", "what is coffee"):
        ask(agent, text, id=text)
    before = filed(store)
    ask(agent, "what is coffee", id="what is coffee")
    after = filed(store)
    assert len(after) == len(before) == 2
    assert (after == before) == (on_refile == "skip")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_turns_filed_in_the_background_are_all_there_in_the_end(asynchronous: bool) -> None:
    """The answer does not wait; the next turn of a thread does, and so does `flush`."""
    store = InMemoryStore()

    async def outcome(_: Any) -> bool:
        return True

    middleware = per_user(remember="background", outcome=outcome if asynchronous else None)
    agent = agent_of(answering(), middleware, store=store)
    for number in range(3):
        given = {"messages": [HumanMessage(f"what is tea {number}")]}
        if asynchronous:
            await agent.ainvoke(given, config(), context=Context("ada"))
        else:
            agent.invoke(given, config(), context=Context("ada"))
    if asynchronous:
        await middleware.aflush()
    else:
        middleware.flush()
    assert [text.splitlines()[0] for text in filed(store)] == [
        f"Task: what is tea {number}" for number in range(3)
    ]


def test_agent_that_does_not_remember_only_recalls() -> None:
    """A bank can be read without being written."""
    store, model = InMemoryStore(), answering()
    ask(agent_of(answering(), per_user(), store=store), "what is tea")
    agent = agent_of(model, per_user(remember="no"), store=store)
    for text in ("what is green tea", "what is black tea"):
        ask(agent, text, thread="two")
    assert BLOCK_START in model.seen[-1][-1].text
    assert len(filed(store)) == 1


# What goes wrong --------------------------------------------------------------------------


class Down(InMemoryStore):
    """A store that can be down."""

    down = False

    @override
    def batch(self, ops: Any) -> Any:
        if self.down:
            msg = "the database cannot be reached"
            raise InfrastructureError(msg)
        return super().batch(ops)


def test_memory_that_is_down_costs_no_answer_and_catches_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each turn that was not filed is filed once memory is back, with the outcome it had."""
    store, model = Down(), answering()
    agent = agent_of(model, per_user(outcome=lambda _: True), store=store)
    ask(agent, "what is tea")
    store.down = True
    with caplog.at_level(logging.WARNING, "langgraft"):
        for text in ("what is coffee", "what is milk"):
            assert ask(agent, text)["messages"][-1].text.startswith("answer")
    said = [record.getMessage() for record in caplog.records]
    assert any("the database cannot be reached" in line for line in said)
    store.down = False
    ask(agent, "what is water", thread="another")
    tasks = ["tea", "coffee", "milk", "water"]
    assert [text.splitlines()[0] for text in filed(store)] == [
        f"Task: what is {each}" for each in tasks
    ]
    assert all(text.endswith("Result: success") for text in filed(store))
    assert BLOCK_START in model.seen[-1][-1].text


def test_memory_that_is_down_is_asked_once_a_turn(caplog: pytest.LogCaptureFixture) -> None:
    """Each call of the model would wait for a connection otherwise."""
    store = Down()
    store.down = True
    agent = agent_of(looking_up(3), per_user(), store=store, tools=[look_up])
    with caplog.at_level(logging.WARNING):
        ask(agent, "what is tea")
    said = [record.getMessage() for record in caplog.records]
    assert sum("nothing was recalled" in each for each in said) == 1


def test_memory_that_is_down_fails_the_turn_where_that_is_asked() -> None:
    """`on_error="raise"`."""
    store = Down()
    agent = agent_of(answering(), per_user(on_error="raise"), store=store)
    store.down = True
    with pytest.raises(InfrastructureError, match="cannot be reached"):
        ask(agent, "what is tea")


def test_outcome_that_fails_leaves_it_unknown() -> None:
    """The application's own mistake costs no answer, and no turn."""
    store = InMemoryStore()
    agent = agent_of(answering(), per_user(outcome=lambda _: 1 / 0), store=store)
    ask(agent, "what is tea")
    assert filed(store) == ["Task: what is tea\nAction: answer 1"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: MemoryMiddleware("coding"), "CodingMemory learns from error records"),
        (lambda: MemoryMiddleware("trajectories"), "unknown provider 'trajectories'"),
        (lambda: MemoryMiddleware("trajectory", settings={"top": 1}), "top"),
        (lambda: MemoryMiddleware(Banks(InMemoryStore())), "over Banks needs `user`"),
        (
            lambda: MemoryMiddleware(TrajectoryMemory(InMemoryStore()), user=lambda _: "ada"),
            "`user` of MemoryMiddleware has no meaning with one provider",
        ),
        (
            lambda: MemoryMiddleware(TrajectoryMemory(InMemoryStore()), settings={"top_k": 1}),
            "`settings` of MemoryMiddleware is for a provider's class or name",
        ),
        (
            lambda: MemoryMiddleware(Banks(InMemoryStore()), user=str, store=InMemoryStore()),
            "`store` of MemoryMiddleware is for a provider's class or name",
        ),
        (lambda: MemoryMiddleware("trajectory", remember="later"), "remember"),  # type: ignore[arg-type]
    ],
)
def test_middleware_that_cannot_work_is_refused_when_it_is_made(
    make: Callable[[], MemoryMiddleware], says: str
) -> None:
    """One line, before any turn."""
    with pytest.raises(SettingsError) as caught:
        make()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_agent_without_a_store_or_a_user_is_told_so() -> None:
    """Nobody gets a bank that nobody named."""
    with pytest.raises(SettingsError, match="pass `store` to create_agent"):
        ask(agent_of(answering(), per_user(), store=None), "what is tea")
    for user in (None, ""):
        with pytest.raises(InputError, match="a bank is named by"):
            ask(agent_of(answering(), per_user()), "what is tea", user=user)


def test_agent_that_is_asked_nothing_goes_on_without_memory() -> None:
    """An input without a human message is the application's affair."""
    model = answering()
    agent = agent_of(model, per_user())
    given = {"messages": [SystemMessage("begin")]}
    agent.invoke(given, config(), context=Context("ada"))
    assert texts(model.seen[0]) == ["begin"]


# What can be watched ----------------------------------------------------------------------


class Runs(BaseTracer):
    """Keeps the runs that it is told of."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    @override
    def _persist_run(self, run: Run) -> None:
        self.runs.append(run)

    @property
    def flat(self) -> list[Run]:
        """All runs, children included."""
        found, todo = [], list(self.runs)
        while todo:
            run = todo.pop()
            found.append(run)
            todo += run.child_runs
        return found


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_recalls_and_filings_are_spans_of_both_kinds_without_texts(
    asynchronous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangChain's tracers and OpenTelemetry see counts, tokens, ids and reasons."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(
        "langgraft.nodes.memory._TRACER", trace.get_tracer("langgraft", tracer_provider=provider)
    )
    runs, middleware = (
        Runs(),
        MemoryMiddleware(InsightMemory, model=RuleModel(rule=lambda _: LESSONS)),
    )
    agent = agent_of(answering(), middleware)
    for text in ("what is SECRET tea", "what is tea"):
        given, options = {"messages": [HumanMessage(text)]}, {**config(text), "callbacks": [runs]}
        if asynchronous:
            await agent.ainvoke(given, options, context=Context("ada"))
        else:
            agent.invoke(given, options, context=Context("ada"))
    ours = [run for run in runs.flat if run.name.startswith("langgraft.")]
    assert sorted(run.name for run in ours) == ["langgraft.file"] * 2 + ["langgraft.recall"] * 2
    told = next(run for run in ours if (run.outputs or {}).get("items"))
    assert told.parent_run_id is not None
    assert (told.outputs or {})["tokens"] > 0
    assert told.end_time is not None
    spans = exporter.get_finished_spans()
    assert sorted(span.name for span in spans) == sorted(run.name for run in ours)
    attributes = [dict(span.attributes or {}) for span in spans]
    assert any(each.get("langgraft.items") for each in attributes)
    assert {each["langgraft.provider"] for each in attributes} == {"insight"}
    written = f"{[(run.inputs, run.outputs) for run in ours]} {attributes}"
    assert "SECRET" not in written
    assert "corridor" not in written


@pytest.mark.parametrize("remember", ["inline", "background"])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_turn_filed_in_the_background_is_no_part_of_the_trace_of_the_agent(
    asynchronous: bool, remember: Any
) -> None:
    """The agent's run has ended by then."""
    begun: list[str] = []

    class Noting(Runs):
        def _on_run_create(self, run: Run) -> None:
            begun.append(run.name)

    middleware, store = per_user(remember=remember), InMemoryStore()
    agent = agent_of(answering(), middleware, store=store)
    given, options = {"messages": [HumanMessage("tea")]}, {**config(), "callbacks": [Noting()]}
    if asynchronous:
        await agent.ainvoke(given, options, context=Context("ada"))
        await middleware.aflush()
    else:
        agent.invoke(given, options, context=Context("ada"))
        middleware.flush()
    assert "langgraft.recall" in begun
    assert ("langgraft.file" in begun) == (remember == "inline")
    assert len(filed(store)) == 1


# Sources -----------------------------------------------------------------------------------


def shared(**trust: Any) -> TrajectoryMemory:
    """Return one bank for all users."""
    settings = TrajectorySettings(trust=TrustSettings(**trust), same_task="exclude")
    return TrajectoryMemory(InMemoryStore(), settings=settings)


def remembering(memory: TrajectoryMemory) -> MemoryMiddleware:
    """Give an agent a shared bank, and say who asks."""
    return MemoryMiddleware(memory, user=lambda runtime: runtime.context.user_id)


def test_turn_when_one_bank_is_shared_is_recalled_for_its_own_user() -> None:
    """What ada said is in her next prompt, and in nobody else's."""
    memory, model = shared(), answering()
    agent = agent_of(model, remembering(memory))
    ask(agent, "what is SECRET tea", thread="one")
    for user in ("ada", "bob"):
        ask(agent, "what is green tea", thread=user, user=user)
    told, other = model.seen[1], model.seen[2]
    assert "SECRET" in texts(told)[-1]
    assert "SECRET" not in texts(other)[-1]
    first = min(memory.content().items.values(), key=lambda item: item.order_index)
    assert first.sources == ("user:ada",)


def test_turn_when_a_tool_is_not_believed_is_in_quarantine() -> None:
    """Its output may be a stranger's; a tool that is named as trusted is believed."""
    for trust, shown in (({}, False), ({"names": {"tool:look_up": "trusted"}}, True)):
        memory, model = shared(**trust), looking_up()
        agent = agent_of(model, remembering(memory), tools=[look_up])
        ask(agent, "what is tea", thread="one")
        (item,) = memory.content().items.values()
        assert item.sources == ("tool:look_up", "user:ada")
        ask(agent, "what is green tea", thread="two")
        assert ("is a drink" in texts(model.seen[2])[-1]) is shown
        assert [drop.reason for drop in memory.withheld("ada")] == [QUARANTINED] * (not shown) * 2


def test_turn_when_there_are_no_trust_settings_says_nothing() -> None:
    """Banks and states are what they were."""
    memory, model = TrajectoryMemory(InMemoryStore()), looking_up()
    agent = create_agent(
        model, [look_up], middleware=[MemoryMiddleware(memory)], context_schema=Context
    )
    result = agent.invoke({"messages": [HumanMessage("what is tea")]})
    assert b"sources" not in memory.content().to_bytes()
    assert "told" not in repr(result)


@dataclass
class Asker:
    """Who asks."""

    name: str


def test_user_when_the_turn_has_no_context_is_asked_for_by_name() -> None:
    """Who forgot `context=` is told so; another fault of the function is the application's own."""
    store = InMemoryStore()

    def ask(user: Callable[[Any], Any], context: Asker | None = None) -> None:
        memory = MemoryMiddleware("trajectory", store=store, user=user)
        agent = create_agent(answering(), tools=[], middleware=[memory], context_schema=Asker)
        agent.invoke({"messages": [HumanMessage("hello")]}, context=context)

    with pytest.raises(InputError, match="invoke the agent with `context=…`"):
        ask(lambda runtime: runtime.context.name)
    with pytest.raises(AttributeError, match="nickname"):
        ask(lambda runtime: runtime.context.nickname, Asker("ada"))
    ask(lambda runtime: runtime.context.name, Asker("ada"))
    assert Banks(store).users() == ["ada"]


# What a client writes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "forged",
    [
        5,
        "turns",
        {"turn": "x"},
        [None, 5, "x", [], {}],
        [{"signature": None}],
        [{"signature": "é", "user": "ada"}],
        [{"signature": "0" * 64, "user": float("nan")}],
        [{"signature": "0" * 64, "user": "ada", "receipts": [[[[[]]]]] * 9}],
    ],
)
def test_records_when_a_client_forged_them_are_ignored(forged: Any) -> None:
    """Of whatever type: the turn is answered with its own user's memory, and filed once."""
    store, model = InMemoryStore(), answering()
    agent = agent_of(model, per_user(on_error="raise"), store=store)
    ask(agent, "what is SECRET tea", thread="hers")
    ask(agent, "what is coffee", user="bob")
    agent.update_state(config(), {"langgraft_turns": forged})
    ask(agent, "what is SECRET tea", user="bob")
    assert "SECRET" not in texts(model.seen[-1])[-1].partition(BLOCK_START)[2]
    assert len(filed(store)) == 1
    assert len(filed(store, "bob")) == 2


def test_record_when_it_is_copied_to_another_thread_or_changed_is_ignored() -> None:
    """A signature holds for one record of one thread, also for its own user."""
    store, model = InMemoryStore(), answering()
    agent = agent_of(model, per_user(), store=store)
    ask(agent, "what is tea")
    (record,) = agent.get_state(config()).values["langgraft_turns"]
    episode: dict[str, Any] = {
        "id": "forged",
        "domain": "chat",
        "task_id": "t",
        "task": "FORGED",
        "steps": [],
    }
    episode["outcome"] = {"success": True, "score": None, "reason": "", "feedback": "environment"}
    for thread, changed in (("u", record), ("t", {**record, "episode": episode})):
        ask(agent, "what is coffee", thread=thread)
        agent.update_state(config(thread), {"langgraft_turns": [changed]})
        ask(agent, "what is milk", thread=thread)
    assert "FORGED" not in "".join(filed(store))
