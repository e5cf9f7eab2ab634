"""A bank: one provider's records in one exact namespace of a LangGraph store.

Every function that touches the store is a *program*: a generator that yields lists of
LangGraph `Op`s and is sent their results, so that the same logic runs under `store.batch`
and under `store.abatch` (see `langgraft._core.effects`).

A bank is the same bank wherever it is kept: what a record looks like depends on its content alone,
never on the store. One that some store would not give back as it was is sealed
(`langgraft._core.canonical.portable_record`).

What a process has of a bank it has once (`open_bank`), whichever providers, threads and tasks use it.
A provider may be made anew for every request: with all others over the same bank it shares one
lock and one set of indexes, so that it neither reads the bank again nor misses what they wrote.

Which bank is the same: that of one namespace in one store, seen through `ReadOnlyStore` and
`RankedStore` as well. Two store objects on one
database are two stores, as they are in two processes.

Where others may write too, a record in the bank says who wrote last, and how often it was written.
Reading it shows what became out of date. There is one writer of a bank at a time: in this process,
and, where a store allows it, beyond (`langgraft.memory.writers`).

Where others cannot be kept out, a writer that finds the record moved since its own last write raises
`BankConflictError` and writes nothing; the record is read once more right before a write. In Chroma
nobody can write between the two. In a store of your own, that time stays unseen.

A store may carry out a part of a batch and then fail. Where it may, what was there before is written
down first. The next writer puts it back, so that an episode is filed whole or not at all.
"""

import asyncio
import itertools
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final, TypeGuard, TypeVar, cast
from weakref import WeakValueDictionary

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore
from typing_extensions import override

from langgraft._core.canonical import JSON, portable_name, portable_record, unseal
from langgraft._core.confidential import without_secrets
from langgraft._core.effects import Call, PerStore, relay, run_in_thread
from langgraft._core.errors import BankConflictError, InputError, SettingsError
from langgraft._core.forks import renewed
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    Change,
    MemoryDelta,
    MemoryItem,
    Remove,
    SetState,
)
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.recall import field_of, item_of
from langgraft.memory.recall import ranked_items as ranked_items  # noqa: PLC0414  (documented here too)
from langgraft.memory.stores.corpora import Corpora, SharedIndexes
from langgraft.memory.stores.filters import passes
from langgraft.memory.stores.named import GuardedStore
from langgraft.memory.stores.programs import Address, Namespace, Program, Step, read_all
from langgraft.memory.stores.ranked import RankedStore
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.writers import (
    Fenced,
    OtherProcesses,
    OtherWriters,
    PutNew,
    other_writers,
)

T = TypeVar("T")
ItemT = TypeVar("ItemT", bound=Item)

INDEXED_FIELD: Final = "key"
"""Field of an item's record that rankers compare with a query; other records lack it."""
ORDER_FIELD: Final = "item.order_index"
"""Field of an item's record that decides between equals."""
DOMAIN_FIELD: Final = "item.source_domain"
"""Field of an item's record that tells its domain."""
TASK_FIELD: Final = "item.task_id"
"""Field of an item's record that tells the task it was learned on."""
PAGE: Final = 1000

RECORDS: Final = "langgraft-bank"
"""First and last label of the namespace that a bank's records are in."""

STAMP: Final = "stamp"
"""Key of the record that says who wrote last; no part of the content."""

BEFORE: Final = "before"
"""Key of the record that says what is being written over; no part of the content."""

WITHHELD: Final = "withheld/"
"""Prefix of the key under which a listing shows that there is a record which is not to be seen."""

_NOT_YET: Final = datetime.fromtimestamp(0, UTC)
"""Time of a record that is not written yet; nothing of ours reads it."""
_ITEM = "item/"
_STATE = "state/"


def records_namespace(namespace: Namespace) -> Namespace:
    """Return where the records of the bank in `namespace` are: by themselves.

    LangGraph searches by prefix. The reserved first label keeps a bank's records from whoever else
    searches in or above `namespace`, such as an application's own tools, and what they keep there from
    the bank; the last one keeps banks whose namespaces begin alike apart.

    Raises:
        SettingsError: LangGraph does not allow the namespace, or it holds the reserved label.
    """
    if isinstance(namespace, str) or not namespace:
        msg = f"a bank's namespace must be a tuple of at least one label, got {namespace!r}"
        raise SettingsError(msg)
    for label in namespace:
        if (
            not isinstance(label, str)
            or not label
            or {".", "\x00"} & set(label)
            or label.startswith(RECORDS)
        ):
            msg = (
                f"namespace {namespace!r} cannot hold the label {label!r}: labels are texts, not"
                f" empty, without periods and NUL, and do not start with {RECORDS!r}"
            )
            raise SettingsError(msg)
    if namespace[0] == "langgraph":
        msg = f"namespace {namespace!r} starts with 'langgraph', which LangGraph keeps to itself"
        raise SettingsError(msg)
    return (RECORDS, *namespace, RECORDS)


