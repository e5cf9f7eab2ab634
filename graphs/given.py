"""What builders of agents for competitions are given, checked and completed."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from langgraft._core.errors import SettingsError
from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts
from langgraft.nodes.search.packages import shipped_packages

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


def check_seconds(seconds: float) -> None:
    """Refuse what is no span of time.

    Raises:
        SettingsError: It is none.
    """
    if not 0 < seconds < math.inf:
        msg = f"seconds must be a number above 0, got {seconds!r:.80}"
        raise SettingsError(msg)
