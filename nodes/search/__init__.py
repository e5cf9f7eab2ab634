"""The parts of a tree search over programs: its journal, its policy, and its nodes.

deps           what the nodes share: the search's state, and what it depends on
journal        every program so far, as a chain of contents
start          the beginning, and going on after a crash
policy         which programs to write next: AIDE's rules, or one's own
programs       a branch: one program (read from a reply by `langgraft.nodes.program_text`)
memory         what memory recalls for a program and is taught of it, one program at a time
choose, best   what is submitted, and the best solution as files
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts
    from langgraft.nodes.node import SAMPLE
    from langgraft.nodes.search.best import read_best
    from langgraft.nodes.search.deps import TreeInput, TreeOutput, TreePrompts, TreeState
    from langgraft.nodes.search.journal import Journal, JournalNode, Search, read_search
    from langgraft.nodes.search.policy import AIDEPolicy, Expansion, SearchPolicy
    from langgraft.nodes.search.start import arestore_memory, bank_of, restore_memory

__all__ = [
    "SAMPLE",
    "AIDEPolicy",
    "Artifacts",
    "Expansion",
    "FolderArtifacts",
    "Journal",
    "JournalNode",
    "MemoryArtifacts",
    "Search",
    "SearchPolicy",
    "TreeInput",
    "TreeOutput",
    "TreePrompts",
    "TreeState",
    "arestore_memory",
    "bank_of",
    "read_best",
    "read_search",
    "restore_memory",
]

_ARTIFACTS = "langgraft.nodes.artifacts"
_JOURNAL = "langgraft.nodes.search.journal"
_POLICY = "langgraft.nodes.search.policy"
_START = "langgraft.nodes.search.start"
_STATE = "langgraft.nodes.search.deps"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "SAMPLE": "langgraft.nodes.node",
        "AIDEPolicy": _POLICY,
        "Artifacts": _ARTIFACTS,
        "Expansion": _POLICY,
        "FolderArtifacts": _ARTIFACTS,
        "Journal": _JOURNAL,
        "JournalNode": _JOURNAL,
        "MemoryArtifacts": _ARTIFACTS,
        "Search": _JOURNAL,
        "SearchPolicy": _POLICY,
        "TreeInput": _STATE,
        "TreeOutput": _STATE,
        "TreePrompts": "langgraft.nodes.search.deps",
        "TreeState": _STATE,
        "arestore_memory": _START,
        "bank_of": _START,
        "read_best": "langgraft.nodes.search.best",
        "read_search": _JOURNAL,
        "restore_memory": _START,
    },
)
