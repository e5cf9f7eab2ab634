"""The parts of a tree search over programs: its journal, its policy, and its nodes.

journal, policy, aide_policy, audit  programs so far, and which to write next
records, restoring                   a search as a chain of contents (`node_json`)
state, place, briefing               what the nodes share
start, select                        the beginning, and the programs of a wave
recall, write, execute, review,      a branch: one program (`program_text`, `packages`,
diagnose                             `summary` help)
gathering, remember                  into memory and journal, one program at a time
choose, selection, best              what is submitted, and the best solution as files
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts
    from langgraft.nodes.sampling import SAMPLE
    from langgraft.nodes.search.aide_policy import AIDEPolicy
    from langgraft.nodes.search.best import read_best
    from langgraft.nodes.search.briefing import TreePrompts
    from langgraft.nodes.search.journal import Journal, JournalNode
    from langgraft.nodes.search.policy import Expansion, SearchPolicy
    from langgraft.nodes.search.records import Search, read_search
    from langgraft.nodes.search.restoring import arestore_memory, bank_of, restore_memory
    from langgraft.nodes.search.state import TreeInput, TreeOutput, TreeState

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

_HERE = "langgraft.nodes.search"
_STATE = f"{_HERE}.state"
_ARTIFACTS = "langgraft.nodes.artifacts"
_RESTORING = f"{_HERE}.restoring"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "SAMPLE": "langgraft.nodes.sampling",
        "AIDEPolicy": f"{_HERE}.aide_policy",
        "Artifacts": _ARTIFACTS,
        "Expansion": f"{_HERE}.policy",
        "FolderArtifacts": _ARTIFACTS,
        "Journal": f"{_HERE}.journal",
        "JournalNode": f"{_HERE}.journal",
        "MemoryArtifacts": _ARTIFACTS,
        "Search": f"{_HERE}.records",
        "SearchPolicy": f"{_HERE}.policy",
        "TreeInput": _STATE,
        "TreeOutput": _STATE,
        "TreePrompts": f"{_HERE}.briefing",
        "TreeState": _STATE,
        "arestore_memory": _RESTORING,
        "bank_of": _RESTORING,
        "read_best": f"{_HERE}.best",
        "read_search": f"{_HERE}.records",
        "restore_memory": _RESTORING,
    },
)
