"""A transplant: the items of one bank, read into an empty bank of another architecture (memory-transplants §3.2).

    done = transplant(donor, recipient)
    print(done.kept, done.dropped)

Items go verbatim; whatever the donor derived from them (notes, queues, counters, vectors) stays behind
and is made anew by the recipient's rules and its upkeep. No model is called.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import InputError
from langgraft.memory.bank import bank_namespace
from langgraft.memory.bank_format import write_items
from langgraft.memory.controls import Control
from langgraft.memory.model import (
    BankContent,
    Change,
    MemoryDelta,
    MemoryItem,
    Remove,
    SetState,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.stores.read_only import ReadOnlyStore

LEFT_BEHIND = "left behind by a transplant"
"""Reason of a removal: the donor's item, before the recipient's own of it comes."""


@dataclass(frozen=True, slots=True)
class Transplant:
    """What came of a transplant."""

    delta: MemoryDelta
    """What the recipient's bank got: items, and what it derived from them."""
    exported: int
    """Items of the donor."""
    digest: str
    """Of the items as exported: equal wherever the same content is read."""
    dropped: tuple[tuple[str, str], ...]
    """Items that the recipient's upkeep did not keep, with its reasons."""
    derived: int
    """Notes and places of bookkeeping that the recipient made anew."""

    @property
    def kept(self) -> int:
        """Items of the donor that are in the recipient's bank."""
        return self.exported - len(self.dropped)

    def __str__(self) -> str:
        reasons = Counter(reason for _, reason in self.dropped)
        why = "; ".join(f"{reason}: {count:,}" for reason, count in reasons.items())
        return (
            f"Of {self.exported:,} items of the donor {self.kept:,} were kept and"
            f" {len(self.dropped):,} dropped{f' ({why})' if why else ''}; {self.derived:,} notes and"
            " entries of bookkeeping were derived anew."
        )

    def to_json(self) -> dict[str, JSON]:
        """Return what is logged of it, without the items."""
        return {
            "exported": self.exported,
            "kept": self.kept,
            "dropped": [list(each) for each in self.dropped],
            "derived": self.derived,
            "digest": self.digest,
        }


def transplant(donor: MemoryProvider[Any], recipient: MemoryProvider[Any]) -> Transplant:
    """Read one memory's items into another, whose bank is empty; the donor stays as it is.

    Raises:
        InputError: As `transplant_items` does.
        ReadOnlyStoreError: The recipient is frozen.
    """
    return transplant_items(donor.content().items.values(), recipient)


def transplant_items(items: Iterable[MemoryItem], recipient: MemoryProvider[Any]) -> Transplant:
    """Read a donor's items into a recipient whose bank is empty.

    Args:
        items: The donor's, such as `donor.content().items.values()`.
        recipient: Takes them in by its own architecture.

    Raises:
        InputError: The recipient's bank holds something, or items learned from gold answers come to
            one whose settings do not declare that. Nothing is changed.
        ReadOnlyStoreError: The recipient is frozen.
    """
    given = sorted(items, key=lambda item: (item.order_index, item.id))
    if recipient.content() != BankContent():
        msg = (
            "a transplant needs an empty bank; import into one that holds items with `import_items`"
        )
        raise InputError(msg)
    with tempfile.TemporaryDirectory(prefix="langgraft-transplant-") as folder:
        path = Path(folder) / "items.jsonl"
        write_items(path, given)
        delta = recipient.import_items(path)
    dropped = [(each.id, each.reason) for each in delta.changes if isinstance(each, Remove)]
    content = recipient.content()
    return Transplant(
        delta,
        len(given),
        digest([item.to_json() for item in given]),
        tuple(dropped),
        len(content.state) + sum(map(len, content.notes.values())),
    )


def copy_of(
    memory: MemoryProvider[Any], content: BankContent | None = None, *, frozen: bool = False
) -> MemoryProvider[Any]:
    """Make a memory of the same class and settings over a store of its own.

    Args:
        memory: Whose architecture it has.
        content: What its bank holds; `None`: nothing.
        frozen: Whether that can never change.

    Raises:
        InputError: The class cannot be made of a store, a namespace and settings.
    """
    if isinstance(memory, Control):
        msg = f"{type(memory).__name__} is a control: give the memory that it wraps"
        raise InputError(msg)
    kind, given = (
        type(memory),
        {"namespace": bank_namespace(memory.namespace), "settings": memory.settings},
    )

    def over(store: BaseStore) -> MemoryProvider[Any]:
        try:
            return kind(store, **given)
        except TypeError as error:
            msg = (
                f"{kind.__name__} cannot be copied, which takes"
                f" {kind.__name__}(store, namespace=…, settings=…): {error}"
            )
            raise InputError(msg) from error

    store = InMemoryStore()
    made = over(store)
    if content is not None:
        made.restore(content)
    return over(ReadOnlyStore(store)) if frozen else made


def in_place_of(donor: BankContent, transplant: Transplant) -> MemoryDelta:
    """Return what turns the donor's own bank into the recipient's: for a log that goes on from it."""
    changes: list[Change] = [Remove(name, LEFT_BEHIND) for name in donor.items]
    changes += [SetState(key, None) for key in donor.state]
    return MemoryDelta(tuple(changes)) + transplant.delta
