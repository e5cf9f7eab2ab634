"""The worlds a continual study can be played in, by the first part of a domain's name."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from langchain_core.language_models import BaseChatModel

from langgraft._core.canonical import JSON
from langgraft.environments.text import TextWorldFactory


class World(Protocol):
    """What the study knows of a world: how it is made, and who stands in for a language model."""

    name: str
    """First part of its domains: `babyai`, `alfworld`, `alfworld-generated`."""
    semantics: tuple[str, ...]
    """Names of the ways it can be played; the first is the default."""
    learner_code: tuple[str, ...]
    """Packages of the simulated learner, for fingerprints."""

    def factory(self, semantics: str) -> TextWorldFactory:
        """Return what makes its episodes; made once, and used by all runs of a process.

        Raises:
            SettingsError: There is no such semantics, or its data is not there.
            MissingExtraError: What it needs is not installed.
        """
        ...

    def describe(self, semantics: str, domains: Sequence[str]) -> JSON:
        """Return what decides how it plays: rules, instructions, the games in use."""
        ...

    def learner(
        self, *, seed: int, temperature: float, settings: Mapping[str, JSON]
    ) -> BaseChatModel:
        """Return the simulated learner.

        Raises:
            SettingsError: It has no such setting.
        """
        ...
