"""What all nodes of a search share: the competition, and where its contents are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langgraft._core.canonical import JSON
from langgraft.environments.competitions.competition import Competition
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.kept_json import keep_json, read_json
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.records import Search, read_search
from langgraft.nodes.search.state import BranchState


@dataclass(frozen=True, slots=True)
class Place:
    """What all nodes of a search share: the competition, and where its contents are kept."""

    competition: Competition
    artifacts: Artifacts

    @property
    def lower_is_better(self) -> bool:
        """The metric's direction: the board's word, and nobody else's."""
        return self.competition.board.thresholds.lower_is_better

    def keep(self, value: JSON) -> str:
        """Keep a value as canonical JSON, and return its reference."""
        return keep_json(self.artifacts, value)

    def read(self, reference: str | None) -> dict[str, Any]:
        """Read a mapping that was kept; without a reference it is empty.

        Raises:
            InputError: Nothing is kept under that reference, or it is damaged.
        """
        return read_json(self.artifacts, reference)

    def search(self, reference: str) -> Search:
        """Return the search so far, by the reference of its journal."""
        return read_search(self.artifacts, reference, task=self.competition.id)

    def nodes(self, reference: str) -> Sequence[JournalNode]:
        """Return the programs of a journal, in the order of their steps."""
        return self.search(reference).nodes

    def parent(self, state: BranchState) -> JournalNode | None:
        """Return the program that the one of a branch comes from."""
        wanted = state["work"]["parent_id"]
        if wanted is None:
            return None
        return next(node for node in self.nodes(state["journal"]) if node.id == wanted)
