"""The vocabulary: node factories that graphs are made of. Every model call is a node."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.nodes.chat import recall_for_messages, remember_messages
    from langgraft.nodes.deduplicate import deduplicate_node
    from langgraft.nodes.diagnose import diagnose_node
    from langgraft.nodes.judge import draft_node, judge_node
    from langgraft.nodes.memory import asks_again, counterpart_node, recall_node, remember_node
    from langgraft.nodes.reflect import reflect_by_outcome_node, reflect_node
    from langgraft.nodes.state import AgentInput, AgentOutput, AgentState
    from langgraft.nodes.text_world import EnvironmentSessions, act_node, start_node, think_node
    from langgraft.nodes.validate import validate_node

__all__ = [
    "AgentInput",
    "AgentOutput",
    "AgentState",
    "EnvironmentSessions",
    "act_node",
    "asks_again",
    "counterpart_node",
    "deduplicate_node",
    "diagnose_node",
    "draft_node",
    "judge_node",
    "recall_for_messages",
    "recall_node",
    "reflect_by_outcome_node",
    "reflect_node",
    "remember_messages",
    "remember_node",
    "start_node",
    "think_node",
    "validate_node",
]

_STATE = "langgraft.nodes.state"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "AgentInput": _STATE,
        "AgentOutput": _STATE,
        "AgentState": _STATE,
        "EnvironmentSessions": "langgraft.nodes.text_world",
        "act_node": "langgraft.nodes.text_world",
        "asks_again": "langgraft.nodes.memory",
        "counterpart_node": "langgraft.nodes.memory",
        "deduplicate_node": "langgraft.nodes.deduplicate",
        "diagnose_node": "langgraft.nodes.diagnose",
        "draft_node": "langgraft.nodes.judge",
        "judge_node": "langgraft.nodes.judge",
        "recall_for_messages": "langgraft.nodes.chat",
        "recall_node": "langgraft.nodes.memory",
        "reflect_by_outcome_node": "langgraft.nodes.reflect",
        "reflect_node": "langgraft.nodes.reflect",
        "remember_messages": "langgraft.nodes.chat",
        "remember_node": "langgraft.nodes.memory",
        "start_node": "langgraft.nodes.text_world",
        "think_node": "langgraft.nodes.text_world",
        "validate_node": "langgraft.nodes.validate",
    },
)
