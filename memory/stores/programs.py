"""Programs over a store (`langgraft._core.effects`): what they yield, how one reads all there is.

Below them, what stores of ours take and give back: addresses and values that are checked, and times.

All records under a prefix are read whatever order a store lists them in. LangGraph promises no order of what a search returns. A store that lists by time may place ties
anew for each query, and a write moves records across the edge between two pages: then one page
repeats what another had, and something else is in none. So a single page is asked for where the
store gives it. Where it caps pages, a reading counts only once it is known to hold everything.
"""

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias, TypeVar, cast

import orjson
from langgraph.store.base import (
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langgraft._core.effects import Effect
from langgraft._core.errors import InfrastructureError, InputError
from langgraft.memory.embedders.base import EmbeddingRequest, Vectors

T = TypeVar("T")

Namespace: TypeAlias = tuple[str, ...]

Address: TypeAlias = tuple[Namespace, str]
"""Namespace and key of a record."""

Step: TypeAlias = Sequence[Op] | Effect
"""What a program waits for: a store, or an effect, such as an `EmbeddingRequest`."""

Program: TypeAlias = Generator[Step, list[Result], T]
"""Yields batches of operations, is sent their results, and returns a `T`.

What a store raises is raised at the `yield`. A program holds no lock and awaits nothing, so the
same one serves threads and event loops. Vectors it asks for with `yield from embed(request)`.
"""

FIRST_PAGE: Final = 1_000_000
"""Records asked for at first; where there are as many, more are asked for."""

_WIDENING = 16

_PASSES = 32
"""How often a prefix is read at most. A pass over pages in random order misses up to one record
in e; of a million records, one is left after 14 such passes on average."""

_OVERLAP = 4
"""Where writes go on meanwhile, a page repeats one in so many records of the one before."""

_REPEATS = 16
"""Rows to one distinct record from which on a store does not page but repeats itself."""


def embed(request: EmbeddingRequest) -> Program[Vectors]:
    """Ask for vectors; what the embedder raises is raised here."""
    answer: object = yield request
    return cast("Vectors", answer)


def read_all(
    prefix: Namespace,
    *,
    refresh_ttl: bool = False,
    undisturbed: Callable[[], bool] = lambda: True,
) -> Program[dict[Address, SearchItem]]:
    """Read every record under `prefix`, each once, by its address.

    A store that answers with one page is read once, or twice where there are more records than
    `FIRST_PAGE`. Several pages are complete if they hold as many distinct records as rows. If
    not, they are read again until all passes together do.

    Args:
        prefix: What the namespaces of the records start with.
        refresh_ttl: Whether being read here prolongs the life of records.
        undisturbed: Says whether nothing was written under the prefix since it was last asked,
            or since the reading began. If something was, several pages are complete only if
            each goes on exactly where the one before ended. Without it, writers are supposed
            to wait. What was written meanwhile may or may not be in the result.

    Raises:
        InfrastructureError: The store caps pages and no reading of them was complete, or it
            ignores `offset`.
    """
    request = SearchOp(prefix, limit=FIRST_PAGE, refresh_ttl=refresh_ttl)
    known: dict[Address, SearchItem] = {}
    rows, overlap = -1, False
    for _ in range(_PASSES):
        request, page = yield from _widest(request)
        reading = yield from _turn(request, page, overlap=overlap)
        quiet = undisturbed()
        if reading.pages <= 1 or (reading.joined and not quiet):
            return _below(prefix, reading.found)
        if not quiet:
            rows, overlap = -1, True
            continue
        # Another number of rows, or more records than rows: some came or went between passes.
        both = known | reading.found if rows == reading.rows else reading.found
        known = both if len(both) <= reading.rows else reading.found
        rows = reading.rows
        if len(known) == rows:
            return _below(prefix, known)
    msg = (
        f"the store gave other records under namespace {prefix!r} in each of {_PASSES} readings:"
        " it caps the pages of a search, and lists in no stable order or is being written all the"
        " while; have it return larger pages, or search when nothing is being written"
    )
    raise InfrastructureError(msg)


def _below(prefix: Namespace, found: Mapping[Address, SearchItem]) -> dict[Address, SearchItem]:
    """Keep what lies under `prefix`: some stores compare namespaces as texts."""
    length = len(prefix)
    return {address: item for address, item in found.items() if address[0][:length] == prefix}


@dataclass(slots=True)
class _Reading:
    """What one pass over the pages gave."""

    found: dict[Address, SearchItem] = field(default_factory=dict)
    rows: int = 0
    """How far the pages reach: as many records as there are, if nothing was written."""
    pages: int = 0
    joined: bool = True
    """Each page began with what the one before ended with, or at least half of it."""
    last: Sequence[Address] = ()

    def enter(self, page: Sequence[SearchItem], offset: int) -> None:
        """Add a page."""
        addresses = [(tuple(item.namespace), item.key) for item in page]
        if self.pages:
            shared = _shared(self.last, addresses)
            self.joined = self.joined and shared > 0 and 2 * shared >= self.rows - offset
        self.found.update(zip(addresses, page, strict=True))
        self.rows = offset + len(page)
        self.pages += 1
        self.last = addresses


def _shared(before: Sequence[Address], after: Sequence[Address]) -> int:
    """Count the records that end `before` and, in the same order, begin `after`.

    Where there are some, nothing lies between the two pages: writes leave the order of all other
    records as it is. Ties placed by chance rarely agree in more than one.
    """
    if after[0] not in before:
        return 0
    tail = before[before.index(after[0]) :]
    return len(tail) if list(tail) == list(after[: len(tail)]) else 0


def _widest(request: SearchOp) -> Program[tuple[SearchOp, Sequence[SearchItem]]]:
    """Ask for more until a page is shorter than asked."""
    while len(page := (yield from _page(request))) >= request.limit:
        request = request._replace(limit=request.limit * _WIDENING)
    return request, page


def _turn(request: SearchOp, page: Sequence[SearchItem], *, overlap: bool) -> Program[_Reading]:
    """Read on after a first page up to the end.

    A short page may be a cap on `limit` in the store: only an empty one is the end.
    """
    reading = _Reading()
    offset = 0
    while page:
        reading.enter(page, offset)
        if reading.rows > _REPEATS * len(reading.found):
            msg = (
                f"the store repeats its records under namespace {request.namespace_prefix!r}:"
                f" {reading.pages} pages hold {len(reading.found)} different ones; a search must"
                " heed `offset`"
            )
            raise InfrastructureError(msg)
        offset = reading.rows - (max(1, len(page) // _OVERLAP) if overlap else 0)
        page = yield from _page(request._replace(offset=offset))
        if offset < reading.rows and offset + len(page) <= reading.rows:
            offset = reading.rows
            page = yield from _page(request._replace(offset=offset))
    return reading


def _page(request: SearchOp) -> Program[Sequence[SearchItem]]:
    return cast("Sequence[SearchItem]", (yield [request])[0])


PAGE: Final = 1000
"""Records deleted in one batch."""


def erase(prefix: Namespace) -> Program[int]:
    """Delete every record in `prefix` and below it, and return how many there were.

    Raises:
        InfrastructureError: The store caps searches and did not list all records.
    """
    found = list((yield from read_all(prefix)))
    for start in range(0, len(found), PAGE):
        yield [PutOp(*address, None) for address in found[start : start + PAGE]]
    return len(found)


# What stores of ours take and give back -----------------------------------------------------

MAX_DEPTH: Final = 200
"""Levels a value may be nested; Python reads JSON recursively and stops at about 1,000."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_EXCERPT: Final = 60

as_json: Final = json.JSONEncoder(separators=(",", ":")).encode
"""Write JSON in ASCII."""


def check_address(namespace: Any, key: Any) -> Address:
    """Return the address of a record, with a namespace that came as a list as a tuple.

    Raises:
        InputError: A label or the key is no string, or one that JSON cannot give back.
    """
    labels = check_labels(namespace)
    check_key(key, labels)
    return labels, key


def check_key(key: Any, namespace: Namespace) -> None:
    """Refuse a key that is no string, or one that JSON cannot give back.

    Raises:
        InputError: It is one.
    """
    if not isinstance(key, str):
        msg = f"a key must be a string, got {key!r} in namespace {namespace!r}"
        raise InputError(msg)
    if not key.isascii():
        _check_text(key, f"the key {key!r}")


def check_labels(namespace: Any) -> Namespace:
    """Return a namespace or a prefix of one as a tuple.

    Raises:
        InputError: It is no sequence of strings, or one that JSON cannot give back.
    """
    if not isinstance(namespace, tuple | list) or not all(isinstance(x, str) for x in namespace):
        msg = f"a namespace must be a tuple of strings, got {namespace!r}"
        raise InputError(msg)
    for label in namespace:
        if not label.isascii():
            _check_text(label, f"the namespace {namespace!r}")
    return tuple(namespace)


def encode(value: Any, address: Address) -> str:
    """Write a record's value as JSON in ASCII.

    Tuples become lists; NaN and infinities stay what they are.

    Raises:
        InputError: It is no mapping, or holds something that JSON does not give back as it was.
    """
    text = _as_it_was(value)
    if text is not None:
        return text.decode("ascii") if text.isascii() else as_json(value)
    where = f"the value of {address[1]!r} in {address[0]!r}"
    if not isinstance(value, Mapping):
        msg = f"{where} must be a mapping, got {type(value).__name__}"
        raise InputError(msg)
    plain = dict(value)
    _check(plain, where, 0)
    try:
        return as_json(plain)
    except ValueError as error:  # an integer of more digits than Python writes
        msg = f"{where} cannot be written as JSON: {error}"
        raise InputError(msg) from error


_NATIVE: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
"""What is none of JSON's own types is refused, as far as orjson can be told to."""


def _as_it_was(value: Any) -> bytes | None:
    """Write a value as JSON and read it again: ten times as fast as looking at all there is in it.

    Returns:
        The JSON, if what it gives back equals the value; of all else it has to be looked at.
    """
    if type(value) is not dict:
        return None
    try:
        text = orjson.dumps(value, option=_NATIVE)
    except TypeError:  # of which some is JSON still: long integers, say
        return None
    shallow = text.count(b"{") + text.count(b"[") <= MAX_DEPTH
    return text if shallow and orjson.loads(text) == value else None


def moment(nanoseconds: int) -> datetime:
    """Return a time stamp as a date, which has microseconds."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _check(value: Any, where: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        msg = f"{where} is nested deeper than {MAX_DEPTH} levels; flatten it"
        raise InputError(msg)
    match value:
        case str():
            _check_text(value, where)
        case None | bool() | int() | float():
            return
        case dict():
            for key, inner in value.items():
                if not isinstance(key, str):
                    msg = f"{where} holds a mapping with the key {key!r}; keys must be strings"
                    raise InputError(msg)
                _check_text(key, where)
                _check(inner, where, depth + 1)
        case list() | tuple():
            for inner in value:
                _check(inner, where, depth + 1)
        case _:
            msg = f"{where} holds a {type(value).__name__}, which is no JSON; convert it first"
            raise InputError(msg)


def _check_text(text: str, where: str) -> None:
    """Refuse two surrogates that JSON would read back as the one character they stand for."""
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        units = text.encode("utf-16-le", "surrogatepass")
        if units.decode("utf-16-le", "surrogatepass") != text:
            msg = (
                f"{where} holds a character split into two surrogates, in"
                f" {text[:_EXCERPT]!r}; decode it first"
            )
            raise InputError(msg) from None


def listed(namespaces: Iterable[Namespace], op: ListNamespacesOp) -> list[Namespace]:
    """Return those of some namespaces that a listing asks for."""
    conditions = op.match_conditions or ()
    kept = [each for each in set(namespaces) if all(_matches(each, c) for c in conditions)]
    shown = sorted({each[: op.max_depth] for each in kept})
    start = max(op.offset, 0)
    return shown[start : start + max(op.limit, 0)]


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    """Say whether a namespace begins or ends with a path, in which `*` is any label."""
    path = tuple(condition.path)
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[max(0, len(namespace) - len(path)) :]
    return len(part) == len(path) and all(
        wanted in ("*", label) for wanted, label in zip(path, part, strict=True)
    )


def check_conditions(op: ListNamespacesOp) -> None:
    """Refuse a listing by anything else than `prefix` and `suffix`."""
    for condition in op.match_conditions or ():
        if condition.match_type not in {"prefix", "suffix"}:
            msg = f"namespaces match by 'prefix' or 'suffix', got {condition.match_type!r}"
            raise InputError(msg)
