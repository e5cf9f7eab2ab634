"""The best of a ranking, looking no further down than the caller reads."""

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from math import ceil
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import (
    SCORE_DECIMALS,
    DocumentId,
    RankerIndex,
    Scored,
    SelectiveIndex,
)
from langgraft.memory.rankers.documents import Documents

Floats: TypeAlias = NDArray[np.float64]
Slots: TypeAlias = NDArray[np.intp]
"""Positions of documents inside an index; they mean nothing outside it."""

Ties: TypeAlias = Literal["oldest", "newest"]
"""Among equal scores, whether the smallest or the largest `Order` comes first."""

SLACK: Final = 2 * 10.0**-SCORE_DECIMALS
"""How far below the last of the best a score may be and still equal it once both are rounded."""

FEW: Final = 12
"""Documents that are at most one in so many are searched by themselves: more are not found
faster than by ranking all and leaving out the others."""

_WIDENING: Final = 4
"""How much further each next look down a ranking goes, at least."""


def check_ties(ties: str) -> None:
    """Raise `SettingsError` unless `ties` is one of the two ways to break them."""
    if ties not in ("oldest", "newest"):
        msg = f"ties must be 'oldest' or 'newest', got {ties!r}"
        raise SettingsError(msg)


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
    last = float(np.partition(scores, -limit)[-limit])
    # Compared in their own type: another one would make a wide copy of all scores.
    return np.flatnonzero(scores >= scores.dtype.type(last - below)), last


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
    hits = zip(found[:limit], ordered.tolist(), strict=False)
    ranking = [Scored(document.id, score) for document, score in hits]
    return with_tie_count(ranking, int(np.count_nonzero(final == ordered[0])) if found else 0)


def with_tie_count(ranking: list[Scored], tied: int = 0) -> list[Scored]:
    """Say how many documents share the best score of a ranking; 0: that is not known."""
    return [replace(ranking[0], tied=tied), *ranking[1:]] if ranking else ranking


def search_among(
    index: RankerIndex, query: str, documents: Collection[DocumentId], *, limit: int
) -> list[Scored]:
    """Return the best `limit` of some documents, as `SelectiveIndex` does, with any index.

    Where all are ranked, nobody counts how many of `documents` share the best score.

    Args:
        index: The index.
        query: What to compare with the documents.
        documents: Which may be found; being asked for one must cost little, as with a set.
        limit: How many to return.
    """
    # There may be some that are about to be entered in an empty index.
    if not documents or not len(index):
        return []
    if len(documents) * FEW <= len(index) and isinstance(index, SelectiveIndex):
        return index.search_among(query, documents, limit=limit)
    width = _depth(limit, share=len(documents) / len(index))
    while True:
        ranking = index.search(query, limit=width)
        found = [hit for hit in with_tie_count(ranking) if hit.id in documents]
        if len(found) >= min(limit, len(documents)) or len(ranking) < width:
            return found[:limit]
        width = wider(width, found=len(found), wanted=limit)


def wider(width: int, *, found: int, wanted: int) -> int:
    """Say how far down a ranking to look after `found` of its first `width` were looked for."""
    return max(width * _WIDENING, _depth(wanted, share=(found + 0.5) / width))


def _depth(wanted: int, *, share: float) -> int:
    """Say how far down a ranking `wanted` are found, with half as much to spare."""
    return ceil(1.5 * wanted / share)