def bank_namespace(records: Namespace) -> Namespace:
    """Return the namespace of the bank whose records are in a namespace."""
    return records[1:-1]


def banks_under(namespace: Namespace) -> Namespace:
    """Return the prefix of the records of all banks in and below a namespace."""
    return (RECORDS, *namespace)


def item_key(identity: str) -> str:
    """Key of an item's record."""
    return _ITEM + portable_name(identity)


def state_key(key: str) -> str:
    """Key of a bookkeeping record."""
    return _STATE + portable_name(key)


def item_record(item: MemoryItem, notes: Mapping[str, JSON]) -> dict[str, Any]:
    """Value of an item's record."""
    return portable_record(
        {INDEXED_FIELD: item.retrieval_key, "item": item.to_json(), "notes": dict(notes)}
    )


def state_record(key: str, value: JSON) -> dict[str, Any]:
    """Value of a bookkeeping record, which names its key where the record's own key cannot."""
    named: dict[str, JSON] = {} if portable_name(key) == key else {"name": key}
    return portable_record({**named, "value": value})


def read_content(namespace: Namespace) -> Program[BankContent]:
    """Read all that a bank holds.

    Raises:
        InputError: The namespace holds records that are not a bank's.
        InfrastructureError: The store caps searches and did not list all records.
    """
    content = BankContent()
    for address, record in (yield from read_all(namespace, refresh_ttl=True)).items():
        if address[0] == namespace:
            _load(record, content)
    return content


def loaded(records: Iterable[Item | None]) -> BankContent:
    """Return what some records of a bank hold; `None` for those that are not there is passed over."""
    content = BankContent()
    for record in records:
        if record is not None:
            _load(record, content)
    return content


def _load(record: Item, content: BankContent) -> None:
    if record.key.startswith(_ITEM):
        item = item_of(record)
        content.items[item.id] = item
        if notes := field_of(record, "notes"):
            content.notes[item.id] = deepcopy(notes)
    elif record.key.startswith(_STATE):
        value = deepcopy(field_of(record, "value"))
        key = unseal(record.value).get("name", record.key.removeprefix(_STATE))
        content.state[key] = value
    elif record.key not in (STAMP, BEFORE) and not record.key.startswith(WITHHELD):
        msg = f"namespace {record.namespace} holds {record.key!r}, which is no bank's record"
        raise InputError(msg)


def read_state(namespace: Namespace, keys: Sequence[str]) -> Program[list[JSON]]:
    """Read bookkeeping values; `None` for those that are not set."""
    results = yield [GetOp(namespace, state_key(key)) for key in keys]
    records = cast("Sequence[Item | None]", results)
    # A copy: some stores hand out what they hold, and a provider may go on to fill it.
    return [None if record is None else deepcopy(field_of(record, "value")) for record in records]


def apply_delta(namespace: Namespace, delta: MemoryDelta) -> Program[None]:
    """Write a delta to the store in one batch.

    Raises:
        InputError: A change does not fit the bank; nothing is written then.
    """
    if delta:
        yield (yield from _writes(namespace, delta))


