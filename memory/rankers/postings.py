"""An inverted index that can change: which documents hold a term, and how often."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from langgraft.memory.rankers.base import DocumentId, Order
from langgraft.memory.rankers.saved import Document, SavedDocuments, mapped, save_documents
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


class _SavedTerms:
    """Postings in files; each is read when its term is first asked for."""

    def __init__(self, folder: Path) -> None:
        words = (folder / "terms.txt").read_text(encoding="utf-8")
        self._numbers = {term: i for i, term in enumerate(words.split("\n"))} if words else {}
        self._starts = mapped(folder / "starts.npy")
        self._slots = mapped(folder / "slots.npy")
        self._counts = mapped(folder / "counts.npy")
        self._present = mapped(folder / "present.npy")

    @staticmethod
    def save(folder: Path, terms: Mapping[str, Posting]) -> None:
        """Write the occurrences of all terms."""
        postings = terms.values()
        slots, counts = array("i"), array("d")
        for posting in postings:
            slots.extend(posting.slots)
            counts.extend(posting.counts)
        sizes = [len(posting.slots) for posting in postings]
        (folder / "terms.txt").write_text("\n".join(terms), encoding="utf-8")
        np.save(folder / "starts.npy", np.cumsum([0, *sizes], dtype=np.int64))
        np.save(folder / "slots.npy", np.array(slots, dtype=np.int32))
        np.save(folder / "counts.npy", np.array(counts, dtype=np.int32))
        present = [posting.documents for posting in postings]
        np.save(folder / "present.npy", np.array(present, dtype=np.int32))

    def take(self, term: str) -> Posting | None:
        """Read the occurrences of a term, once: from then on the caller has them."""
        number = self._numbers.pop(term, None)
        if number is None:
            return None
        part = slice(self._starts[number], self._starts[number + 1])
        return Posting(
            array("i", self._slots[part].astype(np.intc).tobytes()),
            array("d", self._counts[part].astype(np.float64).tobytes()),
            int(self._present[number]),
        )

    def rest(self) -> list[str]:
        """List the terms that were not taken."""
        return list(self._numbers)


_UNREAD = Document((), "", ())
"""Stands for a document that is still in a file only."""


class Postings:
    """The documents of one corpus and their terms.

    A document lives in a slot. Changing its text or removing it leaves the slot dead until the
    next sweep, so that both cost only as much as the document is long.

    Postings that were loaded read from their files what a search or a write concerns.
    """

    def __init__(self) -> None:
        self._terms: dict[str, Posting] = {}
        self._saved_terms: _SavedTerms | None = None
        self._saved_documents: SavedDocuments | None = None
        self._slots: dict[DocumentId, int] = {}
        self._documents: list[Document | None] = []
        self._lengths = array("d")
        self._dead = array("i")
        self._tokens = 0

    def __len__(self) -> int:
        return len(self._documents) - len(self._dead)

    @property
    def statistics(self) -> Statistics:
        """Counts over the present documents."""
        return Statistics(documents=len(self), tokens=self._tokens)

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
        posting = self._terms.get(term)
        if posting is None and self._saved_terms is not None:
            posting = self._saved_terms.take(term)
            if posting is not None:
                self._terms[term] = posting
        return posting

    def slots(self, documents: Iterable[DocumentId]) -> Slots:
        """Return where documents are; unknown ones are left out."""
        places = map(self._slot, documents)
        return np.array([slot for slot in places if slot is not None], dtype=np.intp)

    def document(self, slot: int) -> Document:
        """Return the present document at `slot`."""
        document = self._documents[slot]
        if document is _UNREAD:
            assert self._saved_documents is not None
            document = self._documents[slot] = self._saved_documents[slot]
        assert document is not None
        return document

    def put(self, document: DocumentId, text: str, order: Order) -> None:
        """Add a document, or replace it."""
        slot = self._slot(document)
        if slot is not None and self.document(slot).text == text:
            self._documents[slot] = Document(document, text, order)
            return
        self.remove(document)
        self._add(Document(document, text, order))

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        slot = self._slot(document)
        if slot is None:
            return
        del self._slots[document]
        tokens = tokenize(self.document(slot).text)
        self._tokens -= len(tokens)
        for term in set(tokens):
            posting = self.posting(term)
            assert posting is not None
            posting.documents -= 1
            if posting.documents == 0:
                del self._terms[term]
        self._documents[slot] = None
        self._dead.append(slot)
        if len(self._dead) > len(self) + _SPARE:
            self._sweep()

    def save(self, folder: Path) -> None:
        """Write everything into an empty folder; what was loaded before is read whole for it."""
        self._read_all()
        save_documents(folder, self._documents)
        _SavedTerms.save(folder, self._terms)
        np.save(folder / "lengths.npy", self.lengths)
        np.save(folder / "dead.npy", np.array(self._dead, dtype=np.int32))
        np.save(folder / "tokens.npy", np.array(self._tokens, dtype=np.int64))

    def load(self, folder: Path) -> None:
        """Become what `save` wrote; the files are used from then on."""
        self._saved_terms = _SavedTerms(folder)
        self._saved_documents = SavedDocuments(folder)
        self._terms = {}
        self._slots = {}
        self._lengths = array("d", mapped(folder / "lengths.npy").tobytes())
        self._dead = array("i", mapped(folder / "dead.npy").astype(np.intc).tobytes())
        self._tokens = int(mapped(folder / "tokens.npy"))
        self._documents = [_UNREAD] * len(self._saved_documents)
        for slot in self._dead:
            self._documents[slot] = None

    def _slot(self, document: DocumentId) -> int | None:
        """Return where a document is."""
        slot = self._slots.get(document)
        if slot is None and self._saved_documents is not None:
            slot = self._saved_documents.take(document)
            if slot is not None:
                self._slots[document] = slot
        return slot

    def _read_all(self) -> None:
        """Read what is still in files only."""
        for slot, document in enumerate(self._documents):
            if document is not None:
                self._slots[self.document(slot).id] = slot
        if self._saved_terms is not None:
            for term in self._saved_terms.rest():
                self.posting(term)
        self._saved_terms = self._saved_documents = None

    def _add(self, document: Document) -> None:
        slot = len(self._documents)
        tokens = tokenize(document.text)
        for term, count in Counter(tokens).items():
            posting = self.posting(term)
            if posting is None:
                posting = self._terms[term] = Posting()
            posting.add(slot, count)
        self._tokens += len(tokens)
        self._lengths.append(len(tokens))
        self._documents.append(document)
        self._slots[document.id] = slot

    def _sweep(self) -> None:
        """Give the present documents consecutive slots again."""
        self._read_all()
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
