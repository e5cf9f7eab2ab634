"""What builders of agents have in common: checks, what is taken where nothing is given, wiring."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from langchain_core.runnables import Runnable
from langgraph.graph import StateGraph

from langgraft._core.errors import SettingsError
from langgraft.environments.sandboxes.image.packages import shipped_packages
from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts

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
