"""`recall` in a branch: ask memory before a program is written."""

from typing import Any

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, RecallContext
from langgraft.nodes.execution_text import with_limit
from langgraft.nodes.memory import provided, recalled_parts
from langgraft.nodes.node import Node, Update
from langgraft.nodes.preflight import domain, instruction
from langgraft.nodes.search.deps import SearchDeps
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.state import BranchState, with_work


@checked
def recall_program_node(
    deps: SearchDeps, memory: MemoryProvider[Any], *, budget: Budget | None = None
) -> Node[BranchState]:
    """Make the node that asks memory what to heed in the program that is to be written.

    Args:
        deps: What all nodes of the search depend on.
        memory: The provider to ask.
        budget: Room for recalled text; `None`: that of `Budget()`.
    """
    query = instruction(deps.competition)

    def recall(state: BranchState) -> Program[Call, Update]:
        recalled = yield from provided(memory, query, recall_context(deps, state), budget)
        return with_work(state, recalled=deps.keep(recalled_parts(recalled)))

    return Node.running("recall", recall, in_threads=True)


def recall_context(deps: SearchDeps, state: BranchState) -> RecallContext:
    """Tell memory where the search stands.

    What came of the parent is shown where it is to be repaired; there is nothing else to see.
    """
    work = state["work"]
    failed = deps.parent(state) if work["stage"] == "debug" else None
    return RecallContext(
        domain=domain(deps.competition),
        task_id=deps.competition.id,
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
