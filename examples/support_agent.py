"""A support agent that learns from tickets: first from those of last month, then from its own.

A ticket counts as solved where the customer says so, and memory shows solved ones only. Runs without a key: the
simulated model looks for an answer in what memory shows it. Put any LangChain chat model in its place.
"""

import re
from collections.abc import Sequence
from typing import Any

from langchain.agents import AgentState, create_agent
from langchain_core.messages import BaseMessage

from langgraft import (
    Episode,
    MemoryMiddleware,
    MemoryProvider,
    Outcome,
    Step,
    TrajectorySettings,
    open_memory,
)
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.memory.model import BLOCK_START

TICKETS = [  # number, what the customer wrote, what support answered, whether that helped
    (101, "The app crashes when I upload a photo", "Try again later.", False),
    (102, "The app crashes when I upload a photo", "Photos above 20 MB crash it: shrink it.", True),
    (103, "I was charged twice in May", "The second charge is a hold and goes in 3 days.", True),
]


class Clerk(SimulatedChatModel):
    """Answers as memory shows that somebody answered before."""

    model_name: str = "clerk"

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:  # noqa: ARG002
        """Repeat the first recalled answer, or ask for patience."""
        _, _, recalled = messages[-1].text.partition(BLOCK_START)
        found = re.search(r"Action: (?:answer )?(.+)", recalled)
        return found[1] if found else "I will ask a colleague."


class Ticket(AgentState):
    """A conversation, and what the customer said of it in the end."""

    solved: bool


def learn(memory: MemoryProvider[Any], number: int, asked: str, answer: str, solved: bool) -> None:
    """File a ticket that people worked on."""
    step = Step("", answer, "The customer is happy." if solved else "It did not help.")
    episode = Episode(f"ticket-{number}", "support", str(number), asked, (step,), Outcome(solved))
    memory.file(episode)


if __name__ == "__main__":
    with open_memory("tickets.sqlite", settings=TrajectorySettings(success_only=True)) as memory:
        for ticket in TICKETS:
            learn(memory, *ticket)  # filed once, however often this is run
        middleware = MemoryMiddleware(
            memory, domain="support", outcome=lambda state: state["solved"]
        )
        agent: Any = create_agent(Clerk(), [], middleware=[middleware], state_schema=Ticket)
        for asked in ("My photo upload crashes the app", "Why was I charged twice?"):
            ended = agent.invoke({"messages": [("user", asked)], "solved": True})
            print(asked, "→", ended["messages"][-1].text)
        print(len(memory.content().items), "tickets in memory")
