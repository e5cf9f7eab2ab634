"""What builders of agents have in common: checks, what is taken where nothing is given, wiring."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from langchain_core.runnables import Runnable
from langgraph.graph import StateGraph

from langgraft._core.errors import SettingsError
from langgraft._core.texts import Prompt
from langgraft.environments.sandboxes.image.packages import shipped_packages
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts
from langgraft.nodes.dialogue import Model, Update
from langgraft.nodes.extract import extract_facts_node
from langgraft.nodes.judge import draft_node, judge_node
from langgraft.nodes.memory import KeepsAttempts, counterpart_node, remember_node
from langgraft.nodes.reflect import LESSONS, reflect_by_outcome_node, reflect_node, strategy_prompts
from langgraft.nodes.screening import deduplicate_node, validate_node
from langgraft.nodes.state import AgentState

ARTIFACTS: Final = "artifacts"
"""Folder of the contents, in the folder of a run."""


def contents_of(artifacts: Artifacts | None, folder: Path | None) -> Artifacts:
    """Return where contents are kept: as given, in the run's folder, or in this process."""
    if artifacts is not None:
        return artifacts
    return MemoryArtifacts() if folder is None else FolderArtifacts(folder / ARTIFACTS)


def package_names(packages: Sequence[str] | None) -> tuple[str, ...]:
    """Return the packages that a prompt names; `None` takes those of the image that ships."""
    if packages is None:
        return shipped_packages()
    return tuple(packages) or ("none beyond Python's own library",)


def check_seconds(seconds: float, name: str = "seconds") -> None:
    """Refuse what is no span of time.

    Raises:
        SettingsError: It is none.
    """
    if not 0 < seconds < math.inf:
        msg = f"{name} must be a number above 0, got {seconds!r:.80}"
        raise SettingsError(msg)


def add_chain(
    graph: StateGraph[Any, Any, Any, Any],
    nodes: Mapping[str, Runnable[Any, Any]],
    *,
    after: str | None = None,
) -> None:
    """Add nodes one after the other, the first of them after `after`."""
    for name, node in nodes.items():
        graph.add_node(name, node)
        if after is not None:
            graph.add_edge(after, name)
        after = name


# Memory around an episode ----------------------------------------------------------------

Chain: TypeAlias = dict[str, Runnable[AgentState, Update]]
"""Nodes by name, in the order they run."""

Distillation: TypeAlias = Literal["plain", "by_outcome", "strategies"]
"""How lessons come of an episode: one question whatever the outcome, its answer taken as it is
(continual-memory §3); or ReMe's (arXiv:2512.10696 §3): questions by outcome, or about two attempts
side by side, and of the lessons those that hold and that say something new; or ReasoningBank's
(arXiv:2509.25140): why it succeeded or failed, in at most three strategies with titles."""


def before_recall(memory: MemoryProvider[Any], model: Model, judge_model: Model) -> Chain:
    """Return what has to happen before memory is asked for the first time."""
    if "draft" not in memory.needs:
        return {}
    return {"draft": draft_node(model), "gate": judge_node(memory, judge_model, about="draft")}


def after_episode(
    memory: MemoryProvider[Any],
    reflection_model: Model,
    judge_model: Model,
    prompt: Prompt | None,
    distillation: Distillation,
) -> Chain:
    """Return what makes memory of an episode, in order."""
    if "errors" in memory.needs:
        msg = (
            f"{type(memory).__name__} learns from error records, and this agent has no tracebacks"
            " to diagnose: build a graph with `diagnose_node`, or pass learn=False"
        )
        raise SettingsError(msg)
    nodes: Chain = {}
    if "lessons" in memory.needs:
        if distillation == "plain":
            nodes = {"reflect": reflect_node(reflection_model, prompt=prompt)}
        elif distillation == "strategies":
            asking = strategy_prompts()
            nodes = {
                "reflect": reflect_by_outcome_node(
                    reflection_model, prompts=asking, max_lessons=LESSONS
                )
            }
        else:
            nodes = _distilling(memory, reflection_model)
    if "facts" in memory.needs:
        nodes["extract"] = extract_facts_node(reflection_model, memory)
    if "verdicts" in memory.needs:
        nodes["judge"] = judge_node(memory, judge_model)
    return {**nodes, "remember": remember_node(memory)}


def _distilling(memory: MemoryProvider[Any], model: Model) -> Chain:
    """Return what draws lessons by outcome, and keeps those that hold and are new."""
    comparing: Chain = {}
    if isinstance(memory, KeepsAttempts):
        comparing = {"counterpart": counterpart_node(memory)}
    return {
        **comparing,
        "reflect": reflect_by_outcome_node(model),
        "validate": validate_node(model),
        "deduplicate": deduplicate_node(memory),
    }
