"""Memory in a LangGraph graph of a user's own; what goes wrong in it, `test_middleware_storms.py` has."""

import asyncio
import operator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel
from toy_world import LESSONS, RuleModel
from typing_extensions import TypedDict

from langgraft import MemoryMiddleware, MemoryState, Outcome, TrajectoryMemory
from langgraft._core.errors import InputError, SettingsError
from langgraft.memory.model import BLOCK_START
from langgraft.memory.providers import InsightMemory
from langgraft.nodes.middleware import TURNS, TurnRecord


class State(MessagesState):
    """A user's state."""

    grade: float


class Graded(State, MemoryState):
    """What the node that remembers is given, for an outcome by the grade."""


def users_model() -> RuleModel:
    """Make a model that knows nothing of memory."""
    return RuleModel(rule=lambda messages: f"You said {len(messages)} things.")


def users_graph(chat: RuleModel, memory: MemoryMiddleware) -> Any:
    """Build a user's graph of three nodes, with memory around it."""

    def look_up(state: State) -> dict[str, Any]:
        call = {"name": "look_up", "args": {"term": "tea", "n": 1}, "id": "c1"}
        asks = AIMessage("I look it up.", tool_calls=[call])
        return {"messages": [asks, ToolMessage("Tea is a drink.", tool_call_id="c1")]}

    def answer(state: MemoryState) -> dict[str, Any]:
        return {"messages": [chat.invoke([SystemMessage("Help."), *memory.messages(state)])]}

    def polish(state: State) -> dict[str, Any]:
        last = state["messages"][-1]
        return {"messages": [AIMessage(last.text + " Bye.", id=last.id)], "grade": 0.7}

    graph = StateGraph(State)
    graph.add_node("recall", memory.recall_node)
    graph.add_node("look_up", look_up)
    graph.add_node("answer", answer)
    graph.add_node("polish", polish)
    graph.add_node("remember", memory.remember_node, input_schema=Graded)
    before = START
    for name in ("recall", "look_up", "answer", "polish", "remember", END):
        graph.add_edge(before, name)
        before = name
    return graph.compile(checkpointer=InMemorySaver())


def config(thread: str = "t") -> Any:
    """Name a conversation."""
    return {"configurable": {"thread_id": thread}}


def said(text: str, identity: str = "m") -> dict[str, Any]:
    """Make an input."""
    return {"messages": [HumanMessage(text, id=identity)]}


def filed(memory: TrajectoryMemory) -> list[bool | None]:
    """Return the success of each item."""
    return [item.success for item in memory.content().items.values()]


def test_memory_is_in_the_prompt_and_what_the_graph_returns_is_as_without_it() -> None:
    """The block stands behind the question; the key that memory brings is not the user's affair."""
    memory, model = TrajectoryMemory(InMemoryStore()), users_model()
    graph = users_graph(model, MemoryMiddleware(memory))
    for number, text in enumerate(("what is tea", "what is green tea")):
        result = graph.invoke(said(text), config(f"t{number}"))
    assert result.keys() == {"messages", "grade"}
    assert [message.text for message in result["messages"]] == [
        "what is green tea",
        "I look it up.",
        "Tea is a drink.",
        "You said 4 things. Bye.",
    ]
    first, second = model.seen
    assert all(BLOCK_START not in message.text for message in first)
    assert second[1].text.startswith(f"what is green tea\n\n{BLOCK_START}")
    assert "Task: what is tea" in second[1].text
    assert "Task: what is tea" not in repr(list(graph.get_state_history(config("t1"))))


def test_turn_is_an_episode_of_steps_judged_by_the_whole_state() -> None:
    """Tool calls are actions, results observations; what came after the model counts as well."""
    memory = TrajectoryMemory(InMemoryStore())
    middleware = MemoryMiddleware(
        memory, outcome=lambda state: Outcome(success=True, score=state["grade"])
    )
    users_graph(users_model(), middleware).invoke(said("what is tea"), config())
    (item,) = memory.content().items.values()
    assert item.text.splitlines() == [
        "Task: what is tea",
        "Thought: I look it up.",
        'Action: look_up({"n":1,"term":"tea"})',
        "Observation: Tea is a drink.",
        "Action: You said 4 things. Bye.",
        "Result: success",
    ]
    assert item.success is True


def test_lessons_come_back_in_the_next_conversation() -> None:
    """A model reflects on the turn, and sees no block."""
    reflects, model = RuleModel(rule=lambda _: LESSONS), users_model()
    graph = users_graph(model, MemoryMiddleware(InsightMemory(InMemoryStore()), model=reflects))
    for number in range(2):
        graph.invoke(said("what is tea"), config(f"t{number}"))
    assert "- When the corridor is long: walk on" in model.seen[1][1].text
    assert all(BLOCK_START not in message.text for each in reflects.seen for message in each)


# What is judged ---------------------------------------------------------------------------


def async_word(word: bool) -> Any:
    """Make a function that says so after a while."""

    async def outcome(_: Any) -> bool:
        await asyncio.sleep(0)
        return word

    return outcome


