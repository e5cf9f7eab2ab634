"""What builders of agents for competitions are given, checked and completed."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from langchain_core.runnables import Runnable

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


def check_model(model: object) -> None:
    """Refuse what is no model, such as a model's name.

    Raises:
        SettingsError: It is none.
    """
    if not isinstance(model, Runnable):
        msg = f"{model!r:.80} is no chat model: make one with LangChain's init_chat_model(…)"
        raise SettingsError(msg)


def package_names(packages: Sequence[str] | None) -> tuple[str, ...]:
    """Return the packages that a prompt names; `None` takes those of the image that ships.

    Raises:
        SettingsError: It is one text.
    """
    if packages is None:
        return shipped_packages()
    if isinstance(packages, str):
        msg = f"packages is a list of names, got {packages!r:.80}"
        raise SettingsError(msg)
    return tuple(packages) or ("none beyond Python's own library",)


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Refuse what is no whole number of at least `least`.

    Raises:
        SettingsError: It is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        msg = f"{name} must be a whole number of at least {least}, got {value!r:.80}"
        raise SettingsError(msg)


def check_seconds(seconds: object) -> None:
    """Refuse what is no span of time.

    Raises:
        SettingsError: It is none.
    """
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < cast("float", seconds) < math.inf:
        msg = f"seconds must be a number above 0, got {seconds!r:.80}"
        raise SettingsError(msg)
