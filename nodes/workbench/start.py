"""`start`: check what a run needs before a model is paid, and look at the data.

Also how a process that goes on with a run gets memory back as the run has it.
"""

from collections.abc import Mapping
from typing import Any, Final

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft.memory.model import BankContent
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.competition_run import bank_after, beginning, restoring
from langgraft.nodes.node import Node, Update
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.limits import NOTHING_SPENT
from langgraft.nodes.workbench.log import read_log
from langgraft.nodes.workbench.state import RunState

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
def start_run_node(deps: RunDeps, *, memory: MemoryProvider[Any] | None) -> Node[RunState]:
    """Make the node that begins a run, or goes on with one.

    An input with the `episode_id` of the run that the thread has goes on with it, up to the limits
    that the agent was built with: what is in the log stays, and what was spent.

    Args:
        deps: What all nodes share.
        memory: The provider that the run teaches, if it does: what it holds is noted, so that it
            can be restored.
    """

    def start(state: RunState) -> Program[Call, Update]:
        begun, log = yield from beginning(
            deps, deps.sandbox, memory, state, what="run", chain="log"
        )
        read_log(deps.artifacts, log)  # what goes on must be there
        return {
            **_LEFT,
            **({} if log else _AFRESH),
            "episode_id": begun["episode_id"],
            "seed": state.get("seed", 0),
            "begun": begun,
        }

    return Node.running("start", start, in_threads=True)


def run_bank(artifacts: Artifacts, state: Mapping[str, Any]) -> BankContent:
    """Return what memory holds as a run has it: what it began with, and all it learned.

    Args:
        artifacts: Where the run is kept.
        state: The run's state: what `get_state(config).values` of its graph gives.

    Raises:
        InputError: A record or the bank is missing or damaged.
    """
    return bank_after(artifacts, state, read_log(artifacts, state.get("log", "")).deltas)


def restore_run_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Make a bank what it is to be where a run goes on after a crash.

    Called before `invoke(None, config)`, this makes the bank hold exactly what the run began with
    and what its log says it learned. The bank has to be the run's own: what others wrote to it
    meanwhile goes. Nothing is changed where the run has not begun or teaches nothing.

        state = agent.get_state(config).values
        restore_run_memory(memory, artifacts, state)
        agent.invoke(None, config, durability="sync")

    Raises:
        InputError: A record or the bank is missing or damaged.
        ReadOnlyStoreError: The bank is another one, and frozen.
    """
    run(restoring(memory, artifacts, state, run_bank), do)


async def arestore_run_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Do what `restore_run_memory` does, asynchronously."""
    await arun(restoring(memory, artifacts, state, run_bank), ado, in_threads=True)
