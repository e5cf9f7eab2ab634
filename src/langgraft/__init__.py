"""Graft memory onto LangGraph agents: swap it, transplant it, measure it.

    langgraft.memory        items, providers, stores, rankers
    langgraft.environments  worlds that agents act in
    langgraft.nodes         recall, think, act, reflect, remember
    langgraft.graphs        agents: one `build_…` function each
    langgraft.benchmarks    studies, and the harness that runs them
    langgraft.cli           the command line

Names are imported when they are used, so `import langgraft` costs next to nothing.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft._core.errors import LanggraftError
    from langgraft._core.texts import Prompt
    from langgraft.benchmarks.harness.log import open_run
    from langgraft.environments.alfworld import ALFWorld
    from langgraft.environments.babyai import BabyAI
    from langgraft.graphs.chain import build_chain_agent
    from langgraft.graphs.mlab import build_mlab_agent
    from langgraft.graphs.react import build_react_agent
    from langgraft.graphs.solver import build_solver
    from langgraft.graphs.tree import build_tree_agent
    from langgraft.memory.banks import Banks, open_memory
    from langgraft.memory.model import (
        Episode,
        ErrorRecord,
        Lesson,
        MemoryDelta,
        MemoryItem,
        Outcome,
        Question,
        Receipt,
        Step,
        Verdict,
        fold,
    )
    from langgraft.memory.provider import MemoryProvider
    from langgraft.memory.providers.agent_kb import AgentKB, AgentKBSettings
    from langgraft.memory.providers.baselines import NoMemory
    from langgraft.memory.providers.coding import CodingMemory, CodingSettings
    from langgraft.memory.providers.expel import ExpeL, ExpeLSettings
    from langgraft.memory.providers.facts import FactMemory, FactSettings
    from langgraft.memory.providers.insight import InsightMemory, InsightSettings
    from langgraft.memory.providers.lightweight import LightweightMemory, LightweightSettings
    from langgraft.memory.providers.memrl import MemRL, MemRLSettings
    from langgraft.memory.providers.reasoning_bank import ReasoningBank, ReasoningBankSettings
    from langgraft.memory.providers.simple_rag import SimpleRAG, SimpleRAGSettings
    from langgraft.memory.providers.trajectory import TrajectoryMemory, TrajectorySettings
    from langgraft.memory.rankers.composite import MMR, Hybrid
    from langgraft.memory.rankers.dense import Dense
    from langgraft.memory.rankers.lexical import BM25, TermOverlap
    from langgraft.memory.recall import Budget, Recall, RecallContext
    from langgraft.memory.stores.chroma import ChromaStore
    from langgraft.memory.stores.ranked import RankedStore
    from langgraft.memory.stores.read_only import ReadOnlyStore
    from langgraft.nodes.chains import with_memory
    from langgraft.nodes.middleware import MemoryMiddleware, MemoryState
    from langgraft.nodes.tools import MemoryRetriever, memory_tools

__version__ = "0.1.0"

__all__ = [
    "BM25",
    "MMR",
    "ALFWorld",
    "AgentKB",
    "AgentKBSettings",
    "BabyAI",
    "Banks",
    "Budget",
    "ChromaStore",
    "CodingMemory",
    "CodingSettings",
    "Dense",
    "Episode",
    "ErrorRecord",
    "ExpeL",
    "ExpeLSettings",
    "FactMemory",
    "FactSettings",
    "Hybrid",
    "InsightMemory",
    "InsightSettings",
    "LanggraftError",
    "Lesson",
    "LightweightMemory",
    "LightweightSettings",
    "MemRL",
    "MemRLSettings",
    "MemoryDelta",
    "MemoryItem",
    "MemoryMiddleware",
    "MemoryProvider",
    "MemoryRetriever",
    "MemoryState",
    "NoMemory",
    "Outcome",
    "Prompt",
    "Question",
    "RankedStore",
    "ReadOnlyStore",
    "ReasoningBank",
    "ReasoningBankSettings",
    "Recall",
    "RecallContext",
    "Receipt",
    "SimpleRAG",
    "SimpleRAGSettings",
    "Step",
    "TermOverlap",
    "TrajectoryMemory",
    "TrajectorySettings",
    "Verdict",
    "build_chain_agent",
    "build_mlab_agent",
    "build_react_agent",
    "build_solver",
    "build_tree_agent",
    "fold",
    "memory_tools",
    "open_memory",
    "open_run",
    "with_memory",
]

_MODULES = {
    "langgraft._core.errors": ("LanggraftError",),
    "langgraft._core.texts": ("Prompt",),
    "langgraft.benchmarks.harness.log": ("open_run",),
    "langgraft.environments.alfworld": ("ALFWorld",),
    "langgraft.environments.babyai": ("BabyAI",),
    "langgraft.graphs.chain": ("build_chain_agent",),
    "langgraft.graphs.mlab": ("build_mlab_agent",),
    "langgraft.graphs.react": ("build_react_agent",),
    "langgraft.graphs.solver": ("build_solver",),
    "langgraft.graphs.tree": ("build_tree_agent",),
    "langgraft.memory.banks": ("Banks", "open_memory"),
    "langgraft.memory.model": (
        "Episode",
        "ErrorRecord",
        "Lesson",
        "MemoryDelta",
        "MemoryItem",
        "Outcome",
        "Question",
        "Receipt",
        "Step",
        "Verdict",
        "fold",
    ),
    "langgraft.memory.provider": ("MemoryProvider",),
    "langgraft.memory.providers.agent_kb": ("AgentKB", "AgentKBSettings"),
    "langgraft.memory.providers.coding": ("CodingMemory", "CodingSettings"),
    "langgraft.memory.providers.expel": ("ExpeL", "ExpeLSettings"),
    "langgraft.memory.providers.lightweight": ("LightweightMemory", "LightweightSettings"),
    "langgraft.memory.providers.facts": ("FactMemory", "FactSettings"),
    "langgraft.memory.providers.memrl": ("MemRL", "MemRLSettings"),
    "langgraft.memory.providers.reasoning_bank": ("ReasoningBank", "ReasoningBankSettings"),
    "langgraft.memory.providers.simple_rag": ("SimpleRAG", "SimpleRAGSettings"),
    "langgraft.memory.providers.insight": ("InsightMemory", "InsightSettings"),
    "langgraft.memory.providers.baselines": ("NoMemory",),
    "langgraft.memory.providers.trajectory": ("TrajectoryMemory", "TrajectorySettings"),
    "langgraft.memory.rankers.lexical": ("BM25", "TermOverlap"),
    "langgraft.memory.rankers.dense": ("Dense",),
    "langgraft.memory.rankers.composite": ("Hybrid", "MMR"),
    "langgraft.memory.recall": ("Budget", "Recall", "RecallContext"),
    "langgraft.memory.stores.chroma": ("ChromaStore",),
    "langgraft.memory.stores.ranked": ("RankedStore",),
    "langgraft.memory.stores.read_only": ("ReadOnlyStore",),
    "langgraft.nodes.chains": ("with_memory",),
    "langgraft.nodes.middleware": ("MemoryMiddleware", "MemoryState"),
    "langgraft.nodes.tools": ("MemoryRetriever", "memory_tools"),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: module for module, names in _MODULES.items() for name in names}
)
