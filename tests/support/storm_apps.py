"""Three applications with memory, whose one model does in a turn what the question says.

An agent of `create_agent`, one of deepagents, and a graph of a user's own. All redact addresses, may call a
tool, wait for an approval, jump back after a draft, be told something by software, or break down.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, PIIMiddleware, hook_config
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from pydantic import Field
from typing_extensions import TypedDict, override

from langgraft import MemoryMiddleware, MemoryState
from langgraft.memory.banks import Banks

ADDRESS: Final = "grace.hopper@example.org"
REDACTED: Final = "[REDACTED_EMAIL]"
NEWS: Final = "<task finished>"
CRITIQUE: Final = "Give a reason, too."
DOES: Final = re.compile(r"\b(?:tool|wait|jump|fail|breaks|critic|hand)\b")

_WORD: Final = re.compile(r"\bq\d+\b")


class Context(TypedDict):
    """Who asks."""

    user: str


class Talker(BaseChatModel):
    """Answers the last question of a person, and does what it says first."""

    seen: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    @override
    def _llm_type(self) -> str:
        return "talker"

    @override
    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    @override
    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        humans = [n for n, each in enumerate(messages) if isinstance(each, HumanMessage)]
        asked = next((n for n in reversed(humans) if _WORD.search(_own(messages[n]))), humans[-1])
        own, rest = _own(messages[asked]), messages[asked + 1 :]
        word = (_WORD.findall(own) or ["nothing"])[-1]
        does = set(DOES.findall(own))
        used = any(isinstance(each, ToolMessage) for each in rest)
        if NEWS in messages[-1].text:
            return AIMessage(f"news of {word}")
        if "fail" in does or ("breaks" in does and used):
            raise TimeoutError(word)
        if not used and does & {"tool", "breaks", "critic"}:
            return _calls("look", word)
        if not used and "wait" in does:
            return _calls("send", word)
        if "hand" in does:
            return _calls("to_bob", word)
        if "jump" in does and not any("Again" in each.text for each in rest):
            return AIMessage(f"a draft of {word}")
        return AIMessage(f"the answer to {word}")


def _own(message: BaseMessage) -> str:
    return message.text.partition("<recalled_memory>")[0]


def _calls(name: str, word: str) -> AIMessage:
    arguments = {} if name == "to_bob" else {"what": word}
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{word}"}])


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"a note on {what}"


@tool
def send(what: str) -> str:
    """Send something, once that is approved."""
    interrupt("May it be sent?")
    return f"sent {what}"


@tool
def to_bob() -> Command[Any]:
    """Hand the conversation to bob."""
    return Command(goto="bob", graph=Command.PARENT)


class Insists(AgentMiddleware[Any, Any]):
    """Sends the agent back from a draft, and adds a critique after a tool's result where it is asked to."""

    @override
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        asked = " ".join(each.text for each in state["messages"][-3:])
        if isinstance(state["messages"][-1], ToolMessage) and "critic" in asked:
            return {"messages": [HumanMessage(CRITIQUE)]}
        return None

    @hook_config(can_jump_to=["model"])
    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if "a draft" in state["messages"][-1].text:
            return {"jump_to": "model", "messages": [HumanMessage("Again.", name="critic")]}
        return None


def memory_of(banks: Banks, **options: Any) -> MemoryMiddleware:
    """Give each user a bank."""
    return MemoryMiddleware(banks, user=lambda runtime: runtime.context["user"], **options)


def _listed(*middleware: Any) -> list[Any]:
    return [*middleware]


def agent_app(model: Talker, memory: MemoryMiddleware, checkpointer: Any) -> Any:
    """Make an agent."""
    return create_agent(
        model,
        [look, send],
        middleware=_listed(memory, PIIMiddleware("email"), Insists()),
        context_schema=Context,
        checkpointer=checkpointer,
    )


def agent_last_app(model: Talker, memory: MemoryMiddleware, checkpointer: Any) -> Any:
    """Make an agent whose memory comes last among its middleware."""
    return create_agent(
        model,
        [look, send],
        middleware=_listed(Insists(), PIIMiddleware("email"), memory),
        context_schema=Context,
        checkpointer=checkpointer,
    )


def deep_app(model: Talker, memory: MemoryMiddleware, checkpointer: Any) -> Any:
    """Make an agent of deepagents."""
    return create_deep_agent(
        model=model,
        tools=[look, send],
        middleware=_listed(memory, PIIMiddleware("email"), Insists()),
        context_schema=Context,
        checkpointer=checkpointer,
    )


def team_app(model: Talker, memory: MemoryMiddleware, checkpointer: Any) -> Any:
    """Make a graph of two agents, of which the first remembers and may hand over to the other."""
    alice = create_agent(
        model,
        [look, send, to_bob],
        middleware=_listed(memory, PIIMiddleware("email"), Insists()),
        context_schema=Context,
    )
    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("alice", alice, destinations=("bob",))
    graph.add_node("bob", lambda _: {"messages": [AIMessage("bob here")]})
    graph.add_edge(START, "alice")
    return graph.compile(checkpointer=checkpointer)


def graph_app(model: Talker, memory: MemoryMiddleware, checkpointer: Any) -> Any:
    """Make a graph of a user's own, which redacts between recalling and asking the model."""

    def redact(state: MessagesState) -> dict[str, Any]:
        found = [each for each in state["messages"] if ADDRESS in each.text]
        return {
            "messages": [
                each.model_copy(update={"content": each.text.replace(ADDRESS, REDACTED)})
                for each in found
            ]
        }

    def answer(state: MemoryState) -> dict[str, Any]:
        return {"messages": [model.invoke(memory.messages(state))]}

    async def aanswer(state: MemoryState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(await memory.amessages(state))]}

    def insist(state: MessagesState) -> dict[str, Any]:
        draft = "a draft" in state["messages"][-1].text
        return {"messages": [HumanMessage("Again.", name="critic")] if draft else []}

    def after_model(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else "insist"

    def after_tools(state: MessagesState) -> dict[str, Any]:
        asked = " ".join(each.text for each in state["messages"][-3:])
        return {"messages": [HumanMessage(CRITIQUE)] if "critic" in asked else []}

    def after_insist(state: MessagesState) -> str:
        return "model" if state["messages"][-1].text == "Again." else "remember"

    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("recall", memory.recall_node)
    graph.add_node("redact", redact)
    graph.add_node("model", RunnableLambda(answer, aanswer), input_schema=MemoryState)
    graph.add_node("tools", ToolNode([look, send]))
    graph.add_node("critic", after_tools)
    graph.add_node("insist", insist)
    graph.add_node("remember", memory.remember_node)
    for start, end in (
        (START, "recall"),
        ("recall", "redact"),
        ("redact", "model"),
        ("tools", "critic"),
        ("critic", "model"),
    ):
        graph.add_edge(start, end)
    graph.add_conditional_edges("model", after_model, ["tools", "insist"])
    graph.add_conditional_edges("insist", after_insist, ["model", "remember"])
    return graph.compile(checkpointer=checkpointer)


APPS: Final[Mapping[str, Callable[[Talker, MemoryMiddleware, Any], Any]]] = {
    "agent": agent_app,
    "agent, memory last": agent_last_app,
    "deepagents": deep_app,
    "team": team_app,
    "graph": graph_app,
}
