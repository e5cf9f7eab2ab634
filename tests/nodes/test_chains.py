"""Memory around plain chains."""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM, GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from memory_cases import make_episode
from pydantic import BaseModel
from toy_world import LESSONS, RuleModel
from typing_extensions import TypedDict

from langgraft._core.errors import InfrastructureError, InputError, SettingsError
from langgraft.memory.model import BLOCK_START, Outcome, strip_block
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import (
    CodingMemory,
    InsightMemory,
    TrajectoryMemory,
    make_provider,
)
from langgraft.memory.recall import Budget
from langgraft.nodes.chains import with_memory

PROMPT = ChatPromptTemplate.from_messages([("system", "Help."), ("human", "Answer: {question}")])


def model() -> RuleModel:
    """Make a model that counts what it was told."""
    return RuleModel(rule=lambda messages: f"I heard {len(messages)} things.")


def filled() -> TrajectoryMemory:
    """Return a memory of one episode about tea."""
    memory = TrajectoryMemory(InMemoryStore())
    memory.file(make_episode("tea", task="what is tea"))
    return memory


def learned(memory: MemoryProvider[Any]) -> list[str]:
    """Return what memory holds of turns of the chain."""
    return [item.text for item in memory.content().items.values() if item.episode_id != "tea"]


def told(chat: RuleModel) -> str:
    """Return the human message of the last prompt."""
    (human,) = (each for each in chat.seen[-1] if isinstance(each, HumanMessage))
    return human.text


# Recalling --------------------------------------------------------------------------------


def test_chain_when_it_has_memory_shows_it_behind_the_last_human_message() -> None:
    """The system prompt, the template and the answer stay as they are."""
    memory, chat = filled(), model()
    chain = with_memory(PROMPT | chat | StrOutputParser(), memory)
    assert chain.invoke({"question": "what is green tea"}) == "I heard 2 things."
    assert chat.seen[-1][0] == SystemMessage("Help.")
    assert told(chat).startswith(f"Answer: what is green tea\n\n{BLOCK_START}")
    assert "Task: what is tea" in told(chat)
    assert told(chat).endswith("</recalled_memory>\n")
    assert learned(memory) == ["Task: what is green tea\nAction: I heard 2 things."]


FORMS: list[Any] = [
    "green tea",
    [("system", "Help."), ("user", "green tea")],
    [HumanMessage("green tea")],
    [HumanMessage([{"type": "text", "text": "green tea"}])],
    ChatPromptTemplate.from_messages([("human", "{q}")]).invoke({"q": "green tea"}),
    PromptTemplate.from_template("{q}").invoke({"q": "green tea"}),
]
"""Whatever a chat model takes."""


@pytest.mark.parametrize("question", FORMS, ids=lambda each: type(each).__name__)
async def test_model_when_asked_in_any_form_recalls_and_is_remembered(question: Any) -> None:
    """A text, messages or a prompt value; sync and async do the same."""
    for asynchronous in (False, True):
        memory, chat = filled(), model()
        chain = with_memory(chat, memory)
        reply = await chain.ainvoke(question) if asynchronous else chain.invoke(question)
        assert isinstance(reply, AIMessage)
        assert BLOCK_START in told(chat)
        assert strip_block(told(chat)).strip() == "green tea"
        (text,) = learned(memory)
        assert text == f"Task: green tea\nAction: {reply.text}"


def test_model_of_texts_when_it_has_memory_reads_it_in_the_text() -> None:
    """A completion model, with a prompt of plain text."""
    seen: list[str] = []

    class Completing(FakeListLLM):
        def _call(self, prompt: str, *args: Any, **kwargs: Any) -> str:
            seen.append(prompt)
            return super()._call(prompt, *args, **kwargs)

    chain = PromptTemplate.from_template("Q: {q}") | Completing(responses=["a drink"])
    assert with_memory(chain, filled()).invoke({"q": "green tea"}) == "a drink"
    assert seen[0].startswith(BLOCK_START)
    assert seen[0].endswith("</recalled_memory>\nQ: green tea")