def as_if_applied(
    namespace: Namespace, delta: MemoryDelta, program: Program[T], ranker: Ranker | None
) -> Program[T]:
    """Run a program that sees the bank as a delta will leave it; nothing is written.

    Args:
        namespace: The bank.
        delta: What is to be written.
        program: Reads the bank.
        ranker: What orders the items of a search with a query, if anything of ours does.

    Raises:
        InputError: The program reads the bank, and a change does not fit it.
    """
    pending: dict[str, PutOp] = {}
    known = not delta
    ranked: list[RankedStore] = []

    def answer(step: Step) -> Program[list[Result]]:
        nonlocal known
        if isinstance(step, Sequence) and not known:  # most programs read nothing
            pending.update({op.key: op for op in (yield from _writes(namespace, delta))})
            known = True
        if not isinstance(step, Sequence) or not pending:
            return (yield step)
        asked = [op for op in step if not (is_pending(op) or _searches(op, namespace))]
        answers = iter((yield asked) if asked else ())
        results: list[Result] = []
        for op in step:
            if is_pending(op):
                results.append(_as_written(pending[op.key], Item))
            elif _searches(op, namespace):
                results.append((yield from search(op)))
            else:
                results.append(next(answers))
        return results

    def is_pending(op: Op) -> TypeGuard[GetOp]:
        return isinstance(op, GetOp) and op.namespace == namespace and op.key in pending

    def search(op: SearchOp) -> Program[list[SearchItem]]:
        if op.query and ranker is not None:
            ranked[:] = ranked or [ranked_store(InMemoryStore(), ranker)]
            # Its own store is not asked: each of its reads is answered here.
            (found,) = yield from relay(ranked[0].program([op]), answer)
            return cast("list[SearchItem]", found)
        listed = yield from read_all(op.namespace_prefix, refresh_ttl=op.refresh_ttl)
        held = [
            item
            for (there, key), item in listed.items()
            if there != namespace or key not in pending
        ]
        held += filter(None, (_as_written(write, SearchItem) for write in pending.values()))
        passing = [item for item in held if passes(item.value, op.filter)]
        return passing[op.offset : op.offset + op.limit]

    return (yield from relay(program, answer))


def _searches(op: Op, namespace: Namespace) -> TypeGuard[SearchOp]:
    """Say whether an operation looks for records of a bank."""
    if not isinstance(op, SearchOp):
        return False
    return tuple(op.namespace_prefix) == namespace[: len(op.namespace_prefix)]


def ranked_store(store: BaseStore, ranker: Ranker, **where: Any) -> RankedStore:
    """Return a store whose searches rank a bank's items."""
    return RankedStore(
        store,
        ranker,
        field=INDEXED_FIELD,
        heed_index=False,
        order_field=ORDER_FIELD,
        **where,
    )


def _as_written(write: PutOp, kind: Callable[..., ItemT]) -> ItemT | None:
    """Return the record that a write will make."""
    if write.value is None:
        return None
    return kind(
        namespace=write.namespace,
        key=write.key,
        value=deepcopy(write.value),
        created_at=_NOT_YET,
        updated_at=_NOT_YET,
    )


def _writes(namespace: Namespace, delta: MemoryDelta) -> Program[list[PutOp]]:
    """Say what a delta writes.

    Raises:
        InputError: A change does not fit the bank.
    """
    touched = list(dict.fromkeys(_item_ids(delta)))
    results = yield [GetOp(namespace, item_key(identity)) for identity in touched]
    content = loaded(cast("Sequence[Item | None]", results))
    states: dict[str, JSON] = {}
    for change in delta:
        if isinstance(change, SetState):
            states[change.key] = change.value
        else:
            content.apply(change)
    return [*_item_writes(namespace, touched, content), *_state_writes(namespace, states)]


def _item_ids(delta: MemoryDelta) -> Iterator[str]:
    for change in delta:
        match change:
            case Add(item):
                yield item.id
            case Remove(identity, _) | Annotate(identity, _):
                yield identity
            case SetState():
                pass


def _item_writes(
    namespace: Namespace, touched: Iterable[str], content: BankContent
) -> Iterator[PutOp]:
    for identity in touched:
        item = content.items.get(identity)
        value = None if item is None else item_record(item, content.notes.get(identity, {}))
        yield PutOp(namespace, item_key(identity), value, index=False)


def _state_writes(namespace: Namespace, states: Mapping[str, JSON]) -> Iterator[PutOp]:
    for key, value in states.items():
        record = None if value is None else state_record(key, value)
        yield PutOp(namespace, state_key(key), record, index=False)


def replace_content(namespace: Namespace, content: BankContent) -> Program[None]:
    """Make the store hold exactly `content`: a store is a cache that can be made anew."""
    present = yield from read_content(namespace)
    writes: list[Op] = []
    writes += _item_writes(namespace, (present.items | content.items), content)
    erased: dict[str, JSON] = dict.fromkeys(present.state)
    writes += _state_writes(namespace, erased | content.state)
    for start in range(0, len(writes), PAGE):
        yield writes[start : start + PAGE]


