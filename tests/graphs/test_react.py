"""The ReAct agent, in a toy world: how it plays, learns, streams and resumes."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from toy_world import Corridor, Corridors, RuleModel, acting, playing

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import InputError, SettingsError
from langgraft.environments.text import Reset, TextTask, Transition
from langgraft.graphs import build_react_agent
from langgraft.memory.model import BLOCK_START, MemoryDelta, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import (
    InsightMemory,
    InsightSettings,
    NoMemory,
    TrajectoryMemory,
)
from langgraft.memory.providers.trajectory import TrajectorySettings
from langgraft.memory.recall import OVER_BUDGET, Budget
from langgraft.memory.trust import TrustSettings
from langgraft.nodes import AgentInput

TASK = "toy/corridor/3"
PLAN = ("walk", "wait", "walk", "wait", "walk")


def step_memory() -> InsightMemory:
    """Make the memory with the most to do: single lessons, asked again every two rounds."""
    settings = InsightSettings(granularity="individual", top_k=3, requery_interval=2)
    return InsightMemory(InMemoryStore(), settings=settings)


def phase_memory() -> InsightMemory:
    """Make the memory that is asked again when something of the goal appears."""
    settings = InsightSettings(granularity="individual", top_k=3, requery_on_change=True)
    return InsightMemory(InMemoryStore(), settings=settings)


def nodes_of(agent: Any, task: AgentInput) -> list[str]:
    """Return the nodes that ran, in order."""
    return [name for update in agent.stream(task, stream_mode="updates") for name in update]


def given(name: str = "e1", task: str = TASK) -> AgentInput:
    """Make an input."""
    return AgentInput(task_id=task, episode_id=name)


# Playing ----------------------------------------------------------------------------------


def test_agent_when_it_reaches_the_goal_returns_the_episode() -> None:
    """The result tells how it went, turn by turn."""
    worlds = Corridors()
    result = build_react_agent(acting(*PLAN), environment=worlds).invoke(given())
    assert (result["success"], result["score"], result["reason"]) == (True, 1.0, "goal reached")
    assert [step["action"] for step in result["steps"]] == ["", *PLAN]
    assert result["steps"][0]["observation"] == "Goal: walk 3 steps. At 0."
    assert result["steps"][1]["thought"] == "now walk"
    assert worlds.counts.opened == worlds.counts.closed == 1


@pytest.mark.parametrize(
    ("actions", "rounds", "reason", "turns"),
    [
        (("wait",), None, "out of rounds", 20),
        (("wait",), 7, "out of rounds", 7),
        (("wait", "fall"), None, "ended by the world", 2),
        (("walk", "walk", "walk"), 3, "goal reached", 3),
    ],
)
def test_agent_when_it_ends_says_why_and_lets_the_world_go(
    actions: tuple[str, ...], rounds: int | None, reason: str, turns: int
) -> None:
    """Success in the last round is a success; the world is closed whatever happened."""
    worlds = Corridors()
    agent = build_react_agent(acting(*actions), environment=worlds, max_rounds=rounds)
    result = agent.invoke(given())
    assert result["reason"] == reason
    assert result["success"] is (reason == "goal reached")
    assert len(result["steps"]) == turns + 1
    assert worlds.counts.opened == worlds.counts.closed == 1


def test_agent_when_episodes_are_long_is_not_stopped_by_a_recursion_limit() -> None:
    """The limit follows from the rounds, also where the caller brings a config."""
    worlds = Corridors(max_rounds=300)
    agent = build_react_agent(acting("wait"), environment=worlds, memory=step_memory())
    result = agent.invoke(given(), {"configurable": {"thread_id": "t"}, "tags": ["a"]})
    assert len(result["steps"]) == 301


def test_reply_when_malformed_costs_a_round_and_never_reaches_the_world() -> None:
    """The agent is told what was wrong, and may go on."""
    worlds = Corridors()
    model = playing("what?", "Action: walk\nAction: walk", "Action: walk")
    result = build_react_agent(model, environment=worlds, max_rounds=4).invoke(given())
    assert [step["valid"] for step in result["steps"]] == [True, False, False, True, True]
    assert result["reason"] == "out of rounds"
    assert worlds.counts.steps == 2
    assert result["steps"][1]["thought"] == "what?"
    assert "no line that starts with 'Action:'" in result["steps"][1]["observation"]
    assert "2 actions" in result["steps"][2]["observation"]
    assert result["steps"][1]["observation"] in model.seen[1][-1].text


def test_episode_when_its_input_names_sources_has_them_and_is_its_users() -> None:
    """Who asks and what it was learned from come with the input."""
    settings = TrajectorySettings(trust=TrustSettings())
    memory = TrajectoryMemory(InMemoryStore(), settings=settings)
    agent = build_react_agent(acting(*PLAN), environment=Corridors(), memory=memory)
    agent.invoke(AgentInput(task_id=TASK, episode_id="e0", user="ada", sources=["episode:x"]))
    (item,) = memory.content().items.values()
    assert item.sources == ("episode:x", "user:ada")
    for user, recalled in (("ada", True), ("bob", False)):
        playing_ = build_react_agent(acting(*PLAN), environment=Corridors(), memory=memory)
        result = playing_.invoke(AgentInput(task_id=TASK, episode_id=user, user=user))
        assert bool(result["receipts"][0]["item_ids"]) is recalled


def test_thought_when_it_quotes_recalled_memory_is_kept_without_it() -> None:
    """What an agent copies from its prompt does not enter memory again."""
    memory = TrajectoryMemory(InMemoryStore())
    build_react_agent(acting(*PLAN), environment=Corridors(), memory=memory).invoke(given("e0"))

    def quoting(messages: Any) -> str:
        shown = messages[1].text
        return f"Thought: I read {shown} so I walk\nAction: walk"

    model = RuleModel(rule=quoting)
    agent = build_react_agent(model, environment=Corridors(), memory=memory)
    result = agent.invoke(given("e1"))
    assert BLOCK_START in model.seen[0][1].text
    assert BLOCK_START in result["steps"][1]["said"] == model.seen[1][2].text
    assert BLOCK_START not in canonical_json([{**step, "said": ""} for step in result["steps"]])
    assert "now wait" not in memory.content().items["e1/trajectory"].text


@pytest.mark.parametrize("value", [{}, {"task_id": ""}, {"task_id": None}, {"task_id": 5}])
def test_input_when_it_names_no_task_says_what_is_needed(value: dict[str, Any]) -> None:
    """The message shows an example."""
    agent: Any = build_react_agent(acting("walk"), environment=Corridors())
    with pytest.raises(InputError, match="needs a `task_id`, such as"):
        agent.invoke({"episode_id": "e", **value})


def test_input_when_it_is_a_task_and_not_its_id_says_what_to_give() -> None:
    """What `tasks` of a world lists has an id, and that is what an episode is built from."""
    task = TextTask("babyai/find_obj/200", "babyai/find_obj", "test")
    agent: Any = build_react_agent(acting("walk"), environment=Corridors())
    with pytest.raises(InputError, match=r"give its `id`, {'task_id': 'babyai/find_obj/200'}"):
        agent.invoke({"task_id": task})


def test_input_when_the_episode_id_is_no_text_is_refused() -> None:
    """An id names an episode in files and logs."""
    agent: Any = build_react_agent(acting("walk"), environment=Corridors())
    with pytest.raises(InputError, match="`episode_id` must be a text, got 5"):
        agent.invoke({"task_id": TASK, "episode_id": 5})


def test_input_when_the_task_is_unknown_says_which_there_are() -> None:
    """The world's own message arrives."""
    agent = build_react_agent(acting("walk"), environment=Corridors(), memory=step_memory())
    with pytest.raises(SettingsError, match="no task 'toy/maze/1'; tasks are"):
        agent.invoke({"task_id": "toy/maze/1"})


