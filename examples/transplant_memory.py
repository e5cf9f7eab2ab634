"""Give one agent's memory to another: the help desk of Paris has learned, the one of Oslo is new.

Oslo's memory may be of another kind, in another store: items go as they are, and Oslo's own rules apply to them.
`measure` says whether it helps there, before anybody relies on it (docs/transplant-study.md).
"""

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langgraph.store.memory import InMemoryStore

from langgraft import MemoryMiddleware, MemoryProvider, SimpleRAG, TrajectoryMemory
from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel, ToolUse
from langgraft.memory.model import BLOCK_START
from langgraft.memory.transplanting import transplant

FIXES = {"wifi": "restart the router", "printer": "refill the toner"}


def look_up(device: str) -> str:
    """Look a device up in the manual; that takes an hour."""
    return f"for the {device}: {FIXES[device]}"


class HelpDesk(SimulatedChatModel):
    """Looks into the manual, unless memory has shown what it says."""

    model_name: str = "help-desk"

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> Reply:  # noqa: ARG002
        """Look the device up, or say what is known."""
        asked, _, recalled = messages[0].text.partition(BLOCK_START)
        device = next(name for name in FIXES if name in asked)
        if FIXES[device] in recalled + messages[-1].text:
            return Reply(FIXES[device].capitalize())
        return Reply("", (ToolUse("look_up", {"device": device}),))


def ask(memory: MemoryProvider[Any], question: str, remember: Any) -> str:
    """Ask an agent with this memory; say how many looks into the manual it took."""
    agent: Any = create_agent(
        HelpDesk(), [look_up], middleware=[MemoryMiddleware(memory, remember=remember)]
    )
    messages = agent.invoke({"messages": [("user", question)]})["messages"]
    looks = sum(message.type == "tool" for message in messages)
    return f"{question} → {messages[-1].text} ({looks} looks into the manual)"


if __name__ == "__main__":
    paris, oslo = TrajectoryMemory(InMemoryStore()), SimpleRAG(InMemoryStore())
    for question in ("The wifi is down", "The printer is pale"):
        print("Paris:", ask(paris, question, "inline"))
    print(transplant(paris, oslo))
    for question in ("Our wifi is down", "A pale page from the printer"):
        print("Oslo:", ask(oslo, question, "no"))
