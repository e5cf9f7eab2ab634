"""Rankers that add up what the words of a query are worth: BM25, term overlap, their one index.

From the bottom up: the words of a text; which documents hold a word (`Posting`), of all words of a
corpus that changes (`Postings`); what that is worth (`LexicalIndex`, by `Formula`); the rankers.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from langgraft._core.arguments import checked_fields
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import (
    Document,
    DocumentId,
    Order,
    RankerIndex,
    Scored,
    Ties,
    check_ties,
)
from langgraft.memory.rankers.documents import (
    END,
    SLACK,
    Columns,
    Documents,
    Floats,
    Growing,
    Posting,
    Slots,
    best,
    mapped,
    reaching,
)
from langgraft.memory.words import BETWEEN, hidden_characters, tokenize

TOKENIZER = "lowercase unicode words, NFC"
"""What `tokenize` does, as it appears in manifests. Words of scripts with spaces are what they were
before other scripts got bigrams, so the digests of studies stay as they are."""

_BETWEEN_BUT_END: Final = {code: blank for code, blank in BETWEEN.items() if chr(code) != END}
_BLOCK: Final = 256


def _marked_words(texts: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """Return the terms of all texts, one after the other, with `END` behind each.

    Returns them with how many terms of each text do not count in its length.

    Many texts are taken apart at once, which is twice as fast, where all of them are ASCII.
    """
    words: list[str] = []
    hidden = np.zeros(len(texts), dtype=np.intp)
    for start in range(0, len(texts), _BLOCK):
        block = texts[start : start + _BLOCK]
        joined = f" {END} ".join((*block, ""))
        if joined.isascii() and joined.count(END) == len(block):
            words += joined.lower().translate(_BETWEEN_BUT_END).split()
            continue
        for place, text in enumerate(block, start):
            characters = hidden_characters(text)
            hidden[place] = len(characters)
            words += (*tokenize(text), *characters, END)
    return words, hidden


_LEFT: Final = (-1, 0)
"""Stands for a document that is gone, in the place of its slot and count."""


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
    def lengths(self) -> Floats:
        """Number of tokens per slot."""
        return self._lengths.numbers

    def posting(self, term: str) -> Posting | None:
        """Return the occurrences of `term`, or `None` if no present document holds it."""
        posting = self._terms.get(term)
        if posting is None and self._columns is not None:
            held = self._columns.take(term)
            if held is not None:
                self._terms[term] = Posting.of(held)
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
            counts = Counter((*tokens, *hidden_characters(text))).items()
            self._note((term, (slot, count)) for term, count in counts)

    def put_many(self, documents: Iterable[Document]) -> None:
        """Do as `put` does for each, and much faster than one by one."""
        latest = {document.id: document for document in documents}.values()
        new = list(filter(self._is_new, latest) if self.documents.size else latest)
        if not new:
            return
        words, hidden = _marked_words([each.text for each in new])
        columns, terms = Columns.of(words, self.documents.size)
        first = self._enter(new, terms - hidden)
        if not first:
            self._columns = columns
            return
        for term in columns.terms():
            known, more = self.posting(term), columns.take(term)
            assert more is not None
            if known is None:
                self._terms[term] = Posting.of(more)
            else:
                known.extend(more)

    def remove(self, document: DocumentId) -> None:
        """Forget a document; unknown ones are ignored."""
        gone = self.documents.remove(document)
        if gone is None:
            return
        tokens = tokenize(gone.text)
        self._tokens -= len(tokens)
        self._note((term, _LEFT) for term in {*tokens, *hidden_characters(gone.text)})
        if self.documents.sparse:
            self._sweep()

    def save(self, folder: Path) -> None:
        """Write everything into an empty folder; what was loaded before is read whole for it."""
        self._read_all()
        self.documents.save(folder)
        terms = self._terms.items()
        Columns.save(folder, {term: posting.occurrences for term, posting in terms})
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

    def _frequencies(self) -> Counter[int]:
        """Count the terms by how many documents hold them."""
        self._read_all()
        return Counter(posting.documents for posting in self._terms.values())

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


_FEW: Final = 20_000
"""Documents up to which to add up all terms is as fast as to look which may be left out."""

_LOOK: Final = 12
"""Adding up a term over all documents that hold it costs each of them so many times less than
looking it up for one document."""

_ROUNDING: Final = 4 * float(np.finfo(np.float64).eps)
"""By how much of itself one more term can put a sum off, generously."""

FiguresT = TypeVar("FiguresT", float, Floats)


class Formula(NamedTuple):
    """What one term of a query is worth in a document that holds it.

        rarity · tf / (k1 · (1 - b + b · length / mean length) + tf)

    It is computed element by element in float64, never summed, so that a document's score is the
    same whatever else is computed beside it. A term is worth no less where it occurs more often,
    and no more where a document is longer.
    """

    k1: float
    b: float
    rarity: Callable[[int, int], float]
    """Of a term, above 0, by how many documents hold it, and how many there are."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sought:
    """A term of a query that documents hold."""

    posting: Posting
    weight: float
    """Its rarity, as often as the query counts it."""


