"""The ReAct agent with memory that asks: a gate before recall, a judge before remembering."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.store.memory import InMemoryStore
from toy_world import Corridors, RuleModel, acting

from langgraft._core.errors import SettingsError
from langgraft.graphs import build_react_agent
from langgraft.memory.model import MemoryDelta, fold
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import CONTRADICTS
from langgraft.nodes import AgentInput

PLAN = ("walk", "walk", "walk")


def given(name: str) -> AgentInput:
    """Make an input."""
    return AgentInput(task_id="toy/corridor/3", episode_id=name)


def nodes_of(agent: Any, task: AgentInput) -> list[str]:
    """Return the nodes that ran, in order."""
    return [name for update in agent.stream(task, stream_mode="updates") for name in update]


def against_all(messages: Sequence[BaseMessage]) -> str:
    """Say of every note that it contradicts the draft."""
    ids = re.findall(r'^\{"id": ?"(.*?)"', messages[-1].text, re.MULTILINE)
    return json.dumps([{"id": identity, "verdict": "contradicts"} for identity in ids])


def test_gate_when_a_judge_objects_keeps_the_note_from_the_agent() -> None:
    """Draft and gate run before memory is asked, and the receipt says what they kept away."""
    memory = make_provider("agent_kb", InMemoryStore(), settings={"gate": True})
    agent = build_react_agent(
        acting(*PLAN),
        environment=Corridors(),
        memory=memory,
        judge_model=RuleModel(rule=against_all),
    )
    assert nodes_of(agent, given("e0"))[:4] == ["start", "draft", "gate", "recall"]
    result: dict[str, Any] = agent.invoke(given("e1"))
    (receipt,) = result["receipts"]
    assert receipt["item_ids"] == []
    assert receipt["dropped"] == [{"id": "e0/note", "reason": CONTRADICTS}]
    assert [verdict["by"] for verdict in result["draft_verdicts"]] == ["model"]


async def test_gate_when_the_judge_is_of_no_use_falls_back_to_rules_that_say_so() -> None:
    """What no model could answer is answered by rules, asynchronously too, and labelled."""
    memory = make_provider("agent_kb", InMemoryStore(), settings={"gate": True})
    silent = RuleModel(rule=lambda _: "I would rather not say.")
    agent = build_react_agent(
        acting(*PLAN), environment=Corridors(), memory=memory, judge_model=silent
    )
    await agent.ainvoke(given("e0"))
    result: dict[str, Any] = await agent.ainvoke(given("e1"))
    assert [verdict["by"] for verdict in result["draft_verdicts"]] == ["rules"]
    (told,) = result["judging"]
    assert (told["kind"], told["by"], told["calls"]) == ("contradiction", "rules", 2)
    assert "no complete JSON" in told["why"]
    assert len(silent.seen) == 2  # once, and once more to have it corrected


def voting(messages: Sequence[BaseMessage]) -> str:
    """Agree with a rule that is there, and else add one."""
    ids = re.findall(r'^\{"id": ?"(.*?)"', messages[-1].text, re.MULTILINE)
    rules = [identity for identity in ids if "rule" in identity]
    if rules:
        return json.dumps([{"action": "agree", "id": rules[0]}])
    return '[{"action": "add", "text": "walk until the end"}]'


def test_judge_when_memory_asks_answers_before_the_episode_is_filed() -> None:
    """Rules are added and voted for, by a model of its own, and the log still is the bank."""
    memory = make_provider("expel", InMemoryStore(), settings={"votes": {}})
    agent = build_react_agent(
        acting(*PLAN), environment=Corridors(), memory=memory, judge_model=RuleModel(rule=voting)
    )
    journal: list[MemoryDelta] = []
    for name in ("e0", "e1"):
        result: dict[str, Any] = agent.invoke(given(name))
        journal += [MemoryDelta.from_json(delta) for delta in result["deltas"]]
        assert {verdict["by"] for verdict in result["verdicts"]} == {"model"}
    content = memory.content()
    (rule,) = [item for item in content.items.values() if item.type == "strategic"]
    assert rule.text == "walk until the end"
    assert content.notes[rule.id]["votes"] == 3
    assert fold(journal).to_bytes() == content.to_bytes()
    assert nodes_of(agent, given("e2"))[-2:] == ["judge", "remember"]


def test_agent_when_it_only_evaluates_is_gated_and_judges_no_episode() -> None:
    """The gate is part of recalling; what comes after an episode is part of learning."""
    memory = make_provider("agent_kb", InMemoryStore(), settings={"gate": True})
    frozen = build_react_agent(acting(*PLAN), environment=Corridors(), memory=memory, learn=False)
    ran = nodes_of(frozen, given("e0"))
    assert {"draft", "gate"} <= set(ran)
    assert not {"reflect", "judge", "remember"} & set(ran)


def test_agent_when_memory_learns_from_errors_is_refused_unless_it_only_recalls() -> None:
    """A memory that would never learn anything is found out when the graph is built."""
    memory = make_provider("coding", InMemoryStore(), settings={})
    parts: Any = {"environment": Corridors(), "memory": memory}
    with pytest.raises(SettingsError, match="CodingMemory learns from error records"):
        build_react_agent(acting(*PLAN), **parts)
    agent = build_react_agent(acting(*PLAN), **parts, learn=False)
    assert agent.invoke(given("e0"))["success"]
