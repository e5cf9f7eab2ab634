"""What applications do to conversations: redact, notify, rewrite, hand off, jump back, remove, use no ids."""

import logging
import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NotRequired

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    PIIDetectionError,
    PIIMiddleware,
    RedactionRule,
    hook_config,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import Field
from typing_extensions import TypedDict, override

from langgraft import FactMemory, InsightMemory, MemoryMiddleware, ReasoningBank, TrajectoryMemory
from langgraft._core.errors import SettingsError
from langgraft.memory.model import BLOCK_START
from langgraft.memory.providers import make_provider
from langgraft.nodes import memory_tools, with_memory

EMAIL = "ada.lovelace@example.org"


class Scripted(BaseChatModel):
    """Says one reply after the other, raises what is an exception, and keeps what it was sent."""

    replies: list[Any]
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
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        message = AIMessage(reply) if isinstance(reply, str) else reply
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def ping(host: str) -> str:
    """Ping a host."""
    return f"{host} answers"


def calls(name: str, /, number: int = 1, **arguments: Any) -> AIMessage:
    """Return a reply that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"c{number}"}])


def config(thread: object = 1) -> Any:
    """Name a thread."""
    return {"configurable": {"thread_id": str(thread)}}


def ask(agent: Any, *said: Any, thread: object = 1) -> Any:
    """Ask an agent in a thread."""
    messages = [("user", each) if isinstance(each, str) else each for each in said]
    return agent.invoke({"messages": messages}, config(thread))


def texts(memory: Any) -> list[str]:
    """Return what a bank holds, the oldest first."""
    items = memory.content().items.values()
    return [item.text for item in sorted(items, key=lambda item: item.order_index)]


def bank() -> TrajectoryMemory:
    """Return an empty bank."""
    return TrajectoryMemory(InMemoryStore())


def agent_of(
    replies: Sequence[Any],
    memory: Any,
    *others: AgentMiddleware[Any, Any],
    first: bool = True,
    **options: Any,
) -> tuple[Any, Scripted]:
    """Make an agent with memory, before or after other middleware, and return its model as well."""
    model = Scripted(replies=list(replies))
    ours = memory if isinstance(memory, MemoryMiddleware) else MemoryMiddleware(memory, **options)
    middleware = [ours, *others] if first else [*others, ours]
    agent = create_agent(model, [ping], middleware=middleware, checkpointer=InMemorySaver())
    return agent, model


def written(agent: Any, thread: object = 1) -> str:
    """Return all that memory keeps in a thread's checkpoints."""
    history = agent.get_state_history(config(thread))
    return repr([state.values.get("langgraft_turns") for state in history])


# Redaction --------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
def test_text_when_middleware_redacts_it_is_filed_and_recalled_redacted(first: bool) -> None:
    """In whatever order: neither the bank, the record of turns, nor another thread holds the address."""
    memory = bank()
    redacting = PIIMiddleware("email", strategy="redact")
    agent, model = agent_of(["Noted."] * 2, memory, redacting, first=first)
    ask(agent, f"Write to {EMAIL} about the wifi")
    ask(agent, "the wifi mail again", thread=2)
    assert EMAIL not in f"{texts(memory)} {written(agent)} {written(agent, 2)} {model.seen}"
    assert texts(memory)[0] == "Task: Write to [REDACTED_EMAIL] about the wifi\nAction: Noted."
    assert "[REDACTED_EMAIL]" in model.seen[-1][-1].text


@pytest.mark.parametrize("first", [True, False])
def test_text_when_middleware_blocks_it_is_never_filed(first: bool) -> None:
    """The model never saw that turn; the turns after it are filed without it."""
    memory = bank()
    blocking = PIIMiddleware("email", strategy="block")
    agent, model = agent_of(["Hello."] * 2, memory, blocking, first=first)
    with pytest.raises(PIIDetectionError):
        ask(agent, f"Write to {EMAIL} about the wifi")
    ask(agent, "hello")
    ask(agent, "the wifi mail again", thread=2)
    assert [text.splitlines()[0] for text in texts(memory)] == [
        "Task: hello",
        "Task: the wifi mail again",
    ]
    assert EMAIL not in f"{written(agent)} {model.seen[-1]}"


