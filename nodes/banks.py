"""Memory as a run has it: the bank that it began with, and what it changed."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

from langgraft.memory.deltas import BankContent, MemoryDelta, fold
from langgraft.memory.items import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts


def bank_after(
    artifacts: Artifacts, state: Mapping[str, Any], deltas: Iterable[MemoryDelta]
) -> BankContent:
    """Return what memory holds as a run has it: what it began with, and all it changed.

    Raises:
        InputError: The bank is missing or damaged.
    """
    start = BankContent()
    if reference := begun_with(state):
        start = _content(json.loads(artifacts.read(reference)))
    return fold(deltas, start)


def begun_with(state: Mapping[str, Any]) -> str:
    """Return the reference of the bank that a run began with; nothing where it teaches none."""
    return str(state.get("begun", {}).get("bank", ""))


def restore_bank(memory: MemoryProvider[Any], wanted: BankContent) -> None:
    """Make a bank hold exactly this; nothing is changed where it does.

    Raises:
        ReadOnlyStoreError: It is another one, and frozen.
    """
    if memory.content().digest != wanted.digest:
        memory.restore(wanted)


async def arestore_bank(memory: MemoryProvider[Any], wanted: BankContent) -> None:
    """Do what `restore_bank` does, asynchronously."""
    if (await memory.acontent()).digest != await asyncio.to_thread(lambda: wanted.digest):
        await memory.arestore(wanted)


def _content(written: Mapping[str, Any]) -> BankContent:
    items = [MemoryItem.from_json(item) for item in written["items"].values()]
    items.sort(key=lambda item: (item.order_index, item.id))
    return BankContent({item.id: item for item in items}, written["notes"], written["state"])
