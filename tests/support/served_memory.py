"""Graphs with memory for `langgraph dev`, of a user's app that trusts its callers and of one that does not.

Their model answers with all that it is sent, so a reply shows what was recalled.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph
from typing_extensions import override

from langgraft import Banks, MemoryMiddleware, MemoryState
from langgraft.nodes import memory_tools, with_memory

BANKS = Banks(os.environ["BANKS"], settings={"same_task": "exclude", "top_k": 5})


class Echo(BaseChatModel):
    """Answers with all that it is sent; asked to search, it calls the tool of memory."""

    @property
    @override
    def _llm_type(self) -> str:
        return "echo"

    @override
    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    @override
    def _generate(self, messages: Sequence[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        last = messages[-1]
        reply = AIMessage("\n".join(f"heard: {message.text}" for message in messages))
        if last.type == "human" and last.text.startswith("search"):
            call = {"name": "search_memory", "args": {"query": last.text}, "id": "c1"}
            reply = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


@dataclass
class Claims:
    """What a client says of itself."""

    user_id: str = ""


def identity(runtime: Any) -> str:
    """Return the authenticated user."""
    user: str = runtime.server_info.user.identity
    return user


def claimed(runtime: Any) -> str:
    """Return whoever the client says that it is: what an app must not do."""
    user: str = runtime.context.user_id
    return user


def defaulting(runtime: Any) -> str:
    """Return the same, with a default for clients that say nothing."""
    return getattr(runtime.context, "user_id", "") or "everybody"


def _agent(user: Any) -> Any:
    memory = MemoryMiddleware(BANKS, user=user)
    return create_agent(Echo(), [], middleware=[memory], context_schema=Claims)


def _nodes(user: Any) -> Any:
    memory = MemoryMiddleware(BANKS, user=user)

    async def assistant(state: MemoryState) -> dict[str, Any]:
        return {"messages": [await Echo().ainvoke(await memory.amessages(state))]}

    graph = StateGraph(MemoryState, context_schema=Claims)
    graph.add_node("recall", memory.recall_node)
    graph.add_node("assistant", assistant)
    graph.add_node("remember", memory.remember_node)
    for start, end in (
        (START, "recall"),
        ("recall", "assistant"),
        ("assistant", "remember"),
        ("remember", END),
    ):
        graph.add_edge(start, end)
    return graph.compile()


def _chain(setting: str) -> Any:
    def of_call(config: RunnableConfig) -> Any:
        return BANKS[config["configurable"][setting]]

    chain = with_memory(Echo(), of_call)

    async def assistant(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [await chain.ainvoke(state["messages"], config)]}

    graph = StateGraph(MessagesState)
    graph.add_node("assistant", assistant)
    graph.add_edge(START, "assistant")
    graph.add_edge("assistant", END)
    return graph.compile()


def _tools(user: Any) -> Any:
    tools = memory_tools(lambda runtime: BANKS[user(runtime)])
    return create_agent(Echo(), tools, context_schema=Claims)


agent, agent_claimed, agent_defaulting = _agent(identity), _agent(claimed), _agent(defaulting)
nodes, nodes_claimed = _nodes(identity), _nodes(claimed)
chain, chain_claimed = _chain("langgraph_auth_user_id"), _chain("user_id")
tools, tools_claimed = _tools(identity), _tools(claimed)
