"""The ReAct agent in the real BabyAI."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from toy_world import LESSONS, RuleModel

from langgraft.environments import BabyAI
from langgraft.graphs import build_react_agent
from langgraft.memory.providers import InsightMemory, InsightSettings
from langgraft.nodes import AgentInput

TASKS = ("babyai/action_obj_door/3", "babyai/find_obj/17", "babyai/find_obj/204")


def first_object(messages: Sequence[BaseMessage]) -> str:
    """Go to whatever is on offer first, else turn: a rule that moves about."""
    if not isinstance(messages[0], SystemMessage):
        return LESSONS
    offered = re.findall(r"go to [a-z ]+ \d+", messages[-1].text)
    action = offered[0] if offered and len(messages) % 3 else "turn left"
    return f"Thought: I try.\nAction: {action}"


def step_memory() -> InsightMemory:
    """Make the memory that is asked again every four rounds."""
    settings = InsightSettings(granularity="individual", top_k=3, requery_interval=4)
    return InsightMemory(InMemoryStore(), settings=settings)


@pytest.mark.parametrize("task", TASKS)
async def test_babyai_when_played_sync_async_or_resumed_ends_the_same(
    task: str, tmp_path: Path
) -> None:
    """A real world, interrupted in mid-episode, is found again by replay."""
    model = RuleModel(rule=first_object)
    given = AgentInput(task_id=task, episode_id="e")
    memory, amemory, resumed = step_memory(), step_memory(), step_memory()
    expected = build_react_agent(model, environment=BabyAI(), memory=memory).invoke(given)
    agent = build_react_agent(model, environment=BabyAI(), memory=amemory)
    assert await agent.ainvoke(given) == expected

    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as saver:
        result = None
        for _ in range(3):  # a fresh agent, and so a fresh world, after every second round
            agent = build_react_agent(
                model, environment=BabyAI(), memory=resumed, checkpointer=saver
            )
            start = None if result else given
            for rounds in range(2):
                result = agent.invoke(
                    start if not rounds else None, config, interrupt_after=["act"]
                )
        agent = build_react_agent(model, environment=BabyAI(), memory=resumed, checkpointer=saver)
        assert agent.invoke(None, config) == expected
    assert memory.content() == amemory.content() == resumed.content()
    assert 1 < len(expected["steps"]) <= 21
