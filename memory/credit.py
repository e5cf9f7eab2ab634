"""Credit: how recalled items did, counted once per receipt.

An episode carries the receipts of what its agent was given. When it is filed, each item on a
receipt gets one more use, and one more success where the episode reached its goal. A mark in the
bank says that the receipt took effect, so that it counts once however many episodes carry it:
branches of a search may share one recall.
"""

from collections.abc import Sequence
from typing import Final, cast

from langgraph.store.base import GetOp, Item

from langgraft.memory import bank
from langgraft.memory.deltas import Annotate, BankContent, Change, SetState
from langgraft.memory.episodes import Episode
from langgraft.memory.forgetting import SUCCESSES, USES
from langgraft.memory.stores.drive import Program

CREDITED: Final = "credited/"
"""Bookkeeping: prefix of the marks of receipts that took effect."""


def credit(namespace: bank.Namespace, episode: Episode) -> Program[list[Change]]:
    """Say what an episode's receipts change; items that have gone meanwhile are passed over.

    Where nobody can tell how the episode ended, receipts count no use: it would lower the rate of
    success of what may have helped.
    """
    receipts = {receipt.id: receipt for receipt in episode.recalls if receipt.item_ids}
    if not receipts or episode.outcome.success is None:
        return []
    marks = yield from bank.read_state(namespace, [CREDITED + name for name in receipts])
    fresh = [
        receipt for receipt, mark in zip(receipts.values(), marks, strict=True) if mark is None
    ]
    named = list(dict.fromkeys(name for receipt in fresh for name in receipt.item_ids))
    content = yield from _notes(namespace, named)
    counted: dict[str, list[int]] = {}
    for receipt in fresh:
        for name in set(receipt.item_ids) & content.items.keys():
            counts = counted.setdefault(name, _counts(content, name))
            counts[0] += 1
            counts[1] += episode.succeeded
    changes: list[Change] = [
        Annotate(name, {USES: counted[name][0], SUCCESSES: counted[name][1]})
        for name in named
        if name in counted
    ]
    return [*changes, *(SetState(CREDITED + receipt.id, episode.id) for receipt in fresh)]


def _notes(namespace: bank.Namespace, names: Sequence[str]) -> Program[BankContent]:
    """Read some items with their notes."""
    if not names:
        return BankContent()
    results = yield [GetOp(namespace, bank.item_key(name)) for name in names]
    return bank.loaded(cast("Sequence[Item | None]", results))


def _counts(content: BankContent, name: str) -> list[int]:
    notes = content.notes.get(name, {})
    return [cast("int", notes.get(USES, 0)), cast("int", notes.get(SUCCESSES, 0))]
