"""Memory as a search has it: what a process that goes on with the search begins with."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from langgraft.memory.deltas import BankContent, fold
from langgraft.memory.items import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.search.records import read_search


def bank_of(artifacts: Artifacts, state: Mapping[str, Any]) -> BankContent:
    """Return what memory holds as a search has it: what it began with, and all it learned.

    Args:
        artifacts: Where the search is kept.
        state: The search's state: what `get_state(config).values` of its graph gives.

    Raises:
        InputError: A record or the bank is missing or damaged.
    """
    start = BankContent()
    if reference := _bank(state):
        start = _content(json.loads(artifacts.read(reference)))
    return fold(read_search(artifacts, state.get("journal", "")).deltas, start)


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
    if _bank(state):
        wanted = bank_of(artifacts, state)
        if memory.content().digest != wanted.digest:
            memory.restore(wanted)


async def arestore_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Do what `restore_memory` does, asynchronously."""
    if _bank(state):
        wanted = await asyncio.to_thread(bank_of, artifacts, state)
        if (await memory.acontent()).digest != wanted.digest:
            await memory.arestore(wanted)


def _bank(state: Mapping[str, Any]) -> str:
    return str(state.get("begun", {}).get("bank", ""))


def _content(written: Mapping[str, Any]) -> BankContent:
    items = [MemoryItem.from_json(item) for item in written["items"].values()]
    items.sort(key=lambda item: (item.order_index, item.id))
    return BankContent({item.id: item for item in items}, written["notes"], written["state"])
