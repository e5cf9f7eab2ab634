"""How many documents share the best score: what a first place is worth."""

from dataclasses import replace

import numpy as np

from langgraft.memory.rankers.base import Scored
from langgraft.memory.rankers.selection import Floats


def told(ranking: list[Scored], scores: Floats) -> list[Scored]:
    """Return a ranking whose first document says how many share its score.

    Args:
        ranking: The best documents.
        scores: Final scores of at least all documents that tie with the best.
    """
    if not ranking:
        return ranking
    tied = int(np.count_nonzero(scores == scores.max()))
    return [replace(ranking[0], tied=tied), *ranking[1:]]