def test_retriever_of_a_chain_when_it_has_memory_is_asked_with_the_question_alone() -> None:
    """What is recalled goes into the prompt, behind all that reads the question."""
    memory, chat, queries = filled(), model(), []

    def retrieve(query: str) -> list[Document]:
        queries.append(query)
        return [Document("from a page")]

    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    parts = {"context": RunnableLambda(retrieve), "question": RunnablePassthrough()}
    chain = with_memory(parts | prompt | chat | StrOutputParser(), memory)
    chain.invoke("green tea")
    assert queries == ["green tea"]
    assert BLOCK_START in told(chat)
    assert learned(memory) == ["Task: green tea\nAction: I heard 1 things."]


def test_history_when_given_is_left_as_it_is() -> None:
    """The last human message is the question; what came after it is part of the turn."""
    memory, chat = filled(), model()
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Help {who}."), MessagesPlaceholder("messages")]
    )
    call = {"name": "look_up", "args": {"n": 1}, "id": "c1"}
    messages: list[BaseMessage] = [
        HumanMessage("hello", id="m0"),
        AIMessage("hi"),
        HumanMessage("green tea", id="m1"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("a drink", tool_call_id="c1"),
    ]
    chain = with_memory(prompt | chat, memory, input_key="messages")
    chain.invoke({"who": "Ada", "messages": messages})
    assert [each.text for each in messages] == ["hello", "hi", "green tea", "", "a drink"]
    assert [BLOCK_START in each.text for each in chat.seen[-1]] == [False] * 3 + [True] + [
        False
    ] * 2
    assert learned(memory) == [
        'Task: green tea\nAction: look_up({"n":1})\nObservation: a drink\nAction: I heard 6 things.'
    ]


def test_chain_without_a_template_when_asked_with_a_mapping_has_memory_in_its_question() -> None:
    """There is no other place that could be known."""
    seen: list[Any] = []

    def answer(given: dict[str, str]) -> str:
        seen.append(given)
        return "a drink"

    chain = with_memory(RunnableLambda(answer), filled(), input_key="q")
    assert chain.invoke({"q": "green tea", "n": 1}) == "a drink"
    assert seen[0]["n"] == 1
    assert seen[0]["q"].endswith("</recalled_memory>\ngreen tea")


def test_chain_when_nothing_is_recalled_is_given_what_it_was() -> None:
    """With no room, nothing at all changes."""
    chat = model()
    with_memory(PROMPT | chat, filled(), budget=Budget(tokens=0)).invoke({"question": "tea"})
    assert told(chat) == "Answer: tea"


# Remembering ------------------------------------------------------------------------------


def test_turn_when_its_call_is_made_again_is_filed_once() -> None:
    """By the run's id, or the message's; other calls are other turns."""
    memory = filled()
    chain = with_memory(model(), memory)
    run_id = uuid.uuid4()
    for _ in range(2):
        chain.invoke("green tea", {"run_id": run_id})
        chain.invoke([HumanMessage("black tea", id="m1")])
    assert len(learned(memory)) == 2
    for _ in range(2):
        chain.invoke("green tea")
    assert len(learned(memory)) == 4


def test_turn_when_nothing_is_to_be_remembered_leaves_the_bank_as_it_is() -> None:
    """Asked not to; a reply that calls tools, whose turn goes on; a chain that says nothing."""
    memory = filled()
    before = memory.content()
    call = {"name": "look_up", "args": {}, "id": "c1"}
    reply = AIMessage("", tool_calls=[call])
    calls: RunnableLambda[Any, AIMessage] = RunnableLambda(lambda _: reply)
    with_memory(model(), memory, remember=False).invoke("green tea")
    with_memory(calls, memory).invoke("green tea")
    with_memory(RunnableLambda(lambda _: None), memory).invoke("green tea")
    assert memory.content() == before


class Reply(BaseModel):
    """A structured reply."""

    said: str


@pytest.mark.parametrize(
    ("output", "key", "text"),
    [
        ({"n": 1, "m": [2]}, None, '{"m":[2],"n":1}'),
        ({"output": "a drink", "sources": [Document("x")]}, None, "a drink"),
        ({"answer": "a drink", "sources": [Document("x")]}, "answer", "a drink"),
        ({"said": AIMessage("a drink")}, None, "a drink"),
        (Reply(said="a drink"), None, '{"said":"a drink"}'),
        (7, None, "7"),
    ],
)
def test_output_when_it_is_no_text_is_remembered_as_one(output: Any, key: Any, text: str) -> None:
    """A mapping's answer, or all of it as JSON; it comes out as it was."""
    memory = filled()
    chain = with_memory(RunnableLambda(lambda _: output), memory, output_key=key)
    assert chain.invoke("green tea") is output
    assert learned(memory) == [f"Task: green tea\nAction: {text}"]


async def test_lessons_when_memory_wants_them_are_drawn_by_the_model_given() -> None:
    """And outcomes are judged, sync and async; receipts are credited."""
    memory = make_provider("insight", InMemoryStore(), settings={"credit": True})
    judge = RuleModel(rule=lambda messages: LESSONS)
    seen: list[Any] = []

    def outcome(state: Any) -> Outcome:
        seen.append([each.text for each in state["messages"]])
        return Outcome(success=True)

    chain = with_memory(PROMPT | model(), memory, outcome=outcome, model=judge)
    chain.invoke({"question": "walk on in the long corridor"})
    await chain.ainvoke({"question": "walk on in the long corridor"})
    assert seen[0] == ["walk on in the long corridor", "I heard 2 things."]
    first, second = memory.content().items.values()
    assert (first.success, second.success) == (True, True)
    assert memory.content().notes == {first.id: {"uses": 1, "successes": 1}}


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_turn_when_memory_asks_is_judged_by_the_model_given(asynchronous: bool) -> None:
    """Rules that live by votes are kept by what it answers."""
    memory = make_provider("expel", InMemoryStore(), settings={"votes": {}})
    judge = RuleModel(rule=lambda _: '[{"action": "add", "text": "say what tea is"}]')
    chain = with_memory(model(), memory, model=judge)
    _ = await chain.ainvoke("What is tea?") if asynchronous else chain.invoke("What is tea?")
    assert "say what tea is" in learned(memory)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_question_when_memory_is_gated_is_drafted_and_judged_first(
    asynchronous: bool,
) -> None:
    """What a judge finds to contradict the draft is not shown."""
    for verdict in ("contradicts", "agrees"):
        memory, chat = make_provider("agent_kb", InMemoryStore(), settings={"gate": True}), model()
        memory.file(make_episode("tea", task="what is tea"))
        stance = f'[{{"id": "tea/note", "verdict": "{verdict}"}}]'
        judge = RuleModel(rule=lambda m, s=stance: s if "tea/note" in m[-1].text else "A drink.")
        chain = with_memory(chat, memory, model=judge, remember=False)
        _ = await chain.ainvoke("what is tea") if asynchronous else chain.invoke("what is tea")
        assert (BLOCK_START in told(chat)) == (verdict == "agrees")


def test_memory_when_it_is_a_function_is_that_of_the_user() -> None:
    """Of the call's configuration; what one user said no other is shown."""
    store, chat = InMemoryStore(), model()

    def bank(user: str) -> MemoryProvider[Any]:
        return TrajectoryMemory(store, namespace=("users", user))

    def of_user(config: RunnableConfig) -> MemoryProvider[Any]:
        return bank(config["configurable"]["user_id"])

    chain = with_memory(PROMPT | chat, of_user)
    for user in ("ada", "bo", "ada"):
        chain.invoke({"question": "green tea"}, {"configurable": {"user_id": user}})
    assert [BLOCK_START in prompt[-1].text for prompt in chat.seen] == [False, False, True]
    assert [len(bank(user).content().items) for user in ("ada", "bo", "cy")] == [2, 1, 0]


async def test_calls_when_made_at_once_are_all_remembered() -> None:
    """Batches, in threads and tasks."""
    memory = filled()
    chain = with_memory(PROMPT | model(), memory)
    questions = [{"question": f"tea {number}"} for number in range(8)]
    chain.batch([*questions])
    await chain.abatch([*questions])
    await asyncio.gather(*(chain.ainvoke(each) for each in questions))
    assert len(learned(memory)) == 24


# Streaming --------------------------------------------------------------------------------


def streaming(*texts: str) -> Any:
    """Return a model that streams words."""
    return GenericFakeChatModel(messages=iter([AIMessage(text) for text in texts]))


async def test_stream_when_it_ends_has_passed_every_chunk_and_is_filed() -> None:
    """Not before; the same chunks as without memory."""
    for asynchronous in (False, True):
        memory = filled()
        chain = with_memory(PROMPT | streaming("a green drink"), memory)
        chunks: list[AIMessageChunk] = []
        if asynchronous:
            async for chunk in chain.astream({"question": "green tea"}):
                assert not learned(memory)
                chunks.append(chunk)
        else:
            for chunk in chain.stream({"question": "green tea"}):
                assert not learned(memory)
                chunks.append(chunk)
        bare = (PROMPT | streaming("a green drink")).stream({"question": "green tea"})
        assert [each.content for each in chunks] == [each.content for each in bare]
        assert learned(memory) == ["Task: green tea\nAction: a green drink"]


async def test_stream_when_it_is_abandoned_or_breaks_off_is_not_filed() -> None:
    """Half an answer is none."""

    def breaking(_: Any) -> Iterator[str]:
        yield "a"
        raise OSError("cut off")

    memory = filled()
    before = memory.content()
    chain = with_memory(PROMPT | streaming("a green drink", "a green drink"), memory)
    stream = chain.stream({"question": "green tea"})
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    async for _ in (live := chain.astream({"question": "green tea"})):
        break
    await live.aclose()  # type: ignore[attr-defined]
    broken = with_memory(RunnableLambda(breaking), memory)
    with pytest.raises(OSError, match="cut off"):
        list(broken.stream("green tea"))
    assert memory.content() == before


def test_stream_when_chunks_grow_is_filed_by_the_last() -> None:
    """As a parser of JSON has them: each is all there is so far."""
    memory = filled()
    chain = with_memory(PROMPT | streaming('{"a": 1, "b": 2}') | JsonOutputParser(), memory)
    assert list(chain.stream({"question": "green tea"}))[-1] == {"a": 1, "b": 2}
    assert learned(memory) == ['Task: green tea\nAction: {"a":1,"b":2}']


def test_chain_when_it_is_part_of_another_streams_through_it() -> None:
    """Around the model alone, between a prompt and a parser."""
    memory = filled()
    chain = PROMPT | with_memory(streaming("a green drink"), memory) | StrOutputParser()
    assert "".join(chain.stream({"question": "tea"})) == "a green drink"
    assert learned(memory) == ["Task: Answer: tea\nAction: a green drink"]


# Around it --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_trace_when_a_chain_has_memory_is_one_run_with_its_parts(way: str) -> None:
    """Recalling, the chain and remembering are its children."""
    names: list[tuple[str, Any]] = []

    class Noting(BaseCallbackHandler):
        def on_chain_start(self, *_: Any, **more: Any) -> None:
            names.append((more["name"], more["parent_run_id"]))

    chain = with_memory(PROMPT | model() | StrOutputParser(), filled())
    called = getattr(chain, way)({"question": "tea"}, {"callbacks": [Noting()]})
    if way == "ainvoke":
        await called
    elif way == "astream":
        _ = [chunk async for chunk in called]
    elif way == "stream":
        _ = [*called]
    assert names[0] == ("with_memory", None)
    assert {"langgraft.recall", "langgraft.file"} < {name for name, _ in names}
    assert all(parent is not None for _, parent in names[1:])


def test_chain_when_called_in_a_graph_asks_nothing_of_its_state() -> None:
    """A state without messages, or whose messages go by no ids, is none of its business."""

    class State(TypedDict):
        messages: list[Any]

    memory = filled()
    chain = with_memory(PROMPT | model() | StrOutputParser(), memory)

    def node(state: State, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [chain.invoke({"question": "green tea"}, config)]}

    graph = StateGraph(State).add_node("node", node)
    graph.add_edge(START, "node").add_edge("node", END)
    assert graph.compile().invoke({"messages": []}) == {"messages": ["I heard 2 things."]}
    assert len(learned(memory)) == 1


def test_chain_when_its_input_is_not_possible_says_so() -> None:
    """One clear error, before the chain runs and with nothing filed."""
    memory, chat = filled(), model()
    before = memory.content()
    chain = with_memory(PROMPT | chat, memory)
    for given, said in (
        ({"a": 1, "b": 2}, "does not tell which the question is: give `input_key`; .* 'a', 'b'"),
        ({}, "nothing"),
        ([AIMessage("hi")], "no human message"),
        (7, "given a text, messages or a prompt value, got 7"),
    ):
        with pytest.raises(InputError, match=said):
            chain.invoke(given)
    with pytest.raises(InputError, match=r"holds no 'q'; there is 'question'"):
        with_memory(PROMPT | chat, memory, input_key="q").invoke({"question": "tea"})
    system = ChatPromptTemplate.from_messages([("system", "Answer {question}")])
    with pytest.raises(InputError, match="no human message to recall memory for, or to put it in"):
        with_memory(system | chat, memory).invoke({"question": "tea"})
    assert chat.seen == []
    assert memory.content() == before


def test_memory_when_it_cannot_be_had_is_refused_as_by_the_nodes() -> None:
    """At once, or where a function returns it when it is called."""
    assert with_memory(model(), InsightMemory(InMemoryStore()), remember=False).invoke("tea")
    with pytest.raises(SettingsError, match="CodingMemory learns from error records"):
        with_memory(model(), lambda _: CodingMemory(InMemoryStore())).invoke("tea")
    with pytest.raises(SettingsError, match="what `memory` of with_memory returns must be a Memor"):
        with_memory(model(), lambda _: None).invoke("tea")  # type: ignore[arg-type, return-value]
    graph = StateGraph(MessagesState).add_node("node", lambda _: {}).add_edge(START, "node")
    with pytest.raises(SettingsError, match=r"for chat models and chains: .* MemoryMiddleware"):
        with_memory(graph.compile(), filled())


# In a graph, and where memory fails -------------------------------------------------------


def test_model_of_a_node_with_memory_leaves_nothing_of_it_in_the_state_of_the_graph() -> None:
    """Another thread is told; no stream and no checkpoint holds any of it; equal ids do not meet."""
    memory, chat, saver = TrajectoryMemory(InMemoryStore()), model(), InMemorySaver()
    with_it = with_memory(chat, memory)
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [with_it.invoke(state["messages"])]})
    graph.add_edge(START, "answer")
    app: Any = graph.compile(checkpointer=saver)
    seen: list[Any] = []
    for thread, text in (("one", "what is SECRET tea"), ("two", "what is green tea")):
        config: Any = {"configurable": {"thread_id": thread}}
        given = {"messages": [HumanMessage(text, id="m")]}
        modes: Any = ["values", "updates", "messages", "debug"]
        seen = [*app.stream(given, config, stream_mode=modes), *saver.list(config)]
    assert "SECRET" in told(chat)
    assert "what is green tea" in str(seen)
    assert "SECRET" not in str(seen)
    assert len(learned(memory)) == 2


