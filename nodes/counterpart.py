"""`counterpart`: find an earlier attempt to compare the present one with.

What it finds is put into the state, where `reflect_by_outcome_node` takes it from: what the two
are compared by is decided once, whatever else happens before the model is asked.
"""

from dataclasses import asdict
from typing import Protocol, runtime_checkable

from langchain_core.runnables import Runnable

from langgraft._core.arguments import checked
from langgraft.memory.episodes import Attempt, Episode
from langgraft.nodes.remember import episode_of
from langgraft.nodes.state import AgentState, Node, Update


@runtime_checkable
class KeepsAttempts(Protocol):
    """Memory that keeps attempts for comparison, such as `InsightMemory`."""

    def counterpart(self, episode: Episode) -> Attempt | None:
        """Return an attempt that ended the other way; changes nothing."""

    async def acounterpart(self, episode: Episode) -> Attempt | None:
        """Do as `counterpart` does, asynchronously."""


@checked
def counterpart_node(memory: KeepsAttempts) -> Runnable[AgentState, Update]:
    """Make the node that asks memory for an attempt that ended the other way.

    Its update holds the `counterpart`, and in `compared_with` the episode that it was; both are
    empty where there is none.
    """

    def counterpart(state: AgentState) -> Update:
        return _update(memory.counterpart(episode_of(state)))

    async def acounterpart(state: AgentState) -> Update:
        return _update(await memory.acounterpart(episode_of(state)))

    return Node("counterpart", counterpart, acounterpart)


def _update(found: Attempt | None) -> Update:
    if found is None:
        return {"counterpart": {}, "compared_with": ""}
    held = {**asdict(found), "steps": [asdict(step) for step in found.steps]}
    return {"counterpart": held, "compared_with": found.episode_id}
