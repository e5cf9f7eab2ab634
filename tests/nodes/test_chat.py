"""Memory in a LangGraph graph of a user's own."""

import asyncio
import operator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel
from toy_world import LESSONS, RuleModel
from typing_extensions import TypedDict

from langgraft._core.errors import InputError, SettingsError
from langgraft.memory.model import BLOCK_START, Episode, MemoryDelta, Outcome, Step, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import CodingMemory, InsightMemory, TrajectoryMemory, make_provider
from langgraft.memory.recall import Budget
from langgraft.nodes import recall_for_messages, remember_messages


class JournalState(MessagesState):
    """A user's state that also keeps the journal."""

    deltas: list[Any]


def users_model() -> RuleModel:
    """Make the model of the user's agent, which knows nothing of memory."""
    return RuleModel(rule=lambda messages: f"You said {len(messages)} things.")


def users_graph(chat: RuleModel, memory: MemoryProvider[Any] | None, **options: Any) -> Any:
    """Build a user's graph of three nodes, with memory around it or without."""

    def look_up(state: JournalState) -> dict[str, Any]:
        call = {"name": "look_up", "args": {"term": "tea", "n": 1}, "id": "c1"}
        return {
            "messages": [
                AIMessage("I look it up.", tool_calls=[call]),
                ToolMessage("Tea is a drink.", tool_call_id="c1"),
            ]
        }

    def answer(state: JournalState) -> dict[str, Any]:
        return {"messages": [chat.invoke([SystemMessage("Help."), *state["messages"]])]}

    def polish(state: JournalState) -> dict[str, Any]:
        last = state["messages"][-1]
        return {"messages": [AIMessage(last.text + " Bye.", id=last.id)]}

    graph = StateGraph(JournalState)
    graph.add_node("look_up", look_up)
    graph.add_node("answer", answer)
    graph.add_node("polish", polish)
    graph.add_edge("look_up", "answer")
    graph.add_edge("answer", "polish")
    if memory is None:
        graph.add_edge(START, "look_up")
        graph.add_edge("polish", END)
    else:
        graph.add_node("recall", recall_for_messages(memory, budget=options.pop("budget", None)))
        graph.add_node("remember", remember_messages(memory, **options))
        graph.add_edge(START, "recall")
        graph.add_edge("recall", "look_up")
        graph.add_edge("polish", "remember")
        graph.add_edge("remember", END)
    return graph.compile(checkpointer=InMemorySaver())


def config(thread: str = "t") -> Any:
    """Name a conversation."""
    return {"configurable": {"thread_id": thread}}


def said(text: str, identity: str) -> dict[str, Any]:
    """Make an input."""
    return {"messages": [HumanMessage(text, id=identity)]}


def texts(messages: list[AnyMessage]) -> list[str]:
    """Return what a history says."""
    return [message.text for message in messages]


def test_memory_when_grafted_on_is_in_the_prompt_and_not_in_the_history() -> None:
    """The user's nodes and state stay as they are; the conversation does too."""
    bare_model, model = users_model(), users_model()
    bare = users_graph(bare_model, None)
    memory = TrajectoryMemory(InMemoryStore())
    grafted = users_graph(model, memory)
    for number, text in enumerate(("what is tea", "what is green tea")):
        expected = bare.invoke(said(text, f"m{number}"), config())
        result = grafted.invoke(said(text, f"m{number}"), config())
        assert texts(result["messages"]) == texts(expected["messages"])
        assert result["messages"][0].additional_kwargs == {}
    first, second = model.seen
    assert all(BLOCK_START not in message.text for message in first)
    asked = next(message for message in second if message.id == "m1")
    assert asked.text.startswith(BLOCK_START)
    assert asked.text.endswith("</recalled_memory>\nwhat is green tea")
    assert "Task: what is tea" in asked.text
    assert sum(BLOCK_START in message.text for message in second) == 1


def test_turn_when_remembered_is_an_episode_of_steps() -> None:
    """Tool calls are actions, tool results observations, and the answer is the last action."""
    memory = TrajectoryMemory(InMemoryStore())
    graph = users_graph(users_model(), memory, outcome=lambda state: Outcome(success=True))
    graph.invoke(said("what is tea", "m0"), config())
    (item,) = memory.content().items.values()
    assert item.text.splitlines() == [
        "Task: what is tea",
        "Thought: I look it up.",
        'Action: look_up({"n":1,"term":"tea"})',
        "Observation: Tea is a drink.",
        "Action: You said 4 things. Bye.",
        "Result: success",
    ]
    assert (item.source_domain, item.success) == ("chat", True)