@pytest.mark.parametrize("templated", [False, True])
def test_turn_when_what_came_before_holds_a_tool_follows_from_that(*, templated: bool) -> None:
    """Whatever the history is called that a chain is given, its model sees it."""
    memory = make_provider("trajectory", InMemoryStore(), settings={"trust": {}})
    looked = AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": "c1"}])
    result = ToolMessage("Tea is a drink.", tool_call_id="c1", name="look_up")
    history = [HumanMessage("what is tea"), looked, result, AIMessage("so")]
    if templated:
        prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("past"), ("human", "{it}")])
        chain = with_memory(prompt | model(), memory, input_key="it")
        chain.invoke({"past": history, "it": "say it again"})
    else:
        with_memory(model(), memory).invoke([*history, HumanMessage("say it again")])
    (item,) = memory.content().items.values()
    assert item.sources == ("tool:look_up",)


def test_chain_when_memory_is_down_answers_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """And catches up; or fails, where that is asked."""

    class Down(InMemoryStore):
        down = True

        def batch(self, ops: Any) -> Any:
            if not self.down:
                return super().batch(ops)
            msg = "the database cannot be reached"
            raise InfrastructureError(msg)

    store = Down()
    memory = TrajectoryMemory(store)
    chain = with_memory(model(), memory)
    for _ in range(2):
        assert chain.invoke("green tea").text == "I heard 1 things."
    said = [record.getMessage() for record in caplog.records]
    assert ["nothing was recalled" in said[0], "was not filed" in said[1]] == [True, True]
    store.down = False
    chain.invoke("black tea")
    assert len(learned(memory)) == 3
    store.down = True
    with pytest.raises(InfrastructureError, match="cannot be reached"):
        with_memory(model(), memory, on_error="raise").invoke("green tea")