def test_text_when_a_tool_returns_it_is_filed_as_redacted_later() -> None:
    """The state at the end of the turn is what counts, for observations and answers too."""

    @tool
    def look_up(name: str) -> str:
        """Look an address up."""
        return f"{name} is {EMAIL}"

    memory, model = bank(), Scripted(replies=[calls("look_up", name="ada"), f"It is {EMAIL}."])
    rules: Any = {"apply_to_tool_results": True, "apply_to_output": True}
    middleware: Any = [MemoryMiddleware(memory), PIIMiddleware("email", **rules)]
    agent: Any = create_agent(
        model,
        [look_up],
        middleware=middleware,
        checkpointer=InMemorySaver(),
    )
    ask(agent, "what is ada's address")
    (text,) = texts(memory)
    assert text.count("[REDACTED_EMAIL]") == 2
    assert EMAIL not in f"{text} {written(agent)}"


def _masked(text: str) -> str:
    return text.replace(EMAIL, "<address>")


@pytest.mark.parametrize("redact", [_masked, [RedactionRule(pii_type="email")]])
def test_redact_hook_when_given_runs_on_all_that_is_written(redact: Any) -> None:
    """In middleware, chains and tools, whatever the conversation itself keeps."""
    memory = bank()
    agent, model = agent_of(
        [calls("ping", host=EMAIL), f"Wrote to {EMAIL}."], memory, redact=redact
    )
    ask(agent, f"Write to {EMAIL}")
    assert EMAIL in model.seen[0][-1].text
    chain = with_memory(Scripted(replies=[f"Dear {EMAIL}"]), memory, redact=redact)
    chain.invoke(f"Draft a mail to {EMAIL}")
    remember = memory_tools(memory, redact=redact)[1]
    remember.invoke({"text": f"The boss is {EMAIL}", "when_to_use": f"mails to {EMAIL}"})
    assert len(texts(memory)) == 3
    assert EMAIL not in memory.content().to_bytes().decode() + written(agent)


def test_turn_when_it_cannot_be_redacted_is_not_filed(caplog: pytest.LogCaptureFixture) -> None:
    """Rules that block, and functions that fail: nothing is written, and no log quotes the text."""
    memory = bank()
    block = [RedactionRule(pii_type="email", strategy="block")]
    agent, _ = agent_of(["Done."] * 2, memory, redact=block)
    with caplog.at_level(logging.DEBUG):
        ask(agent, f"Write to {EMAIL}")
        ask(agent, "hello")
    assert texts(memory) == ["Task: hello\nAction: Done."]
    said = caplog.text.replace(repr(Scripted), "")
    assert EMAIL not in "".join(line for line in said.splitlines() if "langgraft" in line)
    assert EMAIL not in written(agent)
    with pytest.raises(SettingsError, match="`redact` of MemoryMiddleware"):
        MemoryMiddleware(memory, redact=[RedactionRule(pii_type="no such thing")])


# Whose messages they are ------------------------------------------------------------------