def test_turn_when_its_outcome_is_unknown_counts_as_no_success() -> None:
    """Nobody can tell, and nothing is made up."""
    memory = TrajectoryMemory(InMemoryStore())
    users_graph(users_model(), memory).invoke(said("what is tea", "m0"), config())
    (item,) = memory.content().items.values()
    assert not item.success
    assert "Result" not in item.text


def test_turn_when_run_again_is_filed_once() -> None:
    """Thread, message, content and answer name the episode: of equal ids in two threads both are kept."""
    memory, seen = TrajectoryMemory(InMemoryStore()), set[str]()
    for thread in ("one", "one", "two"):  # each time from the beginning, as after a crash
        graph = users_graph(users_model(), memory)
        result = graph.invoke(said("what is tea", "m0"), config(thread))
        filed = len(memory.content().items)
        assert (filed, bool(result["deltas"])) == {
            "one": (1, thread not in seen),
            "two": (2, True),
        }[thread]
        seen.add(thread)


def test_lessons_when_the_memory_wants_them_are_drawn_by_the_model_given() -> None:
    """A model reflects on the turn; its lessons come back in the next conversation."""
    memory = InsightMemory(InMemoryStore())
    reflects, model = RuleModel(rule=lambda _: LESSONS), users_model()
    graph = users_graph(model, memory, model=reflects)
    first = graph.invoke(said("what is tea", "m0"), config("one"))
    graph.invoke(said("what is tea", "m1"), config("two"))
    assert "- When the corridor is long: walk on" in model.seen[1][1].text
    assert BLOCK_START not in reflects.seen[1][0].text
    assert "Outcome: unknown" in reflects.seen[0][0].text
    journal = [MemoryDelta.from_json(delta) for delta in first["deltas"]]
    assert fold(journal).items.keys() == {next(iter(memory.content().items))}


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_turn_when_memory_asks_is_judged_by_the_model_that_reflects(
    asynchronous: bool,
) -> None:
    """Rules that live by votes work in a graph of messages as they do in an agent's."""
    memory = make_provider("expel", InMemoryStore(), settings={"votes": {}})
    judge = RuleModel(rule=lambda _: '[{"action": "add", "text": "say what tea is"}]')
    graph = users_graph(users_model(), memory, model=judge)
    given = said("What is tea?", "m1")
    _ = await graph.ainvoke(given, config()) if asynchronous else graph.invoke(given, config())
    texts = [item.text for item in memory.content().items.values()]
    assert "say what tea is" in texts


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_question_when_memory_is_gated_is_drafted_and_judged_first(
    asynchronous: bool,
) -> None:
    """What a judge finds to contradict a draft is not put before the question."""
    memory = make_provider("agent_kb", InMemoryStore(), settings={"gate": True})
    memory.file(
        Episode("e0", "chat", "t", "What is tea?", (Step("", "a car", ""),), Outcome(success=True))
    )
    stance = '[{"id": "e0/note", "verdict": "contradicts"}]'
    model = RuleModel(rule=lambda m: stance if "e0/note" in m[-1].text else "A drink.")
    node = recall_for_messages(memory, model=model)
    state = MessagesState(messages=[HumanMessage("What is tea?", id="m1")])
    update = await node.ainvoke(state) if asynchronous else node.invoke(state)
    assert update["messages"][-1].text == "What is tea?"
    open_gate = RuleModel(rule=lambda _: stance.replace("contradicts", "agrees"))
    again = recall_for_messages(memory, model=open_gate).invoke(state)
    assert "a car" in again["messages"][-1].text


def test_gate_when_there_is_no_model_to_draft_is_refused_at_once() -> None:
    """The mistake shows when the graph is built."""
    memory = make_provider("agent_kb", InMemoryStore(), settings={"gate": True})
    with pytest.raises(SettingsError, match="AgentKB compares with a draft: pass `model`"):
        recall_for_messages(memory)


def test_lessons_when_there_is_no_model_to_draw_them_are_refused_at_once() -> None:
    """The mistake shows when the graph is built."""
    with pytest.raises(SettingsError, match="InsightMemory needs lessons: pass `model`"):
        remember_messages(InsightMemory(InMemoryStore()))


def test_errors_when_memory_learns_from_nothing_else_are_missed_at_once() -> None:
    """A memory that would stay empty in silence shows when the graph is built."""
    memory = CodingMemory(InMemoryStore())
    with pytest.raises(SettingsError, match="CodingMemory learns from error records, and a turn"):
        remember_messages(memory, model=users_model())
    assert recall_for_messages(memory)  # what it learned elsewhere can be recalled


