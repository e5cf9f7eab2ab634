"""Rankers: settings that say in which order texts answer a query, and the indexes behind them.

A ranker is a frozen dataclass (`BM25(k1=1.5, b=0.75)`, `Dense("openai:…")`) that belongs to a
memory provider's settings; the index it makes belongs to whoever searches. `TermOverlap` and
`BM25` compare words, `Dense` embeddings; `Hybrid` fuses rankers, `MMR` reorders the best of one.
Rankings are exact: scores are float64 sums in a fixed order, rounded to 1e-9, and ties break by
a stated order, so the same documents rank the same whatever was written before, in whatever
sequence, on any number of threads.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.rankers.base import (
        SCORE_DECIMALS,
        DocumentId,
        DurableIndex,
        EmbeddingIndex,
        Order,
        Ranker,
        RankerIndex,
        Scored,
        SelectiveIndex,
        Ties,
    )
    from langgraft.memory.rankers.composite import MMR, Hybrid
    from langgraft.memory.rankers.dense import Dense
    from langgraft.memory.rankers.diversity import (
        TfIdf,
        fold_near_duplicates,
        maximal_marginal_relevance,
        mean_pairwise_diversity,
    )
    from langgraft.memory.rankers.lexical import BM25, TermOverlap
    from langgraft.memory.words import tokenize

__all__ = [
    "BM25",
    "MMR",
    "SCORE_DECIMALS",
    "Dense",
    "DocumentId",
    "DurableIndex",
    "EmbeddingIndex",
    "Hybrid",
    "Order",
    "Ranker",
    "RankerIndex",
    "Scored",
    "SelectiveIndex",
    "TermOverlap",
    "TfIdf",
    "Ties",
    "fold_near_duplicates",
    "maximal_marginal_relevance",
    "mean_pairwise_diversity",
    "tokenize",
]

_BASE = "langgraft.memory.rankers.base"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "BM25": "langgraft.memory.rankers.lexical",
        "MMR": "langgraft.memory.rankers.composite",
        "SCORE_DECIMALS": _BASE,
        "Dense": "langgraft.memory.rankers.dense",
        "DocumentId": _BASE,
        "DurableIndex": _BASE,
        "EmbeddingIndex": _BASE,
        "Hybrid": "langgraft.memory.rankers.composite",
        "Order": _BASE,
        "Ranker": _BASE,
        "RankerIndex": _BASE,
        "Scored": _BASE,
        "SelectiveIndex": _BASE,
        "TermOverlap": "langgraft.memory.rankers.lexical",
        "TfIdf": "langgraft.memory.rankers.diversity",
        "Ties": _BASE,
        "fold_near_duplicates": "langgraft.memory.rankers.diversity",
        "maximal_marginal_relevance": "langgraft.memory.rankers.diversity",
        "mean_pairwise_diversity": "langgraft.memory.rankers.diversity",
        "tokenize": "langgraft.memory.words",
    },
)
