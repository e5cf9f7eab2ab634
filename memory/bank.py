"""A bank: one provider's records in one exact namespace of a LangGraph store.

Every function that touches the store is a *program*: a generator that yields lists of
LangGraph `Op`s and is sent their results, so that the same logic runs under `store.batch`
and under `store.abatch` (see `langgraft.memory.stores.drive`).

A bank is the same bank wherever it is kept. PostgreSQL's `jsonb` refuses the character NUL,
returns whole floats from 1e16 on as integers and -0.0 as 0.0; its keys hold no NUL and end at a
few thousand bytes. LangGraph's SQLite store refuses integers beyond 64 bits. So a record that
would not come back as it was is *sealed*: its JSON, in ASCII, goes along as one text, from which
it is read again. Every other record is plain fields. What a record looks like depends on its
content alone, never on the store.
"""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar, cast

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON, text_digest
from langgraft._core.effects import relay
from langgraft._core.errors import InputError, SettingsError
from langgraft.memory.deltas import (
    Add,
    Annotate,
    BankContent,
    Change,
    MemoryDelta,
    MemoryItem,
    Remove,
    SetState,
)
from langgraft.memory.embedders.base import EmbeddingRequest
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.recall import Found
from langgraft.memory.stores.drive import Namespace, Program, Step
from langgraft.memory.stores.filters import passes
from langgraft.memory.stores.paging import read_all
from langgraft.memory.stores.ranked import RankedStore

T = TypeVar("T")
ItemT = TypeVar("ItemT", bound=Item)

Filter: TypeAlias = dict[str, Any]
"""A LangGraph filter over an item's record, such as `{"item.source_domain": "math"}`."""

INDEXED_FIELD: Final = "key"
"""Field of an item's record that rankers compare with a query; other records lack it."""
ORDER_FIELD: Final = "item.order_index"
"""Field of an item's record that decides between equals."""
DOMAIN_FIELD: Final = "item.source_domain"
"""Field of an item's record that tells its domain."""
TASK_FIELD: Final = "item.task_id"
"""Field of an item's record that tells the task it was learned on."""
PAGE: Final = 1000

_WIDENING: Final = 16
"""How much further each next look at a tie goes: most are small, or a good part of the bank."""
RECORDS: Final = "langgraft-bank"
"""Last label of the namespace that a bank's records are in."""

STAMP: Final = "stamp"
"""Key of the record that says who wrote last; no part of the content."""

SEALED: Final = "sealed"
"""Field of a record that holds the JSON of all it stands for."""

_NAME_BYTES: Final = 1000
"""Longest name that is a key as it is. A row of PostgreSQL's index ends at 2,704 bytes, and
shares them with the namespace."""

_DIGEST: Final = "sha256:"

_UNUSUAL: Final = re.compile(r"\\u0000|\d{19}|\d[eE]|-0")
"""What JSON shows of each value that some store does not give back, and of some that all do."""

_STANDS_FOR_NUL: Final = "\ufffd"
_NOT_YET: Final = datetime.fromtimestamp(0, UTC)
"""Time of a record that is not written yet; nothing of ours reads it."""
_ITEM = "item/"
_STATE = "state/"