class Adds(AgentMiddleware[Any, Any]):
    """Adds a human message of its own after a tool's result, or before the model is called at all."""

    def __init__(self, message: HumanMessage) -> None:
        super().__init__()
        self.message = message

    @override
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if isinstance(state["messages"][-1], ToolMessage):
            return {"messages": [self.message]}
        return None


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("Mind your list.", additional_kwargs={"hide_from_ui": True}),
        HumanMessage("A summary.", additional_kwargs={"lc_source": "summarization"}),
        HumanMessage("[video]", additional_kwargs={"read_file_media_result": True}),
        HumanMessage("<task t1 finished>", additional_kwargs={"deepagents_notification": {}}),
        HumanMessage("Your answer lacks a reason. Try again."),  # a critique without any mark
    ],
)
def test_message_when_software_adds_it_to_a_turn_does_not_end_the_turn(
    message: HumanMessage,
) -> None:
    """The final answer is filed with the question that a person asked, once."""
    memory = bank()
    agent, _ = agent_of(
        [calls("ping", host="router"), "Replace the cable.", "You are welcome."],
        memory,
        Adds(message),
        outcome=lambda state: "cable" in state["messages"][-1].text,
    )
    ask(agent, "the wifi is down")
    (text,) = texts(memory)
    assert text.splitlines()[0] == "Task: the wifi is down"
    assert text.splitlines()[-2:] == ["Action: Replace the cable.", "Result: success"]
    ask(agent, "thank you")
    assert [each.splitlines()[0] for each in texts(memory)] == [
        "Task: the wifi is down",
        "Task: thank you",
    ]


def test_run_when_only_a_notification_starts_it_is_no_turn_of_its_own() -> None:
    """Without a question nothing is filed; after one, its turn has a later answer."""
    memory = bank()
    agent, _ = agent_of(["It runs.", "Report is ready.", "Nothing to do."], memory)
    news = {"role": "user", "content": "<t1 finished>", "deepagents_notification": {"task": "t1"}}
    ask(agent, "start the report")
    agent.invoke({"messages": [news]}, config())
    assert texts(memory) == ["Task: start the report\nAction: It runs.\nAction: Report is ready."]
    agent.invoke({"messages": [news]}, config("other"))
    assert len(texts(memory)) == 1


def test_predicate_when_given_says_which_messages_are_a_persons() -> None:
    """An application knows its own."""
    memory = bank()
    agent, _ = agent_of(
        ["Fine.", "Done."], memory, from_person=lambda message: message.name != "cron"
    )
    ask(agent, HumanMessage("Nightly check.", name="cron"))
    assert texts(memory) == []
    ask(agent, HumanMessage("Is all well?", name="ada"))
    assert texts(memory) == ["Task: Is all well?\nAction: Done."]


def test_messages_when_a_person_sends_several_are_one_question() -> None:
    """Chat bridges batch them; none is lost, and memory is asked about all."""
    memory = bank()
    agent, model = agent_of(["A sorbet.", "As always."], memory)
    ask(agent, "I am Ada and allergic to nuts.", "Suggest a dessert.")
    assert texts(memory) == [
        "Task: I am Ada and allergic to nuts.\n\nSuggest a dessert.\nAction: A sorbet."
    ]
    ask(agent, "What about nuts?", "Hello?", thread=2)
    assert "sorbet" in model.seen[-1][-1].text
    chain = with_memory(Scripted(replies=["Yes."]), memory)
    chain.invoke([("user", "It is cold."), ("user", "Shall I take a coat?")])
    assert texts(memory)[-1] == "Task: It is cold.\n\nShall I take a coat?\nAction: Yes."


@pytest.mark.parametrize(
    ("parts", "task"),
    [
        ([{"type": "image", "url": "https://example.org/a.png"}], "[image]"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}], "[image]"),
        (
            [{"type": "text", "text": "What is this?"}, {"type": "audio", "data": "AA=="}],
            "What is this?\n[audio]",
        ),
        (
            [{"type": "file", "file": {"filename": "plan.pdf", "file_data": "AA=="}}],
            "[file plan.pdf]",
        ),
    ],
)
def test_content_when_it_is_no_text_leaves_a_placeholder(parts: Any, task: str) -> None:
    """A question of an image alone is filed with more than nothing."""
    memory = bank()
    agent, _ = agent_of(["A cat."], memory)
    ask(agent, HumanMessage(parts))
    assert texts(memory) == [f"Task: {task}\nAction: A cat."]


# Histories --------------------------------------------------------------------------------


class Rewrites(AgentMiddleware[Any, Any]):
    """Puts the date before the first question, under the question's id, or replaces all messages."""

    def __init__(self, rewrite: Callable[[list[AnyMessage]], list[Any]]) -> None:
        super().__init__()
        self.rewrite = rewrite

    @override
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if isinstance(state["messages"][-1], HumanMessage):
            return {"messages": self.rewrite(state["messages"])}
        return None


