"""The graphs of `langgraph.json` in `langgraph dev`: offline, from a fresh clone, in one process."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from dev_server import HOW_TO_GET_IT, PROGRAM, REPOSITORY, clone, dev_server, untracked
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import AuthenticationError

from langgraft.benchmarks.simulated import serve
from langgraft.memory.model import BLOCK_START

pytestmark = [pytest.mark.skipif(not PROGRAM.exists(), reason=HOW_TO_GET_IT), pytest.mark.matrix]

STREAMED: list[Any] = [
    "values",
    "updates",
    "messages-tuple",
    "tasks",
    "checkpoints",
    "debug",
    "custom",
]
"""All that a client can ask for, but for `events`, which show what a model is sent, as traces do."""


USERS = ("ada", "bob", "cyd")


def client_of(user: str, url: str) -> LangGraphClient:
    """Return the client that a user is logged in with."""
    return get_client(url=url, headers={"Authorization": f"Bearer token of {user}"})


class Talk:
    """Conversations with the assistant, each turn in a thread of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.said = ""
        """All that was streamed of the latest turn, and what its thread holds."""

    async def ask(self, user: str, question: str) -> str:
        """Ask, and return the answer."""
        async with client_of(user, self.url) as client:
            return await self._ask(client, question)

    async def _ask(self, client: LangGraphClient, question: str) -> str:
        thread = (await client.threads.create())["thread_id"]
        asked: Any = {"messages": [{"role": "user", "content": question}]}
        parts = client.runs.stream(thread, "assistant", input=asked, stream_mode=STREAMED)
        streamed = [(part.event, part.data) async for part in parts]
        state = await client.threads.get_state(thread)
        history = await client.threads.get_history(thread)
        self.said = json.dumps([streamed, state, history])
        assert "error" not in dict(streamed), self.said
        return str(state["values"]["messages"][-1]["content"])  # type: ignore[call-overload]


def simulated_assistant() -> Any:
    """Return the simulated model of the example."""
    path = REPOSITORY / "examples" / "assistant_with_memory.py"
    spec = importlib.util.spec_from_file_location("assistant_with_memory", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SimulatedAssistant()


async def test_graphs_when_served_run_remember_and_leave_nothing_untracked(tmp_path: Path) -> None:
    """Every graph works; who told the assistant something is remembered, by a model that is named too.

    The model alone is shown it, and that of nobody else, also once the server was started anew.
    """
    folder, log = clone(tmp_path / "clone"), tmp_path / "log"
    tokens = {"ASSISTANT_TOKENS": json.dumps({f"token of {user}": user for user in USERS})}
    with dev_server(folder, log, **tokens) as url:
        async with get_client(url=url) as nobody:
            with pytest.raises(AuthenticationError):
                await nobody.assistants.search()
        async with client_of("ada", url) as client:
            served = {each["graph_id"] for each in await client.assistants.search()}
            assert served == set(json.loads((folder / "langgraph.json").read_text())["graphs"])

            talk = Talk(url)
            for user, room in (("ada", "tangerine"), ("bob", "walnut")):
                answer = await talk.ask(user, f"The wifi is down in the {room} room.")
                assert answer.startswith("I had a look.")
            answer = await talk.ask("ada", "Is the wifi down in the tangerine room again?")
            assert answer.startswith("I remember.")

            task = {"task_id": "babyai/action_obj_door/0"}
            played = await client.runs.wait(None, "react", input=task)
            assert played["deltas"]  # type: ignore[call-overload]

    async with serve(simulated_assistant()) as model:
        named = {**tokens, "ASSISTANT_MODEL": "openai:simulated", "OPENAI_API_KEY": "none"}
        named["OPENAI_BASE_URL"] = model.base_url
        with dev_server(folder, log, **named) as url:
            talk = Talk(url)
            await talk.ask("cyd", "The wifi is down.")
            assert BLOCK_START not in json.dumps([call.request for call in model.calls])
            answer = await talk.ask("ada", "Again the wifi is down.")
    assert answer.startswith("I remember.")
    prompt = json.dumps(model.calls[-1].request["messages"])
    assert BLOCK_START in prompt
    assert "tangerine" in prompt
    assert "walnut" not in prompt
    assert "Again the wifi is down." in talk.said
    assert "tangerine" not in talk.said
    assert BLOCK_START not in talk.said

    said = log.read_text()
    assert "Blocking call" not in said
    assert "Memory failed" not in said
    assert "not filed" not in said
    assert untracked(folder) == ""
