"""Names of items in a bank: which are taken, and names for those that are not free."""

import itertools
from collections.abc import Mapping, Sequence

from langgraph.store.base import GetOp

from langgraft.memory import bank
from langgraft.memory.deltas import Add, Annotate, Change, Remove
from langgraft.memory.stores.drive import Program


def present(namespace: bank.Namespace, ids: Sequence[str]) -> Program[list[str]]:
    """Return those of `ids` that are items of the bank."""
    records = yield [GetOp(namespace, bank.item_key(identity)) for identity in ids]
    return [name for name, record in zip(ids, records, strict=True) if record is not None]


def with_free_ids(
    namespace: bank.Namespace, changes: Sequence[Change]
) -> Program[Sequence[Change]]:
    """Give new items other ids where imported ones already have theirs.

    An item is named after its episode, and a bank that was imported may hold items of an
    episode of that name: `e/lesson-0` becomes `e/lesson-0~2`.
    """
    removed = {change.id for change in changes if isinstance(change, Remove)}
    added = {change.item.id for change in changes if isinstance(change, Add)}
    taken = yield from present(namespace, sorted(added - removed))
    free: dict[str, str] = {}
    for identity in taken:
        free[identity] = yield from _free_id(namespace, identity)
    return [_renamed(change, free) for change in changes] if free else changes


def _free_id(namespace: bank.Namespace, identity: str) -> Program[str]:
    for number in itertools.count(2):
        candidate = f"{identity}~{number}"
        if not (yield from present(namespace, [candidate])):
            return candidate
    raise AssertionError  # the count does not end


def _renamed(change: Change, names: Mapping[str, str]) -> Change:
    match change:
        case Add(item) if item.id in names:
            return Add(item.model_copy(update={"id": names[item.id]}))
        case Annotate(identity, notes) if identity in names:
            return Annotate(names[identity], notes)
    return change
