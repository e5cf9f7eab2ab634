"""`recall` in a branch: ask memory before a program is written."""

import asyncio
from typing import Any

from langgraft._core.arguments import checked
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.nodes.competing import domain, instruction
from langgraft.nodes.execution_text import with_limit
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.state import BranchState, Work


@checked
def recall_program_node(
    place: Place, memory: MemoryProvider[Any], *, budget: Budget | None = None
) -> GraphNode[BranchState]:
    """Make the node that asks memory what to heed in the program that is to be written.

    Args:
        place: The competition, and where contents are kept.
        memory: The provider to ask.
        budget: Room for recalled text; `None`: that of `Budget()`.
    """
    query = instruction(place.competition)

    def recall(state: BranchState) -> Update:
        context = recall_context(place, state)
        return _update(place, state, memory.provide(query, context, budget))

    async def arecall(state: BranchState) -> Update:
        context = await asyncio.to_thread(recall_context, place, state)
        recalled = await memory.aprovide(query, context, budget)
        return await asyncio.to_thread(_update, place, state, recalled)

    return GraphNode("recall", recall, arecall)


def recall_context(place: Place, state: BranchState) -> RecallContext:
    """Tell memory where the search stands.

    What came of the parent is shown where it is to be repaired; there is nothing else to see.
    """
    work = state["work"]
    failed = place.parent(state) if work["stage"] == "debug" else None
    return RecallContext(
        domain=domain(place.competition),
        task_id=place.competition.id,
        episode_id=episode_id(state["episode_id"], work["id"]),
        stage=work["stage"],
        step=work["step"],
        observation="" if failed is None else seen(failed),
    )


def episode_id(search: str, node: str) -> str:
    """Name the episode of a program: each is one."""
    return f"{search}/{node}"


def seen(node: JournalNode) -> str:
    """Return what a failed program showed.

    Where nothing was raised at all (no submission, say), its output tells of no error, and the
    diagnosis stands for it: memory keeps the failure under those words.
    """
    if node.exc_type is None and node.error is not None:
        return str(node.error["error"])
    limit = node.timed_out or node.oom
    return with_limit(node.output, node.exc_type, node.exc_value, by_limit=limit)


def _update(place: Place, state: BranchState, recalled: Recall) -> Update:
    kinds = [str(item.metadata.get("kind", "")) for item in recalled.items]
    kept = place.keep(
        {"text": recalled.text, "kinds": kinds, "receipt": recalled.receipt.to_json()},
    )
    work: Work = {**state["work"], "recalled": kept}
    return {"work": work}
