"""The parts of a tree search over programs: its journal, its policy, and its nodes.

deps           what the nodes share: the search's state, and what it depends on
journal        every program so far, as a chain of contents
ends           the beginning, and going on after a crash; what is submitted, and the best solution as files
policy         which programs to write next: AIDE's rules, or one's own
aira           AIRA's policies: by upper confidence bounds (MCTS), and by generations, with merges of two programs
programs       a branch: one program (read from a reply by `langgraft.nodes.program_text`)
memory         what memory recalls for a program and is taught of it, one program at a time
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts
    from langgraft.nodes.dialogue import SAMPLE
    from langgraft.nodes.search.aira import EvolutionPolicy, UCTPolicy
    from langgraft.nodes.search.deps import (
        CurrentTreePrompts,
        TreeInput,
        TreeOutput,
        TreePrompts,
        TreeState,
    )
    from langgraft.nodes.search.ends import arestore_memory, bank_of, restore_memory
    from langgraft.nodes.search.journal import Journal, JournalNode, Search, read_search
    from langgraft.nodes.search.memory import read_best
    from langgraft.nodes.search.policy import AIDEPolicy, Expansion, Progress, SearchPolicy

__all__ = [
    "SAMPLE",
    "AIDEPolicy",
    "Artifacts",
    "CurrentTreePrompts",
    "EvolutionPolicy",
    "Expansion",
    "FolderArtifacts",
    "Journal",
    "JournalNode",
    "MemoryArtifacts",
    "Progress",
    "Search",
    "SearchPolicy",
    "TreeInput",
    "TreeOutput",
    "TreePrompts",
    "TreeState",
    "UCTPolicy",
    "arestore_memory",
    "bank_of",
    "read_best",
    "read_search",
    "restore_memory",
]

_MODULES = {
    "artifacts": ("Artifacts", "FolderArtifacts", "MemoryArtifacts"),
    "dialogue": ("SAMPLE",),
    "search.memory": ("read_best",),
    "search.deps": ("CurrentTreePrompts", "TreeInput", "TreeOutput", "TreePrompts", "TreeState"),
    "search.journal": ("Journal", "JournalNode", "Search", "read_search"),
    "search.policy": ("AIDEPolicy", "Expansion", "Progress", "SearchPolicy"),
    "search.aira": ("EvolutionPolicy", "UCTPolicy"),
    "search.ends": ("arestore_memory", "bank_of", "restore_memory"),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {name: f"langgraft.nodes.{module}" for module, names in _MODULES.items() for name in names},
)