def _dated(messages: list[AnyMessage]) -> list[Any]:
    asked = messages[-1]
    return [
        SystemMessage("Today is Friday.", id=asked.id),
        HumanMessage(asked.content, id=f"{asked.id}-new"),
    ]


def _renamed(messages: list[AnyMessage]) -> list[Any]:
    copies = [each.model_copy(update={"id": f"{n}-{each.id}"}) for n, each in enumerate(messages)]
    return [RemoveMessage(REMOVE_ALL_MESSAGES), *copies]


def _translated(messages: list[AnyMessage]) -> list[Any]:
    *before, asked = messages
    new = HumanMessage(f"(translated) {asked.text}", id=f"{asked.id}-new")
    return [RemoveMessage(REMOVE_ALL_MESSAGES), *before, new]


@pytest.mark.parametrize("on_error", ["warn", "raise"])
@pytest.mark.parametrize("rewrite", [_dated, _renamed, _translated])
def test_question_when_an_application_rewrites_it_is_found_and_answered(
    rewrite: Any, on_error: Any
) -> None:
    """Each turn is answered and filed once, with its own answer."""
    memory = bank()
    agent, _ = agent_of(["A.", "B.", "C."], memory, Rewrites(rewrite), on_error=on_error)
    for word in ("wifi", "printer", "lamp"):
        ask(agent, f"{word} is down")
    assert [text.replace("(translated) ", "") for text in texts(memory)] == [
        "Task: wifi is down\nAction: A.",
        "Task: printer is down\nAction: B.",
        "Task: lamp is down\nAction: C.",
    ]


