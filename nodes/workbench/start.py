"""`start`: check what a run needs before a model is paid, and look at the data.

Also how a process that goes on with a run gets memory back as the run has it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft.environments.competitions.preview import data_preview
from langgraft.memory.deltas import BankContent
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.memory import arestore_bank, bank_after, begun_with, noted_bank, restore_bank
from langgraft.nodes.node import Node, Update
from langgraft.nodes.preflight import checked_name, probed
from langgraft.nodes.replies import encodable
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.limits import NOTHING_SPENT
from langgraft.nodes.workbench.log import read_log
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
        name = checked_name(state, "run")
        yield from probed(deps.competition, deps.sandbox)
        bank = yield from noted_bank(memory, deps.artifacts)
        return _update(deps, state, name, bank)

    return Node.running("start", start, in_threads=True)


def _update(deps: RunDeps, state: RunState, name: str, bank: str) -> Update:
    """Begin afresh, or keep what the thread has of this run."""
    preview = encodable(data_preview(deps.competition.public_dir))
    before = state.get("begun")
    goes_on = bool(before and before["episode_id"] == name and state.get("log"))
    if goes_on:
        deps.log(state)  # must be there
    kept = before["bank"] if before and goes_on else ""
    begun = Begun(episode_id=name, preview=deps.artifacts.keep(preview.encode()), bank=kept or bank)
    afresh = {} if goes_on else _AFRESH
    return {
        **_LEFT,
        **afresh,
        "episode_id": name,
        "seed": state.get("seed", 0),
        "begun": begun,
    }


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
    if begun_with(state):
        restore_bank(memory, run_bank(artifacts, state))


async def arestore_run_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Do what `restore_run_memory` does, asynchronously."""
    if begun_with(state):
        wanted = await asyncio.to_thread(run_bank, artifacts, state)
        await arestore_bank(memory, wanted)