class LexicalIndex(Postings):
    """A `DurableIndex` that scores; it is not safe for threads on its own.

    The score of a document is the sum of what the query's terms are worth in it, in their order
    in the query. Where that order does not matter, because a sum only says whether a document
    could be among the best, the terms that are worth most come first: common ones, which nearly
    all documents hold, are then looked up only where they could make a difference (MaxScore:
    Turtle and Flood, 1995).

    Args:
        formula: What terms are worth.
        ties: Which of equal documents comes first.
        query_counts: Whether a term counts as often as the query holds it, or once.
    """

    def __init__(self, formula: Formula, *, ties: Ties, query_counts: bool) -> None:
        super().__init__()
        self._formula = formula
        self._ties = ties
        self._query_counts = query_counts

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the best `limit` documents that share a term with the query, best first."""
        terms = self._sought(query)
        if limit < 1 or not terms:
            return []
        if self.documents.size > _FEW:
            near = self._near(terms, limit)
            if self._is_cheap(near, terms):
                return self._ranking(near, self._scores_at(near, terms), limit)
        scores = self._scores(terms)
        near, last = reaching(scores, limit, below=SLACK)
        if last > SLACK:  # so that none of them is without a match
            return self._ranking(near, scores[near], limit)
        matching = np.flatnonzero(scores != 0)  # much faster than of the numbers themselves
        near, _ = reaching(scores[matching], limit, below=SLACK)
        return self._ranking(matching[near], scores[matching[near]], limit)

    def search_among(
        self, query: str, documents: Collection[DocumentId], *, limit: int
    ) -> list[Scored]:
        """Return the best `limit` of some documents that share a term with the query."""
        terms = self._sought(query)
        if limit < 1 or not terms:
            return []
        slots = self.documents.slots(documents)
        cheap = self._is_cheap(slots, terms)
        scores = self._scores_at(slots, terms) if cheap else self._scores(terms)[slots]
        matching = np.flatnonzero(scores != 0)
        return self._ranking(slots[matching], scores[matching], limit)

    def highest(self, query: str) -> float:
        """Return what no document scores more than: the worth of all terms, unknown ones too.

        It is 1 for a query without a term.
        """
        rarity, size = self._rarity(), len(self.documents)
        worth = 0.0
        for term, count in Counter(tokenize(query)).items():
            posting = self.posting(term)
            each = rarity(posting.documents if posting else 0, size)
            worth += max(each, 0.0) * (count if self._query_counts else 1)
        return worth or 1.0

    def _ranking(self, slots: Slots, scores: Floats, limit: int) -> list[Scored]:
        return best(self.documents, slots, scores, limit=limit, ties=self._ties)

    def _sought(self, query: str) -> list[_Sought]:
        """Return the query's terms that documents hold, in order of first occurrence."""
        counted = Counter(tokenize(query)).items()
        known = [(found, n) for term, n in counted if (found := self.posting(term))]
        if not known:
            return []
        rarity, counts = self._rarity(), self._query_counts
        size = len(self.documents)
        return [
            _Sought(each, (n if counts else 1) * rarity(each.documents, size)) for each, n in known
        ]

    def _rarity(self) -> Callable[[int, int], float]:
        return self._formula.rarity

    def _norms(self, lengths: FiguresT) -> FiguresT:
        """Return a number per document that depends on its length alone."""
        k1, b, _ = self._formula
        return k1 * ((1.0 - b) + b * lengths / (self._tokens / len(self.documents)))

    def _worth(self, term: _Sought, counts: FiguresT, norms: FiguresT) -> FiguresT:
        """Return what a term adds to the scores of documents that hold it."""
        return term.weight * (counts / (norms + counts))

    def _ceilings(self, terms: Iterable[_Sought]) -> list[float]:
        """Return what no document gets more than for each term."""
        least = self._norms(float(self.shortest))
        return [self._worth(term, float(term.posting.most), least) for term in terms]

    def _scores(self, terms: Iterable[_Sought]) -> Floats:
        """Return the unrounded score of every slot; 0 where nothing matches."""
        scores = np.zeros(self.documents.size)
        norms = self._norms(self.lengths)
        for term in terms:
            slots, counts = term.posting.slots.numbers, term.posting.counts.numbers
            # Slots are distinct within a term; `add.at` is four times faster than `+=` here.
            np.add.at(scores, slots, self._worth(term, counts, norms.take(slots)))
        scores[self.documents.dead] = 0.0
        return scores

    def _scores_at(self, slots: Slots, terms: Iterable[_Sought]) -> Floats:
        """Return the same for some present documents, by looking each up."""
        scores = np.zeros(slots.size)
        norms = self._norms(self.lengths[slots])
        for term in terms:
            present, counts = term.posting.among(slots)
            scores[present] += self._worth(term, counts, norms[present])
        return scores

    def _is_cheap(self, slots: Slots, terms: Sequence[_Sought]) -> bool:
        """Say whether looking documents up costs less than adding up whole terms."""
        return slots.size * len(terms) * _LOOK <= _work(terms)

    def _near(self, terms: Sequence[_Sought], limit: int) -> Slots:
        """Return the documents that could be among the best `limit`, and perhaps some more."""
        ceilings = self._ceilings(terms)
        falling = sorted(zip(ceilings, terms, strict=True), key=lambda each: -each[0])
        reached, left = 0.0, sum(ceilings)
        undone, look = _work(terms), self.documents.size // 4
        slack = SLACK + _ROUNDING * len(terms) * left
        scores = np.zeros(self.documents.size)
        for i, (ceiling, term) in enumerate(falling, 1):
            slots, counts = term.posting.slots.numbers, term.posting.counts.numbers
            norms = self._norms(self.lengths[slots])
            np.add.at(scores, slots, self._worth(term, counts, norms))
            reached, left, undone = reached + ceiling, left - ceiling, undone - slots.size
            if i < len(falling) and (left >= reached or undone < look):
                continue  # nothing could be left out, or too little to look for it
            scores[self.documents.dead] = 0.0
            found = np.flatnonzero(scores != 0)
            sums = scores[found]
            near, last = reaching(sums, limit, below=left + slack)
            # Documents that were not found get what is left, at most.
            whole = i == len(falling) or left + slack < last
            if whole and near.size * (len(falling) - i) * _LOOK <= undone:
                return self._nearer(found[near], sums[near], falling[i:], limit, slack)
        return found[near]

    def _nearer(
        self,
        slots: Slots,
        sums: Floats,
        rest: Sequence[tuple[float, _Sought]],
        limit: int,
        slack: float,
    ) -> Slots:
        """Leave out documents that the rest of the terms leave behind."""
        left = sum(ceiling for ceiling, _ in rest)
        for ceiling, term in rest:
            present, counts = term.posting.among(slots)
            norms = self._norms(self.lengths[slots[present]])
            sums[present] += self._worth(term, counts, norms)
            left -= ceiling
            near, _ = reaching(sums, limit, below=left + slack)
            slots, sums = slots[near], sums[near]
        return slots