def test_rounds_when_below_one_are_refused() -> None:
    """Zero rounds are no way to ask for the world's own rule."""
    with pytest.raises(
        SettingsError, match="max_rounds must be a whole number of at least 1, got 0"
    ):
        build_react_agent(acting("walk"), environment=Corridors(), max_rounds=0)


# Memory -----------------------------------------------------------------------------------


def test_graph_when_there_is_no_memory_has_no_memory_nodes() -> None:
    """The baseline is the bare agent."""
    bare = build_react_agent(acting("walk"), environment=Corridors())
    assert set(bare.get_graph().nodes) == {"__start__", "start", "think", "act", "__end__"}


@pytest.mark.parametrize(
    ("memory", "learn", "extra"),
    [
        (step_memory, True, {"recall", "reflect", "remember"}),
        (step_memory, False, {"recall"}),
        (lambda: TrajectoryMemory(InMemoryStore()), True, {"recall", "remember"}),
        (NoMemory, True, {"recall", "remember"}),
    ],
)
def test_graph_when_there_is_memory_has_the_nodes_it_needs(
    memory: Any, learn: bool, extra: set[str]
) -> None:
    """Lessons are asked for only where they are kept."""
    agent = build_react_agent(acting("walk"), environment=Corridors(), memory=memory(), learn=learn)
    bare = {"__start__", "start", "think", "act", "__end__"}
    assert set(agent.get_graph().nodes) == bare | extra


