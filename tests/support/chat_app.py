"""A small chat application with memory, to break: its model, its faults, and what can be seen of it."""

import asyncio
import os
import random
import re
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.base import BaseStore, Op, Result
from langgraph.types import interrupt
from pydantic import BaseModel, Field
from typing_extensions import TypedDict, override

from langgraft._core.errors import InfrastructureError
from langgraft.memory.stores.named import GuardedStore, open_store
from langgraft.nodes.middleware import MemoryMiddleware, MemoryState

WORD: Final = re.compile(r"\bzq[0-9a-z]+")
"""A canary: `zq`, the user's number, `t`, the turn's number, and perhaps more."""

STREAMS: Final = ("messages", "updates", "values", "custom", "tasks", "checkpoints")


def canary(user: int, turn: int, more: str = "") -> str:
    """Return the word that stands in one question, and in nothing else but what comes of it."""
    return f"zq{user}t{turn}{more}"


def question(word: str, does: str = "") -> str:
    """Return a question like all others; what the model `does` is `look`, `send` or `boom`."""
    return f"How does the parcel get to the harbor? {word} {does}".strip()


class Talker(BaseChatModel):
    """Answers the last question in words that hold its canary, and no other.

    It looks something up, sends something or breaks down where the question says so.
    """

    takes: dict[str, int] = Field(default_factory=dict)
    """By canary: which answer to give; another one is another take."""
    seen: list[str] = Field(default_factory=list)
    """All prompts, as text."""
    called: Callable[[], None] = lambda: None

    @property
    @override
    def _llm_type(self) -> str:
        return "talker"

    @override
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    @override
    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **__: Any
    ) -> ChatResult:
        self.called()
        self.seen.append("\n".join(str(message.content) for message in messages))
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        asked = [n for n, message in enumerate(messages) if isinstance(message, HumanMessage)]
        text = str(messages[asked[-1]].content)
        if "<messages>" in text:
            return AIMessage("A summary of what was said.")
        own = text.partition("<")[0].partition("\n\n")[0]
        found = WORD.search(own)
        if found is None:  # a summary took the question's place
            return AIMessage("That is so.")
        word = found[0]
        if "boom" in own:
            raise InfrastructureError("the model is down")
        done = len(messages) > asked[-1] + 1
        for does in ("look", "send"):
            if f" {does}" in own.partition(word)[2] and not done:
                call = {"name": does, "args": {"what": word}, "id": f"call-{word}"}
                return AIMessage("", tool_calls=[call])
        return AIMessage(f"By boat, says the answer to {word}, take {self.takes.get(word, 0)}.")


