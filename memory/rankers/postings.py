"""The words of texts, and an inverted index that can change: which documents hold a word."""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from langgraft.memory.rankers.base import Document, DocumentId, Order
from langgraft.memory.rankers.documents import Documents, Floats, mapped

TOKENIZER = "lowercase unicode words, NFC"
"""What `tokenize` does, as it appears in manifests."""

_WORD = re.compile(r"\w+")

_BETWEEN = str.maketrans({code: " " for code in range(128) if not _WORD.match(chr(code))})
"""Blanks in the place of all ASCII characters that no word holds."""


def tokenize(text: str) -> list[str]:
    r"""Return the lowercase words of `text`, in order, repeats included.

    A word is a maximal run of Unicode letters, digits and underscores (`\w+`), after letters and
    their accents were put together (NFC), so that both ways to write "é" are one. Digits and
    one-character words stay, because "fridge 1" and "fridge 2" are different places; there is no
    stop-word list, because "not" and "then" carry meaning in instructions.
    """
    if text.isascii():  # the same in half the time
        return text.lower().translate(_BETWEEN).split()
    return _WORD.findall(unicodedata.normalize("NFC", text.lower()))


_END: Final = "\x00"
"""Stands behind the words of a text; in none of them."""
_BETWEEN_BUT_END: Final = {code: blank for code, blank in _BETWEEN.items() if chr(code) != _END}
_BLOCK: Final = 256


def _marked_words(texts: Sequence[str]) -> list[str]:
    """Return what `tokenize` does of all texts, one after the other, with `_END` behind each.

    Many texts are taken apart at once, which is twice as fast, where all of them are ASCII.
    """
    words: list[str] = []
    for start in range(0, len(texts), _BLOCK):
        block = texts[start : start + _BLOCK]
        joined = f" {_END} ".join((*block, ""))
        if joined.isascii() and joined.count(_END) == len(block):
            words += joined.lower().translate(_BETWEEN_BUT_END).split()
        else:
            words += (word for text in block for word in (*tokenize(text), _END))
    return words


_LEFT: Final = (-1, 0)
"""Stands for a document that is gone, in the place of its slot and count."""