@pytest.mark.parametrize("place", ["end", "start"])
def test_memory_when_asked_again_is_asked_every_n_steps_and_replaces_the_block(
    place: Literal["start", "end"],
) -> None:
    """What was recalled last stands in the prompt once: later on before the latest observation, with
    all before it as it was, or where it was the first time. A refused reply is no step.
    """  # noqa: D205
    memory = step_memory()
    lessons = '[{"when_to_use": "walk 3 steps", "lesson": "walk on"}]'
    turns = [f"Thought: now {action}\nAction: {action}" for action in PLAN]
    learning = playing(*turns, lessons=lessons)
    build_react_agent(learning, environment=Corridors(), memory=memory).invoke(given("e0"))
    model = playing(turns[0], "hm", *turns[1:])
    agent = build_react_agent(model, environment=Corridors(), memory=memory, place=place)
    ran = nodes_of(agent, given("e1"))
    assert ran == [
        *("start", "recall"),
        *("think", "act", "think", "act", "think", "act", "recall"),
        *("think", "act", "think", "act", "recall"),
        *("think", "act", "reflect", "remember"),
    ]
    for number, prompt in enumerate(model.seen[:-1]):
        (block,) = [message for message in prompt if BLOCK_START in message.text]
        assert block is prompt[-1 if place == "end" and number > 2 else 1]


def test_world_when_it_shows_what_holds_now_shows_it_at_the_latest_turn_alone() -> None:
    """No history keeps it; it stands between what was seen and what is said of a refused reply."""

    class Signposted(Corridor):
        def reset(self) -> Reset:
            return replace(super().reset(), shown_now="Now: 0")

        def step(self, action: str) -> Transition:
            return replace(super().step(action), shown_now="Now: 1")

    class Signposts(Corridors):
        def __call__(self, task_id: str) -> Corridor:
            return Signposted(3, 20, self.counts)

    model = playing("Action: walk", "hm", "Action: walk")
    result = build_react_agent(model, environment=Signposts(), max_rounds=3).invoke(given())
    first, after, refused = (prompt[-1].text for prompt in model.seen)
    assert first.endswith("\n\nNow: 0")
    assert after == "At 1 after walk.\n\nNow: 1"
    assert refused.startswith("At 1 after walk.\n\nNow: 1\n\nNothing was done. ")
    assert "Now:" not in model.seen[-1][1].text
    assert not any("Now:" in step["observation"] for step in result["steps"])


def test_episode_when_remembered_carries_lessons_receipts_and_deltas() -> None:
    """The journal folds to the bank, and the next episode is given what was learned."""
    memory = step_memory()
    agent = build_react_agent(acting(*PLAN), environment=Corridors(), memory=memory)
    first = agent.invoke({**given("e0"), "episode_index": 0})
    second = agent.invoke({**given("e1"), "episode_index": 1})
    assert first["reflection"] == "ok"
    assert [lesson["text"] for lesson in first["lessons"]] == ["walk on", "count"]
    assert [receipt["step"] for receipt in second["receipts"]] == [0, 2, 4]
    deltas = [MemoryDelta.from_json(delta) for run in (first, second) for delta in run["deltas"]]
    assert fold(deltas).to_bytes() == memory.content().to_bytes()
    assert len(memory.content().items) == 4


def test_lessons_when_unreadable_cost_the_lessons_and_not_the_episode() -> None:
    """A reflection that fails is recorded as such."""
    memory = step_memory()
    model = playing("Action: walk", lessons="I have nothing to say.")
    result = build_react_agent(model, environment=Corridors(), memory=memory).invoke(given())
    assert result["success"]
    assert result["lessons"] == []
    assert result["reflection"].startswith("unreadable: ")
    assert memory.content().state["episodes"] == 1