def present(namespace: Namespace, ids: Sequence[str]) -> Program[list[str]]:
    """Return those of `ids` that are items of the bank."""
    records = yield [GetOp(namespace, item_key(identity)) for identity in ids]
    return [name for name, record in zip(ids, records, strict=True) if record is not None]


def with_free_ids(namespace: Namespace, changes: Sequence[Change]) -> Program[Sequence[Change]]:
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


def _free_id(namespace: Namespace, identity: str) -> Program[str]:
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


_POLL_SECONDS: Final = 0.001
_POLL_OTHERS_SECONDS: Final = 0.005
_POLL_WRITER_SECONDS: Final = 0.02

PATIENCE_SECONDS: Final = 5.0
"""How long to wait, in a store without locks, for a writer that has begun a batch and not ended it."""

MOST_IDLE: Final = 128
"""Banks of a store whose indexes are kept while no provider has them open: the latest."""


class WriterLock:
    """Makes the reads and writes of one filing one step.

    Threads and tasks may use it together. A thread that runs an event loop must not wait in
    it for one of its own tasks, so a blocking wait there is refused instead of hanging.

    Args:
        others: A lock that other processes respect, if there is one.
    """

    def __init__(self, others: OtherProcesses | None = None) -> None:
        self._lock = renewed(threading.Lock())
        self._others = others

    @contextmanager
    def held(self, *, here: bool = False) -> Iterator[None]:
        """Hold the lock in a thread.

        Args:
            here: Hold it in this process alone.

        Raises:
            RuntimeError: It would have to wait inside a running event loop.
            InfrastructureError: The lock that other processes respect cannot be had.
        """
        others = None if here else self._others
        if not self._lock.acquire(blocking=False):
            _check_may_wait()
            self._lock.acquire()
        try:
            while others is not None and not others.attempt().result():
                _check_may_wait()
                time.sleep(_POLL_OTHERS_SECONDS)
            try:
                yield
            finally:
                if others is not None:
                    others.release().result()
        finally:
            self._lock.release()

    @asynccontextmanager
    async def aheld(self, *, here: bool = False) -> AsyncIterator[None]:
        """Hold the lock in a task, which may be canceled at any time."""
        others = None if here else self._others
        while not self._lock.acquire(blocking=False):  # noqa: ASYNC110
            # The holder may be a thread, which no `asyncio` primitive can wait for.
            await asyncio.sleep(_POLL_SECONDS)
        try:
            if others is not None:
                await _enter(others)
            try:
                yield
            finally:
                if others is not None:
                    # Given back even if the task is canceled; a blocking writer may be next.
                    await asyncio.shield(asyncio.wrap_future(others.release()))
        finally:
            self._lock.release()


async def _asleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def _check_may_wait() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    msg = (
        "memory is being written, and this thread runs an event loop that a wait would block:"
        " use the async method"
    )
    raise RuntimeError(msg)


async def _enter(others: OtherProcesses) -> None:
    """Wait for a lock; where nobody waits any more, what comes of the last attempt is given back.

    An attempt may open a file, or wait for a database: that is done in a thread.
    """

    def attempt() -> bool:
        return others.attempt().result()

    def give_back(got: bool) -> None:
        if got:
            others.release().result()

    while not await run_in_thread(attempt, discard=give_back):  # noqa: ASYNC110
        await asyncio.sleep(_POLL_OTHERS_SECONDS)


_WRITE_ALONE: Final = "nothing was written. Let one process write, or call `refresh` and file again"


class FilingStatus:
    """How the filings of a bank go, in this process: what to watch in production.

    Attributes:
        failed: Attempts that failed. A turn that fails is tried again, so one turn may count several times.
        last_error: The latest failure: its type and message, without secrets; empty: there was none.
    """

    def __init__(self) -> None:
        self.failed = 0
        self.last_error = ""
        self._pending: set[str] = set()

    @property
    def pending(self) -> int:
        """How many episodes are being filed, or wait to be tried again."""
        return len(self._pending)

    def begin(self, episode_id: str) -> None:
        """Count an episode as pending."""
        self._pending.add(episode_id)

    def end(self, episode_id: str) -> None:
        """Count it no longer: it is filed, or will never be."""
        self._pending.discard(episode_id)

    def fail(self, error: BaseException) -> None:
        """Count a failed attempt; the episode stays pending."""
        self.failed += 1
        self.last_error = f"{type(error).__name__}: {without_secrets(str(error))}"

    @override
    def __repr__(self) -> str:
        told = f"pending={self.pending}, failed={self.failed}, last_error={self.last_error!r}"
        return f"FilingStatus({told})"


