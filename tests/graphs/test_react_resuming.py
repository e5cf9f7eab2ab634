"""The ReAct agent stopped on its way through the nodes that judge, and taken up again."""

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from toy_world import LESSONS, Corridors, RuleModel

from langgraft.graphs import build_react_agent
from langgraft.memory.model import Add, MemoryDelta
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.nodes import AgentInput

THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}
SETTINGS: dict[str, dict[str, Any]] = {"agent_kb": {"gate": True}, "expel": {"votes": {}}}


def reply(messages: Sequence[BaseMessage]) -> str:
    """Walk, look back, draft, compare and vote, each as the prompt asks."""
    if isinstance(messages[0], SystemMessage):
        return "Thought: on\nAction: walk"
    text = messages[0].text
    ids = re.findall(r'^\{"id": ?"(.*?)"', text, re.MULTILINE)
    if "which notes contradict it" in text:
        return json.dumps([{"id": name, "verdict": "agrees"} for name in ids])
    if "list of rules" in text:
        return json.dumps(
            [{"action": "agree", "id": name} for name in ids if "rule" in name]
            or [{"action": "add", "text": "walk on"}]
        )
    return LESSONS


def agent_of(
    name: str, store: BaseStore, saver: InMemorySaver | None = None, model: RuleModel | None = None
) -> tuple[Any, MemoryProvider[Any]]:
    """Make an agent and its memory, as a process that has just been started would."""
    memory = make_provider(name, store, settings=SETTINGS[name])
    agent = build_react_agent(
        model or RuleModel(rule=reply), environment=Corridors(), memory=memory, checkpointer=saver
    )
    return agent, memory


def given(name: str) -> AgentInput:
    """Make an input."""
    return AgentInput(task_id="toy/corridor/3", episode_id=name)


def undisturbed(name: str) -> tuple[dict[str, Any], bytes]:
    """Play two episodes, and return what came of the second and the bank."""
    agent, memory = agent_of(name, InMemoryStore())
    agent.invoke(given("e0"))
    return agent.invoke(given("e1")), memory.content().to_bytes()


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("agent_kb", "draft"),
        ("agent_kb", "gate"),
        ("agent_kb", "recall"),
        ("agent_kb", "reflect"),
        ("expel", "judge"),
    ],
)
def test_episode_when_it_is_stopped_after_a_node_goes_on_as_if_it_had_not_been(
    name: str, place: str
) -> None:
    """Another process files the episode once, with the same verdicts, deltas and bank."""
    expected, bank = undisturbed(name)
    store, saver = InMemoryStore(), InMemorySaver()
    agent_of(name, store)[0].invoke(given("e0"))
    agent, _ = agent_of(name, store, saver)
    agent.invoke(given("e1"), THREAD, interrupt_after=[place], durability="sync")
    assert agent.get_state(THREAD).next
    again, memory = agent_of(name, store, saver)
    assert again.invoke(None, THREAD) == expected
    assert memory.content().to_bytes() == bank


@pytest.mark.parametrize(("name", "failing"), [("agent_kb", "contradict"), ("expel", "of rules")])
def test_episode_when_the_judge_breaks_off_is_judged_anew_and_filed_once(
    name: str, failing: str
) -> None:
    """What a judge had begun is not in the state, so that nothing of it counts twice."""
    expected, bank = undisturbed(name)
    store, saver = InMemoryStore(), InMemorySaver()
    agent_of(name, store)[0].invoke(given("e0"))

    def breaking(messages: Sequence[BaseMessage]) -> str:
        if failing in messages[0].text:
            raise ConnectionError("cut off")
        return reply(messages)

    agent, _ = agent_of(name, store, saver, RuleModel(rule=breaking))
    with pytest.raises(ConnectionError):
        agent.invoke(given("e1"), THREAD, durability="sync")
    again, memory = agent_of(name, store, saver)
    assert again.invoke(None, THREAD) == expected
    assert memory.content().to_bytes() == bank


@pytest.mark.parametrize("name", SETTINGS)
def test_thread_when_it_plays_on_keeps_nothing_of_what_was_judged_before(name: str) -> None:
    """Verdicts and how they came about are of one episode: the state does not grow."""
    agent, _ = agent_of(name, InMemoryStore(), InMemorySaver())
    asked: set[str] = set()
    for number in range(5):
        agent.invoke(given(f"e{number}"), THREAD)
        state = agent.get_state(THREAD).values
        now = {told["question_id"] for told in state["judging"]}
        verdicts = [*state["verdicts"], *state["draft_verdicts"]]
        assert {verdict["question_id"] for verdict in verdicts} == now
        assert len(state["judging"]) == len(now) <= 1
        assert not asked & now
        asked |= now
        json.dumps(state)
    assert len(asked) >= 4


@pytest.mark.parametrize("name", SETTINGS)
def test_agents_when_they_share_a_memory_in_threads_lose_nothing(name: str) -> None:
    """Every episode is filed, and votes are only for rules that are there."""
    store = InMemoryStore()
    agent, memory = agent_of(name, store)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda number: agent.invoke(given(f"e{number}")), range(24)))
    added = {
        change.item.id
        for result in results
        for delta in result["deltas"]
        for change in MemoryDelta.from_json(delta)
        if isinstance(change, Add)
    }
    content = memory.content()
    assert set(content.items) == added
    assert {f"e{number}" for number in range(24)} == {
        item.episode_id for item in content.items.values()
    }
    assert content.notes.keys() <= content.items.keys()