def test_reflection_when_given_a_model_of_its_own_asks_that_one() -> None:
    """Acting and reflecting may be different models."""
    acts, reflects = acting("walk"), acting("nothing")
    build_react_agent(
        acts, environment=Corridors(), memory=step_memory(), reflection_model=reflects
    ).invoke(given())
    assert len(acts.seen) == 3
    assert [type(prompt[0]) for prompt in reflects.seen] == [HumanMessage]


def test_memory_when_not_learning_is_asked_and_does_not_change() -> None:
    """Evaluation leaves the bank as it was."""
    memory = step_memory()
    build_react_agent(acting(*PLAN), environment=Corridors(), memory=memory).invoke(given("e0"))
    before = memory.content().digest
    agent = build_react_agent(acting(*PLAN), environment=Corridors(), memory=memory, learn=False)
    result = agent.invoke(given("e1"))
    assert len(result["receipts"]) == 3
    assert not result.get("deltas")
    assert memory.content().digest == before


async def test_memory_when_the_phase_changes_is_asked_again_and_not_before() -> None:
    """The provider says when, from what the agent saw at the last recall and sees now."""
    model = playing("Action: wait", "Action: wait", "Action: walk")
    agent = build_react_agent(model, environment=Corridors(), memory=phase_memory())
    result = agent.invoke(given("e1"))
    # "walk" is of the goal; it first appears after the third turn, and stays in sight.
    assert [receipt["step"] for receipt in result["receipts"]] == [0, 3]
    again = build_react_agent(model, environment=Corridors(), memory=phase_memory())
    assert (await again.ainvoke(given("e1")))["receipts"] == result["receipts"]


def test_budget_when_given_limits_every_recall() -> None:
    """No room, no block; and what did not fit is on the receipt."""
    memory = TrajectoryMemory(InMemoryStore())
    build_react_agent(acting(*PLAN), environment=Corridors(), memory=memory).invoke(given("e0"))
    model = acting(*PLAN)
    result = build_react_agent(
        model, environment=Corridors(), memory=memory, budget=Budget(tokens=0)
    ).invoke(given("e1"))
    (dropped,) = result["receipts"][0]["dropped"]
    assert dropped == {"id": "e0/trajectory", "reason": OVER_BUDGET}
    assert BLOCK_START not in model.seen[0][1].text


# Ways to run ------------------------------------------------------------------------------


async def test_agent_when_run_asynchronously_returns_the_same() -> None:
    """`invoke` and `ainvoke` are one agent."""
    results = []
    for run in ("sync", "async"):
        memory = step_memory()
        agent = build_react_agent(acting(*PLAN), environment=Corridors(), memory=memory)
        for name in ("e0", "e1"):
            result = (
                agent.invoke(given(name)) if run == "sync" else await agent.ainvoke(given(name))
            )
            results.append(result)
    assert results[:2] == results[2:]


async def test_agent_when_many_episodes_run_at_once_keeps_them_apart() -> None:
    """One compiled agent serves many tasks."""
    worlds = Corridors()
    agent = build_react_agent(
        acting("walk"), environment=worlds, memory=TrajectoryMemory(InMemoryStore())
    )
    runs = [agent.ainvoke(given(f"e{n}", f"toy/corridor/{n % 4 + 1}")) for n in range(16)]
    results = await asyncio.gather(*runs)
    assert [len(result["steps"]) for result in results] == [n % 4 + 2 for n in range(16)]
    assert worlds.counts.opened == worlds.counts.closed == 16


def test_stream_when_asked_for_updates_and_values_shows_both() -> None:
    """Every node's update, and the state after it, as version 2 parts."""
    agent: Any = build_react_agent(acting(*PLAN), environment=Corridors(), memory=step_memory())
    parts = list(agent.stream(given(), stream_mode=["updates", "values"], version="v2"))
    updates = [name for part in parts if part["type"] == "updates" for name in part["data"]]
    assert updates[:4] == ["start", "recall", "think", "act"]
    assert updates[-2:] == ["reflect", "remember"]
    last = [part["data"] for part in parts if part["type"] == "values"][-1]
    assert last["success"] is True
    canonical_json([part["data"] for part in parts])


def test_stream_when_asked_for_messages_shows_the_models_words() -> None:
    """Replies can be watched as they come."""
    agent: Any = build_react_agent(acting("walk"), environment=Corridors())
    said = [
        (message.text, metadata["langgraph_node"])
        for message, metadata in agent.stream(given(), stream_mode="messages")
    ]
    assert said == [("Thought: now walk\nAction: walk", "think")] * 3


