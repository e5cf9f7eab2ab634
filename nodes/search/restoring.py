"""Memory as a search has it: what a process that goes on with the search begins with."""

import asyncio
from collections.abc import Mapping
from typing import Any

from langgraft.memory.deltas import BankContent
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.banks import arestore_bank, bank_after, begun_with, restore_bank
from langgraft.nodes.search.records import read_search


def bank_of(artifacts: Artifacts, state: Mapping[str, Any]) -> BankContent:
    """Return what memory holds as a search has it: what it began with, and all it learned.

    Args:
        artifacts: Where the search is kept.
        state: The search's state: what `get_state(config).values` of its graph gives.

    Raises:
        InputError: A record or the bank is missing or damaged.
    """
    search = read_search(artifacts, state.get("journal", ""))
    return bank_after(artifacts, state, search.deltas)


def restore_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Make a bank what it is to be where a search goes on after a crash.

    A process may die after memory took in a program and before that was noted, and a bank in
    memory dies with it. Called before `invoke(None, config)`, this makes the bank hold exactly
    what the search began with and what its journal says it learned. The bank has to be the
    search's own: what others wrote to it meanwhile goes.

        state = agent.get_state(config).values
        restore_memory(memory, artifacts, state)
        agent.invoke(None, config, durability="sync")

    Nothing is changed where the search has not begun or teaches nothing (`learn=False`), and where
    the bank is right already.

    Raises:
        InputError: A record or the bank is missing or damaged.
        ReadOnlyStoreError: The bank is another one, and frozen.
    """
    if begun_with(state):
        restore_bank(memory, bank_of(artifacts, state))


async def arestore_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Do what `restore_memory` does, asynchronously."""
    if begun_with(state):
        wanted = await asyncio.to_thread(bank_of, artifacts, state)
        await arestore_bank(memory, wanted)
