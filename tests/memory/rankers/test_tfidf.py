"""TF-IDF: scikit-learn's figures, with our words, in one pass."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from langgraft.memory.rankers.diversity import TfIdf, mean_pairwise_diversity
from langgraft.memory.words import tokenize

TEXTS = [
    "go to the red door 1, then the red door 2",
    "go to the red door 1",
    "a grey box",
    "Go to the RED door 1",
    "",
    "?!",
]

WORDS = ["red", "door", "key", "1", "a", "in", "É"]

corpora = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join),
    min_size=2,
    max_size=8,
)


def oracle(texts: list[str]) -> np.ndarray:
    """Return all cosines as scikit-learn has them with its defaults and our words."""
    vectorizer = TfidfVectorizer(tokenizer=tokenize, lowercase=False, token_pattern=None)
    return np.asarray(cosine_similarity(vectorizer.fit_transform(texts)))


@given(corpora.filter(lambda texts: any(map(tokenize, texts))))
def test_similarities_when_compared_with_scikit_learn_are_the_same(texts: list[str]) -> None:
    """The formula is the one everybody knows."""
    vectors = TfIdf.of(texts)
    expected = oracle(texts)
    for position in range(len(texts)):
        np.testing.assert_allclose(vectors.similarities(position), expected[position], atol=1e-9)


@given(corpora.filter(lambda texts: any(map(tokenize, texts))))
def test_diversity_when_taken_in_one_pass_is_that_of_all_pairs(texts: list[str]) -> None:
    """No matrix of all pairs is needed."""
    cosines = oracle(texts)
    pairs = [cosines[i, j] for i, j in itertools.combinations(range(len(texts)), 2)]
    assert mean_pairwise_diversity(texts) == pytest.approx(1 - np.mean(pairs), abs=1e-8)


@given(corpora, st.randoms(use_true_random=False))
def test_similarity_when_texts_are_shuffled_is_the_same(texts: list[str], random: object) -> None:
    """The order of a corpus shows in no figure."""
    order = list(range(len(texts)))
    random.shuffle(order)  # type: ignore[attr-defined]
    vectors, shuffled = TfIdf.of(texts), TfIdf.of([texts[i] for i in order])
    for position, original in enumerate(order):
        expected = vectors.similarities(original)[order]
        np.testing.assert_array_equal(shuffled.similarities(position), expected)


def test_similarity_when_a_text_has_no_words_is_zero_with_every_text() -> None:
    """What says nothing is like nothing; equal texts are wholly alike."""
    vectors = TfIdf.of(TEXTS)
    assert not vectors.similarities(4).any()
    assert not vectors.similarities(5).any()
    assert vectors.similarities(1)[3] == 1.0
    assert 0 < vectors.similarities(0)[1] < 1


def test_diversity_when_texts_are_few_equal_or_apart_is_none_zero_or_one() -> None:
    """The ends of the scale."""
    assert mean_pairwise_diversity([]) is None
    assert mean_pairwise_diversity(["a red door"]) is None
    assert mean_pairwise_diversity(["a red door"] * 7) == 0.0
    assert mean_pairwise_diversity(["red", "blue", "grey"]) == 1.0
    assert mean_pairwise_diversity(["", ""]) == 1.0
