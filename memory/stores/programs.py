"""Programs over a store (`langgraft._core.effects`): what they yield, and how one reads all there is.

All records under a prefix are read whatever order a store lists them in. LangGraph promises no order of what a search returns. A store that lists by time may place ties
anew for each query, and a write moves records across the edge between two pages: then one page
repeats what another had, and something else is in none. So a single page is asked for where the
store gives it. Where it caps pages, a reading counts only once it is known to hold everything.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar, cast

from langgraph.store.base import Op, PutOp, Result, SearchItem, SearchOp

from langgraft._core.effects import Effect
from langgraft._core.errors import InfrastructureError
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
