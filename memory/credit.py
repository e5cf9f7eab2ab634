"""Credit: how recalled items did, counted once per receipt.

An episode carries the receipts of what its agent was given. When it is filed, each item on a
receipt gets one more use, and one more success where the episode reached its goal. A mark in the
bank says that the receipt took effect, so that it counts once however many episodes carry it:
branches of a search may share one recall.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, cast

from langgraph.store.base import GetOp, Item

from langgraft.memory import bank
from langgraft.memory.deltas import Annotate, BankContent, Change, SetState
from langgraft.memory.episodes import Episode
from langgraft.memory.forgetting import SUCCESSES, USES
from langgraft.memory.recall import Receipt
from langgraft.memory.stores.drive import Program

CREDITED: Final = "credited/"
"""Bookkeeping: prefix of the marks of receipts that took effect."""


def credit(namespace: bank.Namespace, episode: Episode) -> Program[list[Change]]:
    """Say what an episode's receipts change.

    =====================================  ==================================================
    receipt                                counts
    =====================================  ==================================================
    of an episode that succeeded           a use and a success for each item
    of one that failed                     a use for each item
    of one that nobody could judge         nothing, so that another episode that carries it
                                           still can: a use alone would be held against what
                                           may have helped
    some of whose items have gone          for the others
    of which the bank holds no item        nothing, and leaves no mark: it is another bank's
    =====================================  ==================================================
    """
    if episode.outcome.success is None:
        return []
    receipts = yield from _fresh(namespace, episode)
    content = yield from _held(namespace, receipts)
    uses = Counter(
        name
        for receipt in receipts
        for name in dict.fromkeys(receipt.item_ids)
        if name in content.items
    )
    return [
        *(_counted(content, name, new, succeeded=episode.succeeded) for name, new in uses.items()),
        *(
            SetState(CREDITED + receipt.id, episode.id)
            for receipt in receipts
            if not content.items.keys().isdisjoint(receipt.item_ids)
        ),
    ]


def _fresh(namespace: bank.Namespace, episode: Episode) -> Program[list[Receipt]]:
    """List the receipts that have not taken effect, each once."""
    receipts = {receipt.id: receipt for receipt in episode.recalls if receipt.item_ids}
    if not receipts:
        return []
    marks = yield from bank.read_state(namespace, [CREDITED + name for name in receipts])
    return [receipt for receipt, mark in zip(receipts.values(), marks, strict=True) if mark is None]


def _held(namespace: bank.Namespace, receipts: Sequence[Receipt]) -> Program[BankContent]:
    """Read those items of receipts that the bank holds, with their notes."""
    names = dict.fromkeys(name for receipt in receipts for name in receipt.item_ids)
    if not names:
        return BankContent()
    results = yield [GetOp(namespace, bank.item_key(name)) for name in names]
    return bank.loaded(cast("Sequence[Item | None]", results))


def _counted(content: BankContent, name: str, new: int, *, succeeded: bool) -> Annotate:
    notes = content.notes.get(name, {})
    uses = cast("int", notes.get(USES, 0)) + new
    successes = cast("int", notes.get(SUCCESSES, 0)) + (new if succeeded else 0)
    return Annotate(name, {USES: uses, SUCCESSES: successes})