class _OkapiIndex(LexicalIndex):
    """Scores by an idf that may be below 0: a match may cost, and every document has to be looked at."""

    def search(self, query: str, *, limit: int) -> list[Scored]:
        """Return the best `limit` documents that share a term with the query, best first."""
        terms = self._sought(query)
        return self._best(self._holding(terms), terms, limit)

    def search_among(
        self, query: str, documents: Collection[DocumentId], *, limit: int
    ) -> list[Scored]:
        """Return the best `limit` of some documents that share a term with the query."""
        terms = self._sought(query)
        slots = self.documents.slots(documents)
        return self._best(np.intersect1d(slots, self._holding(terms)), terms, limit)

    def _best(self, slots: Slots, terms: Sequence[_Sought], limit: int) -> list[Scored]:
        if limit < 1 or not terms:
            return []
        return self._ranking(slots, self._scores(terms)[slots], limit)

    def _holding(self, terms: Iterable[_Sought]) -> Slots:
        """Return the documents that hold a term; the sum of what they are worth may be 0."""
        held = np.zeros(self.documents.size, dtype=bool)
        for term in terms:
            held[term.posting.slots.numbers] = True
        held[self.documents.dead] = False
        return np.flatnonzero(held)

    @override
    def _rarity(self) -> Callable[[int, int], float]:
        """Return Okapi's idf, with rank_bm25's value for terms of which it is below 0."""
        terms, corpus = self._frequencies(), len(self.documents)
        mean = math.fsum(n * _okapi_idf(df, corpus) for df, n in terms.items()) / terms.total()
        return lambda df, corpus: idf if (idf := _okapi_idf(df, corpus)) >= 0 else _EPSILON * mean


