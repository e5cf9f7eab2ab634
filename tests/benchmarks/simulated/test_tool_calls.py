"""Tool calls of simulated models: bound as call settings, sent and read in a provider's format."""

from collections.abc import Sequence

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from langgraft.benchmarks.harness.models import MeteredChatModel
from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel, ToolUse
from langgraft.benchmarks.simulated.server import serve


@tool
def look(at: str) -> str:
    """Look at something."""
    return at


class Looker(SimulatedChatModel):
    """Looks twice at once, the second time in no JSON, then tells what it was told."""

    model_name: str = "looker"

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str | Reply:
        """Ask for a tool, or say what it answered."""
        told = messages[-1]
        if isinstance(told, ToolMessage):
            before = messages[-2] if isinstance(messages[-2], AIMessage) else messages[-3]
            assert isinstance(before, AIMessage)
            spoiled = [call["args"] for call in before.invalid_tool_calls]
            return f"{told.text} {before.tool_calls[0]['args']} {spoiled}"
        good = ToolUse("look", {"at": "door"})
        return Reply(f"I have {sampling.tools}.", (good, ToolUse("look", '{"at": do')))


def check_calls(message: AIMessage) -> None:
    """Hold a reply to what `Looker` says."""
    assert message.text == "I have ('look',)."
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [
        ("look", {"at": "door"})
    ]
    assert [(call["name"], call["args"]) for call in message.invalid_tool_calls] == [
        ("look", '{"at": do')
    ]
    assert message.tool_calls[0]["id"] != message.invalid_tool_calls[0]["id"]
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] > 5


def test_tools_when_bound_through_the_meter_then_calls_come_out() -> None:
    """A wrapper passes tools on, and calls whose arguments are no JSON are told apart."""
    metered = MeteredChatModel(inner=Looker(), identity={"model": "looker"})
    bound = metered.bind_tools([look])
    asked = [HumanMessage("Look.")]
    check_calls(bound.invoke(asked))
    assert bound.invoke(asked).tool_calls == bound.invoke(asked).tool_calls
    other = bound.invoke([HumanMessage("Look again.")])
    assert other.tool_calls[0]["id"] != bound.invoke(asked).tool_calls[0]["id"]


async def test_tools_when_served_then_calls_go_both_ways() -> None:
    """A client behind a socket sees the same calls, and the model what came of them."""
    async with serve(Looker()) as server:
        model = init_chat_model("openai:looker", base_url=server.base_url, api_key="none")
        asked = [HumanMessage("Look.")]
        message = await model.bind_tools([look]).ainvoke(asked)
        check_calls(message)
        answers = [
            ToolMessage("it is open", tool_call_id=call["id"])
            for call in (*message.tool_calls, *message.invalid_tool_calls)
        ]
        told = await model.ainvoke([*asked, message, *answers])
    assert told.text == "it is open {'at': 'door'} ['{\"at\": do']"


async def test_context_when_it_is_too_small_then_it_overflows_as_a_providers_does() -> None:
    """Too long a prompt raises LangChain's own error, behind a socket too."""
    with pytest.raises(ContextOverflowError, match="30 tokens, where 20 is the maximum"):
        Looker(context=20).invoke("x" * 120)
    assert Looker(context=30).invoke("x" * 120).text
    async with serve(Looker(context=20)) as server:
        model = init_chat_model("openai:looker", base_url=server.base_url, api_key="none")
        with pytest.raises(ContextOverflowError):
            await model.ainvoke("x" * 120)