async def test_stream_when_asked_for_messages_asynchronously_shows_them_too() -> None:
    """The same in an event loop."""
    agent: Any = build_react_agent(acting("walk"), environment=Corridors())
    said = [message.text async for message, _ in agent.astream(given(), stream_mode="messages")]
    assert said == ["Thought: now walk\nAction: walk"] * 3


# Checkpoints ------------------------------------------------------------------------------


@contextmanager
def saver_of(kind: str, folder: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open a checkpointer."""
    if kind == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
            yield saver


class PowerCutError(Exception):
    """The process dies."""


def failing_at(call: int) -> RuleModel:
    """Make a model that acts by the plan and dies at one of its calls."""
    model = acting(*PLAN)
    rule = model.rule

    def counted(messages: Any) -> str:
        if len(model.seen) == call:
            raise PowerCutError
        return rule(messages)

    model.rule = counted
    return model


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("call", [1, 3, 5, 6])
def test_episode_when_interrupted_goes_on_in_a_fresh_agent_and_ends_the_same(
    kind: str, call: int, tmp_path: Path
) -> None:
    """Neither the replies nor the world that were lost show in the result."""
    whole_memory, memory = step_memory(), step_memory()
    whole = build_react_agent(acting(*PLAN), environment=Corridors(), memory=whole_memory)
    expected = whole.invoke(given())
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    with saver_of(kind, tmp_path) as saver:
        first = build_react_agent(
            failing_at(call), environment=Corridors(), memory=memory, checkpointer=saver
        )
        with pytest.raises(PowerCutError):
            first.invoke(given(), config, durability="sync")
        worlds, model = Corridors(), acting(*PLAN)
        second = build_react_agent(model, environment=worlds, memory=memory, checkpointer=saver)
        result = second.invoke(None, config)
    assert result == expected
    assert memory.content() == whole_memory.content()
    assert len(model.seen) == 7 - call  # five turns and the lessons, without those before
    assert worlds.counts.opened == worlds.counts.closed == (call <= len(PLAN))


def test_thread_when_used_for_another_episode_begins_afresh() -> None:
    """Nothing of the episode before is in the next one, and both are remembered."""
    memory = step_memory()
    agent = build_react_agent(
        acting("walk"), environment=Corridors(), memory=memory, checkpointer=InMemorySaver()
    )
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    runs = [agent.invoke({"task_id": f"toy/corridor/{n}"}, config) for n in (3, 1, 2)]
    assert [len(run["steps"]) for run in runs] == [4, 2, 3]
    assert [[receipt["step"] for receipt in run["receipts"]] for run in runs] == [
        [0, 2],
        [0],
        [0],
    ]
    assert len({run["episode_id"] for run in runs}) == 3
    assert memory.content().state["episodes"] == 3
    deltas = [MemoryDelta.from_json(delta) for run in runs for delta in run["deltas"]]
    assert fold(deltas) == memory.content()


def test_history_when_forked_replays_the_world_up_to_there() -> None:
    """Time travel: the same agent goes another way from an old checkpoint."""
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    saver, worlds = InMemorySaver(), Corridors(max_rounds=6)
    first = build_react_agent(acting("walk", "wait"), environment=worlds, checkpointer=saver)
    first.invoke(given(), config)
    early = next(
        each
        for each in first.get_state_history(config)
        if each.next == ("think",) and len(each.values["steps"]) == 3
    )
    second = build_react_agent(acting("walk"), environment=worlds, checkpointer=saver)
    result = second.invoke(None, early.config)
    assert [step["observation"] for step in result["steps"][1:]] == [
        "At 1 after walk.",
        "At 1 after wait.",
        "At 2 after walk.",
        "At 3 after walk.",
    ]
    assert result["success"]


@pytest.mark.parametrize("memory", [None, step_memory])
def test_state_when_checkpointed_is_plain_json(memory: Any, tmp_path: Path) -> None:
    """No class of ours is in a checkpoint, at any step."""
    held: MemoryProvider[Any] | None = memory() if memory else None
    with saver_of("sqlite", tmp_path) as saver:
        agent = build_react_agent(
            acting(*PLAN), environment=Corridors(), memory=held, checkpointer=saver
        )
        config: RunnableConfig = {"configurable": {"thread_id": "t"}}
        for name in ("e0", "e1"):
            agent.invoke(given(name), config)
        for snapshot in agent.get_state_history(config):
            canonical_json(snapshot.values)