class OpenBank:
    """One bank, as this process has it open.

    Attributes:
        alone: Nobody else writes to it, or the store tells the indexes what was written.
        lock: Who holds it is the bank's only writer.
        indexes: All that rank its items.
        filings: How the filings of applications go.
    """

    def __init__(self, namespace: Namespace, others: OtherWriters) -> None:
        self.filings = FilingStatus()
        self.lock = WriterLock(others.lock)
        self.indexes = SharedIndexes()
        self._namespace = namespace
        self.alone = others.alone
        self._detects_conflicts = not others.alone and others.lock is None
        self._fenced = others.fenced
        self._is_whole = others.whole
        self._tidy = others.whole is None
        self._name = uuid.uuid4().hex
        self._wrote = False
        self._looked = False
        self._seen: dict[str, Any] | None = None

    def refresh(self) -> None:
        """Forget what was read, and that others wrote."""
        self._wrote = False
        self.indexes.clear()

    def reading(self, program: Program[T]) -> Program[T]:
        """Run a program that sees what others have written; where there are none, it may run by itself."""
        yield from self._catch_up()
        return (yield from program)

    def writing(
        self, program: Program[T], corpora: Corpora | None = None, *, frozen: bool = False
    ) -> Program[T]:
        """Run a program that may write, under the lock; what it sees is as `reading` shows it.

        Args:
            program: The program.
            corpora: The indexes of the provider that writes, if it ranks.
            frozen: Nothing may be written, so that what was left half written stays.

        Raises:
            InputError: The directory of these indexes was closed.
            BankConflictError: Somebody who cannot be kept out writes too; nothing was written.
        """
        if not frozen:
            yield from self._tidy_up()
        seen = None if self.alone else (yield from self._catch_up())

        def answer(step: Step) -> Program[list[Result]]:
            nonlocal seen
            touched = list(_touched(step)) if isinstance(step, Sequence) else []
            if not touched:
                return (yield step)
            asked = cast("Sequence[Op]", step)
            ops, mine = asked, None
            if not self.alone:
                mine = {"number": (seen or {}).get("number", 0) + 1, "writer": self._name}
                stamp = PutOp(self._namespace, STAMP, mine, index=False)
                ops = [*ops, stamp]
                if self._fenced:
                    ops = Fenced(ops, stamp, seen)
            note = yield from self._note(touched, ops, corpora)
            if self._detects_conflicts:
                yield from self._check_alone(seen)
            with (corpora or self.indexes).writing(touched):
                results = yield ops
            if mine is not None:
                self._seen, self._wrote, seen = mine, True, mine
            if note is not None:
                if self._detects_conflicts and (yield from self._noted()) != note:
                    msg = "this write took so long that another writer has written over it"
                    raise self._conflict(msg, "call `refresh` and file again")
                yield [self._nothing_before]
                self._tidy = True
            return results[: len(asked)]

        return (yield from relay(program, answer))

    @property
    def _nothing_before(self) -> PutOp:
        return PutOp(self._namespace, BEFORE, None)

    def _note(
        self, touched: Sequence[Address], ops: Sequence[Op], corpora: Corpora | None
    ) -> Program[dict[str, Any] | None]:
        """Write down what is there before it is written over, where a part may be written.

        Raises:
            InputError: The directory of the indexes was closed; nothing was written down.
            BankConflictError: Somebody else is writing.
        """
        if corpora is not None:
            corpora.announce(frozenset())
        if self._is_whole is None or (not self._detects_conflicts and self._is_whole(ops)):
            return None
        places = list(dict.fromkeys(touched))
        held = cast("list[Item | None]", (yield [GetOp(*place) for place in places]))
        before = [
            [list(namespace), key, None if item is None else deepcopy(item.value)]
            for (namespace, key), item in zip(places, held, strict=True)
        ]
        note = {"writer": self._name, "token": uuid.uuid4().hex, "records": before}
        self._tidy = False
        (made,) = yield PutNew([PutOp(self._namespace, BEFORE, portable_record(note), index=False)])
        if cast("object", made) is False:
            raise self._conflict("another writer is writing to it at this moment")
        return note

    def _tidy_up(self) -> Program[None]:
        """Put back what was there before a write that broke off.

        Raises:
            BankConflictError: Somebody else is writing, and does not end.
        """
        if self._tidy and (self._is_whole is None or self.alone):
            return
        note = yield from self._noted()
        waited = 0.0
        while note is not None and self._detects_conflicts and note["writer"] != self._name:
            # Dead or slow: who is slow for that long may be written over.
            if waited >= PATIENCE_SECONDS:
                break
            yield Call(time.sleep, _asleep, _POLL_WRITER_SECONDS)
            last, note = note, (yield from self._noted())
            waited = waited + _POLL_WRITER_SECONDS if note == last else 0.0
        if note is not None:
            writes = [
                PutOp(tuple(namespace), key, value, index=False)
                for namespace, key, value in note["records"]
            ]
            with self.indexes.writing([(op.namespace, op.key) for op in writes]):
                yield writes
                if not self.alone:
                    stamp = yield from self._stamp()
                    mine = {"number": (stamp or {}).get("number", 0) + 1, "writer": self._name}
                    yield [PutOp(self._namespace, STAMP, mine, index=False)]
                yield [self._nothing_before]
            self.indexes.clear()
        self._tidy = True

    def _noted(self) -> Program[dict[str, Any] | None]:
        results = yield [GetOp(self._namespace, BEFORE)]
        record = cast("Item | None", results[0])
        return None if record is None else dict(unseal(record.value))

    def _conflict(self, why: str, advice: str = _WRITE_ALONE) -> BankConflictError:
        return BankConflictError(f"{why}; {advice}", namespace=self._namespace)

    def _check_alone(self, seen: dict[str, Any] | None) -> Program[None]:
        """Refuse to write after somebody else."""
        stamp = yield from self._stamp()
        if stamp != seen or (self._wrote and (stamp or {}).get("writer") != self._name):
            yield [self._nothing_before]
            self._tidy = True
            who = f"writer {stamp['writer'][:8]}" if stamp else "somebody who emptied it"
            why = f"{who} wrote to it since this process did, and the store offers no lock"
            raise self._conflict(why)

    def _catch_up(self) -> Program[dict[str, Any] | None]:
        """Read who wrote last, and forget what was read before."""
        stamp = yield from self._stamp()
        # What is written here, all indexes hear of.
        own = stamp is not None and stamp["writer"] == self._name
        if self._looked and stamp != self._seen and not own:
            self.indexes.clear()
        self._looked, self._seen = True, stamp
        return stamp

    def _stamp(self) -> Program[dict[str, Any] | None]:
        results = yield [GetOp(self._namespace, STAMP)]
        record = cast("Item | None", results[0])
        return None if record is None else dict(record.value)


