"""The ReAct agent in the real BabyAI, with the memory systems of memory-transplants."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.store.memory import InMemoryStore
from toy_world import LESSONS, RuleModel

from langgraft.environments import BabyAI
from langgraft.graphs import build_react_agent
from langgraft.memory.model import BLOCK_START, MemoryDelta, fold, strip_block
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import Budget
from langgraft.nodes import AgentInput

STREAM = tuple(f"babyai/action_obj_door/{seed}" for seed in (4, 3, 17, 37))
"""Four tasks, of which going to what is nearest solves all but the second."""


def nearest(messages: Sequence[BaseMessage]) -> str:
    """Go to whatever is on offer first, else turn, whatever memory says."""
    if not isinstance(messages[0], SystemMessage):
        return LESSONS
    offered = re.findall(r"go to [a-z ]+ \d+", strip_block(messages[-1].text))
    action = offered[0] if offered and len(messages) % 3 else "turn left"
    return f"Thought: I try.\nAction: {action}"


RECALLED = {
    "agent_kb": ["", "e0", "e0 e1", "e2 e0 e1"],
    "full_history": ["", "e0", "e0", "e2"],  # `e1` is too long
    "lightweight": ["", "", "", "e0 e2 e1"],
    "recency": ["", "e0", "e0", "e2"],
    "self_examples": ["", "e0", "e0", "e0"],
    "simple_rag": ["", "e0", "e0 e1", "e0 e2 e1"],
}
"""Provider → the episodes that each episode of the stream was told of."""
REFLECTING = ("agent_kb", "lightweight", "simple_rag")


@pytest.mark.parametrize("name", RECALLED)
def test_stream_when_played_with_memory_learns_and_recalls(name: str) -> None:
    """Episodes are filed, the log folds to the bank, and what is recalled stands in the prompt."""
    model = RuleModel(rule=nearest)
    memory = make_provider(name, InMemoryStore(), settings={})
    agent = build_react_agent(
        model, environment=BabyAI(), memory=memory, budget=Budget(tokens=800), max_rounds=12
    )
    deltas: list[MemoryDelta] = []
    recalled: list[str] = []
    for index, task in enumerate(STREAM):
        known = memory.content().items
        model.seen.clear()
        given: AgentInput = {"task_id": task, "episode_id": f"e{index}", "episode_index": index}
        result: dict[str, Any] = agent.invoke(given)
        assert result["success"] is (index != 1)
        deltas += [MemoryDelta.from_json(delta) for delta in result["deltas"]]
        (receipt,) = result["receipts"]
        recalled.append(" ".join(known[each].episode_id for each in receipt["item_ids"]))
        assert receipt["tokens"] <= 800
        assert (BLOCK_START in model.seen[0][1].text) is bool(recalled[-1])
        reflections = [each for each in model.seen if not isinstance(each[0], SystemMessage)]
        assert len(reflections) == (name in REFLECTING)
    assert recalled == RECALLED[name]
    assert fold(deltas) == memory.content()
    assert not any(BLOCK_START in item.text for item in memory.content().items.values())
