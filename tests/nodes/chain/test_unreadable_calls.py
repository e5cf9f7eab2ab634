"""Calls that no message of LangChain's can hold: arguments that are JSON, and no object."""

import asyncio

import pytest
from acceptance.chain_script import Scripted, does, in_turn
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.simulated.server import serve
from langgraft.nodes.chain.calls import Asked, asked
from langgraft.nodes.chain.tools import tool_schemas
from langgraft.nodes.talking import Ask, Talk, atalk


def client(name: str, url: str) -> BaseChatModel:
    """Return a client of a server."""
    if name == "LangChain's":
        return init_chat_model("openai:simulated", base_url=url, api_key="none", max_retries=0)
    return make_model("openai:simulated", base_url=url, api_key="none")


@pytest.mark.parametrize("name", ["LangChain's", "the harness's"])
@pytest.mark.parametrize("arguments", ['["ls"]', "7", '"ls"'])
def test_call_when_its_arguments_are_no_object_then_is_an_invalid_action(
    arguments: str, name: str
) -> None:
    """The client refuses to make a message of the reply, and the model is told what is wrong."""

    def step() -> Talk[Asked]:
        said = yield Ask([HumanMessage("Go on.")], "think")
        return asked(said, ["run_bash"])

    async def held() -> Asked:
        async with serve(Scripted(script=in_turn([does("run_bash", arguments)]))) as server:
            model = client(name, server.base_url).bind_tools(tool_schemas())
            return await atalk(step(), model, "run", "step-0")

    found = asyncio.run(held())
    assert found.name == "invalid"
    assert "must be one JSON object" in str(found.arguments["problem"])
