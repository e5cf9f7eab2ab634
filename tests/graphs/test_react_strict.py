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
from langgraft.memory.providers import make_provider

path, cases = sys.argv[1:]

def played(saver, provider, settings, place):
    config = {"configurable": {"thread_id": provider}}
    memory = make_provider(provider, InMemoryStore(), settings=settings)
    def agent():
        return build_react_agent(
            acting("walk"), environment=Corridors(), memory=memory, checkpointer=saver
        )
    agent().invoke({"task_id": "toy/corridor/3", "episode_id": "before"}, config)
    task = {"task_id": "toy/corridor/3", "episode_id": "e"}
    agent().invoke(task, config, interrupt_after=[place], durability="sync")
    half = agent().get_state(config)
    return [half.values, half.next, agent().invoke(None, config)]

with SqliteSaver.from_conn_string(path) as saver:
    print(json.dumps([played(saver, *case) for case in json.loads(cases)]))
"""
CASES = [
    ("insight", {}, "act"),
    ("agent_kb", {"gate": True}, "gate"),
    ("expel", {"votes": {}}, "judge"),
]
"""Provider, settings, and the node after which the episode stops."""
FOLLOWING = ["think", "recall", "remember"]
JUDGED = [[], ["contradiction"], ["votes"]]


def test_episodes_when_the_serializer_is_strict_are_saved_and_resumed(tmp_path: Path) -> None:
    """States are plain JSON: nothing needs to be allowed, and nothing is warned about."""
    given = (str(tmp_path / "checkpoints.sqlite"), json.dumps(CASES))
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
    played = json.loads(done.stdout)
    for (half, node, result), following, judged in zip(played, FOLLOWING, JUDGED, strict=True):
        assert node == [following]
        assert (half["episode_id"], half["deltas"]) == ("e", [])
        assert result["success"]
        assert len(result["steps"]) == 4
        assert result["deltas"]
        assert [told["kind"] for told in result["judging"]] == judged
