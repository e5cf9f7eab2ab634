"""Choose from a ranking what says something new: near-duplicate folding and MMR.

Candidates are positions in a ranking, best first. How alike two of them are is the caller's to
say, so the same choice serves texts, vectors, or anything else.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from langgraft.memory.rankers.selection import Floats, rounded

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
