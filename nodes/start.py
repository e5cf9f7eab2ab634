"""`start`: open the world and see the task."""

import uuid
from collections.abc import Mapping

from langchain_core.runnables import Runnable

from langgraft._core.errors import InputError
from langgraft.nodes.sessions import EnvironmentSessions
from langgraft.nodes.state import AgentState, Node, StepState, Update


def start_node(
    sessions: EnvironmentSessions, *, max_rounds: int | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that begins an episode.

    Args:
        sessions: Where the running world is kept.
        max_rounds: How many replies the agent has; `None` takes the world's own rule.
    """

    def start(state: AgentState) -> Update:
        task_id = _task_id(state)
        episode_id = state.get("episode_id") or uuid.uuid4().hex
        environment, first = sessions.start(episode_id, task_id)
        shown = StepState(thought="", action="", observation=first.observation, valid=True)
        return {
            "episode_id": episode_id,
            "domain": environment.task.domain,
            "instruction": first.instruction,
            "world_instructions": environment.instructions,
            "steps": [shown],
            "recalled": "",
            "max_rounds": max_rounds or environment.max_rounds,
            "done": False,
            "success": False,
            "score": 0.0,
            "reason": "",
            "lessons": [],
            "reflection": "",
        }

    return Node("start", start)


def _task_id(state: Mapping[str, object]) -> str:
    task_id = state.get("task_id")
    if not isinstance(task_id, str) or not task_id:
        msg = f"the agent's input needs a `task_id`, such as {{'task_id': 'babyai/find_obj/200'}}; got {dict(state)!r:.200}"
        raise InputError(msg)
    return task_id
