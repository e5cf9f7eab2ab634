"""`start`: check what a search needs before a model is paid, and look at the data."""

import asyncio
from typing import Any, Final

from langgraft._core.arguments import checked
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.replies import encodable
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.state import Begun, TreeState
from langgraft.nodes.starting import check_data, checked_name, data_probe


@checked
def start_search_node(
    place: Place, sandbox: Sandbox, *, memory: MemoryProvider[Any] | None
) -> GraphNode[TreeState]:
    """Make the node that begins a search, or goes on with one.

    An input with the `episode_id` of the search that the thread has goes on with it: what is in
    the journal stays, and the search is continued up to the steps that the agent was built with.

    Args:
        place: The competition, and where contents are kept.
        sandbox: Where programs will run; a small one looks for the data there.
        memory: The provider that the search teaches, if it does: what it holds is noted, so that
            it can be restored.
    """

    def start(state: TreeState) -> Update:
        name = checked_name(state, "search")
        check_data(place.competition, sandbox.run(data_probe(place.competition)))
        bank = "" if memory is None else place.keep(memory.content().to_json())
        return _update(place, state, name, bank)

    async def astart(state: TreeState) -> Update:
        name = checked_name(state, "search")
        check_data(place.competition, await sandbox.arun(data_probe(place.competition)))
        bank = "" if memory is None else place.keep((await memory.acontent()).to_json())
        return await asyncio.to_thread(_update, place, state, name, bank)

    return GraphNode("start", start, astart)


def _update(place: Place, state: TreeState, name: str, bank: str) -> Update:
    """Begin afresh, or keep what the thread has of this search."""
    preview = encodable(data_preview(place.competition.public_dir))
    before = state.get("begun")
    journal = state.get("journal", "") if before and before["episode_id"] == name else ""
    place.search(journal)  # what goes on must be there
    kept = before["bank"] if before and journal else ""
    begun = Begun(
        episode_id=name, preview=place.artifacts.keep(preview.encode()), bank=kept or bank
    )
    left_over = {key: value for key, value in _NOTHING.items() if state.get(key)}
    seed = state.get("seed", 0)
    return {**left_over, "episode_id": name, "seed": seed, "begun": begun, "journal": journal}


_NOTHING: Final[Update] = {
    "finished": None,
    "judged": "",
    "chosen": "",
    "metric": None,
    "submission": "",
    "candidates": [],
    "done": False,
}
"""What the end of a search, or a crash in it, leaves in a thread."""
