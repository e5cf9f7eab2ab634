"""The documents of an index by id, by slot and by term, and the best of them in order.

They are in memory, or in files that are read where looked at.
"""

import json
import math
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from mmap import ACCESS_COPY, mmap
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from langgraft.memory.rankers.base import (
    SCORE_DECIMALS,
    Document,
    DocumentId,
    Scored,
    Ties,
)

Floats: TypeAlias = NDArray[np.float64]
Slots: TypeAlias = NDArray[np.intp]
"""Positions of documents inside an index; they mean nothing outside it."""

SLACK: Final = 2 * 10.0**-SCORE_DECIMALS
"""How far below the last of the best a score may be and still equal it once both are rounded."""

_SPARE: Final = 64
"""Removed documents are swept out once they outnumber the present ones by this many."""

_MAPPED_BYTES: Final = 1 << 20
"""Smaller files are read at once: that takes no time, and a mapped one stays open, where a
process may have a thousand files and a store more small indexes than that."""

_UNREAD: Final = Document((), "", ())
"""Stands for a document that is still in a file only."""


class Documents:
    """Documents, each in a slot of its own: 0, 1, 2 … in order of arrival.

    A document that is removed leaves its slot dead until `sweep` is called, which is worth its
    while once there are many (`sparse`). Of those that were loaded, each is read when it is
    asked for.
    """

    def __init__(self) -> None:
        self._slots: dict[DocumentId, int] = {}
        self._documents: list[Document | None] = []
        self._dead: list[int] = []
        self._saved: _SavedDocuments | None = None

    def __len__(self) -> int:
        return len(self._documents) - len(self._dead)

    def __iter__(self) -> Iterator[Document]:
        """Yield all documents in the order of their slots."""
        return (self.at(i) for i, entry in enumerate(self._documents) if entry is not None)

    def __getitem__(self, document: DocumentId) -> Document:
        slot = self.slot(document)
        if slot is None:
            raise KeyError(document)
        return self.at(slot)

    @property
    def size(self) -> int:
        """Number of slots, dead ones included."""
        return len(self._documents)

    @property
    def dead(self) -> NDArray[np.intp]:
        """Slots whose document is gone."""
        return np.array(self._dead, dtype=np.intp)

    @property
    def sparse(self) -> bool:
        """Whether there are so many dead slots that they should be swept out."""
        return len(self._dead) > len(self) + _SPARE

    def get(self, document: DocumentId) -> Document | None:
        """Return a document, if it is there."""
        slot = self.slot(document)
        return None if slot is None else self.at(slot)

    def at(self, slot: int) -> Document:
        """Return the present document in a slot."""
        document = self._documents[slot]
        if document is _UNREAD:
            assert self._saved is not None
            document = self._documents[slot] = self._saved[slot]
        assert document is not None
        return document

    def slot(self, document: DocumentId) -> int | None:
        """Return where a document is, if it is there."""
        slot = self._slots.get(document)
        if slot is None and self._saved is not None:
            slot = self._saved.place(document)
            if slot is None or self._documents[slot] is None:  # removed since
                return None
            self._slots[document] = slot
        return slot

    def slots(self, documents: Iterable[DocumentId]) -> NDArray[np.intp]:
        """Return where documents are, ascending; unknown ones are left out."""
        places = map(self.slot, documents)
        found = np.array([slot for slot in places if slot is not None], dtype=np.intp)
        found.sort()  # memory is read faster in its order
        return found

    def extend(self, documents: Sequence[Document]) -> int:
        """Give documents that are not there the next slots; return the first of these."""
        first = len(self._documents)
        self._documents += documents
        self._slots.update((each.id, slot) for slot, each in enumerate(documents, first))
        return first

    def replace(self, document: Document) -> None:
        """Put a document in the place of one of its id."""
        slot = self.slot(document.id)
        assert slot is not None
        self._documents[slot] = document

    def remove(self, document: DocumentId) -> Document | None:
        """Forget a document and return it, if it is there."""
        slot = self.slot(document)
        if slot is None:
            return None
        self._slots.pop(document, None)
        gone = self.at(slot)
        self._documents[slot] = None
        self._dead.append(slot)
        return gone

    def sweep(self) -> NDArray[np.intp]:
        """Give the present documents consecutive slots; return the new one of each, or -1."""
        documents = list(self)
        places = np.full(self.size, -1, dtype=np.intp)
        places[[i for i, entry in enumerate(self._documents) if entry is not None]] = np.arange(
            len(documents)
        )
        self._documents, self._dead, self._saved = list(documents), [], None
        self._slots = {document.id: slot for slot, document in enumerate(documents)}
        return places

    def save(self, folder: Path) -> None:
        """Write all documents into a folder.

        Ids and orders must be strings, integers, or tuples of such.
        """
        for _ in self:  # the files may be those of the folder this was loaded from
            pass
        present = self._documents
        ids = ["" if entry is None else json.dumps(entry.id) for entry in present]
        orders = ("" if entry is None else json.dumps(entry.order) for entry in present)
        checks = np.fromiter(map(_check, ids), np.uint32, count=len(ids))
        places = np.argsort(checks)
        np.save(folder / "checks.npy", checks[places])
        np.save(folder / "places.npy", places.astype(np.int32))
        _save_strings(folder / "ids", ids)
        _save_strings(folder / "orders", orders)
        _save_strings(folder / "texts", ("" if entry is None else entry.text for entry in present))
        np.save(folder / "dead.npy", np.array(self._dead, dtype=np.int32))

    def load(self, folder: Path) -> None:
        """Become what `save` wrote."""
        self._saved = _SavedDocuments(folder)
        self._slots = {}
        self._documents = [_UNREAD] * len(self._saved)
        self._dead = mapped(folder / "dead.npy").tolist()
        for slot in self._dead:
            self._documents[slot] = None


