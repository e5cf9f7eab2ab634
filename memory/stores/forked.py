"""Stores that leave another one as it is: one that only reads it, and one that goes its own way."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Final, TypeAlias, TypeVar, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langgraft._core.arguments import checked
from langgraft._core.effects import acarry_out, adrive, carry_out, drive
from langgraft._core.errors import InputError, ReadOnlyStoreError, SettingsError
from langgraft.memory.stores.programs import Address, Namespace, Program, read_all

FORK: Final = "langgraft-fork"
"""First label of the namespaces, in the overlay, that tombstones are in."""

_PAGE: Final = 10_000
"""Namespaces, or records of one, asked for at a time."""

_CREATED: Final = "created_at"

ItemT = TypeVar("ItemT", bound=Item)

_Tombstones: TypeAlias = Mapping[Address, str | None]
"""Records of the base that no longer count; where one was rewritten, when it was created."""


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


class ForkedStore(BaseStore):
    """A copy of `base` that is made at once and costs only what is changed in it.

    ```python
    fork = ForkedStore(bank, InMemoryStore())
    fork.put(("ada",), "m1", {"text": "only the fork knows"})
    fork.delete(("ada",), "m2")  # still in `bank`
    ```

    * Writes and deletions go to the overlay. `base` is read and never written; reading does not
      prolong the life of its records either. It should not be written by others meanwhile:
      what they change shows in the fork where the fork did not change it.
    * That a record of the base was deleted or rewritten is kept in the overlay as well, as a
      tombstone in a namespace of its own, which no search or listing shows and no write may
      touch. A fork opened again on the same two stores is therefore the same fork.
    * A rewritten record keeps the time it was created at. One that was written with a time to
      live and expires does not bring the base's record back.
    * A search without a query lists the base's records before the overlay's. With one, both
      stores are asked and their results merged by score, which means something if they score
      alike. For exact rankings over a fork put the ranker outside:
      `RankedStore(ForkedStore(base, overlay), ranker)`.
    * Within a batch, reads see the state before it; all that it writes is one batch of the
      overlay. A write also costs a read of the base. A search reads all tombstones under its
      prefix.

    A fork may be the base of another one, and any number of forks may share a base.

    Args:
        base: What the fork starts as.
        overlay: Where its changes go: an empty store, or the overlay of a fork of `base`.

    Attributes:
        base: As given.
        overlay: As given.

    Raises:
        SettingsError: One of the two is no store, or both are the same.
    """

    @checked
    def __init__(self, base: BaseStore, overlay: BaseStore) -> None:
        if base is overlay:
            msg = "base and overlay are the same store, so that a fork would change its base"
            raise SettingsError(msg)
        self.base = base
        self.overlay = overlay
        self.supports_ttl = overlay.supports_ttl
        self.ttl_config = overlay.ttl_config
        self._stores = _TwoStores(base, overlay)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; results come in their order.

        Raises:
            InputError: A write is to a namespace kept for tombstones, or an operation is none;
                nothing was written.
            InfrastructureError: The overlay caps searches and did not list all tombstones.
        """
        return drive(self._batch(ops), self._stores)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; results come in their order.

        Raises:
            InputError: A write is to a namespace kept for tombstones, or an operation is none;
                nothing was written.
            InfrastructureError: The overlay caps searches and did not list all tombstones.
        """
        return await adrive(self._batch(ops), self._stores)

    def _batch(self, ops: Iterable[Op]) -> Program[list[Result]]:
        operations = list(ops)
        writes = _writes(operations)
        found = yield from _get([op for op in operations if isinstance(op, GetOp)])
        results: list[Result] = []
        for op in operations:
            match op:
                case GetOp():
                    results.append(next(found))
                case SearchOp():
                    results.append((yield from self._search(op)))
                case ListNamespacesOp():
                    results.append((yield from _list_namespaces(op)))
                case PutOp():
                    results.append(None)
                case _:
                    msg = f"a fork carries out GetOp, PutOp, SearchOp, ListNamespacesOp; got {op!r}"
                    raise InputError(msg)
        if writes:
            yield from _write(writes)
        return results

    def _search(self, op: SearchOp) -> Program[list[SearchItem]]:
        """Search both stores and merge what they return."""
        start = max(op.offset, 0)
        stop = start + max(op.limit, 0)
        prefix = tuple(op.namespace_prefix)
        if stop == start or _reserved(prefix):
            return []
        op = op._replace(namespace_prefix=prefix)
        tombstones = yield from _tombstones(prefix)
        above: dict[Address, SearchItem] = {}
        for root in (yield from _roots(prefix)):
            above |= yield from _search_one(
                _FOR_OVERLAY, op._replace(namespace_prefix=root), stop, hidden=()
            )
        below = yield from _search_one(_ForBase, op, stop, hidden=tombstones.keys() | above)
        own = {address: _created(item, tombstones.get(address)) for address, item in above.items()}
        ranked = sorted([*below.items(), *own.items()], key=lambda entry: _place(entry[1]))
        ranked = ranked[start:stop]
        again = [address for address, _ in ranked if address in own]
        if op.refresh_ttl and self.supports_ttl and again:
            yield [GetOp(*address, refresh_ttl=True) for address in again]
        return [item for _, item in ranked]


class _ForBase(tuple[Op, ...]):
    """Operations for the base; a sequence of any other type is for the overlay."""

    __slots__ = ()


_Side: TypeAlias = Callable[[Sequence[Op]], Sequence[Op]]
"""Says which of the two stores operations are for."""

_FOR_OVERLAY: Final[_Side] = list


class _TwoStores(BaseStore):
    """Hands each batch of a program to the store it is for."""

    def __init__(self, base: BaseStore, overlay: BaseStore) -> None:
        self._base = base
        self._overlay = overlay

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return carry_out(self._of(ops), ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await acarry_out(self._of(ops), ops)

    def _of(self, ops: Iterable[Op]) -> BaseStore:
        return self._base if isinstance(ops, _ForBase) else self._overlay


def _writes(ops: Sequence[Op]) -> Mapping[Address, PutOp]:
    """Return the last write of each record."""
    writes: dict[Address, PutOp] = {}
    for op in ops:
        if not isinstance(op, PutOp):
            continue
        namespace = tuple(op.namespace)
        if _reserved(namespace):
            msg = (
                f"namespace {namespace!r} starts with {FORK!r}, where a fork keeps what was"
                " deleted in it; write to another namespace"
            )
            raise InputError(msg)
        writes[namespace, op.key] = op
    return writes


def _get(ops: Sequence[GetOp]) -> Program[Iterator[Item | None]]:
    """Read records, in the order of the operations."""
    asked = [op._replace(namespace=tuple(op.namespace)) for op in ops]
    if not asked:
        return iter(())
    addresses = [(op.namespace, op.key) for op in asked]
    results = yield [*asked, *(_stone(address) for address in addresses)]
    items = cast("list[Item | None]", results[: len(asked)])
    stones = cast("list[Item | None]", results[len(asked) :])
    open_places = [i for i in range(len(asked)) if items[i] is None and stones[i] is None]
    if open_places:
        below = yield _ForBase(GetOp(*addresses[i], refresh_ttl=False) for i in open_places)
        for i, item in zip(open_places, below, strict=True):
            items[i] = cast("Item | None", item)
    for i, (item, stone) in enumerate(zip(items, stones, strict=True)):
        if _reserved(addresses[i][0]):
            items[i] = None
        elif item is not None and stone is not None:
            items[i] = _created(item, stone.value[_CREATED])
    return iter(items)


def _write(writes: Mapping[Address, PutOp]) -> Program[None]:
    """Write to the overlay, with a tombstone for each record of the base that is concerned."""
    kept = yield [
        *(GetOp(*address, refresh_ttl=False) for address in writes),
        *(_stone(address) for address in writes),
    ]
    present, stones = kept[: len(writes)], kept[len(writes) :]
    unmarked = [address for address, stone in zip(writes, stones, strict=True) if stone is None]
    below: dict[Address, Result] = {}
    if unmarked:
        items = yield _ForBase(GetOp(*address, refresh_ttl=False) for address in unmarked)
        below = dict(zip(unmarked, items, strict=True))
    ops: list[Op] = []
    for (address, op), item, stone in zip(writes.items(), present, stones, strict=True):
        base = cast("Item | None", below.get(address))
        if op.value is not None:
            ops.append(op)
            if base is not None:
                ops.append(_tombstone(address, base.created_at.isoformat()))
            continue
        if item is not None:
            ops.append(op)
        if base is not None or stone is not None:
            ops.append(_tombstone(address, None))
    if ops:
        yield ops


def _roots(prefix: Namespace) -> Program[Sequence[Namespace]]:
    """Return prefixes of the overlay that cover what is under `prefix` and no tombstone.

    A tombstone has none of the fields a filter names, and some stores cannot compare those.
    """
    if prefix:
        return [prefix]
    listed = yield from _list_all(_FOR_OVERLAY, ListNamespacesOp(max_depth=1, limit=_PAGE))
    return sorted({name[:1] for name in listed})


def _search_one(
    side: _Side, op: SearchOp, enough: int, *, hidden: Collection[Address]
) -> Program[dict[Address, SearchItem]]:
    """Return the first `enough` results of one store that are not hidden.

    A page may be short because the store caps pages: the end is where nothing new comes.
    """
    found: dict[Address, SearchItem] = {}
    seen: set[Address] = set()
    request = op._replace(limit=enough + len(hidden), offset=0, refresh_ttl=False)
    while len(found) < enough:
        page = cast("Sequence[SearchItem]", (yield side([request]))[0])
        fresh = {_address(item): item for item in page}
        if fresh.keys() <= seen:
            break
        found |= {
            address: item
            for address, item in fresh.items()
            if address not in seen and address not in hidden and not _reserved(address[0])
        }
        seen |= fresh.keys()
        request = request._replace(offset=request.offset + len(page))
    return dict(list(found.items())[:enough])


def _list_namespaces(op: ListNamespacesOp) -> Program[list[Namespace]]:
    """List the namespaces that hold a record of the fork."""
    request = op._replace(max_depth=None, limit=_PAGE, offset=0)
    below = yield from _list_all(_ForBase, request)
    above = yield from _list_all(_FOR_OVERLAY, request)
    hidden = (yield from _tombstones(())).keys()
    changed = {namespace for namespace, _ in hidden}
    kept: set[Namespace] = set()
    for namespace in below:
        if namespace not in changed or (yield from _inhabited(_ForBase, namespace, hidden)):
            kept.add(namespace)
    for namespace in above - kept:
        # `InMemoryStore` lists namespaces that were only looked at, or that are empty by now.
        if (yield from _inhabited(_FOR_OVERLAY, namespace, ())):
            kept.add(namespace)
    cut = sorted({namespace[: op.max_depth] for namespace in kept})
    return cut[op.offset : op.offset + op.limit]


def _list_all(side: _Side, request: ListNamespacesOp) -> Program[set[Namespace]]:
    """List all namespaces of one store, tombstones' apart."""
    listed: set[Namespace] = set()
    while True:
        page = cast("Sequence[Namespace]", (yield side([request]))[0])
        names = {tuple(name) for name in page}
        if names <= listed:
            return {name for name in listed if not _reserved(name)}
        listed |= names
        request = request._replace(offset=request.offset + len(page))