class FaultyStore(GuardedStore):
    """A store that fails now and then: before it has done anything, or after it has done all.

    Args:
        store: The store.
        share: How many of the batches fail; `down` makes it all.
        called: Called before each batch.
    """

    def __init__(
        self, store: BaseStore, share: float = 0, called: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(store, (), name="faulty")
        self.share, self.called = share, called
        self.down = False
        self.failed = 0
        self._chance = random.Random(7)

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        listed, fails = list(ops), self._fails()
        if fails != "before":
            done = super().batch(listed)
        return self._told(fails, () if fails else done)

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed, fails = list(ops), self._fails()
        if fails != "before":
            done = await super().abatch(listed)
        return self._told(fails, () if fails else done)

    def _fails(self) -> str:
        self.called()
        if self.down:
            return "before"
        if self._chance.random() >= self.share:
            return ""
        return self._chance.choice(("before", "after"))

    def _told(self, fails: str, done: Sequence[Result]) -> list[Result]:
        if fails:
            self.failed += 1
            msg = f"the connection was lost, {fails} the work was done"
            raise InfrastructureError(msg)
        return list(done)


class Events:
    """Counts what happens in a process, and ends it at one of the events."""

    def __init__(self) -> None:
        self.left = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        """Tell of an event."""
        with self._lock:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def shown(value: object) -> str:
    """Return all that a value says, as `repr` does, which takes ten times as long of a message."""
    return repr(_plain(value))


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return _plain(dict(value))
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


class Spy(BaseTracer):
    """Keeps what a tracing service would be sent: all inputs and outputs of all runs."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[tuple[str, str]] = []
        """Kind of run, and all that it holds."""

    @override
    def _persist_run(self, run: Run) -> None:
        open_ones = [run]
        while open_ones:
            each = open_ones.pop()
            open_ones += each.child_runs
            self.spans.append((each.run_type, shown([each.inputs, each.outputs, each.extra])))


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"There is a note on {what}."


@tool
def send(what: str) -> str:
    """Send something to somebody."""
    return f"It was sent: {what}."


class Context(TypedDict):
    """What a call of the application says."""

    user: str


@dataclass
class App:
    """The application: an agent, and what it is made of."""

    agent: Any
    memory: MemoryMiddleware
    model: Talker


def chat_app(
    memory: Any = "trajectory",
    *,
    store: BaseStore | None,
    checkpointer: Any,
    user: Callable[[Any], Any] | None = lambda runtime: runtime.context["user"],
    keep: int | None = 3,
    called: Callable[[], None] = lambda: None,
    **options: Any,
) -> App:
    """Make an agent with two tools, one of which asks for approval, with memory.

    A summary takes the place of messages when they are twice as many as it is to `keep`; `None`: never.
    """
    model = Talker(called=called)
    if isinstance(memory, str):
        options.setdefault("settings", {"top_k": 3})
    middleware = MemoryMiddleware(memory, user=user, **options)
    others: list[Any] = [HumanInTheLoopMiddleware(interrupt_on={"send": True})]
    if keep is not None:
        sizes: Any = {"trigger": ("messages", 2 * keep), "keep": ("messages", keep)}
        others.append(SummarizationMiddleware(Talker(), **sizes))
    agent: Any = create_agent(
        model,
        [look, send],
        middleware=[middleware, *others],
        store=store,
        checkpointer=checkpointer,
        context_schema=Context,
    )
    return App(agent, middleware, model)


def chat_graph(
    memory: Any = "trajectory",
    *,
    store: BaseStore | None,
    checkpointer: Any,
    user: Callable[[Any], Any] | None = lambda runtime: runtime.context["user"],
    keep: None = None,
    called: Callable[[], None] = lambda: None,
    **options: Any,
) -> App:
    """Make what `chat_app` makes as a graph of somebody's own, with the nodes of memory; it makes no summaries."""
    model = Talker(called=called)
    if isinstance(memory, str):
        options.setdefault("settings", {"top_k": 3})
    middleware = MemoryMiddleware(memory, user=user, **options)

    def answer(state: MemoryState) -> dict[str, Any]:
        return {"messages": [model.invoke(middleware.messages(state))]}

    async def aanswer(state: MemoryState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(await middleware.amessages(state))]}

    def approve(state: MessagesState) -> None:
        if state["messages"][-1].tool_calls[0]["name"] == "send":  # type: ignore[union-attr]
            interrupt("May it be sent?")

    def after_model(state: MessagesState) -> str:
        calls = getattr(state["messages"][-1], "tool_calls", None)
        return "approve" if calls else "remember"

    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("recall", middleware.recall_node)
    graph.add_node("model", RunnableLambda(answer, aanswer), input_schema=MemoryState)
    graph.add_node("approve", approve)
    graph.add_node("tools", ToolNode([look, send]))
    graph.add_node("remember", middleware.remember_node)
    for start, end in (
        (START, "recall"),
        ("recall", "model"),
        ("approve", "tools"),
        ("tools", "model"),
        ("remember", END),
    ):
        graph.add_edge(start, end)
    graph.add_conditional_edges("model", after_model, ["approve", "remember"])
    return App(graph.compile(checkpointer=checkpointer, store=store), middleware, model)


def dies_before_filing(memory: str, checkpoints: str, asked: str) -> None:
    """Answer a question in thread `t` of user `ada`, and be killed before that is filed."""
    with open_store(memory) as store, SqliteSaver.from_conn_string(checkpoints) as saver:
        app = chat_app(
            store=store,
            checkpointer=saver,
            outcome=lambda _: os.kill(os.getpid(), signal.SIGKILL),
        )
        given = {"messages": [HumanMessage(asked, id="1")]}
        heard(app, given, {"configurable": {"thread_id": "t"}}, "ada", Seen())


@dataclass
class Seen:
    """What anybody could see of a thread: its streams and spans."""

    streams: list[str] = field(default_factory=list)
    spans: list[tuple[str, str]] = field(default_factory=list)


def heard(app: App, given: Any, config: Any, user: Any, seen: Seen) -> None:
    """Run the agent, and keep all that it streams and traces."""
    spy = Spy()
    try:
        for part in app.agent.stream(
            given,
            config | {"callbacks": [spy]},
            context={"user": user},
            stream_mode=list(STREAMS),
            durability="sync" if app.agent.checkpointer else None,
        ):
            seen.streams.append(shown(part))
    finally:
        seen.spans += spy.spans


async def aheard(app: App, given: Any, config: Any, user: Any, seen: Seen) -> None:
    """Do as `heard` does, asynchronously."""
    spy = Spy()
    try:
        async for part in app.agent.astream(
            given,
            config | {"callbacks": [spy]},
            context={"user": user},
            stream_mode=list(STREAMS),
            durability="sync" if app.agent.checkpointer else None,
        ):
            seen.streams.append(shown(part))
            await asyncio.sleep(0)
    finally:
        seen.spans += spy.spans