def rounded(scores: Floats) -> Floats:
    """Round scores to `SCORE_DECIMALS`: the one place where that happens."""
    return np.round(scores, SCORE_DECIMALS)


def reaching(scores: NDArray[np.floating[Any]], limit: int, *, below: float) -> tuple[Slots, float]:
    """Find the scores that come close to the best `limit`.

    Args:
        scores: Scores, or estimates of them.
        limit: How many are sought.
        below: How far below the last of the best `limit` the others may be.

    Returns:
        Where they are, ascending, and the last of the best; that is -∞ where there are fewer.
    """
    if scores.size < limit:
        return np.arange(scores.size), -np.inf
    last = float(_nth_best(scores, limit))
    # Compared in their own type: another one would make a wide copy of all scores.
    return np.flatnonzero(scores >= scores.dtype.type(last - below)), last


_SPREAD: Final = 8
"""Groups to one that is sought: of so many, few hold two of the best."""
_FEWEST: Final = 16
"""Scores a group, below which putting all in order is as fast."""


def _nth_best(scores: NDArray[np.floating[Any]], n: int) -> np.floating[Any]:
    """Return the n-th best of at least n scores.

    Of groups that share no score, the n-th best of their best is no better than it: only scores
    that reach it are put in order, which takes a fraction of doing so with all of many.
    """
    groups = n * _SPREAD
    if n > 0 and (size := scores.size // groups) >= _FEWEST:
        most = scores[: size * groups].reshape(size, groups).max(axis=0)
        scores = scores[scores >= np.partition(most, -n)[-n]]
    nth: np.floating[Any] = np.partition(scores, -n)[-n]
    return nth


def best(
    documents: Documents, slots: Slots, scores: Floats, *, limit: int, ties: Ties
) -> list[Scored]:
    """Put scored documents in order, and say how many share the best score.

    Args:
        documents: All documents.
        slots: Those that could be among the best, and at least all that tie with the best.
        scores: Their scores, not yet rounded.
        limit: How many to return.
        ties: Which of equal documents comes first.
    """
    final = rounded(scores)
    near, _ = reaching(final, limit, below=0.0)
    falling = near[np.argsort(-final[near])]
    ordered = final[falling]
    found = [documents.at(slot) for slot in slots[falling].tolist()]
    runs = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for start, stop in pairwise((0, *runs.tolist(), len(found))):
        if stop - start > 1:
            equals = sorted(found[start:stop], key=attrgetter("order"), reverse=ties == "newest")
            found[start:stop] = equals
    tied = int(np.count_nonzero(final == ordered[0])) if found else 0
    hits = enumerate(zip(found[:limit], ordered.tolist(), strict=False))
    return [
        Scored(document.id, score, tied=0 if place else tied) for place, (document, score) in hits
    ]


class _SavedDocuments:
    """What `Documents.save` wrote."""

    def __init__(self, folder: Path) -> None:
        self._ids = _SavedStrings(folder / "ids")
        self._orders = _SavedStrings(folder / "orders")
        self._texts = _SavedStrings(folder / "texts")
        self._checks = mapped(folder / "checks.npy")
        self._places = mapped(folder / "places.npy")

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, place: int) -> Document:
        """Read the document at a place that is not free."""
        return Document(
            id=_with_tuples(json.loads(self._ids[place])),
            text=self._texts[place],
            order=_with_tuples(json.loads(self._orders[place])),
        )

    def place(self, document: DocumentId) -> int | None:
        """Return where a document was; few others have the checksum of its id."""
        line = json.dumps(document)
        check = np.uint32(_check(line))
        first, end = (self._checks.searchsorted(check, side) for side in ("left", "right"))
        found = (place for place in self._places[first:end].tolist() if self._ids[place] == line)
        return next(found, None)