def test_outcome_when_it_is_no_function_is_refused_at_once() -> None:
    """Not only when the first turn ends."""
    outcome: Any = Outcome(success=True)
    with pytest.raises(
        SettingsError, match="`outcome` of remember_messages must be a function or None, got Ou"
    ):
        remember_messages(TrajectoryMemory(InMemoryStore()), outcome=outcome)


def filed(memory: MemoryProvider[Any]) -> list[bool | None]:
    """Return the success of each item."""
    return [item.success for item in memory.content().items.values()]


@pytest.mark.parametrize("word", [True, False])
async def test_outcome_when_it_is_a_bare_word_is_whether_the_turn_succeeded(word: bool) -> None:
    """So is what an async function says, which only an async run waits for."""
    for outcome in (lambda state: word, lambda state: Outcome(word), async_word(word)):
        memory = TrajectoryMemory(InMemoryStore())
        graph = users_graph(users_model(), memory, outcome=outcome)
        await graph.ainvoke(said("what is tea", "m0"), config())
        assert filed(memory) == [word]


def async_word(word: bool) -> Any:
    """Make a function that says so after a while."""

    async def outcome(state: JournalState) -> bool:
        await asyncio.sleep(0)
        return word

    return outcome


def test_outcome_when_it_is_async_and_the_run_is_not_is_refused() -> None:
    """A coroutine is true, whatever comes of it."""
    memory = TrajectoryMemory(InMemoryStore())
    graph = users_graph(users_model(), memory, outcome=async_word(word=False))
    with pytest.raises(InputError, match=r"`outcome` of remember_messages is async: .*`ainvoke`"):
        graph.invoke(said("what is tea", "m0"), config())
    assert filed(memory) == []


@pytest.mark.parametrize("word", [None, "yes", 1, {"success": True}])
async def test_outcome_when_it_is_none_of_its_values_is_refused(word: Any) -> None:
    """A function that forgets to return says nothing, and nobody would hear of it."""
    memory = TrajectoryMemory(InMemoryStore())
    graph = users_graph(users_model(), memory, outcome=lambda state: word)
    expected = "what `outcome` of remember_messages returns must be an Outcome or True or False"
    with pytest.raises(InputError, match=expected):
        graph.invoke(said("what is tea", "m0"), config())
    with pytest.raises(InputError, match=expected):
        await graph.ainvoke(said("what is tea", "m1"), config("u"))
    assert filed(memory) == []


async def test_graph_when_run_asynchronously_does_the_same() -> None:
    """Sync and async are one graph."""
    outcomes = []
    for run in ("sync", "async"):
        memory = InsightMemory(InMemoryStore())
        reflects = RuleModel(rule=lambda _: LESSONS)
        graph = users_graph(users_model(), memory, model=reflects)
        for number in range(2):
            given = said("what is tea", f"m{number}")
            result = (
                graph.invoke(given, config())
                if run == "sync"
                else await graph.ainvoke(given, config())
            )
        outcomes.append((texts(result["messages"]), memory.content()))
    assert outcomes[0] == outcomes[1]


