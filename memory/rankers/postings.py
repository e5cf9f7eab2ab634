"""An inverted index that can change: which documents hold a term, and how often."""

from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from langgraft.memory.rankers.base import DocumentId, Order
from langgraft.memory.rankers.selection import Floats, Slots
from langgraft.memory.rankers.tokens import tokenize

_SPARE = 64
"""Removed documents are swept out once they outnumber the present ones by this many."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a score may know about the corpus as a whole."""

    documents: int
    """Number of documents, those without a single token included."""

    tokens: int
    """Number of tokens in all of them."""


@dataclass(slots=True)
class Posting:
    """The occurrences of one term, in order of arrival; removed documents may linger."""

    slots: "array[int]" = field(default_factory=lambda: array("i"))
    counts: "array[float]" = field(default_factory=lambda: array("d"))
    documents: int = 0
    """Number of present documents that hold the term."""

    def add(self, slot: int, count: int) -> None:
        """Record that the document at `slot` holds the term `count` times."""
        self.slots.append(slot)
        self.counts.append(count)
        self.documents += 1

    def arrays(self) -> tuple[Slots, Floats]:
        """Return copies: an array that shares memory would forbid the next append."""
        return np.array(self.slots, dtype=np.intp), np.array(self.counts, dtype=np.float64)

    def renumber(self, places: Slots) -> None:
        """Move every slot to `places[slot]`, dropping those that go to -1."""
        slots, counts = self.arrays()
        slots = places[slots]
        present = slots >= 0
        self.slots = array("i", slots[present].tolist())
        self.counts = array("d", counts[present].tolist())


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it was put."""

    id: DocumentId
    text: str
    order: Order


class Postings:
    """The documents of one corpus and their terms.

    A document lives in a slot. Changing its text or removing it leaves the slot dead until the
    next sweep, so that both cost only as much as the document is long.
    """

    def __init__(self) -> None:
        self._terms: dict[str, Posting] = {}
        self._slots: dict[DocumentId, int] = {}
        self._documents: list[Document | None] = []
        self._lengths = array("d")
        self._dead = array("i")
        self._tokens = 0

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def statistics(self) -> Statistics:
        """Counts over the present documents."""
        return Statistics(documents=len(self._slots), tokens=self._tokens)

    @property
    def size(self) -> int:
        """Number of slots, dead ones included."""
        return len(self._documents)

    @property
    def lengths(self) -> Floats:
        """Number of tokens per slot."""
        return np.array(self._lengths, dtype=np.float64)

    @property
    def dead(self) -> Slots:
        """Slots whose document is gone."""
        return np.array(self._dead, dtype=np.intp)

    def posting(self, term: str) -> Posting | None:
        """Return the occurrences of `term`, or `None` if no present document holds it."""
        return self._terms.get(term)

    def document(self, slot: int) -> Document:
        """Return the present document at `slot`."""
        document = self._documents[slot]
        assert document is not None
        return document

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it."""
        slot = self._slots.get(document)
        if slot is not None and self.document(slot).text == text:
            self._documents[slot] = Document(document, text, order)
            return
        self.remove(document)
        self._add(Document(document, text, order))

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        slot = self._slots.pop(document, None)
        if slot is None:
            return
        tokens = tokenize(self.document(slot).text)
        self._tokens -= len(tokens)
        for term in set(tokens):
            posting = self._terms[term]
            posting.documents -= 1
            if posting.documents == 0:
                del self._terms[term]
        self._documents[slot] = None
        self._dead.append(slot)
        if len(self._dead) > len(self._slots) + _SPARE:
            self._sweep()

    def _add(self, document: Document) -> None:
        slot = len(self._documents)
        tokens = tokenize(document.text)
        for term, count in Counter(tokens).items():
            posting = self._terms.get(term)
            if posting is None:
                posting = self._terms[term] = Posting()
            posting.add(slot, count)
        self._tokens += len(tokens)
        self._lengths.append(len(tokens))
        self._documents.append(document)
        self._slots[document.id] = slot

    def _sweep(self) -> None:
        """Give the present documents consecutive slots again."""
        present = [slot for slot, document in enumerate(self._documents) if document is not None]
        places = np.full(len(self._documents), -1, dtype=np.intp)
        places[present] = np.arange(len(present))
        for posting in self._terms.values():
            posting.renumber(places)
        self._documents = [self._documents[slot] for slot in present]
        self._lengths = array("d", [self._lengths[slot] for slot in present])
        self._slots = {
            document.id: slot
            for slot, document in enumerate(self._documents)
            if document is not None
        }
        self._dead = array("i")
