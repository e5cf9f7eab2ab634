"""Agents at tasks of STATE-Bench: episodes, real tool calls through `create_agent`, the hook."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError
from langgraft.benchmarks.ablation import ablate
from langgraft.benchmarks.simulated.clerk import SimulatedClerk
from langgraft.benchmarks.statebench.agents import (
    Learnings,
    build_agent,
    episode_of,
    play,
    recall_for,
    serve,
)
from langgraft.benchmarks.statebench.retrieval import file_trajectories
from langgraft.environments.statebench import StateBench, Task
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import Budget

pytestmark = pytest.mark.matrix  # whole studies

NAME = "travel/1-cancel_economy_domestic"


@pytest.fixture
def task(statebench: StateBench) -> Task:
    """Return a task that asks for two bookings to be canceled."""
    return statebench.task(NAME)


class Scripted(GenericFakeChatModel):
    """Says what it is told to say, whatever tools it is given."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Take any tools."""
        return self


def cancels(*bookings: str) -> Scripted:
    """Return a model that cancels bookings in one message, and says so."""
    calls = [
        tool_call(name="cancel_booking", args={"booking_id": each, "confirm": True}, id=each)
        for each in bookings
    ]
    return Scripted(messages=iter([AIMessage("", tool_calls=calls), AIMessage("Done.")]))


def test_play_when_tools_are_called_then_the_state_is_scored(task: Task) -> None:
    """The calls reach the attempt's database, and no other's."""
    attempt, other = task.open(), task.open()
    agent = build_agent(cancels("BK-1000", "BK-1001"), attempt)
    assert play(agent, attempt).value == 1
    assert other.score().met == 0
    assert [call.name for turn in attempt.turns for call in turn.calls] == ["cancel_booking"] * 2


async def test_agent_when_invoked_asynchronously_then_does_the_same(task: Task) -> None:
    """Tools are called in threads then."""
    attempt = task.open()
    agent = build_agent(cancels("BK-1000", "BK-1001"), attempt)
    state = await asyncio.wait_for(
        agent.ainvoke({"messages": [HumanMessage(attempt.opening)]}), timeout=60
    )
    assert state["messages"][-1].text == "Done."
    assert attempt.score().success


def test_agent_when_memory_recalls_then_has_it_behind_its_instructions(
    statebench: StateBench, task: Task
) -> None:
    """In the request alone: what was said holds nothing of it."""
    memory = make_provider("trajectory", InMemoryStore(), settings={"feedback": "oracle"})
    file_trajectories(memory, statebench, "travel")
    recall = recall_for(memory, task)
    assert [item.task_id for item in recall.items] == [NAME]
    attempt = task.open()
    state = build_agent(SimulatedClerk(), attempt, recall).invoke(
        {"messages": [HumanMessage(attempt.opening)]}
    )
    assert "recalled_memory" not in str(state["messages"])
    assert state["messages"][1].tool_calls[0]["name"] == "get_user_reservations"


def test_episode_when_of_a_recorded_trajectory_then_holds_every_call_and_word(
    statebench: StateBench,
) -> None:
    """Calls and what was said are steps; the opening is the task, and no step."""
    (recorded,) = (t for t in statebench.trajectories("travel") if t.task.id == NAME)
    episode = episode_of(recorded.task, recorded.turns, score=recorded.replay()[1])
    assert episode.task == recorded.task.opening
    actions = [step.action for step in episode.steps]
    assert actions[1] == 'get_user_reservations({"user_id":"user_002"})'
    assert sum(action.startswith("cancel_booking(") for action in actions) == 2
    assert len(episode.steps) == 1 + sum(1 for _ in recorded.calls) + 3
    assert '"refund_amount": 298' in episode.steps[4].observation
    assert "[TASK_DONE]" not in str(episode.steps)
    assert episode.steps[5].observation.startswith("Just to confirm")
    assert (episode.outcome.success, episode.outcome.score) == (False, 0.5)


def test_episodes_when_scored_then_246_of_300_tell_how_they_ended(statebench: StateBench) -> None:
    """By gold answers, which a provider must declare; without scores none tells anything."""
    recorded = statebench.trajectories()
    scored = [episode_of(t.task, t.turns, score=t.replay()[1]) for t in recorded]
    assert sum(each.outcome.success is not None for each in scored) == 246
    assert sum(each.succeeded for each in scored) == 197
    plain = make_provider("trajectory", InMemoryStore(), settings={})
    with pytest.raises(InputError, match="feedback='oracle'"):
        file_trajectories(plain, statebench, "travel")
    assert file_trajectories(plain, statebench, "travel", scored=False) == 100
    assert {item.success for item in plain.content().items.values()} == {None}


