"""The vocabulary: node factories that graphs are made of. Every model call is a node."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.nodes.chains import with_memory
    from langgraft.nodes.diagnose import diagnose_node
    from langgraft.nodes.extract import extract_facts_node
    from langgraft.nodes.judge import aconsolidate, consolidate, draft_node, judge_node
    from langgraft.nodes.memory import asks_again, counterpart_node, recall_node, remember_node
    from langgraft.nodes.middleware import MemoryMiddleware, MemoryState
    from langgraft.nodes.reflect import reflect_by_outcome_node, reflect_node
    from langgraft.nodes.screening import deduplicate_node, validate_node
    from langgraft.nodes.state import AgentInput, AgentOutput, AgentState
    from langgraft.nodes.text_world import EnvironmentSessions, act_node, start_node, think_node
    from langgraft.nodes.tools import MemoryRetriever, memory_tools

__all__ = [
    "AgentInput",
    "AgentOutput",
    "AgentState",
    "EnvironmentSessions",
    "MemoryMiddleware",
    "MemoryRetriever",
    "MemoryState",
    "aconsolidate",
    "act_node",
    "asks_again",
    "consolidate",
    "counterpart_node",
    "deduplicate_node",
    "diagnose_node",
    "draft_node",
    "extract_facts_node",
    "judge_node",
    "memory_tools",
    "recall_node",
    "reflect_by_outcome_node",
    "reflect_node",
    "remember_node",
    "start_node",
    "think_node",
    "validate_node",
    "with_memory",
]

_MODULES = {
    "chains": ("with_memory",),
    "screening": (
        "deduplicate_node",
        "validate_node",
    ),
    "diagnose": ("diagnose_node",),
    "extract": ("extract_facts_node",),
    "judge": ("aconsolidate", "consolidate", "draft_node", "judge_node"),
    "memory": ("asks_again", "counterpart_node", "recall_node", "remember_node"),
    "middleware": ("MemoryMiddleware", "MemoryState"),
    "reflect": ("reflect_by_outcome_node", "reflect_node"),
    "state": ("AgentInput", "AgentOutput", "AgentState"),
    "text_world": ("EnvironmentSessions", "act_node", "start_node", "think_node"),
    "tools": ("MemoryRetriever", "memory_tools"),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
)
