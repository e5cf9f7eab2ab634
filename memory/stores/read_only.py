"""A store that only reads another one."""

from collections.abc import Iterable

from langgraph.store.base import BaseStore, GetOp, Op, PutOp, Result, SearchOp

from langgraft._core.arguments import checked
from langgraft._core.effects import acarry_out, carry_out
from langgraft._core.errors import ReadOnlyStoreError


class ReadOnlyStore(BaseStore):
    """Pass reads to another store and refuse writes: what evaluation on a frozen bank uses.

    Reads do not refresh times to live either: that would be a write.

    Attributes:
        store: The store that is read.
    """

    @checked
    def __init__(self, store: BaseStore) -> None:
        self.store = store
        self.supports_ttl = store.supports_ttl
        self.ttl_config = store.ttl_config

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Read in one batch.

        Raises:
            ReadOnlyStoreError: A put or a deletion is among `ops`; none of them was carried out.
        """
        return carry_out(self.store, _reads(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Read in one batch.

        Raises:
            ReadOnlyStoreError: A put or a deletion is among `ops`; none of them was carried out.
        """
        return await acarry_out(self.store, _reads(ops))


def _reads(ops: Iterable[Op]) -> list[Op]:
    """Return `ops` if all of them leave the store as it is."""
    reads: list[Op] = []
    for op in ops:
        if isinstance(op, PutOp):
            verb = "delete" if op.value is None else "put"
            msg = (
                f"this store is read-only: refused to {verb} {op.key!r} in namespace "
                f"{tuple(op.namespace)!r}; write to the store it wraps instead"
            )
            raise ReadOnlyStoreError(msg)
        reads.append(op._replace(refresh_ttl=False) if isinstance(op, GetOp | SearchOp) else op)
    return reads