def test_episode_when_played_then_is_of_the_same_form(task: Task) -> None:
    """What an agent did itself is filed as what was recorded is."""
    attempt = task.open()
    score = play(build_agent(cancels("BK-1000"), attempt), attempt)
    episode = episode_of(task, attempt.turns, score=score, name="mine")
    assert episode.id == "mine"
    assert [step.action for step in episode.steps[1:]] == [
        'cancel_booking({"booking_id":"BK-1000","confirm":true})',
        "Done.",
    ]


def test_serve_when_memory_is_asked_then_says_so_and_files_nothing(
    statebench: StateBench,
) -> None:
    """The episode carries the receipt, and no word of gold answers."""
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    file_trajectories(memory, statebench, "shopping_assistant", scored=False)
    before = memory.content().digest
    task = statebench.tasks("shopping_assistant", "test")[0]
    served = serve(memory, SimulatedClerk(), task, name="first")
    assert memory.content().digest == before
    assert served.score.required == len(task.requirements)
    (receipt,) = served.episode.recalls
    assert receipt.query == task.opening
    assert (served.episode.id, served.episode.outcome.success) == ("first", None)
    assert memory.file(served.episode)


def test_ablation_when_transfer_is_planted_then_finds_it(
    statebench: StateBench, tmp_path: Path
) -> None:
    """A memory of the very tasks helps, and filler of its length does not (a simulated model)."""
    recorded = [
        each
        for each in statebench.trajectories("customer_support")
        if each.task.requirements and each.replay()[1].success
    ][:6]
    done = ablate(
        build=lambda memory, model: (
            lambda name: serve(memory, model, statebench.task(name)).score.value
        ),
        episodes=[episode_of(each.task, each.turns) for each in recorded],
        test=[{"id": f"again {each.task.id}", "input": each.task.id} for each in recorded],
        score=lambda _, output: output,
        conditions=("placebo",),
        replicates=3,
        model=lambda seed: SimulatedClerk(seed=seed),
        out=tmp_path,
    )
    assert done.verdicts == {"trajectory": "helps"}
    rates = {row[0]: float(row[1]) for row in done.rows()}
    assert rates["none"] == rates["trajectory~placebo"] == 0
    assert rates["trajectory"] > 60
    assert done.simulated


@pytest.mark.parametrize("provider", ["trajectory", "simple_rag", "agent_kb", "none"])
def test_hook_when_asked_by_the_benchmarks_agent_then_gives_what_it_accepts(
    statebench: StateBench, provider: str
) -> None:
    """Its own code checks what comes: a list of texts, as many as it allows at most."""
    from state_bench.agents.state_bench import (  # type: ignore[import-not-found]  # noqa: PLC0415
        StateBenchAgent,
    )

    memory = make_provider(provider, InMemoryStore(), settings={})
    file_trajectories(memory, statebench, "travel", scored=False)

    class MemoryAgent(StateBenchAgent):  # type: ignore[misc]
        learnings = Learnings(memory, "travel", Budget(tokens=None))
        retrieve_learnings_top_k = 3

        def retrieve_learnings(self, query: str, top_k: int = 3) -> list[str]:
            return self.learnings.retrieve_learnings(query, top_k)

    agent = object.__new__(MemoryAgent)  # its constructor wants a client of a language model
    found = agent._handle_retrieve_learnings_tool({"query": "cancel a flight", "top_k": 99})
    texts = found["learnings"]
    assert len(texts) <= 3
    assert all("cancel" in text.lower() for text in texts)
    assert bool(texts) == (provider != "none")


def test_hook_when_asked_changes_nothing(statebench: StateBench) -> None:
    """A hook that wrote would be no retrieval."""
    memory = make_provider("simple_rag", InMemoryStore(), settings={})
    file_trajectories(memory, statebench, "shopping_assistant", scored=False)
    before = memory.content().digest
    texts = Learnings(memory, "shopping_assistant").retrieve_learnings("apply a promo", 2)
    assert len(texts) == 2
    assert memory.content().digest == before
