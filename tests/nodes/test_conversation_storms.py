"""Random conversations with applications that redact, wait, jump, break, notify, summarize and hand over."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import pytest
from chat_app import FaultyStore
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from storm_apps import ADDRESS, APPS, NEWS, REDACTED, Talker, memory_of

from langgraft import Banks
from langgraft.memory.model import BLOCK_START

KINDS: Final = (
    "plain",
    "address",
    "tool",
    "two",
    "critic",
    "jump",
    "fail",
    "breaks",
    "wait",
    "abandon",
    "news",
    "summary",
    "hand",
    "down",
)
"""What happens in a turn."""

SAYS: Final = {
    "abandon": ["what is {} wait"],
    "two": ["please note this", "what is {}"],
    "address": [f"mail {ADDRESS} about {{}}"],
}
"""What is asked in a turn, where that is not a question with the name of its kind."""

_NUMBERS: Final = count(1)


@dataclass
class App:
    """An application, and all that can be seen of what its memory writes."""

    name: str
    graph: Any
    memory: Any
    model: Talker
    store: FaultyStore
    banks: Banks
    keeps: bool
    """Whether it has a checkpointer."""


@dataclass
class Talk:
    """One conversation: what is asked, and what must be in the bank at its end."""

    app: App
    asynchronous: bool
    user: str = field(default_factory=lambda: f"user-{next(_NUMBERS)}")
    expected: list[tuple[str, str]] = field(default_factory=list)
    """Question and last answer of each answered turn."""
    history: list[Any] = field(default_factory=list)

    @property
    def config(self) -> Any:
        """The configuration of its thread."""
        return {"configurable": {"thread_id": self.user}}

    def run(self, given: Any) -> Any:
        """Run the application; only what the model itself raises may come out."""
        try:
            if self.asynchronous:
                asked = self.app.graph.ainvoke(given, self.config, context={"user": self.user})
                return asyncio.run(asked)
            return self.app.graph.invoke(given, self.config, context={"user": self.user})
        except TimeoutError:
            return None

    def turn(self, kind: str) -> None:
        """Hold one turn."""
        word = f"q{next(_NUMBERS)}"
        team, keeps = self.app.name == "team", self.app.keeps
        possible = {
            "wait": keeps,
            "abandon": keeps,
            "summary": keeps,
            "hand": team,
            "news": keeps and bool(self.expected) and not team,
        }
        kind = kind if possible.get(kind, True) else "plain"
        if kind == "summary":
            self.summarize()
        if kind == "news":
            self.news()
            return
        self.app.store.down = kind == "down"
        said = [each.format(word) for each in SAYS.get(kind, [f"what is {{}} {kind}"])]
        messages = [HumanMessage(each) for each in said]
        result = self.run({"messages": messages})
        if kind == "wait":
            result = self.run(Command(resume=True))
        self.app.store.down = False
        if kind in ("fail", "breaks", "abandon"):
            return
        assert result is not None
        answer = f"the answer to {word}" if kind != "hand" else "to_bob({})"
        self.expected.append(("\n\n".join(said).replace(ADDRESS, REDACTED), answer))

    def news(self) -> None:
        """Let software start a run: the turn before it has a later answer."""
        asked, last = self.expected[-1]
        told = HumanMessage(NEWS, additional_kwargs={"deepagents_notification": {"id": "t"}})
        state = self.app.graph.get_state(self.config)
        if state.next or not isinstance(state.values["messages"][-1], AIMessage):
            return  # a turn waits, or the last question has no answer
        if self.run({"messages": [told]}) is not None:
            word = last.rpartition(" ")[2]
            self.expected[-1] = (asked, f"news of {word}")

    def summarize(self) -> None:
        """Put a summary in the place of the thread's messages."""
        state = self.app.graph.get_state(self.config)
        held = state.values.get("messages", [])
        if state.next or not held or not all(each.id for each in held):
            return
        summary = HumanMessage("They talked.", additional_kwargs={"lc_source": "summarization"})
        gone = [RemoveMessage(id=each.id) for each in held]
        self.app.graph.update_state(self.config, {"messages": [*gone, summary]})

    def items(self) -> list[tuple[str, str]]:
        """Return question and last answer of what the bank holds."""
        found = self.app.banks[self.user].content().items.values()
        pairs = []
        for item in sorted(found, key=lambda item: item.order_index):
            task, *actions = item.text.removeprefix("Task: ").split("\nAction: ")
            pairs.append((task, actions[-1].split("\nObservation: ")[0]))
        return pairs

    def written(self) -> str:
        """Return all that memory wrote of this conversation: its bank and its records of turns."""
        text = self.app.banks[self.user].content().to_bytes().decode()
        if self.app.keeps:
            states = self.app.graph.get_state_history(self.config)
            text += repr([state.values.get("langgraft_turns") for state in states])
        return text