def records_namespace(namespace: Namespace) -> Namespace:
    """Return where the records of the bank in `namespace` are: right below it, by themselves.

    LangGraph searches by prefix. The reserved last label keeps whatever else lies in, above or
    below `namespace`, other banks included, out of the corpus that is ranked.

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
    return (*namespace, RECORDS)


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


def item_of(record: Item) -> MemoryItem:
    """Return the item a record holds."""
    return MemoryItem.from_json(unseal(record.value)["item"])


def ranked_items(
    namespace: Namespace, query: str, limit: int, *, where: Filter | None = None
) -> Program[Found]:
    """Find the best `limit` items of a bank that match `query`.

    Where the store does not tell how many share the best score, the search looks on until the
    score changes.

    Args:
        namespace: The bank.
        query: What to compare with the keys.
        limit: How many to return.
        where: Which items may be found; `None`: all. It changes neither the scores nor the corpus
            they are computed over.
    """
    if not query.strip():
        return Found()  # LangGraph reads a search without a query as a listing, unranked
    width = limit
    while True:
        results = yield [SearchOp(namespace, filter=where or None, query=query, limit=width)]
        hits = cast("Sequence[SearchItem]", results[0])
        scores = [cast("float", hit.score) for hit in hits]
        tied = getattr(hits[0], "tied", 0) if hits else 0
        if not hits or tied or len(hits) < width or scores[-1] != scores[0]:
            items = tuple((item_of(hit), cast("float", hit.score)) for hit in hits[:limit])
            return Found(items, query, tied or sum(score == scores[0] for score in scores))
        width *= _WIDENING


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
        value = unseal(record.value)
        item = MemoryItem.from_json(value["item"])
        content.items[item.id] = item
        if value["notes"]:
            content.notes[item.id] = deepcopy(value["notes"])
    elif record.key.startswith(_STATE):
        value = unseal(record.value)
        key = value.get("name", record.key.removeprefix(_STATE))
        content.state[key] = deepcopy(value["value"])
    elif record.key != STAMP:
        msg = f"namespace {record.namespace} holds {record.key!r}, which is no bank's record"
        raise InputError(msg)


def read_state(namespace: Namespace, keys: Sequence[str]) -> Program[list[JSON]]:
    """Read bookkeeping values; `None` for those that are not set."""
    results = yield [GetOp(namespace, state_key(key)) for key in keys]
    records = cast("Sequence[Item | None]", results)
    # A copy: some stores hand out what they hold, and a provider may go on to fill it.
    return [
        None if record is None else deepcopy(unseal(record.value)["value"]) for record in records
    ]


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
        InputError: A change does not fit the bank.
    """
    pending = {op.key: op for op in (yield from _writes(namespace, delta))} if delta else {}
    ranked: list[RankedStore] = []

    def answer(step: Step) -> Program[list[Result]]:
        if isinstance(step, EmbeddingRequest) or not pending:
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


def travels(value: JSON) -> bool:
    """Say whether every store gives `value` back as it is."""
    return not _UNUSUAL.search(json.dumps(value)) or _all_travel(value)


def _all_travel(value: JSON) -> bool:
    match value:
        case str():
            return "\x00" not in value
        case int():
            return -(2**63) <= value < 2**63
        case float():
            exponent = value.is_integer() and "e" in repr(value)
            return not exponent and (value != 0 or math.copysign(1, value) > 0)
        case Mapping():
            return all(_all_travel(key) and _all_travel(each) for key, each in value.items())
        case Sequence():
            return all(map(_all_travel, value))
        case _:
            return True


def portable_name(name: str) -> str:
    """Return a key for `name` that every store takes: the name, or a digest of it."""
    fits = len(name.encode()) <= _NAME_BYTES and travels(name)
    return name if fits and not name.startswith(_DIGEST) else _DIGEST + text_digest(name)


def portable_text(text: str) -> str:
    """Return what filters find `text` by: itself, with U+FFFD in the place of NUL."""
    return text.replace("\x00", _STANDS_FOR_NUL)


def portable_record(record: Mapping[str, JSON]) -> dict[str, Any]:
    """Return a record that every store gives back as it is: `record`, sealed if it must be.

    The fields of a sealed record are what rankers and filters see; they are no longer exact.
    """
    if travels(record):
        return dict(record)
    legible = {portable_text(key): _legible(value) for key, value in record.items()}
    return {**legible, SEALED: json.dumps(record, sort_keys=True, allow_nan=False)}


def unseal(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a record stands for, sealed or not."""
    sealed = record.get(SEALED)
    return json.loads(sealed) if isinstance(sealed, str) else record


def _legible(value: JSON) -> JSON:
    match value:
        case str():
            return portable_text(value)
        case int() | float() if not travels(value):
            return str(value)
        case Mapping():
            return {portable_text(key): _legible(each) for key, each in value.items()}
        case Sequence():
            return [_legible(each) for each in value]
        case _:
            return value
