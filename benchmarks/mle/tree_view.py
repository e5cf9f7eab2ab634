"""What a tree page shows of a journal: order, kinds, ranks, the best and the chosen program."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from langgraft._core.errors import InputError
from langgraft.nodes.search.journal import Journal, JournalNode, Stage


@dataclass(frozen=True)
class TreeView:
    """A journal as it is drawn; programs are named by their position in it.

    Raises:
        InputError: No program of the journal has the id `chosen`.
    """

    journal: Journal
    lower_is_better: bool | None = None
    """The metric's direction; `None`: not known, so that none is best."""
    chosen: str = ""
    """Id of the program whose submission was handed in; empty: none was, or it is not known."""

    def __post_init__(self) -> None:
        if self.chosen and self.chosen not in self._positions:
            msg = f"run {self.journal.run!r:.80} has no program {self.chosen!r:.80} to be the chosen one"
            raise InputError(msg)

    @property
    def nodes(self) -> Sequence[JournalNode]:
        """The programs in the order of their steps."""
        return self.journal.nodes

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return {node.id: position for position, node in enumerate(self.nodes)}

    @cached_property
    def parents(self) -> Sequence[int | None]:
        """The parent of each program."""
        return [
            None if node.parent_id is None else self._positions[node.parent_id]
            for node in self.nodes
        ]

    @cached_property
    def children(self) -> Sequence[Sequence[int]]:
        """The children of each program, in the order of their steps."""
        below: list[list[int]] = [[] for _ in self.nodes]
        for position, parent in enumerate(self.parents):
            if parent is not None:
                below[parent].append(position)
        return below

    @cached_property
    def stages(self) -> Sequence[Stage]:
        """What each program was written for."""
        return [self.journal.stage(node) for node in self.nodes]

    def score(self, position: int) -> float | None:
        """Return the metric of a program that ran, if it is a finite number."""
        node = self.nodes[position]
        scored = not node.is_buggy and node.metric is not None and math.isfinite(node.metric)
        return node.metric if scored else None

    @cached_property
    def ordered(self) -> Sequence[float]:
        """All different metrics, worst first; without a direction, lowest first."""
        scores = {self.score(position) for position in range(len(self.nodes))} - {None}
        known = sorted(score for score in scores if score is not None)
        return known[::-1] if self.lower_is_better else known

    def rank(self, position: int) -> float | None:
        """Return the rank of a metric among the different ones, from 0 (worst) to 1 (best).

        By rank, not by value: one metric far off would make all others alike.
        """
        score = self.score(position)
        if score is None:
            return None
        return self._ranks[score]

    @cached_property
    def _ranks(self) -> Mapping[float, float]:
        last = len(self.ordered) - 1
        return {score: place / last if last else 1.0 for place, score in enumerate(self.ordered)}

    @cached_property
    def best(self) -> int | None:
        """The program with the best metric, of equal ones the first; `None`: there is none."""
        if self.lower_is_better is None or not self.ordered:
            return None
        goal = self.ordered[-1]
        return next(p for p in range(len(self.nodes)) if self.score(p) == goal)

    @cached_property
    def chosen_position(self) -> int | None:
        """The chosen program."""
        return self._positions[self.chosen] if self.chosen else None

    @cached_property
    def lineage(self) -> frozenset[int]:
        """The chosen program, or else the best one, and those that it descends from."""
        position = self.best if self.chosen_position is None else self.chosen_position
        line: set[int] = set()
        while position is not None:
            line.add(position)
            position = self.parents[position]
        return frozenset(line)

    def told(self, position: int) -> str:
        """Say in a line what a program is and how it went."""
        node, score = self.nodes[position], self.score(position)
        words = [f"Step {node.step}", self.stages[position], "failed" if node.is_buggy else "ran"]
        if node.is_buggy and (node.exc_type or node.reasons):
            words[-1] += f": {node.exc_type or node.reasons[0]}"
        if score is not None:
            words.append(f"metric {number(score)}")
        words += ["best metric"] * (position == self.best)
        words += ["chosen"] * (position == self.chosen_position)
        return ", ".join(words)


def number(value: float) -> str:
    """Write a metric with six digits that count."""
    return f"{value:.6g}"
