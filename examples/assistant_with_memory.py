"""An assistant that remembers each of its users: `create_agent` and `MemoryMiddleware`.

    python examples/assistant_with_memory.py   # a conversation, and another one later
    langgraph dev                              # in Studio and over HTTP: the graph `assistant`

On a server, memory belongs to the user that `server_auth.py` authenticated. What a run says of itself is not
believed there. In a script the caller is the application, which names the user in the run's context. Banks are in
the graph's store: the one that `build` is given, or that of the server, which keeps it in `.langgraph_api/` of the
folder it is started in.

The model is simulated: a rule that looks a device up by a tool, unless memory shows what was found before.
`ASSISTANT_MODEL=openai:gpt-4.1-mini` names a real one, as `init_chat_model` takes it, with its key.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.messages import BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from langgraft import MemoryMiddleware
from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel, ToolUse
from langgraft.memory.model import BLOCK_START

FAULTS = {
    "wifi": "the router hangs, restart it",
    "printer": "it is out of toner, there is some in room 12",
    "projector": "the cable is loose, push it in",
}


@dataclass
class User:
    """What the script says of a run."""

    user_id: str = ""


def whose(runtime: Any) -> str:
    """Return whose memory a run uses: the authenticated user's on a server, the named one's in a script."""
    server = runtime.server_info
    identity: str = server.user.identity if server is not None else runtime.context.user_id
    return identity


@tool
def examine(device: str) -> str:
    """Find out what is wrong with a device of the office: wifi, printer or projector."""
    return f"{device}: {FAULTS.get(device, 'there is none')}"


class SimulatedAssistant(SimulatedChatModel):
    """Knows how to call a tool and how to read what is in the prompt, and nothing of any office."""

    model_name: str = "simulated-assistant"

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> Reply:  # noqa: ARG002
        """Look the device up, unless a note says what was found."""
        if messages[-1].type == "tool":
            return Reply(f"I had a look. {messages[-1].text}")
        asked, _, notes = messages[-1].text.partition(BLOCK_START)
        device = next((name for name in FAULTS if name in asked.lower()), None)
        if device is None:
            return Reply("I am simulated, and know wifi, printer and projector alone.")
        if found := re.search(f"{device}: .+", notes):
            return Reply(f"I remember. {found[0]}")
        return Reply("", (ToolUse("examine", {"device": device}),))


def build(**kept: Any) -> Any:
    """Build the agent; a server brings its own `store` and `checkpointer`."""
    name = os.environ.get("ASSISTANT_MODEL")
    return create_agent(
        init_chat_model(name) if name else SimulatedAssistant(),
        [examine],
        system_prompt="You help with the devices of an office.",
        middleware=[MemoryMiddleware("trajectory", user=whose)],
        context_schema=User,
        **kept,
    )


graph = build()


if __name__ == "__main__":
    agent = build(store=InMemoryStore(), checkpointer=InMemorySaver())
    for user, thread in (("ada", "monday"), ("ada", "friday"), ("bob", "friday, too")):
        ended = agent.invoke(
            {"messages": [("user", "The wifi is down.")]},
            {"configurable": {"thread_id": thread}},
            context=User(user),
        )
        print(f"{user}, {thread}:", ended["messages"][-1].text)
