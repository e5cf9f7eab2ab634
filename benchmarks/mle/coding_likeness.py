"""How alike the errors of one task are, and those of different tasks (mle-agent-memory App. B).

The paper gives a mean embedding similarity of 0.032 within tasks and 0.013 across, a ratio of 2.0
to 4.9, t = 10.69 and d = 2.28, without saying of what. As d = t / √22, the test is paired over
its 22 tasks; the scale is not that of a cosine. The reading taken here: the query is the
canonical error of each entry; it is compared, by the cosine of an embedder's vectors, with the
keys (error and fix) of the other entries of its task, and with those of other tasks; once with
all of them, once with the `k` nearest, which is what retrieval would give. Means are taken by
error, then by task, and the test is paired over tasks. The nearest of many are nearer than the
nearest of few, so that the second reading favors the side with more entries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langgraft.benchmarks.comparison.estimates import Estimate, mean_estimate
from langgraft.memory.embedders.hashing import HashingEmbeddings
from langgraft.memory.items import MemoryItem
from langgraft.memory.providers.coding import CodingMemory


@dataclass(frozen=True, slots=True)
class Likeness:
    """Similarities within and across tasks; means over tasks."""

    within: float
    across: float
    difference: Estimate
    """Over tasks, paired."""
    errors: int
    tasks: int

    @property
    def ratio(self) -> float:
        """Within to across."""
        return self.within / self.across if self.across else math.inf

    @property
    def t(self) -> float:
        """Of the paired difference."""
        return self.difference.value / self.difference.se if self.difference.se else math.inf


def likeness(
    memory: CodingMemory, *, nearest: int | None = None, embeddings: Embeddings | None = None
) -> Likeness:
    """Compare the entries of a memory within and across tasks.

    Args:
        memory: The memory; entries of tasks with a single entry are not asked about.
        nearest: Compare with so many nearest entries of each side; `None`: with all.
        embeddings: Give the vectors; `None` takes those of the memory's default, hashed words.

    Raises:
        ValueError: There are fewer than two tasks of at least two entries.
    """
    items = sorted(memory.content().items.values(), key=lambda item: item.order_index)
    cosines = _cosines(items, embeddings or HashingEmbeddings())
    tasks = [item.task_id or "" for item in items]
    by_task: dict[str, list[tuple[float, float]]] = {}
    for position, task in enumerate(tasks):
        same = [i for i, other in enumerate(tasks) if other == task and i != position]
        others = [i for i, other in enumerate(tasks) if other != task]
        if same and others:
            row = cosines[position]
            pair = _mean(row[same], nearest), _mean(row[others], nearest)
            by_task.setdefault(task, []).append(pair)
    if len(by_task) < 2:  # noqa: PLR2004
        msg = f"likeness is compared over tasks; only {len(by_task)} has two entries or more"
        raise ValueError(msg)
    means = np.array([np.mean(pairs, axis=0) for pairs in by_task.values()])
    return Likeness(
        within=float(means[:, 0].mean()),
        across=float(means[:, 1].mean()),
        difference=mean_estimate((means[:, 0] - means[:, 1])[:, None], bounds=(-1.0, 1.0)),
        errors=sum(map(len, by_task.values())),
        tasks=len(by_task),
    )


def _cosines(items: Sequence[MemoryItem], embeddings: Embeddings) -> NDArray[np.float64]:
    """Return the cosines of errors (rows) and keys (columns)."""

    def unit(texts: list[str]) -> NDArray[np.float64]:
        vectors = np.array(embeddings.embed_documents(texts), dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(lengths > 0, lengths, 1.0)

    errors = unit([str(item.metadata["error"]) for item in items])
    cosines: NDArray[np.float64] = errors @ unit([item.retrieval_key for item in items]).T
    return cosines


def _mean(similarities: NDArray[np.float64], nearest: int | None) -> float:
    ordered = np.sort(similarities)[::-1]
    return float(ordered[:nearest].mean())
