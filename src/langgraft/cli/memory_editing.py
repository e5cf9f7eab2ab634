"""What `langgraft memory forget`, `edit` and `clear` do."""

from collections.abc import Callable
from typing import Any

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.cli.memory_banks import Address, kept_provider
from langgraft.cli.printing import say, write_json
from langgraft.memory.model import Add, MemoryDelta, Remove
from langgraft.memory.provider import MemoryProvider


def change(
    address: Address, how: Callable[[MemoryProvider[Any]], MemoryDelta], *, as_json: bool
) -> None:
    """Change a bank by hand, and show what that changed.

    Raises:
        InputError: The bank or the change is not possible; nothing is changed.
    """
    with kept_provider(address) as memory:
        delta = how(memory)
    edited = [each.item.id for each in delta if isinstance(each, Add)]
    gone = [each.id for each in delta if isinstance(each, Remove) and each.id not in edited]
    if as_json:
        forgotten: list[JSON] = [*gone]
        write_json({"forgotten": forgotten, "edited": [*edited], "delta": delta.to_json()})
        return
    say(f"{len(gone)} forgotten, {len(edited)} edited")
    for identity in (*gone, *edited):
        say(f"{'~' if identity in edited else '-'} {identity}")


def clear(address: Address, *, yes: bool, as_json: bool) -> None:
    """Empty a bank.

    Raises:
        InputError: Nobody said yes, or the bank is not possible; nothing is changed.
    """
    with kept_provider(address) as memory:
        if not yes:
            held = len(memory.content().items)
            where = "/".join(memory.namespace[:-1])
            msg = f"this would forget all {held:,} items of {where!r}: give --yes to do so"
            raise InputError(msg)
        delta = memory.clear()
    gone = sum(isinstance(each, Remove) for each in delta)
    if as_json:
        write_json({"forgotten": gone})
    else:
        say(f"{gone} forgotten; the bank is empty")
