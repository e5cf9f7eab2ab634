"""The tree agent: a search over programs for a competition, with memory grafted on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget
from langgraft.nodes.search.artifacts import Artifacts
from langgraft.nodes.search.policy import SearchPolicy
from langgraft.nodes.search.state import TreeInput, TreeOutput, TreeState


def build_tree_agent(
    code_model: BaseChatModel,
    *,
    competition: Competition,
    sandbox: Sandbox,
    feedback_model: BaseChatModel | None = None,
    memory: MemoryProvider[Any] | None = None,
    learn: bool = True,
    artifacts: Artifacts | None = None,
    folder: Path | None = None,
    policy: SearchPolicy | None = None,
    steps: int = 30,
    seconds: float = 7200.0,
    folds: int = 5,
    width: int = 1,
    candidates: int = 1,
    budget: Budget | None = None,
    packages: Sequence[str] | None = None,
    checkpointer: Checkpointer = None,
    name: str = "tree",
) -> CompiledStateGraph[TreeState, None, TreeInput, TreeOutput]:
    """Build an agent that searches for the best program for a competition."""
    raise NotImplementedError