@pytest.fixture(scope="module", params=[True, False], ids=["checkpointer", "no checkpointer"])
def keeps(request: pytest.FixtureRequest) -> bool:
    """Return whether the application has a checkpointer."""
    return bool(request.param)


@pytest.fixture(scope="module", params=APPS)
def app(request: pytest.FixtureRequest, keeps: bool) -> Iterator[App]:
    """Make an application."""
    store = FaultyStore(InMemoryStore())
    banks = Banks(store, settings={"same_task": "exclude", "top_k": 3})
    model, memory = Talker(), memory_of(banks)
    graph = APPS[request.param](model, memory, InMemorySaver() if keeps else None)
    yield App(request.param, graph, memory, model, store, banks, keeps)
    banks.close()


def hold(app: App, kinds: Sequence[str], asynchronous: bool, log: Any, spans: Any) -> None:
    """Hold a conversation, and compare what is in the bank with what was answered."""
    talk = Talk(app, asynchronous)
    app.model.seen.clear()
    spans.clear()
    log.clear()
    for kind in kinds:
        talk.turn(kind)
    flush = (app.graph, talk.config) if app.keeps else ()
    if asynchronous:
        asyncio.run(app.memory.aflush(*flush))
    else:
        app.memory.flush(*flush)
    assert Counter(talk.items()) == Counter(talk.expected)
    told = " ".join(f"{record.getMessage()} {record.exc_text}" for record in log.records)
    shown = " ".join(span.to_json() for span in spans.get_finished_spans())
    assert ADDRESS not in talk.written() + told + shown
    recalled = (
        message.text.partition(BLOCK_START)[2] for prompt in app.model.seen for message in prompt
    )
    assert not any(ADDRESS in each for each in recalled)
    assert app.banks[talk.user].filings.pending == 0


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Return what keeps the spans of OpenTelemetry."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = trace.get_tracer("langgraft", tracer_provider=provider)
    monkeypatch.setattr("langgraft.nodes.memory._TRACER", tracer)
    return exporter


CONVERSATIONS: Final = st.lists(st.sampled_from(KINDS), min_size=1, max_size=5)
_HEALTH: Final = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=8, deadline=None, suppress_health_check=_HEALTH)
@given(kinds=CONVERSATIONS, asynchronous=st.booleans())
def test_conversation_when_anything_happens_files_each_answered_turn_once(
    app: App,
    caplog: pytest.LogCaptureFixture,
    spans: InMemorySpanExporter,
    kinds: list[str],
    asynchronous: bool,
) -> None:
    """With its last answer; no redacted text is written, and no fault of memory reaches the caller."""
    with caplog.at_level(logging.DEBUG, "langgraft"):
        hold(app, kinds, asynchronous, caplog, spans)


@pytest.mark.matrix
@settings(max_examples=200, deadline=None, suppress_health_check=_HEALTH)
@given(kinds=CONVERSATIONS, asynchronous=st.booleans())
def test_conversations_when_there_are_two_thousand_file_each_answered_turn_once(
    app: App,
    caplog: pytest.LogCaptureFixture,
    spans: InMemorySpanExporter,
    kinds: list[str],
    asynchronous: bool,
) -> None:
    """The same for 200 conversations with each of ten applications."""
    with caplog.at_level(logging.DEBUG, "langgraft"):
        hold(app, kinds, asynchronous, caplog, spans)
