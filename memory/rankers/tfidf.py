"""TF-IDF vectors of texts: how alike they are, and how varied a set of them is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from langgraft.memory.rankers.base import SCORE_DECIMALS
from langgraft.memory.rankers.selection import Floats, rounded
from langgraft.memory.rankers.tokens import TOKENIZER, tokenize

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
