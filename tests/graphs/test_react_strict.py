"""The ReAct agent under LangGraph's strict serializer, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).resolve().parent.parent / "support"

PROGRAM = """
import json, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from toy_world import Corridors, acting
from langgraft.graphs import build_react_agent
from langgraft.memory.providers import make_provider

path, provider, settings, place = sys.argv[1:]
config = {"configurable": {"thread_id": "t"}}
with SqliteSaver.from_conn_string(path) as saver:
    memory = make_provider(provider, InMemoryStore(), settings=json.loads(settings))
    def agent():
        return build_react_agent(
            acting("walk"), environment=Corridors(), memory=memory, checkpointer=saver
        )
    agent().invoke({"task_id": "toy/corridor/3", "episode_id": "before"}, config)
    task = {"task_id": "toy/corridor/3", "episode_id": "e"}
    agent().invoke(task, config, interrupt_after=[place], durability="sync")
    half = agent().get_state(config)
    print(json.dumps([half.values, half.next, agent().invoke(None, config)]))
"""


@pytest.mark.parametrize(
    ("provider", "settings", "place", "following"),
    [
        ("insight", "{}", "act", "think"),
        ("agent_kb", '{"gate": true}', "gate", "recall"),
        ("expel", '{"votes": {}}', "judge", "remember"),
    ],
)
def test_episode_when_the_serializer_is_strict_is_saved_and_resumed(
    provider: str, settings: str, place: str, following: str, tmp_path: Path
) -> None:
    """States are plain JSON: nothing needs to be allowed, and nothing is warned about."""
    given = (str(tmp_path / "checkpoints.sqlite"), provider, settings, place)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, *given],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (SUPPORT, SUPPORT.parent))),
            "LANGGRAPH_STRICT_MSGPACK": "true",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    half, node, result = json.loads(done.stdout)
    assert node == [following]
    assert (half["episode_id"], half["deltas"]) == ("e", [])
    assert result["success"]
    assert len(result["steps"]) == 4
    assert result["deltas"]
    assert [told["kind"] for told in result["judging"]] == {
        "insight": [],
        "agent_kb": ["contradiction"],
        "expel": ["votes"],
    }[provider]