def _check(line: str) -> int:
    return zlib.crc32(line.encode("ascii"))


_HEADER: Final = re.compile(
    rb"\x93NUMPY\x01\0..\{'descr': '([<|][biuf]\d)', 'fortran_order': False,"
    rb" 'shape': \(([\d, ]*)\), \} *\n",
    re.DOTALL,
)
"""What numpy writes before an array: read as Python, by numpy itself, it takes longer than most arrays."""
_HEADER_BYTES: Final = 128


def mapped(path: Path) -> NDArray[Any]:
    """Return the array in a file, which is read where it is looked at if it is large.

    Changes of the array stay in memory.
    """
    with path.open("rb", buffering=0) as file:
        header = _HEADER.match(file.read(_HEADER_BYTES))
        size = os.fstat(file.fileno()).st_size
        large = size >= _MAPPED_BYTES
        if header is None:
            return np.asarray(np.load(path, mmap_mode="c" if large else None, allow_pickle=False))
        kind = np.dtype(header[1].decode("ascii"))
        shape = [int(each) for each in header[2].split(b",") if each.strip()]
        count = math.prod(shape)
        if not large:
            file.seek(header.end())
            return np.fromfile(file, kind, count).reshape(shape)
        content = mmap(file.fileno(), size, access=ACCESS_COPY)
    return np.frombuffer(content, kind, count, header.end()).reshape(shape)


def _save_strings(path: Path, strings: Iterable[str]) -> None:
    ends = [0]
    with path.with_suffix(".bin").open("wb") as file:
        for string in strings:
            ends.append(ends[-1] + file.write(string.encode("utf-8", "surrogatepass")))
    np.save(path.with_suffix(".npy"), np.array(ends, dtype=np.int64))


class _SavedStrings:
    """Strings in one file, one after the other, and where each ends in a second."""

    def __init__(self, path: Path) -> None:
        blob = path.with_suffix(".bin")
        large = blob.stat().st_size >= _MAPPED_BYTES
        self._bytes: NDArray[np.uint8] = (
            np.asarray(np.memmap(blob, np.uint8, "r")) if large else np.fromfile(blob, np.uint8)
        )
        self._ends = mapped(path.with_suffix(".npy"))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        part = self._bytes[self._ends[place] : self._ends[place + 1]]
        return part.tobytes().decode("utf-8", "surrogatepass")


def _with_tuples(value: Any) -> Any:
    """Turn the lists of JSON into the tuples they were."""
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


# The documents of one term ----------------------------------------------------------------------

_ROOM: Final = 4
"""Numbers there is room for at first; then always for half as many more as there are."""