def test_fault_when_it_is_in_reading_a_conversation_costs_no_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is one line of the log; the turn before keeps its own answer."""

    def judge(message: HumanMessage) -> bool:
        assert "boom" not in message.text
        return True

    memory = bank()
    agent, _ = agent_of(["A.", "B.", "C."], memory, from_person=judge)
    ask(agent, "wifi")
    answer = ask(agent, "boom")["messages"][-1].text
    assert answer == "B."
    assert texts(memory) == ["Task: wifi\nAction: A."]
    assert "the turn has no memory (AssertionError" in caplog.text
    failing, _ = agent_of(["A."], bank(), from_person=judge, on_error="raise")
    with pytest.raises(AssertionError):
        ask(failing, "boom")


@pytest.mark.parametrize("saver", [True, False])
@pytest.mark.parametrize("given", [("user", "wifi"), {"role": "user", "content": "wifi"}, "wifi"])
def test_messages_when_they_have_no_ids_are_answered_and_filed_once_a_turn(
    given: Any, saver: bool
) -> None:
    """As deepagents keeps them, in threads and without."""
    memory = bank()
    model = Scripted(replies=["Restart.", "Again.", "Once more."])
    agent: Any = create_deep_agent(
        model=model,
        middleware=[MemoryMiddleware(memory, on_error="raise")],
        checkpointer=InMemorySaver() if saver else None,
    )
    for _ in range(3):
        messages = given if isinstance(given, str) else [given]
        agent.invoke({"messages": messages}, config())
    assert texts(memory) == [
        f"Task: wifi\nAction: {answer}" for answer in ("Restart.", "Again.", "Once more.")
    ]
    assert (BLOCK_START in repr(model.seen[-1])) is (not saver)


class Appended(TypedDict):
    """A state whose messages have no reducer that gives ids."""

    messages: Annotated[list[AnyMessage], operator.add]


class Told(Appended):
    """What the node that asks the model is given."""

    langgraft_turns: NotRequired[list[Any]]


def test_graph_when_its_messages_have_no_ids_remembers_each_turn() -> None:
    """With `operator.add` for a reducer."""
    memory, model = bank(), Scripted(replies=["A.", "B."])
    middleware = MemoryMiddleware(memory, on_error="raise")

    def assistant(state: Told) -> dict[str, Any]:
        return {"messages": [model.invoke(middleware.messages(state))]}

    graph = StateGraph(Appended)
    graph.add_node("recall", middleware.recall_node)
    graph.add_node("assistant", assistant)
    graph.add_node("remember", middleware.remember_node)
    for start, end in ((START, "recall"), ("recall", "assistant"), ("assistant", "remember")):
        graph.add_edge(start, end)
    app: Any = graph.compile(checkpointer=InMemorySaver())
    for text in ("wifi", "wifi"):
        app.invoke({"messages": [HumanMessage(text)]}, config())
    assert texts(memory) == ["Task: wifi\nAction: A.", "Task: wifi\nAction: B."]
    assert BLOCK_START not in repr(model.seen)


# Ends of turns ----------------------------------------------------------------------------


class Insists(AgentMiddleware[Any, Any]):
    """Sends the agent back once, after its draft."""

    done = False

    @hook_config(can_jump_to=["model"])
    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if self.done:
            return None
        self.done = True
        return {"jump_to": "model", "messages": [HumanMessage("Check it again.", name="critic")]}


@pytest.mark.parametrize("remember", ["inline", "background"])
@pytest.mark.parametrize("first", [True, False])
def test_answer_when_the_agent_jumps_back_is_the_last_one(first: bool, remember: Any) -> None:
    """In whatever order the middleware stands; the draft is not left in the bank."""
    memory = bank()
    middleware = MemoryMiddleware(memory, remember=remember)
    agent, _ = agent_of(["A draft.", "The answer."], middleware, Insists(), first=first)
    ask(agent, "the wifi is down")
    middleware.flush()
    (text,) = texts(memory)
    assert text.splitlines()[-1] == "Action: The answer."


class Clears(AgentMiddleware[Any, Any]):
    """Removes all messages at the end."""

    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]}


@pytest.mark.parametrize("first", [True, False])
def test_answer_when_all_messages_are_removed_at_the_end_is_filed(first: bool) -> None:
    """What the model said last is known."""
    memory = bank()
    agent, _ = agent_of(
        [calls("ping", host="router"), "Restart it."], memory, Clears(), first=first
    )
    ask(agent, "the wifi is down")
    (text,) = texts(memory)
    assert text.splitlines()[0] == "Task: the wifi is down"
    assert text.splitlines()[-1] == "Action: Restart it."
    assert "router answers" in text


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_turn_when_it_is_handed_to_another_agent_is_filed(asynchronous: bool) -> None:
    """The agent with memory ends without an answer of its own."""

    @tool
    def to_bob() -> Command[Any]:
        """Hand the conversation to bob."""
        return Command(goto="bob", graph=Command.PARENT, update={"handed": True})

    class State(MessagesState):
        handed: bool

    memory = bank()
    alice = create_agent(
        Scripted(replies=[calls("to_bob")]), [to_bob], middleware=[MemoryMiddleware(memory)]
    )
    bob = create_agent(Scripted(replies=["Bob here."]), [])
    graph = StateGraph(State)
    graph.add_node("alice", alice, destinations=("bob",))
    graph.add_node("bob", bob)
    graph.add_edge(START, "alice")
    app: Any = graph.compile(checkpointer=InMemorySaver())
    given = {"messages": [("user", "I want to talk to bob")]}
    result = await app.ainvoke(given, config()) if asynchronous else app.invoke(given, config())
    assert result["messages"][-1].text == "Bob here."
    assert texts(memory) == ["Task: I want to talk to bob\nAction: to_bob({})"]


def test_turn_when_its_call_was_cancelled_is_neither_filed_nor_recalled() -> None:
    """Before any reply, or between a tool's result and the answer."""
    memory = bank()
    script = ["Hold the button.", TimeoutError(), calls("ping", host="router"), TimeoutError(), "x"]
    agent, model = agent_of(script, memory)
    ask(agent, "the wifi is down")
    for thread in (2, 3):
        with pytest.raises(TimeoutError):
            ask(agent, "the wifi is down", thread=thread)
    ask(agent, "the wifi is down", thread=4)
    assert "Hold the button." in model.seen[-1][-1].text
    assert len(texts(memory)) == 2


