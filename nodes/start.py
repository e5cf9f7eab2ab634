"""`start`: open the world and see the task."""

import uuid
from collections.abc import Mapping

from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from langgraft._core.arguments import check_whole, checked
from langgraft._core.errors import InputError
from langgraft.nodes.sessions import EnvironmentSessions
from langgraft.nodes.state import AgentState, Node, StepState, Update


@checked
def start_node(
    sessions: EnvironmentSessions, *, max_rounds: int | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that begins an episode.

    Args:
        sessions: Where the running world is kept.
        max_rounds: How many replies the agent has; `None` takes the world's own rule.

    Raises:
        SettingsError: `max_rounds` is below 1.
    """
    if max_rounds is not None:
        check_whole("max_rounds", max_rounds)

    def start(state: AgentState) -> Update:
        task_id = _task_id(state)
        episode_id = _episode_id(state)
        environment, first = sessions.start(episode_id, task_id)
        seen = first.observation
        shown = StepState(said="", thought="", action="", observation=seen, valid=True)
        return {
            "episode_id": episode_id,
            "domain": environment.task.domain,
            "instruction": first.instruction,
            "world_instructions": environment.instructions,
            "attempt": episode_id,
            **_lists(state, shown),
            "draft": "",
            "draft_verdicts": [],
            "recalled": "",
            "said": "",
            "thought": "",
            "action": "",
            "valid": True,
            "max_rounds": max_rounds or environment.max_rounds,
            "done": False,
            "success": False,
            "score": 0.0,
            "reason": "",
            "lessons": [],
            "reflection": "",
            "counterpart": {},
            "compared_with": "",
            "validation": [],
            "dropped": [],
            "errors": [],
            "verdicts": [],
            "judging": [],
        }

    return Node("start", start)


def _episode_id(state: AgentState) -> str:
    given = state.get("episode_id")
    if given is not None and not isinstance(given, str):
        msg = f"the agent's `episode_id` must be a text, got {given!r:.80}"
        raise InputError(msg)
    # A checkpointed thread still holds the id of the episode before this one. Taken again, it
    # would have memory ignore the new episode as already filed.
    return given if given and given != state.get("attempt") else uuid.uuid4().hex


def _lists(state: AgentState, shown: StepState) -> Update:
    """Begin the lists that the nodes add to, without what the thread's last episode left."""
    if not state.get("steps"):
        return {"steps": [shown]}
    return {"steps": Overwrite([shown]), "receipts": Overwrite([]), "deltas": Overwrite([])}


def _task_id(state: Mapping[str, object]) -> str:
    task_id = state.get("task_id")
    if not isinstance(task_id, str) or not task_id:
        msg = (
            "the agent's input needs a `task_id`, such as {'task_id': 'babyai/find_obj/200'};"
            f" got {dict(state)!r:.200}"
        )
        raise InputError(msg)
    return task_id
