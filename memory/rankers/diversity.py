"""How alike texts are, and choosing from a ranking what says something new.

Candidates are positions in a ranking, best first. How alike two of them are is the caller's to
say: the cosine of TF-IDF vectors (`TfIdf`), of embeddings, or anything else.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from langgraft.memory.rankers.base import SCORE_DECIMALS
from langgraft.memory.rankers.documents import Floats, rounded
from langgraft.memory.rankers.lexical import TOKENIZER
from langgraft.memory.words import tokenize

Similarity: TypeAlias = Callable[[int], Floats]
"""Position → its similarity with the candidate at every position: `matrix.__getitem__`, say."""


def fold_near_duplicates(
    candidates: Iterable[int],
    similarity: Similarity,
    *,
    above: float,
    chosen: Iterable[int] = (),
    limit: int | None = None,
) -> list[int]:
    """Keep, from the best down, each candidate that is like no other kept before it.

    Args:
        candidates: Positions, best first.
        similarity: Of the candidates; asked once for each that is kept or chosen.
        above: Two whose similarity is this or more count as the same.
        chosen: Positions kept beforehand; they are not returned.
        limit: How many to keep; `None`: all.
    """
    alike: set[int] = set()
    kept: list[int] = []
    for position in chosen:
        alike.update(np.flatnonzero(similarity(position) >= above).tolist())
    for position in candidates:
        if len(kept) == limit:
            break
        if position not in alike:
            kept.append(position)
            alike.update(np.flatnonzero(similarity(position) >= above).tolist())
    return kept


def maximal_marginal_relevance(
    candidates: Sequence[int],
    relevance: Sequence[float] | Floats,
    similarity: Similarity,
    *,
    trade_off: float,
    limit: int,
    chosen: Iterable[int] = (),
) -> list[int]:
    """Choose candidates one by one, weighing relevance against likeness to those chosen before.

    Each next one has the largest `trade_off · relevance - (1 - trade_off) · likeness`, where
    likeness is the largest similarity with any chosen one (Carbonell and Goldstein, 1998). The
    first is the best candidate unless some were chosen beforehand. Equals go by rank.

    Args:
        candidates: Positions, best first.
        relevance: Score of every position; scaled so that the best of all is 1 and what is
            below 0 is 0.
        similarity: Of the candidates; asked once for each that is chosen.
        trade_off: λ: 1 keeps the ranking, 0 looks at likeness alone.
        limit: How many to choose.
        chosen: Positions chosen beforehand; they are not returned.

    Returns:
        Positions in the order of choice.
    """
    left = np.array(candidates, dtype=np.intp)
    worth = _scaled(relevance)
    likeness: Floats | None = None
    for position in chosen:
        likeness = _likeness(likeness, similarity(position))
    picked: list[int] = []
    while left.size and len(picked) < limit:
        best = 0
        if likeness is not None:
            marginal = trade_off * worth[left] - (1 - trade_off) * likeness[left]
            best = int(np.argmax(rounded(marginal)))
        picked.append(int(left[best]))
        left = np.delete(left, best)
        likeness = _likeness(likeness, similarity(picked[-1]))
    return picked


def _scaled(relevance: Sequence[float] | Floats) -> Floats:
    scores = np.maximum(np.asarray(relevance, dtype=np.float64), 0.0)
    best = scores.max(initial=0.0)
    return scores / best if best else scores


def _likeness(before: Floats | None, row: Floats) -> Floats:
    return row if before is None else np.maximum(before, row)


VECTORIZER: Final = f"TF-IDF (counts * (ln((1 + n) / (1 + df)) + 1), length 1) of {TOKENIZER}"
"""What `TfIdf` does, as it appears in reports; scikit-learn's default formula."""


@dataclass(frozen=True, slots=True, eq=False)
class TfIdf:
    """The vectors of a corpus, as sparse rows of length 1 in float64.

    Document frequencies are taken over the same texts. A text without words has no direction:
    its similarity with any text, itself included, is 0.
    """

    size: int
    """How many texts there are."""
    width: int
    """How many distinct words they hold."""
    rows: NDArray[np.intp]
    """Text of each entry, ascending."""
    columns: NDArray[np.intp]
    """Word of each entry: its place in the sorted vocabulary, ascending within a text."""
    weights: Floats
    """The entries."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> "TfIdf":
        """Make the vectors of `texts`, which are the corpus."""
        return cls.of_words([tokenize(text) for text in texts])

    @classmethod
    def of_words(cls, words: Sequence[Sequence[str]]) -> "TfIdf":
        """Make the vectors of texts given as their words, or whatever else is to be counted."""
        vocabulary = {word: i for i, word in enumerate(sorted(set().union(*words)))}
        size, width = len(words), len(vocabulary)
        numbers = np.fromiter((vocabulary[word] for word in chain(*words)), dtype=np.intp)
        cells = np.repeat(np.arange(size), [len(each) for each in words]) * width + numbers
        entries, occurrences = np.unique(cells, return_counts=True)
        rows, columns = np.divmod(entries, max(width, 1))
        rarity = np.log((1 + size) / (1 + np.bincount(columns, minlength=width))) + 1
        weights = occurrences * rarity[columns]
        lengths = np.sqrt(np.bincount(rows, weights=weights**2, minlength=size))
        return cls(size, width, rows, columns, weights / lengths[rows])

    def similarities(self, position: int) -> Floats:
        """Return the cosine of one text with every text, rounded to 1e-9."""
        start, stop = np.searchsorted(self.rows, (position, position + 1))
        vector = np.zeros(self.width)
        vector[self.columns[start:stop]] = self.weights[start:stop]
        products = self.weights * vector[self.columns]
        cosines = np.bincount(self.rows, weights=products, minlength=self.size)
        return rounded(cosines.astype(np.float64))

    def mean_pairwise_similarity(self) -> float | None:
        """Return the mean cosine of two different texts; `None` where there are not two.

        One pass over the entries: the squared length of the sum of all vectors is the sum of
        all cosines, each text's with itself included.
        """
        if self.size < 2:  # noqa: PLR2004
            return None
        total = np.bincount(self.columns, weights=self.weights, minlength=self.width)
        with_itself = float(np.sum(self.weights**2))
        return (float(np.sum(total**2)) - with_itself) / (self.size * (self.size - 1))


def mean_pairwise_diversity(texts: Sequence[str]) -> float | None:
    """Return 1 - the mean TF-IDF cosine of two of the texts (continual-memory §D).

    0: all say the same in the same words; 1: no two share a word. The corpus is `texts`, so
    figures of different sets of texts each have weights of their own.

    Returns:
        The diversity, rounded to 1e-9; `None` for fewer than two texts.
    """
    similarity = TfIdf.of(texts).mean_pairwise_similarity()
    # `abs`: equal texts may come out as -0.0.
    return None if similarity is None else abs(round(1 - similarity, SCORE_DECIMALS))