NumberT = TypeVar("NumberT", np.intp, np.float64)


class Growing(Generic[NumberT]):
    """Numbers in one array, with room for more behind them.

    Args:
        numbers: The first ones; the array itself is never written to.
    """

    __slots__ = ("_room", "size")

    def __init__(self, numbers: NDArray[NumberT]) -> None:
        self._room: NDArray[Any] = numbers
        self.size = len(numbers)

    @property
    def numbers(self) -> NDArray[NumberT]:
        """All numbers, not copied: they stay what they are until something is added."""
        numbers: NDArray[NumberT] = self._room[: self.size]
        return numbers

    def append(self, number: float) -> None:
        """Add a number."""
        if self.size == len(self._room):
            self._grow(self.size + 1)
        self._room[self.size] = number
        self.size += 1

    def extend(self, numbers: NDArray[NumberT]) -> None:
        """Add numbers."""
        size = self.size + len(numbers)
        if size > len(self._room):
            self._grow(size)
        self._room[self.size : size] = numbers
        self.size = size

    def _grow(self, size: int) -> None:
        room = np.empty(max(_ROOM, size + size // 2), dtype=self._room.dtype)
        room[: self.size] = self.numbers
        self._room = room


class Occurrences(NamedTuple):
    """Which documents hold a term."""

    slots: Slots
    """Of the documents, ascending."""
    counts: Floats
    """How often each holds it."""
    documents: int
    """How many of them are there."""


@dataclass(slots=True, eq=False)
class Posting:
    """The occurrences of one term, slots ascending; removed documents may linger."""

    slots: Growing[np.intp]
    counts: Growing[np.float64]
    documents: int
    """Number of present documents that hold the term."""
    most: int
    """No document holds the term more often."""

    @classmethod
    def of(cls, held: Occurrences) -> "Posting":
        """Return occurrences to which others can be added."""
        most = int(held.counts.max())
        return cls(Growing(held.slots), Growing(held.counts), held.documents, most)

    @property
    def occurrences(self) -> Occurrences:
        """All of them, not copied."""
        return Occurrences(self.slots.numbers, self.counts.numbers, self.documents)

    def add(self, slot: int, count: int) -> None:
        """Record that the document at `slot`, which is the last, holds the term."""
        self.slots.append(slot)
        self.counts.append(count)
        self.documents += 1
        self.most = max(self.most, count)

    def extend(self, more: Occurrences) -> None:
        """Add the occurrences in documents that all come after these."""
        self.slots.extend(more.slots)
        self.counts.extend(more.counts)
        self.documents += more.documents
        self.most = max(self.most, int(more.counts.max()))

    def among(self, slots: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
        """Return where in `slots` documents are that hold the term, and how often they do."""
        held = self.slots.numbers
        places = held.searchsorted(slots)
        places[places == held.size] = 0
        present = np.flatnonzero(held[places] == slots)
        return present, self.counts.numbers[places[present]]


# The documents of many terms ------------------------------------------------------------------

END: Final = "\x00"
"""Stands behind the words of a text; in none of them."""

_LOOKS: Final = 32
"""Terms sought in the text of a file before a dictionary of all is made."""


class Columns:
    """The occurrences of many terms, term after term: made in bulk, or read from files.

    Each is handed out once: from then on whoever took it keeps it.

    Args:
        places: Which of them a term is; or the terms one after the other, each between line breaks. Of
            these a dictionary is made once more than a few are asked for: it takes as long as hundreds
            of looks.
        starts: Where in `slots` and `counts` each begins, and where the last one ends.
        slots: Of the documents that hold a term, ascending.
        counts: How often they hold it.
        present: How many of them are there.
    """

    def __init__(
        self,
        places: dict[str, int] | str,
        starts: NDArray[Any],
        slots: NDArray[Any],
        counts: NDArray[Any],
        present: NDArray[Any],
    ) -> None:
        self._places = places
        self._looked: set[str] = set()
        self._starts = starts
        self._slots = slots
        self._counts = counts
        self._present = present

    @classmethod
    def of(cls, words: Sequence[str], first: int) -> tuple["Columns", NDArray[np.intp]]:
        """Count the terms of documents in slots from `first` on, and the tokens of each.

        Args:
            words: Of all documents, one after the other, with `END` behind each.
            first: The slot of the first one.
        """
        vocabulary: defaultdict[str, int] = defaultdict(None, {END: 0})
        vocabulary.default_factory = vocabulary.__len__  # a new term gets the next number
        numbers = np.fromiter(map(vocabulary.__getitem__, words), np.uint32, count=len(words))
        lengths = np.diff(np.flatnonzero(numbers == 0), prepend=-1) - 1
        slots = np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths)
        terms = numbers[numbers != 0]
        order = _stably_sorted(terms)
        terms, slots = terms[order], slots[order]
        # Slots rise within a term, so that all occurrences in a document are side by side.
        fresh = np.ones(len(terms), dtype=bool)
        fresh[1:] = (terms[1:] != terms[:-1]) | (slots[1:] != slots[:-1])
        heads = np.flatnonzero(fresh)
        present = np.bincount(terms[heads], minlength=len(vocabulary))
        counts = np.diff(heads, append=len(terms))
        starts = np.concatenate([[0], np.cumsum(present)])
        places = dict(vocabulary)
        del places[END]
        return cls(places, starts, slots[heads], counts, present), lengths

    def take(self, term: str) -> Occurrences | None:
        """Return the occurrences of a term, once."""
        place = self._place(term)
        if place is None:
            return None
        part = slice(self._starts[place], self._starts[place + 1])
        slots, counts = self._slots[part].astype(np.intp), self._counts[part].astype(np.float64)
        return Occurrences(slots, counts, int(self._present[place]))

    def terms(self) -> list[str]:
        """List the terms that were not taken."""
        return list(self._all())

    def _place(self, term: str) -> int | None:
        if isinstance(self._places, dict) or len(self._looked) == _LOOKS:
            return self._all().pop(term, None)
        at = -1 if term in self._looked else self._places.find(f"\n{term}\n")
        self._looked.add(term)
        return None if at < 0 else self._places.count("\n", 0, at)

    def _all(self) -> dict[str, int]:
        """Return which of them each term is that was not taken."""
        if isinstance(self._places, str):
            terms = self._places.split("\n")[1:-1]
            places = dict(zip(terms, range(len(terms)), strict=True))
            for term in self._looked:
                places.pop(term, None)
            self._places = places
        return self._places

    @staticmethod
    def save(folder: Path, terms: Mapping[str, Occurrences]) -> None:
        """Write the occurrences of all terms."""
        columns = terms.values()
        (folder / "terms.txt").write_text("\n".join(terms), encoding="utf-8")
        starts = np.cumsum([0, *(each.slots.size for each in columns)], dtype=np.int64)
        np.save(folder / "starts.npy", starts)
        none = np.empty(0)
        for name in ("slots", "counts"):
            parts = (getattr(each, name) for each in columns)
            whole = np.concatenate([none, *parts]).astype(np.int32)
            least = np.min_scalar_type(int(whole.max(initial=0)))  # counts nearly always fit a byte
            np.save(folder / f"{name}.npy", whole.astype(least))
        present = [each.documents for each in columns]
        np.save(folder / "present.npy", np.array(present, dtype=np.int32))

    @classmethod
    def load(cls, folder: Path) -> "Columns":
        """Return what `save` wrote; the files are read where a term is asked for."""
        words = (folder / "terms.txt").read_text(encoding="utf-8")
        names = ("starts", "slots", "counts", "present")
        columns = (mapped(folder / f"{name}.npy") for name in names)
        return cls(f"\n{words}\n" if words else "\n", *columns)


def _stably_sorted(numbers: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Return the places of numbers in their order, those of equal ones ascending.

    By halves: numpy sorts numbers of 16 bits by their digits, several times as fast as others.
    """
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    upper = (numbers >> 16).astype(np.uint16)
    if upper.any():
        order = order[np.argsort(upper[order], kind="stable")]
    return order
