"""What a store of ours can tell beside its records: which of them were written, since when, by whomever.

An index that knows as of which moment it is reads again what was written since, and nothing else:
after another process wrote, and after a restart, however the last process ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from langgraph.store.base import BaseStore

from langgraft._core.canonical import JSON
from langgraft.memory.stores.kept_indexes import IndexFolder
from langgraft.memory.stores.programs import Address, Namespace, Program


class Changes(NamedTuple):
    """What was written under a prefix since a moment."""

    as_of: JSON
    """This moment, as the store knows it; `None` at no moment."""
    addresses: Sequence[Address] | None
    """Of records that were written or deleted; `None`: the store cannot tell."""


@runtime_checkable
class ChangeLog(Protocol):
    """A store that tells what was written to it, in this process and others.

    Attributes:
        indexes: Where indexes of its records are kept.
    """

    indexes: IndexFolder

    def changes(self, prefix: Namespace, since: JSON) -> Changes:
        """Tell what was written under a prefix since a moment; `None`: at no moment, ask for now."""
        ...

    async def achanges(self, prefix: Namespace, since: JSON) -> Changes:
        """Do as `changes` does, asynchronously."""
        ...

    def forget_deleted(self, prefix: Namespace) -> None:
        """Keep no trace of records that were deleted under a prefix, under which there are none."""
        ...


@dataclass(frozen=True, slots=True)
class _Asked:
    """An effect: a store is asked what was written."""

    log: ChangeLog
    prefix: Namespace
    since: JSON

    def do(self) -> Changes:
        return self.log.changes(self.prefix, self.since)

    async def ado(self) -> Changes:
        return await self.log.achanges(self.prefix, self.since)


def changes(log: ChangeLog, prefix: Namespace, since: JSON) -> Program[Changes]:
    """Ask a store what was written under a prefix since a moment."""
    answer: object = yield _Asked(log, prefix, since)
    assert isinstance(answer, Changes)
    return answer


def change_log(store: BaseStore) -> ChangeLog | None:
    """Return who tells what was written to a store, in whatever it is wrapped, if anybody does."""
    while not isinstance(store, ChangeLog):
        inner = getattr(store, "store", None)
        if not isinstance(inner, BaseStore):
            return None
        store = inner
    return store