def looping_graph(memory: MemoryProvider[Any]) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build a graph that asks memory, answers, and asks again."""
    graph = StateGraph(MessagesState)
    for name in ("recall", "again"):
        graph.add_node(name, recall_for_messages(memory))
    graph.add_node("answer", lambda _: {"messages": [AIMessage("Well.", id="a")]})
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "answer")
    graph.add_edge("answer", "again")
    graph.add_edge("again", END)
    return graph.compile()


@pytest.mark.parametrize(
    "content", ["what is tea", [{"type": "text", "text": "what is tea"}, {"type": "image"}]]
)
def test_memory_when_asked_again_replaces_its_block_and_keeps_all_receipts(content: Any) -> None:
    """One block, whatever the message is made of; the episode gets every receipt."""
    memory = TrajectoryMemory(InMemoryStore())
    users_graph(users_model(), memory).invoke(said("what is tea", "m0"), config())
    message = HumanMessage(content, id="m1")
    result: Any = looping_graph(memory).invoke({"messages": [message]})
    asked = result["messages"][0]
    assert asked.text.count(BLOCK_START) == 1
    assert len(asked.additional_kwargs["langgraft_receipts"]) == 2
    update = remember_messages(memory).invoke(result)
    assert update["messages"] == [message]
    assert len(update["deltas"]) == 1


def test_memory_when_it_has_nothing_to_say_leaves_the_message_as_it_was() -> None:
    """No block, no trace in the prompt."""
    result = looping_graph(TrajectoryMemory(InMemoryStore())).invoke(said("what is tea", "m1"))
    assert result["messages"][0].content == "what is tea"


def test_budget_when_given_limits_what_is_recalled() -> None:
    """No room, no block."""
    memory, model = TrajectoryMemory(InMemoryStore()), users_model()
    graph = users_graph(model, memory, budget=Budget(tokens=0))
    for number in range(2):
        graph.invoke(said("what is tea", f"m{number}"), config())
    assert all(BLOCK_START not in message.text for message in model.seen[1])


@pytest.mark.parametrize(
    ("messages", "said_"),
    [
        ([], "there is no human message"),
        ([AIMessage("hello")], "there is no human message"),
        ([HumanMessage("hello")], "has no id: use `add_messages`"),
    ],
)
def test_state_when_it_holds_no_message_to_go_by_says_so(
    messages: list[AnyMessage], said_: str
) -> None:
    """The two nodes need a human message with an id."""
    memory = TrajectoryMemory(InMemoryStore())
    for node in (recall_for_messages(memory), remember_messages(memory)):
        with pytest.raises(InputError, match=said_):
            node.invoke({"messages": messages})


def test_history_when_a_turn_broke_off_loses_its_memory_at_the_next() -> None:
    """A turn that failed between recall and remember leaves no block behind."""
    memory = TrajectoryMemory(InMemoryStore())
    model = users_model()
    graph = users_graph(model, memory)
    graph.invoke(said("what is tea", "m0"), config())

    def fails(_: Any) -> str:
        msg = "the model is away"
        raise RuntimeError(msg)

    answers, model.rule = model.rule, fails
    with pytest.raises(RuntimeError, match="away"):
        graph.invoke(said("what is green tea", "m1"), config())
    model.rule = answers
    final = graph.invoke(said("what is black tea", "m2"), config())
    blocks = [sum(BLOCK_START in message.text for message in seen) for seen in model.seen]
    assert blocks[-1] == 1
    assert all(BLOCK_START not in message.text for message in final["messages"])
    assert all(not message.additional_kwargs for message in final["messages"])


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


class BareModel(BaseModel):
    messages: list[Any]


@dataclass
class Data:
    messages: Annotated[list[AnyMessage], add_messages]


@dataclass
class BareData:
    messages: list[Any]


def around(schema: Any, memory: MemoryProvider[Any], *names: str) -> Any:
    """Build a graph of a schema with memory's nodes, or one of them, around an answer."""
    graph = StateGraph(schema)
    nodes: dict[str, Any] = {
        "recall": recall_for_messages(memory),
        "answer": lambda state: {"messages": [AIMessage("A drink.", id="a")]},
        "remember": remember_messages(memory, outcome=lambda state: True),
    }
    before = START
    for name in names:
        graph.add_node(name, nodes[name])
        graph.add_edge(before, name)
        before = name
    return graph.compile()


@pytest.mark.parametrize("schema", [MessagesState, Merged, Model, Data])
async def test_state_when_it_merges_by_id_may_have_any_schema(schema: Any) -> None:
    """Also one of a user's own reducer; the history stays as it was."""
    memory = TrajectoryMemory(InMemoryStore())
    graph = around(schema, memory, "recall", "answer", "remember")
    for identity in ("m0", "m1"):
        given = {"messages": [HumanMessage("Hello.", id="h"), HumanMessage("Tea?", id=identity)]}
        for result in (graph.invoke(given), await graph.ainvoke(given)):
            assert texts(result["messages"]) == ["Hello.", "Tea?", "A drink."]
    assert filed(memory) == [True, True]


@pytest.mark.parametrize("schema", [Replaced, Appended, BareModel, BareData])
@pytest.mark.parametrize("name", ["recall", "remember"])
@pytest.mark.parametrize("message", [HumanMessage("Tea?", id="m"), ("user", "Tea?")])
async def test_state_when_it_does_not_merge_by_id_is_refused(
    schema: Any, name: str, message: Any
) -> None:
    """The history would be replaced by one message, or would have it twice."""
    memory = TrajectoryMemory(InMemoryStore())
    given = {"messages": [HumanMessage("Hello.", id="h"), message]}
    graph = around(schema, memory, name)
    with pytest.raises(InputError, match=r"`messages` need a reducer .*add_messages\]`, as in"):
        graph.invoke(given)
    with pytest.raises(InputError, match=r"`messages` need a reducer .*add_messages\]`, as in"):
        await graph.ainvoke(given)
    assert filed(memory) == []