def _inhabited(side: _Side, namespace: Namespace, hidden: Collection[Address]) -> Program[bool]:
    """Say whether a namespace holds, itself, a record that is not hidden."""
    request = SearchOp(namespace, limit=1 + len(hidden), refresh_ttl=False)
    while page := cast("Sequence[SearchItem]", (yield side([request]))[0]):
        addresses = [_address(item) for item in page]
        if any(at[0] == namespace and at not in hidden for at in addresses):
            return True
        request = request._replace(offset=request.offset + len(page), limit=_PAGE)
    return False


def _tombstones(prefix: Namespace) -> Program[_Tombstones]:
    """Read all tombstones of records under a prefix."""
    stones = yield from read_all((FORK, *prefix))
    return {
        (namespace[1:], key): stone.value[_CREATED] for (namespace, key), stone in stones.items()
    }


def _tombstone(address: Address, created: str | None) -> PutOp:
    namespace, key = address
    return PutOp((FORK, *namespace), key, {_CREATED: created}, index=False)


def _stone(address: Address) -> GetOp:
    namespace, key = address
    return GetOp((FORK, *namespace), key, refresh_ttl=False)


def _reserved(namespace: Namespace) -> bool:
    return namespace[:1] == (FORK,)


def _address(item: Item) -> Address:
    return tuple(item.namespace), item.key


def _created(item: ItemT, created: str | None) -> ItemT:
    """Return an item of the overlay with the time its record was created at in the base."""
    if created is None:
        return item
    twin = copy(item)  # the overlay may have handed out what it holds
    twin.created_at = datetime.fromisoformat(created)
    return twin


def _place(item: SearchItem) -> tuple[bool, float]:
    """Sort by score, results without one last."""
    return item.score is None, -(item.score or 0.0)
