"""Put scored documents in order, looking no further down than the caller reads."""

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import SCORE_DECIMALS, Order

Floats: TypeAlias = NDArray[np.float64]
Slots: TypeAlias = NDArray[np.intp]
"""Positions of documents inside an index; they mean nothing outside it."""

Ties: TypeAlias = Literal["oldest", "newest"]
"""Among equal scores, whether the smallest or the largest `Order` comes first."""

WIDENING = 4
"""How much further each next look down a ranking goes."""


def check_ties(ties: str) -> None:
    """Raise `SettingsError` unless `ties` is one of the two ways to break them."""
    if ties not in ("oldest", "newest"):
        msg = f"ties must be 'oldest' or 'newest', got {ties!r}"
        raise SettingsError(msg)


def rounded(scores: Floats) -> Floats:
    """Round scores to `SCORE_DECIMALS`: the one place where that happens."""
    return np.round(scores, SCORE_DECIMALS)


def best_first(
    slots: Slots,
    scores: Floats,
    *,
    width: int,
    order: Callable[[int], Order],
    ties: Ties,
) -> Iterator[tuple[int, float]]:
    """Yield (slot, score) from the highest score down, ties by `order`.

    Args:
        slots: The documents.
        scores: Their final scores, aligned with `slots`.
        width: How many the caller expects to read; only those, and what ties with the last of
            them, are sorted before the first is yielded. Reading on is possible.
        order: Slot → its place among equals.
        ties: Which end of `order` comes first.
    """
    while slots.size:
        if slots.size > width:
            last = np.partition(scores, -width)[-width]
            block = scores >= last
        else:
            block = np.ones(slots.size, dtype=np.bool_)
        falling = np.argsort(-scores[block])
        pairs = zip(slots[block][falling].tolist(), scores[block][falling].tolist(), strict=True)
        for score, equals in groupby(pairs, key=itemgetter(1)):
            tied = [slot for slot, _ in equals]
            if len(tied) > 1:  # the order of a document may have to be read from a file
                tied.sort(key=order, reverse=ties == "newest")
            for slot in tied:
                yield slot, score
        slots, scores, width = slots[~block], scores[~block], width * WIDENING
