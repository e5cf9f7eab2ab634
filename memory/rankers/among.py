"""Search some documents of an index, whichever way is faster."""

from collections.abc import Collection
from dataclasses import replace
from math import ceil
from typing import Final

from langgraft.memory.rankers.base import DocumentId, RankerIndex, Scored, SelectiveIndex

FEW: Final = 12
"""Documents that are at most one in so many are searched by themselves: more are not found
faster than by ranking all and leaving out the others."""

_WIDENING: Final = 4


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
        found = [hit for hit in without_ties(ranking) if hit.id in documents]
        if len(found) >= min(limit, len(documents)) or len(ranking) < width:
            return found[:limit]
        width = wider(width, found=len(found), wanted=limit)


def wider(width: int, *, found: int, wanted: int) -> int:
    """Say how far down a ranking to look after `found` of its first `width` were looked for."""
    return max(width * _WIDENING, _depth(wanted, share=(found + 0.5) / width))


def without_ties(ranking: list[Scored]) -> list[Scored]:
    """Forget how many share the best score: not all of them are looked for."""
    return [replace(ranking[0], tied=0), *ranking[1:]] if ranking else ranking


def _depth(wanted: int, *, share: float) -> int:
    """Say how far down a ranking `wanted` are found, with half as much to spare."""
    return ceil(1.5 * wanted / share)
