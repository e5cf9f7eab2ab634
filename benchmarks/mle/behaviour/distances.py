"""How far a valid program is from the one before it (mle-agent-memory §4.4)."""

import math
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from itertools import pairwise

from langgraft.benchmarks.mle.behaviour.progress import is_valid
from langgraft.benchmarks.mle.behaviour.reading import tokens
from langgraft.nodes.search.journal import Journal


def jaccard_distance(one: AbstractSet[str], other: AbstractSet[str]) -> float:
    """Return 1 - |A and B| / |A or B|; 0 for two empty sets."""
    union = len(one | other)
    return 1 - len(one & other) / union if union else 0.0


def valid_code_distance(
    journal: Journal, *, read: Callable[[str], AbstractSet[str]] = tokens
) -> float | None:
    """Return the mean distance of consecutive valid programs; `None` for fewer than two.

    "Consecutive valid codes" are taken in time, over branches and past buggy programs in between,
    not from parent to child.

    Args:
        journal: The run.
        read: What a program is made of: `tokens`, or `names` for the names alone. The paper names
            no tokenizer; splitting at blanks would give distances a fifth larger.
    """
    read_valid = [read(node.code) for node in journal.nodes if is_valid(node)]
    found = [jaccard_distance(one, other) for one, other in pairwise(read_valid)]
    return math.fsum(found) / len(found) if found else None
