"""`recall`: ask memory, and put what it says where the next prompt takes it from."""

from typing import Any

from langchain_core.runnables import Runnable

from langgraft._core.arguments import checked
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Verdict
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.nodes.state import AgentState, Node, Update


@checked
def recall_node(
    memory: MemoryProvider[Any], *, budget: Budget | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that asks memory; what it recalls replaces what was recalled before.

    Args:
        memory: The provider to ask.
        budget: Room for recalled text; `None`: that of `Budget()`.
    """

    def recall(state: AgentState) -> Update:
        return _update(memory.provide(state["instruction"], recall_context(state), budget))

    async def arecall(state: AgentState) -> Update:
        return _update(await memory.aprovide(state["instruction"], recall_context(state), budget))

    return Node("recall", recall, arecall)


def asks_again(memory: MemoryProvider[Any], state: AgentState) -> bool:
    """Say whether memory should be asked again now; it was asked in this episode before.

    Where the agent stood then is read off the last receipt, so no state is kept for it.
    """
    last = state["receipts"][-1]["step"]
    now, then = recall_context(state), recall_context(state, last)
    return memory.asks_again(state["instruction"], now, then)


def recall_context(state: AgentState, turn: int | None = None) -> RecallContext:
    """Tell where the agent stands, or stood after a turn."""
    taken = len(state["steps"]) - 1 if turn is None else turn
    return RecallContext(
        domain=state["domain"],
        task_id=state["task_id"],
        episode_id=state["episode_id"],
        episode_index=state.get("episode_index"),
        stage="step" if taken else "start",
        step=taken,
        observation=state["steps"][taken]["observation"],
        draft=state.get("draft", ""),
        verdicts=tuple(Verdict(**verdict) for verdict in state.get("draft_verdicts", ())),
    )


def _update(recalled: Recall) -> Update:
    return {"recalled": recalled.text, "receipts": [recalled.receipt.to_json()]}
