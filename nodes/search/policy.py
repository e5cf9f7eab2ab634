"""Which program to write next."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from langgraft.nodes.search.journal import JournalNode, Stage


@dataclass(frozen=True, slots=True)
class Expansion:
    """A program that is to be written, or is being written."""

    stage: Stage
    parent_id: str | None = None
    """The program to repair or to better; `None` for a draft."""


class SearchPolicy(Protocol):
    """Chooses what to do next; the same question has the same answer, in every process."""

    def choose(
        self,
        nodes: Sequence[JournalNode],
        *,
        step: int,
        seed: int,
        lower_is_better: bool,
        under_way: Sequence[Expansion] = (),
    ) -> Expansion:
        """Return what to write as program number `step`.

        Args:
            nodes: All programs so far, in the order of their steps.
            step: Number of the program to be written, from 0.
            seed: Of the search; chance is a function of this and `step`.
            lower_is_better: The metric's direction, from the competition's board.
            under_way: What else is being written meanwhile, in the order of the steps.
        """
        ...