_LOOKS: Final = 32
"""Terms sought in the text of a file before a dictionary of all is made."""

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


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a score may know about the corpus as a whole."""

    documents: int
    """Number of documents, those without a single token included."""

    tokens: int
    """Number of tokens in all of them."""


@dataclass(slots=True, eq=False)
class Posting:
    """The occurrences of one term, slots ascending; removed documents may linger."""

    slots: Growing[np.intp]
    counts: Growing[np.float64]
    documents: int
    """Number of present documents that hold the term."""
    most: int
    """No document holds the term more often."""

    def add(self, slot: int, count: int) -> None:
        """Record that the document at `slot`, which is the last, holds the term."""
        self.slots.append(slot)
        self.counts.append(count)
        self.documents += 1
        self.most = max(self.most, count)

    def extend(self, other: "Posting") -> None:
        """Add the occurrences in documents that all come after these."""
        self.slots.extend(other.slots.numbers)
        self.counts.extend(other.counts.numbers)
        self.documents += other.documents
        self.most = max(self.most, other.most)

    def among(self, slots: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
        """Return where in `slots` documents are that hold the term, and how often they do."""
        held = self.slots.numbers
        places = held.searchsorted(slots)
        places[places == held.size] = 0
        present = np.flatnonzero(held[places] == slots)
        return present, self.counts.numbers[places[present]]


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
    def of(cls, texts: Sequence[str], first: int) -> tuple["Columns", NDArray[np.intp]]:
        """Count the terms of documents in slots from `first` on, and the tokens of each."""
        words = _marked_words(texts)
        vocabulary: defaultdict[str, int] = defaultdict(None, {_END: 0})
        vocabulary.default_factory = vocabulary.__len__  # a new term gets the next number
        numbers = np.fromiter(map(vocabulary.__getitem__, words), np.uint32, count=len(words))
        lengths = np.diff(np.flatnonzero(numbers == 0), prepend=-1) - 1
        slots = np.repeat(np.arange(first, first + len(texts), dtype=np.int32), lengths)
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
        del places[_END]
        return cls(places, starts, slots[heads], counts, present), lengths

    def take(self, term: str) -> Posting | None:
        """Return the occurrences of a term, once."""
        place = self._place(term)
        if place is None:
            return None
        part = slice(self._starts[place], self._starts[place + 1])
        slots, counts = self._slots[part].astype(np.intp), self._counts[part].astype(np.float64)
        return Posting(
            Growing(slots), Growing(counts), int(self._present[place]), int(counts.max())
        )

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
    def save(folder: Path, terms: Mapping[str, Posting]) -> None:
        """Write the occurrences of all terms."""
        postings = terms.values()
        (folder / "terms.txt").write_text("\n".join(terms), encoding="utf-8")
        starts = np.cumsum([0, *(posting.slots.size for posting in postings)], dtype=np.int64)
        np.save(folder / "starts.npy", starts)
        none = np.empty(0)
        for name in ("slots", "counts"):
            parts = (getattr(posting, name).numbers for posting in postings)
            whole = np.concatenate([none, *parts]).astype(np.int32)
            least = np.min_scalar_type(int(whole.max(initial=0)))  # counts nearly always fit a byte
            np.save(folder / f"{name}.npy", whole.astype(least))
        present = [posting.documents for posting in postings]
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


class Postings:
    """The documents of one corpus and their terms.

    Changing the text of a document or removing it leaves its slot dead until the next sweep, so
    that both cost only as much as the document is long. Postings that were made in bulk or
    loaded hold, of each term that no query asked for yet, a stretch of an array or of a file, and
    what changed since: so a document that is added reads none of it.

    Attributes:
        documents: The documents.
        shortest: No present document has fewer tokens.
    """

    def __init__(self) -> None:
        self.documents = Documents()
        self._terms: dict[str, Posting] = {}
        self._columns: Columns | None = None
        self._changes: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        """Of terms not asked for while there are columns: slot and count of documents that came, `_LEFT`
        for one that left."""
        self._lengths = Growing(np.empty(0))
        self._tokens = 0
        self.shortest = math.inf

    @property
    def statistics(self) -> Statistics:
        """Counts over the present documents."""
        return Statistics(documents=len(self.documents), tokens=self._tokens)

    @property
    def lengths(self) -> Floats:
        """Number of tokens per slot."""
        return self._lengths.numbers

    def posting(self, term: str) -> Posting | None:
        """Return the occurrences of `term`, or `None` if no present document holds it."""
        posting = self._terms.get(term)
        if posting is None and self._columns is not None:
            posting = self._columns.take(term)
            if posting is not None:
                self._terms[term] = posting
            for change in self._changes.pop(term, ()):
                self._change(term, *change)
            posting = self._terms.get(term)
        return posting

    def __len__(self) -> int:
        return len(self.documents)

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it."""
        entry = Document(document, text, order)
        if self._is_new(entry):
            tokens = tokenize(text)
            slot = self._enter([entry], np.array([len(tokens)]))
            counts = Counter(tokens).items()
            self._note((term, (slot, count)) for term, count in counts)

    def put_many(self, documents: Iterable[Document]) -> None:
        """Do as `put` does for each, and much faster than one by one."""
        latest = {document.id: document for document in documents}.values()
        new = list(filter(self._is_new, latest) if self.documents.size else latest)
        if not new:
            return
        columns, lengths = Columns.of([each.text for each in new], self.documents.size)
        first = self._enter(new, lengths)
        if not first:
            self._columns = columns
            return
        for term in columns.terms():
            known, more = self.posting(term), columns.take(term)
            assert more is not None
            if known is None:
                self._terms[term] = more
            else:
                known.extend(more)

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        gone = self.documents.remove(document)
        if gone is None:
            return
        tokens = tokenize(gone.text)
        self._tokens -= len(tokens)
        self._note((term, _LEFT) for term in set(tokens))
        if self.documents.sparse:
            self._sweep()

    def save(self, folder: Path) -> None:
        """Write everything into an empty folder; what was loaded before is read whole for it."""
        self._read_all()
        self.documents.save(folder)
        Columns.save(folder, self._terms)
        np.save(folder / "lengths.npy", self.lengths)
        np.save(folder / "tokens.npy", np.array(self._tokens, dtype=np.int64))

    def load(self, folder: Path) -> None:
        """Become what `save` wrote; the files are used from then on."""
        self.documents.load(folder)
        self._columns = Columns.load(folder)
        self._terms = {}
        self._changes.clear()
        self._lengths = Growing(mapped(folder / "lengths.npy"))
        self._tokens = int(mapped(folder / "tokens.npy"))
        self.shortest = float(self.lengths.min(initial=math.inf))

    def _is_new(self, document: Document) -> bool:
        """Say whether a document has to be entered; one whose text stays is changed in place."""
        before = self.documents.get(document.id)
        if before is not None and before.text == document.text:
            self.documents.replace(document)
            return False
        if before is not None:
            self.remove(document.id)
        return True

    def _note(self, changes: Iterable[tuple[str, tuple[int, int]]]) -> None:
        """Note of terms that the document at a slot, which is the last, holds them, or that one left."""
        terms, later = self._terms, self._changes if self._columns is not None else None
        for term, change in changes:
            if later is not None and term not in terms:
                later[term].append(change)
            else:
                self._change(term, *change)

    def _change(self, term: str, slot: int, count: int) -> None:
        posting = self._terms.get(term)
        if posting is None:
            slots, counts = np.empty(0, dtype=np.intp), np.empty(0)
            posting = self._terms[term] = Posting(Growing(slots), Growing(counts), 0, 0)
        if (slot, count) != _LEFT:
            posting.add(slot, count)
            return
        posting.documents -= 1
        if not posting.documents:
            del self._terms[term]

    def _enter(self, documents: Sequence[Document], lengths: NDArray[np.intp]) -> int:
        """Give new documents of as many tokens slots; return the first one."""
        self._lengths.extend(lengths.astype(np.float64))
        self._tokens += int(lengths.sum())
        self.shortest = min(self.shortest, float(lengths.min()))
        return self.documents.extend(documents)

    def _read_all(self) -> None:
        if self._columns is not None:
            for term in (*self._columns.terms(), *self._changes):
                self.posting(term)
        self._columns = None

    def _sweep(self) -> None:
        """Give the present documents consecutive slots again."""
        self._read_all()
        places = self.documents.sweep()
        self._lengths = Growing(self.lengths[places >= 0])
        for posting in self._terms.values():
            slots = places[posting.slots.numbers]
            present = slots >= 0
            posting.counts = Growing(posting.counts.numbers[present])
            posting.slots = Growing(slots[present])
