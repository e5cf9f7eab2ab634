"""Short synthetic texts: words drawn by Zipf's law, as in the figures of BM25 libraries."""

from collections.abc import Iterator

import numpy as np

VOCABULARY = 20_000
DOCUMENT_WORDS = (15, 45)
QUERY_WORDS = (6, 13)


def texts(count: int, words: tuple[int, int], *, seed: int) -> list[str]:
    """Draw texts of a length between two bounds, both possible."""
    draw = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, VOCABULARY + 1)
    lengths = draw.integers(words[0], words[1] + 1, size=count)
    numbers = draw.choice(VOCABULARY, size=int(lengths.sum()), p=weights / weights.sum())
    return list(_joined(numbers.tolist(), lengths.tolist()))


def documents(count: int) -> list[str]:
    """Draw documents of 15 to 45 words."""
    return texts(count, DOCUMENT_WORDS, seed=0)


def queries(count: int) -> list[str]:
    """Draw queries of 6 to 13 words."""
    return texts(count, QUERY_WORDS, seed=1)


def _joined(numbers: list[int], lengths: list[int]) -> Iterator[str]:
    start = 0
    for length in lengths:
        yield " ".join(f"w{number}" for number in numbers[start : start + length])
        start += length
