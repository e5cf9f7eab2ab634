"""Memory as a run has it: what a process that goes on with the run begins with."""

import asyncio
from collections.abc import Mapping
from typing import Any

from langgraft.memory.deltas import BankContent
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.banks import arestore_bank, bank_after, begun_with, restore_bank
from langgraft.nodes.workbench.log import read_log


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
