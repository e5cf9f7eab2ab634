"""The ReAct agent in ALFWorld: replies of all kinds, and episodes that are interrupted."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acceptance.alfworld_replies import (
    CASES,
    TASK,
    Scripted,
    agent_of,
    script_of,
)
from acceptance.alfworld_worker import play
from acceptance.command import worker_environment
from alfworld_cases import needs_alfworld
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.simulated.chat import Reply
from langgraft.benchmarks.simulated.server import serve
from langgraft.environments.alfworld import GeneratedALFWorld
from langgraft.graphs import build_react_agent
from langgraft.nodes import AgentInput

pytestmark = needs_alfworld

FACTORY = GeneratedALFWorld()


def observations(final: dict[str, Any]) -> list[str]:
    """Return what the agent was told of each reply."""
    return [step["observation"] for step in final["steps"][1:]]


def test_replies_when_they_are_bad_are_each_answered_and_the_game_can_still_be_won() -> None:
    """Every case costs its round, is told what is wrong, and leaves the world as it is."""
    script = script_of()
    final = agent_of(Scripted(script=script.__getitem__), len(script)).invoke({"task_id": TASK})
    told = observations(final)
    for case, text in zip(CASES, told, strict=False):
        assert text.startswith(case.told), case.what
    assert (final["reason"], len(told)) == ("goal reached", len(script))
    json.dumps(final).encode()


async def test_replies_when_they_come_over_http_are_answered_alike() -> None:
    """A client of OpenAI's interface brings the same episode, async, as a model in process."""
    script = script_of()
    expected = agent_of(Scripted(script=script.__getitem__), len(script)).invoke({"task_id": TASK})
    async with serve(Scripted(script=script.__getitem__)) as server:
        model = make_model("openai:simulated", base_url=server.base_url, api_key="none")
        final = await agent_of(model, len(script)).ainvoke({"task_id": TASK})
    assert observations(dict(final)) == observations(dict(expected))
    assert final["success"]


def test_rounds_when_they_run_out_end_the_episode_as_not_reached() -> None:
    """The limit of the convention counts every reply, also those without an action."""
    model = Scripted(script=lambda number: CASES[number % len(CASES)].reply)
    final = build_react_agent(model, environment=FACTORY).invoke({"task_id": TASK})
    assert (final["reason"], final["success"]) == ("out of rounds", False)
    assert len(final["steps"]) == 31


def test_thought_when_it_is_an_action_of_react_is_answered_ok() -> None:
    """`react` knows thinking aloud; nothing else of the replies is answered in another way."""
    script = script_of("react")
    final = agent_of(Scripted(script=script.__getitem__), len(script), "react").invoke(
        {"task_id": TASK}
    )
    for case, text in zip(CASES, observations(final), strict=False):
        wanted = "OK." if "think:" in case.reply.text else case.told
        assert text.startswith(wanted), case.what
    assert final["success"]


@pytest.mark.parametrize("family", ["pick_two_obj", "look_at_obj"])
async def test_episode_when_resumed_by_fresh_agents_ends_as_the_undisturbed_one(
    family: str, tmp_path: Path
) -> None:
    """Sync, async, or taken up after every round by an agent that has no world of it yet."""
    task = f"alfworld-generated/{family}/1"
    *before, last = (f"Action: {command}" for command in FACTORY(task).game.walkthrough)
    script = tuple(map(Reply, ["Action: inventory", "hm", *before, last]))
    model = Scripted(script=script.__getitem__)
    given = AgentInput(task_id=task, episode_id="e")
    expected = build_react_agent(model, environment=FACTORY).invoke(given)
    assert expected["success"]
    assert await build_react_agent(model, environment=FACTORY).ainvoke(given) == expected

    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as saver:
        result = None
        for number in range(len(script)):
            agent = build_react_agent(model, environment=GeneratedALFWorld(), checkpointer=saver)
            start: Any = None if number else given
            result = agent.invoke(start, config, interrupt_after=["act"])
            assert len(result["steps"]) == number + 2
    assert result == expected


@pytest.mark.kill
def test_episode_when_its_process_is_killed_goes_on_in_another(tmp_path: Path) -> None:
    """SIGKILL after the world moved and before the graph knew: the trajectory is the same."""
    task = "alfworld-generated/pick_heat_then_place/1"
    whole, place = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    place.mkdir()
    worker = [sys.executable, "-m", play.__module__, str(place), task, "act", "5"]
    killed = subprocess.run(worker, env=worker_environment(), capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    expected = play(task, whole)
    assert play(task, place) == expected
    assert expected["success"]
    assert expected["deltas"]
