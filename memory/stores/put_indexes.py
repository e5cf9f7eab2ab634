"""What puts said of how their records are found, kept beside the records.

LangGraph's stores act on `PutOp.index` and do not tell it again, but a ranked store needs it
whenever it reads a record, after a restart too. So it is a record of its own in the same store:
under the same key, in a namespace of its own, and only for puts that say an `index`. Records are
what they were, for everybody who reads them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langgraft._core.errors import InputError
from langgraft.memory.stores.programs import Address, Namespace, Program, read_all

INDEX: Final = "langgraft-index"
"""First label of the namespaces in which what puts said is kept."""


PutIndex: TypeAlias = bool | Sequence[str] | None
"""`False`: not to be found; paths of the texts it is found by; `None`: the store's own."""

_SAID: Final = "index"
_ALL: Final = 1_000_000
"""Namespaces listed at a time."""


class PutIndexes:
    """Writes down what puts say, and keeps it out of sight."""

    def __init__(self) -> None:
        self._any: bool | None = None

    @property
    def none(self) -> bool:
        """Whether no put is known to have said anything."""
        return self._any is False

    def forget(self) -> None:
        """Look again whether anything is kept: others may have written."""
        self._any = None

    def carry_out(self, ops: Sequence[Op]) -> Program[list[Result]]:
        """Hand operations on, with what their puts say about an index.

        Raises:
            InputError: An `index` is neither `False` nor paths, or a put is to a namespace kept
                for this; nothing was written.
        """
        puts = [op for op in ops if isinstance(op, PutOp)]
        for op in puts:
            _check(op)
        said = [_beside(op) for op in puts]
        if any(op.value is not None for op in said):
            self._any = True
        lists = [op for op in ops if _lists_all(op)]
        if self._any is None and (puts or lists):
            found = yield [SearchOp((INDEX,), limit=1, refresh_ttl=False)]
            self._any = bool(found[0])
        if not self._any:
            return (yield ops)
        more = (yield from _hidden()) if lists else 0
        wide = [_widened(op, more) if _lists_all(op) else op for op in ops]
        results = yield [*wide, *said]
        return [
            _shown(op, result) if _lists_all(op) else result
            for op, result in zip(ops, results, strict=False)
        ]


def read_indexes(
    prefix: Namespace, undisturbed: Callable[[], bool]
) -> Program[Mapping[Address, PutIndex]]:
    """Read what was said about the records under a prefix, of those of which something was."""
    items = yield from read_all((INDEX, *prefix), undisturbed=undisturbed)
    return {(address[0][1:], address[1]): _said(item) for address, item in items.items()}


def read_with_indexes(
    addresses: Sequence[Address],
) -> Program[list[tuple[Item | None, PutIndex]]]:
    """Read records with what was said about each."""
    found = yield [
        *(GetOp(*address, refresh_ttl=False) for address in addresses),
        *(GetOp((INDEX, *namespace), key, refresh_ttl=False) for namespace, key in addresses),
    ]
    items = cast("list[Item | None]", found)
    half = len(addresses)
    return [
        (item, None if said is None else _said(said))
        for item, said in zip(items[:half], items[half:], strict=True)
    ]


def is_reserved(namespace: Namespace) -> bool:
    """Say whether a namespace is one of those kept for this."""
    return namespace[:1] == (INDEX,)


def _said(item: Item) -> PutIndex:
    return cast("PutIndex", item.value[_SAID])


def _check(op: PutOp) -> None:
    if is_reserved(op.namespace):
        msg = (
            f"namespace {op.namespace!r} starts with {INDEX!r}, where a ranked store keeps what"
            " `index` of puts said; write to another namespace"
        )
        raise InputError(msg)
    index: Any = op.index
    listed = isinstance(index, list | tuple) and all(isinstance(path, str) for path in index)
    if not (index is None or index is False or listed):
        msg = f"`index` of a put is False or a list of paths, got {index!r:.80} for {op.key!r:.80}"
        raise InputError(msg)


def _beside(op: PutOp) -> PutOp:
    """Return the put that keeps what another one says, or forgets what an earlier one said."""
    silent = op.value is None or op.index is None
    said = None if silent else {_SAID: op.index if op.index is False else list(op.index or ())}
    return PutOp((INDEX, *op.namespace), op.key, said, index=False)


def _lists_all(op: Op) -> bool:
    return isinstance(op, ListNamespacesOp) or (
        isinstance(op, SearchOp) and not op.namespace_prefix
    )


def _hidden() -> Program[int]:
    """Count what a listing of everything would show too much, at most."""
    kept = yield from read_all((INDEX,))
    labels = (MatchCondition("prefix", (INDEX,)),)
    namespaces = yield [ListNamespacesOp(labels, limit=_ALL)]
    return max(len(kept), len(cast("Sequence[Namespace]", namespaces[0])))


def _widened(op: Op, more: int) -> Op:
    listing = cast("SearchOp | ListNamespacesOp", op)
    return listing._replace(limit=max(listing.offset, 0) + max(listing.limit, 0) + more, offset=0)


def _shown(op: Op, result: Result) -> Result:
    """Cut a listing to what was asked for."""
    listing = cast("SearchOp | ListNamespacesOp", op)
    start = max(listing.offset, 0)
    found = cast("list[SearchItem] | list[Namespace]", result)
    shown = [
        each
        for each in found
        if not is_reserved(tuple(each if isinstance(each, tuple) else each.namespace))
    ]
    return cast("Result", shown[start : start + max(listing.limit, 0)])
