"""How many different things programs use: the effective number of categories (§4.4)."""

import ast
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.mle.behaviour.progress import is_valid
from langgraft.benchmarks.mle.behaviour.reading import parsed
from langgraft.nodes.search.journal import Journal

OPERATORS: Final = sum(
    len(kind.__subclasses__()) for kind in (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
)
"""Operators that Python has: the largest effective number there can be."""


def effective_number(counts: Mapping[str, int]) -> float:
    """Return exp(H) of some counts, H their entropy in nats; 0 where nothing was counted.

    It is the number of equally frequent categories with the same entropy, at least 1. The paper's
    Table 3 has means below 1, which only zeros for empty sets explain; so an empty set is 0.
    """
    total = sum(counts.values())
    if not total:
        return 0.0
    shares = [count / total for count in counts.values() if count]
    return math.exp(-math.fsum(share * math.log(share) for share in shares))
