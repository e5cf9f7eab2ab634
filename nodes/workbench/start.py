"""`start`: check what a run needs before a model is paid, and look at the data."""

import asyncio
from typing import Any, Final

from langgraft._core.arguments import checked
from langgraft.environments.competitions.preview import data_preview
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.replies import encodable
from langgraft.nodes.starting import check_data, checked_name, data_probe
from langgraft.nodes.workbench.desk import Desk
from langgraft.nodes.workbench.limits import NOTHING_SPENT
from langgraft.nodes.workbench.state import Begun, RunState

_LEFT: Final[Update] = {
    "said": "",
    "diagnosed": "",
    "judged": "",
    "ended": "",
    "metric": None,
    "submission": "",
    "done": False,
}
"""What the end of a run, or a crash in it, leaves in a thread."""
_AFRESH: Final[Update] = {"log": "", "steps": 0, "attempt": 0, "spent": NOTHING_SPENT}


@checked
def start_run_node(desk: Desk, *, memory: MemoryProvider[Any] | None) -> GraphNode[RunState]:
    """Make the node that begins a run, or goes on with one.

    An input with the `episode_id` of the run that the thread has goes on with it, up to the limits
    that the agent was built with: what is in the log stays, and what was spent.

    Args:
        desk: What all nodes share.
        memory: The provider that the run teaches, if it does: what it holds is noted, so that it
            can be restored.
    """

    def start(state: RunState) -> Update:
        name = checked_name(state, "run")
        check_data(desk.competition, desk.sandbox.run(data_probe(desk.competition)))
        bank = "" if memory is None else desk.keep(memory.content().to_json())
        return _update(desk, state, name, bank)

    async def astart(state: RunState) -> Update:
        name = checked_name(state, "run")
        check_data(desk.competition, await desk.sandbox.arun(data_probe(desk.competition)))
        bank = "" if memory is None else desk.keep((await memory.acontent()).to_json())
        return await asyncio.to_thread(_update, desk, state, name, bank)

    return GraphNode("start", start, astart)


def _update(desk: Desk, state: RunState, name: str, bank: str) -> Update:
    """Begin afresh, or keep what the thread has of this run."""
    preview = encodable(data_preview(desk.competition.public_dir))
    before = state.get("begun")
    goes_on = bool(before and before["episode_id"] == name and state.get("log"))
    if goes_on:
        desk.log(state)  # must be there
    kept = before["bank"] if before and goes_on else ""
    begun = Begun(episode_id=name, preview=desk.artifacts.keep(preview.encode()), bank=kept or bank)
    afresh = {} if goes_on else _AFRESH
    return {
        **_LEFT,
        **afresh,
        "episode_id": name,
        "seed": state.get("seed", 0),
        "begun": begun,
    }
