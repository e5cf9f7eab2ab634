"""The ReAct agent that distills lessons by outcome: compared, validated, deduplicated."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from toy_world import Corridors, RuleModel, playing

from langgraft._core.errors import SettingsError
from langgraft._core.texts import Prompt
from langgraft.benchmarks.simulated import SimulatedBabyAI
from langgraft.environments.babyai import BabyAI
from langgraft.graphs import build_react_agent
from langgraft.memory.providers import InsightMemory, InsightSettings, ReasoningBank, make_provider
from langgraft.nodes import AgentInput
from langgraft.nodes.screening import KNOWN

CHAIN = ["counterpart", "reflect", "validate", "deduplicate", "remember"]
DRAWN = [
    {"when_to_use": "the corridor is long", "lesson": "Walk on until the goal is reached."},
    {"when_to_use": "the corridor is long", "lesson": "Be careful, as anything may happen."},
]


def learner(*actions: str) -> RuleModel:
    """Make a model that acts, draws two lessons, and scores the second one low."""
    acts = playing(*(f"Thought: now {action}\nAction: {action}" for action in actions))

    def rule(messages: Sequence[BaseMessage]) -> str:
        if isinstance(messages[0], SystemMessage):
            return acts.rule(messages)
        if "Score every lesson" in messages[0].text:
            scores = [
                {"lesson": 1, "valid": True, "score": 0.9},
                {"lesson": 2, "valid": True, "score": 0.1, "reason": "vague"},
            ]
            return json.dumps(scores)
        return json.dumps(DRAWN)

    return RuleModel(rule=rule)


def given(name: str, length: int = 2) -> AgentInput:
    """Make an input."""
    return AgentInput(task_id=f"toy/corridor/{length}", episode_id=name)


def insight(**fields: Any) -> InsightMemory:
    """Make a memory of single lessons that keeps attempts."""
    settings = InsightSettings.model_validate(
        {"granularity": "individual", "top_k": 3, "attempts": 5, **fields}
    )
    return InsightMemory(InMemoryStore(), settings=settings)


def agent_of(model: RuleModel, memory: Any, **fields: Any) -> Any:
    """Build the agent."""
    return build_react_agent(
        model, environment=Corridors(), memory=memory, distillation="by_outcome", **fields
    )


async def test_chain_when_an_episode_ends_compares_validates_and_deduplicates() -> None:
    """Each is a node; what was dropped says where and why, and only the rest is remembered."""
    memory = insight()
    failing = agent_of(learner("fall"), memory)
    ran = [
        name for update in failing.stream(given("lost"), stream_mode="updates") for name in update
    ]
    assert ran[-5:] == CHAIN
    model = learner("walk")
    won = await agent_of(model, memory).ainvoke(given("won"))
    assert won["compared_with"] == "lost"
    assert [each["kept"] for each in won["validation"]] == [True, False]
    assert [(each["node"], each["reason"]) for each in won["dropped"]] == [
        ("validate", "scored below 0.5: vague"),
        ("deduplicate", KNOWN),
    ]
    assert won["lessons"] == []
    assert list(memory.content().items) == ["lost/lesson-0"]
    asked = [messages[0].text for messages in model.seen if len(messages) == 1]
    assert "Outcome of the other attempt: failure" in asked[0]
    assert "Action: fall" in asked[0]


def test_thread_when_it_goes_on_with_another_episode_begins_with_nothing_dropped() -> None:
    """State of an episode before does not count as this one's."""
    agent = agent_of(learner("walk"), insight(), checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "one"}}
    first = agent.invoke(given("a"), thread)
    second = agent.invoke(given("b", 3), thread)
    assert len(first["dropped"]) == 1
    assert [each["node"] for each in second["dropped"]] == ["validate", "deduplicate"]
    assert second["compared_with"] == ""


def test_chain_when_memory_keeps_no_attempts_leaves_the_comparison_out() -> None:
    """Other providers that want lessons distill by outcome, too."""
    memory = make_provider("expel", InMemoryStore(), settings={})
    agent = agent_of(learner("walk"), memory)
    ran = [name for update in agent.stream(given("e"), stream_mode="updates") for name in update]
    assert "counterpart" not in ran
    assert "deduplicate" in ran


def test_agent_when_distilling_plainly_says_nothing_of_it() -> None:
    """The default asks once, and nothing is dropped."""
    model = learner("walk")
    agent = build_react_agent(model, environment=Corridors(), memory=insight())
    result = agent.invoke(given("e"))
    assert len(result["lessons"]) == len(DRAWN)
    assert (result["dropped"], result["validation"], result["compared_with"]) == ([], [], "")


@pytest.mark.parametrize(
    ("action", "asked"), [("walk", "why it succeeded"), ("fall", "why it failed")]
)
async def test_agent_when_distilling_strategies_asks_by_outcome_and_keeps_titles(
    action: str, asked: str
) -> None:
    """A reply in no form is asked for once more; four strategies are one too many."""
    drawn = {"title": "Walk on", "description": "Long corridors", "content": "Walk to the end."}
    acts, seen = learner(action), []

    def rule(messages: Sequence[BaseMessage]) -> str:
        if isinstance(messages[0], SystemMessage):
            return acts.rule(messages)
        seen.append(messages[0].text)
        return "I think it was luck." if len(messages) == 1 else json.dumps([drawn] * 4)

    memory = ReasoningBank(InMemoryStore())
    agent = build_react_agent(
        RuleModel(rule=rule), environment=Corridors(), memory=memory, distillation="strategies"
    )
    ended = await agent.ainvoke(given("e"))
    assert len(seen) == 2
    assert asked in seen[0]
    assert [each["title"] for each in ended["lessons"]] == ["Walk on"] * 3
    (item,) = memory.content().items.values()
    assert item.text == "\n".join(["# Walk on\nLong corridors\nWalk to the end."] * 3)


def test_learner_when_asked_for_strategies_gives_them_titles() -> None:
    """The simulated learner answers in the form it is asked for."""
    memory = ReasoningBank(InMemoryStore())
    agent = build_react_agent(
        SimulatedBabyAI(seed=42), environment=BabyAI(), memory=memory, distillation="strategies"
    )
    for number in range(2):
        agent.invoke({"task_id": f"babyai/find_obj/{number}"})
    texts = [item.text for item in memory.content().items.values()]
    assert texts
    assert all(text.startswith("# ") and "\nFor when " in text for text in texts)


def test_agent_when_asked_to_distill_in_an_unknown_way_is_not_built() -> None:
    """Nor with a prompt that nobody would ask."""
    with pytest.raises(SettingsError, match="'plain' or 'by_outcome' or 'strategies', got 'reme'"):
        build_react_agent(learner("walk"), environment=Corridors(), distillation="reme")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="reflect_prompt 'mine' would not be asked"):
        agent_of(learner("walk"), insight(), reflect_prompt=Prompt("mine", "$task"))
