"""What the nodes of a tree search depend on: `SearchDeps`, one object for them all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraft._core.canonical import JSON
from langgraft._core.prompts import Prompt
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.nodes.artifacts import Artifacts, keep_json, read_json
from langgraft.nodes.prompts import PromptSet, prompt_field
from langgraft.nodes.search.journal import JournalNode, Search, read_search
from langgraft.nodes.search.state import BranchState


@dataclass(frozen=True, slots=True)
class TreePrompts(PromptSet):
    """The prompts of a tree search, each with the placeholders that it may have."""

    draft: Prompt = prompt_field("tree_draft", "task attempts memory rules data")
    improve: Prompt = prompt_field("tree_improve", "task attempts code memory rules")
    debug: Prompt = prompt_field("tree_debug", "task code output memory rules data")
    rules: Prompt = prompt_field("tree_rules", "limit folds packages")
    """What becomes `$rules`."""
    repair: Prompt = prompt_field("tree_repair", "problem")
    """Asks again for a program."""
    review: Prompt = prompt_field("tree_review", "task code output")
    diagnose: Prompt = prompt_field("diagnose", "code output analysis rules")


@dataclass(frozen=True, slots=True)
class SearchDeps:
    """What the nodes of a search depend on, beside models and memory."""

    competition: Competition
    artifacts: Artifacts
    """Where contents are kept."""
    sandbox: Sandbox
    """Runs programs."""
    prompts: TreePrompts = field(default_factory=TreePrompts)
    seconds: float = 7200.0
    """Wall clock of one program."""
    folds: int = 5
    """Of a cross-validation, as the prompt says."""
    packages: Sequence[str] = ()
    """What the prompt says can be imported."""

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