@pytest.mark.parametrize("word", [True, False])
async def test_outcome_may_be_a_bare_word_or_async(word: bool) -> None:
    """It is whether the turn succeeded."""
    for outcome in (lambda _: word, lambda _: Outcome(word), async_word(word)):
        memory = TrajectoryMemory(InMemoryStore())
        graph = users_graph(users_model(), MemoryMiddleware(memory, outcome=outcome))
        await graph.ainvoke(said("what is tea"), config())
        assert filed(memory) == [word]


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (async_word(word=False), r"`outcome` of MemoryMiddleware is async: run with `ainvoke`"),
        *(
            (lambda _, word=word: word, "what `outcome` of MemoryMiddleware returns must be an Out")
            for word in (None, "yes", 1, {"success": True})
        ),
    ],
)
def test_outcome_that_says_nothing_is_refused(outcome: Any, says: str) -> None:
    """A coroutine is true, whatever comes of it; of a function that forgets to return nobody would hear."""
    memory = TrajectoryMemory(InMemoryStore())
    graph = users_graph(users_model(), MemoryMiddleware(memory, outcome=outcome))
    with pytest.raises(InputError, match=says):
        graph.invoke(said("what is tea"), config())
    assert filed(memory) == []


def test_outcome_that_is_no_function_is_refused_when_memory_is_made() -> None:
    """Not only when the first turn ends."""
    outcome: Any = Outcome(success=True)
    with pytest.raises(SettingsError, match="`outcome` of MemoryMiddleware must be a function"):
        MemoryMiddleware(TrajectoryMemory(InMemoryStore()), outcome=outcome)


# A thread that nobody goes on with --------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_flush_files_an_answered_turn_and_leaves_the_thread_at_its_end(
    asynchronous: bool,
) -> None:
    """The turn is filed once, with an outcome unknown; one that is not answered is left as it is."""

    def fails(_: Any) -> str:
        msg = "the model is away"
        raise RuntimeError(msg)

    memory, model = TrajectoryMemory(InMemoryStore()), users_model()
    middleware = MemoryMiddleware(memory, outcome=lambda _: True)
    graph = users_graph(model, middleware)
    graph.invoke(said("what is tea"), config(), interrupt_before=["polish"])
    model.rule = fails
    with pytest.raises(RuntimeError, match="away"):
        graph.invoke(said("what is tea"), config("unanswered"))
    for _ in range(2):
        for thread in (config(), config("unanswered")):
            if asynchronous:
                await middleware.aflush(graph, thread)
            else:
                middleware.flush(graph, thread)
        assert filed(memory) == [None]
    assert graph.get_state(config()).next == ()
    assert graph.get_state(config("unanswered")).next == ("answer",)


# States of other schemas ------------------------------------------------------------------


def by_id(left: list[AnyMessage], right: list[AnyMessage]) -> list[AnyMessage]:
    """Merge as `add_messages` does, in a user's own words."""
    return list({message.id: message for message in (*left, *right)}.values())


class Replaced(TypedDict):
    messages: list[Any]


class Appended(TypedDict):
    messages: Annotated[list[Any], operator.add]


class Merged(TypedDict):
    messages: Annotated[list[Any], by_id]


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]


@dataclass
class Data:
    messages: Annotated[list[AnyMessage], add_messages]


class Asking(TypedDict):
    """What the node that asks the model is given where `messages` have another reducer."""

    messages: list[AnyMessage]
    langgraft_turns: list[TurnRecord]


def around(schema: Any, memory: MemoryMiddleware, seen: list[Any], *, asks: Any = Asking) -> Any:
    """Build a graph of a schema, and note what its model would be sent."""

    def answer(state: Any) -> dict[str, Any]:
        seen.append(memory.messages(state))
        return {"messages": [AIMessage("A drink.", id="a")]}

    graph = StateGraph(schema)
    graph.add_node("recall", memory.recall_node)
    graph.add_node("answer", answer, input_schema=asks)
    graph.add_node("remember", memory.remember_node)
    for start, end in ((START, "recall"), ("recall", "answer"), ("answer", "remember")):
        graph.add_edge(start, end)
    return graph.compile()


@pytest.mark.parametrize("schema", [MessagesState, Replaced, Appended, Merged, Model, Data])
async def test_state_may_have_any_schema(schema: Any) -> None:
    """And any reducer: memory writes no messages. The history stays as it was."""
    memory, seen = TrajectoryMemory(InMemoryStore()), list[Any]()
    graph = around(schema, MemoryMiddleware(memory), seen)
    for identity in ("m0", "m1"):
        given = {"messages": [HumanMessage("Hello.", id="h"), HumanMessage("Tea?", id=identity)]}
        for result in (graph.invoke(given), await graph.ainvoke(given)):
            assert BLOCK_START not in repr(result)
    assert [BLOCK_START in sent[1].text for sent in seen] == [False, True, True, True]
    assert len(filed(memory)) == 2


@pytest.mark.parametrize(
    ("messages", "asks", "says"),
    [
        ([HumanMessage("Tea?", id="m")], MessagesState, f"holds no `{TURNS}`.*`MemoryState`"),
        ([HumanMessage("Tea?")], MessagesState, f"holds no `{TURNS}`.*`MemoryState`"),
    ],
)
def test_node_that_cannot_know_its_turn_is_told_so(
    messages: list[AnyMessage], asks: Any, says: str
) -> None:
    """Nobody's model is left without memory in silence."""
    schema = MessagesState if asks is MessagesState else Replaced
    graph = around(schema, MemoryMiddleware(TrajectoryMemory(InMemoryStore())), [], asks=asks)
    with pytest.raises(InputError, match=says):
        graph.invoke({"messages": messages})


def test_graph_that_is_asked_nothing_goes_on_without_memory() -> None:
    """A state without a human message is the application's affair."""
    memory, seen = TrajectoryMemory(InMemoryStore()), list[Any]()
    given = {"messages": [AIMessage("Hello.", id="x")]}
    around(MessagesState, MemoryMiddleware(memory), seen).invoke(given)
    assert seen == [given["messages"]]
    assert filed(memory) == []
