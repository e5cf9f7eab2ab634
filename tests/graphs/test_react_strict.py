"""The ReAct agent under LangGraph's strict serializer, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent.parent / "support"

PROGRAM = """
import json, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from toy_world import Corridors, acting
from langgraft.graphs import build_react_agent
from langgraft.memory.providers import InsightMemory

config = {"configurable": {"thread_id": "t"}}
with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    memory = InsightMemory(InMemoryStore())
    def agent():
        return build_react_agent(
            acting("walk"), environment=Corridors(), memory=memory, checkpointer=saver
        )
    task = {"task_id": "toy/corridor/3", "episode_id": "e"}
    agent().invoke(task, config, interrupt_after=["act"], durability="sync")
    half = agent().get_state(config).values
    print(json.dumps([half["steps"], agent().invoke(None, config)]))
"""


def test_episode_when_the_serializer_is_strict_is_saved_and_resumed(tmp_path: Path) -> None:
    """States are plain JSON: nothing needs to be allowed, and nothing is warned about."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(tmp_path / "checkpoints.sqlite")],
        env={**os.environ, "PYTHONPATH": str(SUPPORT), "LANGGRAPH_STRICT_MSGPACK": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    half, result = json.loads(done.stdout)
    assert len(half) == 2
    assert result["success"]
    assert len(result["steps"]) == 4
    assert len(result["lessons"]) == 2