def _touched(ops: Iterable[Op]) -> Iterator[Address]:
    """Yield the records that operations write."""
    for op in ops:
        if isinstance(op, PutOp):
            yield tuple(op.namespace), op.key


class _Banks:
    """The banks of one store: those in use, and the latest."""

    def __init__(self) -> None:
        self._lock = renewed(threading.Lock())
        self._open: WeakValueDictionary[Hashable, OpenBank] = WeakValueDictionary()
        self._latest: dict[Hashable, OpenBank] = {}

    def of(self, key: Hashable, make: Callable[[], OpenBank]) -> OpenBank:
        with self._lock:
            bank = self._open.get(key) or make()
            self._open[key] = bank
            self._latest.pop(key, None)
            self._latest[key] = bank
            while len(self._latest) > MOST_IDLE:
                del self._latest[next(iter(self._latest))]
            return bank

    def let_go(self, key: Hashable) -> None:
        with self._lock:
            self._latest.pop(key, None)


_BANKS: Final = PerStore(_Banks)


def open_bank(store: BaseStore, namespace: Namespace) -> OpenBank:
    """Return what this process has of a bank.

    Args:
        store: The store, in whatever it is wrapped.
        namespace: The exact namespace of the bank's records.
    """
    kept = _innermost(store)
    return _BANKS.of(kept).of(
        namespace, lambda: OpenBank(namespace, other_writers(kept, namespace))
    )


def let_go(store: BaseStore, namespace: Namespace) -> None:
    """Keep nothing of a bank, unless a provider has it open."""
    _BANKS.of(_innermost(store)).let_go(namespace)


def _innermost(store: BaseStore) -> BaseStore:
    while isinstance(store, RankedStore | ReadOnlyStore | GuardedStore):
        store = store.store
    return store