def _okapi_idf(documents: int, corpus: int) -> float:
    return math.log(corpus - documents + 0.5) - math.log(documents + 0.5)


_EPSILON: Final = 0.25
"""Share of the mean idf that rank_bm25 gives a term whose own is below 0."""


def _work(terms: Iterable[_Sought]) -> int:
    """Return how many numbers adding up whole terms looks at."""
    return sum(term.posting.slots.size for term in terms)


def inverse_document_frequency(documents: int, corpus: int) -> float:
    """Return `ln(1 + (N - df + 0.5) / (df + 0.5))`, which is positive for every df ≤ N.

    Args:
        documents: df, the number of documents that hold the term.
        corpus: N, the number of all documents.
    """
    return math.log(1.0 + (corpus - documents + 0.5) / (documents + 0.5))


Idf: TypeAlias = Literal["lucene", "okapi"]
"""How BM25 tells what a term is worth by its rarity."""


@checked_fields
@dataclass(frozen=True, slots=True)
class BM25:
    """Rank by BM25 as bm25s computes it with `method="lucene"`.

    A document's score is the sum, over the query's terms in order of first occurrence, of

        n · idf · tf / (k1 · (1 - b + b · length / mean length) + tf)

    where n is how often the query holds the term: each occurrence adds, unless `query_counts` is
    off. There is no `k1 + 1` in the numerator; it would scale all scores alike. Documents without
    a single token count in N and in the mean length.

    Raises:
        SettingsError: A setting is out of range.
    """

    k1: float = 1.5
    """How slowly repeats of a term saturate; 0 makes one occurrence as good as many."""

    b: float = 0.75
    """How much a long document is held against itself, from 0 (not) to 1 (fully)."""

    ties: Ties = "oldest"
    """Which of equal documents comes first."""

    idf: Idf = "lucene"
    """`lucene` is above 0 for every term. `okapi` is what rank_bm25's `BM25Okapi` computes,
    `ln((N - df + 0.5) / (df + 0.5))`, where that is below 0 a quarter of the mean over all terms of
    the corpus. Where most texts share most words that mean is below 0 too, and what a document has
    in common with the query is held against it: for telling what others' retrieval did, not for
    retrieving. Each search counts all terms of the corpus."""

    query_counts: bool = True
    """Whether a term counts as often as the query holds it; otherwise once. A long query, such as
    an observation, repeats the words that say least."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            msg = f"k1 must be a finite number of at least 0, got {self.k1!r}"
            raise SettingsError(msg)
        if not 0 <= self.b <= 1:
            msg = f"b must be between 0 and 1, got {self.b!r}"
            raise SettingsError(msg)
        check_ties(self.ties)

    def index(self) -> RankerIndex:
        """Return a new empty index."""
        formula = Formula(float(self.k1), float(self.b), inverse_document_frequency)
        kind = _OkapiIndex if self.idf == "okapi" else LexicalIndex
        return kind(formula, ties=self.ties, query_counts=self.query_counts)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests; `query_counts` where it is off."""
        once: dict[str, JSON] = {} if self.query_counts else {"query_counts": False}
        return {
            "ranker": "bm25",
            "idf": self.idf,
            "k1": float(self.k1),
            "b": float(self.b),
            **once,
            "ties": self.ties,
            "tokenizer": TOKENIZER,
        }


@checked_fields
@dataclass(frozen=True, slots=True)
class TermOverlap:
    """Rank by the number of distinct query terms in the document.

    The lexical ranking of Simple RAG (memory transplants, §4.2). Neither repeats nor lengths nor
    the rarity of a term count, so ties are frequent and `ties` matters.
    """

    ties: Ties = "oldest"
    """Which of equal documents comes first."""

    def __post_init__(self) -> None:
        check_ties(self.ties)

    def index(self) -> RankerIndex:
        """Return a new empty index."""
        one_each = Formula(0.0, 0.0, lambda _documents, _corpus: 1.0)
        return LexicalIndex(one_each, ties=self.ties, query_counts=False)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        return {"ranker": "term_overlap", "ties": self.ties, "tokenizer": TOKENIZER}