# What is recalled -------------------------------------------------------------------------


def test_turns_when_they_are_still_in_the_conversation_are_not_recalled() -> None:
    """They take no place among the `top_k`; once a summary has taken theirs, they are recalled."""
    memory = bank()
    agent, model = agent_of(["Reset it.", "Restart it.", "Yes.", "Again."], memory)
    ask(agent, "the office wifi is down", thread="earlier")
    ask(agent, "the office wifi is down, too")
    ask(agent, "the office wifi is down again")
    assert "Reset it." in model.seen[-1][-1].text
    assert "Restart it." not in model.seen[-1][-1].text
    state = agent.get_state(config()).values["messages"]
    summary = HumanMessage("They spoke of wifi.", additional_kwargs={"lc_source": "summarization"})
    gone: list[Any] = [RemoveMessage(id=str(each.id)) for each in state]
    agent.update_state(config(), {"messages": [*gone, summary]})
    ask(agent, "the office wifi is down, too, once more")
    assert "Restart it." in model.seen[-1][-1].text


@pytest.mark.parametrize(
    "provider", [InsightMemory, FactMemory, ReasoningBank, "expel", "agent_kb"]
)
def test_provider_when_there_is_no_model_gets_each_turn_as_a_plain_note(
    provider: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for another, and nothing else changes; that is said once."""
    monkeypatch.setattr("langgraft.nodes.turns._WARNED", set())
    store, model = InMemoryStore(), Scripted(replies=["Restart the router.", "Yes.", "Yes."])
    memory = MemoryMiddleware(provider, store=store)
    agent: Any = create_agent(model, [], middleware=[memory], checkpointer=InMemorySaver())
    for thread, text in enumerate(["the office wifi is down", "the office wifi is down again"]):
        ask(agent, text, thread=thread)
    assert "the office wifi is down" in model.seen[-1][-1].text.partition(BLOCK_START)[2]
    assert caplog.text.count("only a model can write") == 1


@pytest.mark.filterwarnings("ignore:create_react_agent")
def test_agent_when_its_model_has_memory_and_tools_recalls_and_files_answers() -> None:
    """`create_react_agent` binds tools to a model with memory."""
    memory = bank()
    model = Scripted(replies=[calls("ping", host="router"), "Restart it.", "As before."])
    from langgraph.prebuilt import create_react_agent  # noqa: PLC0415 - deprecated, and widely used

    agent: Any = create_react_agent(with_memory(model, memory), [ping])
    for text in ("the wifi is down", "the wifi is down again"):
        agent.invoke({"messages": [("user", text)]})
    assert "Restart it." in model.seen[-1][-1].text.partition(BLOCK_START)[2]
    assert texts(memory)[0].splitlines()[-1] == "Action: Restart it."
    assert len(texts(memory)) == 2
    with pytest.raises(SettingsError, match="tools cannot be bound to"):
        with_memory(ToolNode([ping]), memory).bind_tools([ping])  # type: ignore[attr-defined]


def test_bank_when_it_serves_a_second_conversation_without_trust_settings_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Text of tools could travel between them; with `trust` settings there is no warning."""
    agent, _ = agent_of(["A."] * 4, bank())
    ask(agent, "one")
    ask(agent, "two")
    assert "serves several conversations" not in caplog.text
    for thread in (2, 3):
        ask(agent, "three", thread=thread)
    assert caplog.text.count("serves several conversations") == 1
    caplog.clear()
    memory = make_provider("trajectory", InMemoryStore(), settings={"trust": {}})
    agent, _ = agent_of(["A."] * 2, memory)
    for thread in (1, 2):
        ask(agent, "one", thread=thread)
    assert caplog.text == ""
