"""The worlds a continual study can be played in, by the first part of a domain's name."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.environment import ALFWorld, GeneratedALFWorld
from langgraft.environments.alfworld.game_files import find_games
from langgraft.environments.alfworld.games import parse_domain
from langgraft.environments.alfworld.installed import alfworld_version, import_part
from langgraft.environments.alfworld.released import TEST_GAMES, TRAIN_GAMES
from langgraft.environments.alfworld.semantics import CONVENTIONS, Semantics, convention_of
from langgraft.environments.babyai import BabyAI
from langgraft.environments.babyai import Semantics as BabyAISemantics
from langgraft.environments.text import TextTask, TextWorldFactory

if TYPE_CHECKING:  # listing runs needs none of it
    from langchain_core.language_models import BaseChatModel

_DATA: Final = ("ALFWORLD_DATA", "LANGGRAFT_DATA")
"""Variables that say where games lie: a factory is shared as long as they stay as they are."""


class TaskList(Protocol):
    """What runs are listed from: the tasks of a factory, or as many that stand in for them."""

    def tasks(self, domain: str, split: str) -> Sequence[TextTask]:
        """List the instances of a task family in one split.

        Raises:
            SettingsError: There is no such family or split.
        """
        ...


class World(Protocol):
    """What the study knows of a world: how it is made, and who stands in for a language model."""

    @property
    def name(self) -> str:
        """First part of its domains: `babyai`, `alfworld`, `alfworld-generated`."""
        ...

    @property
    def semantics(self) -> tuple[str, ...]:
        """Names of the ways it can be played; the first is the default."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """What it is made of: packages whose version may change what it answers."""
        ...

    def factory(self, semantics: str) -> TextWorldFactory:
        """Return what makes its episodes; made once, and used by all runs of a process.

        Raises:
            SettingsError: There is no such semantics, or its data is not there.
            MissingExtraError: What it needs is not installed.
        """
        ...

    def outline(self, semantics: str) -> TaskList:
        """Return what lists tasks at once: of data that takes time to read, tasks that stand in.

        Raises:
            SettingsError: There is no such semantics, or its data is not there.
        """
        ...

    def max_rounds(self, semantics: str) -> int:
        """Return how many replies an agent has in an episode."""
        ...

    def describe(self, semantics: str, domains: Sequence[str]) -> JSON:
        """Return what decides how it plays: rules, instructions, the games in use.

        Raises:
            SettingsError: Its data is not there.
            MissingExtraError: What it needs is not installed.
        """
        ...

    def learner(
        self, *, seed: int, temperature: float, settings: Mapping[str, JSON]
    ) -> "BaseChatModel":
        """Return the simulated learner.

        Raises:
            SettingsError: It has no such setting, or not with such a value.
        """
        ...


@dataclass(frozen=True, slots=True)
class _BabyAI:
    """BabyAI in words."""

    name: str = "babyai"
    semantics: tuple[str, ...] = ("compat", "fixed")
    packages: tuple[str, ...] = ("gymnasium", "minigrid")

    def factory(self, semantics: str) -> TextWorldFactory:
        return _babyai(semantics)

    def outline(self, semantics: str) -> TaskList:
        return _babyai(semantics)

    def max_rounds(self, semantics: str) -> int:
        return _babyai(semantics).max_rounds

    def describe(self, semantics: str, domains: Sequence[str]) -> JSON:
        world = _babyai(semantics)
        first = world(world.tasks(domains[0], "train")[0].id)
        return {"instructions": first.instructions, "semantics": semantics}

    def learner(
        self, *, seed: int, temperature: float, settings: Mapping[str, JSON]
    ) -> "BaseChatModel":
        from langgraft.benchmarks.simulated.babyai import (  # noqa: PLC0415  (not for real models)
            SimulatedBabyAI,
        )

        _only(settings, (), self.name)
        return SimulatedBabyAI(seed=seed, temperature=temperature)


@cache
def _babyai(semantics: str) -> BabyAI:
    return BabyAI(semantics=cast("BabyAISemantics", semantics))


@dataclass(frozen=True, slots=True)
class _ALFWorld:
    """ALFWorld, on the released games or on generated ones."""

    name: str
    semantics: tuple[str, ...] = tuple(CONVENTIONS)
    packages: tuple[str, ...] = ("alfworld", "textworld", "fast-downward-textworld")

    def factory(self, semantics: str) -> TextWorldFactory:
        return _alfworld(self.name, semantics, *map(os.environ.get, _DATA))

    def outline(self, semantics: str) -> TaskList:
        if self.name != "alfworld":
            return self.factory(semantics)
        find_games()
        return _ReleasedOutline()

    def max_rounds(self, semantics: str) -> int:
        return convention_of(semantics).max_rounds

    def describe(self, semantics: str, domains: Sequence[str]) -> JSON:
        families = [domain.partition("/")[2] for domain in domains]
        alfworld_version()
        import_part("textworld")
        games = _alfworld(self.name, semantics, *map(os.environ.get, _DATA)).games()
        return {"semantics": semantics, "games": games.describe(*families)}

    def learner(
        self, *, seed: int, temperature: float, settings: Mapping[str, JSON]
    ) -> "BaseChatModel":
        from langgraft.benchmarks.simulated.alfworld import (  # noqa: PLC0415  (not for real models)
            SimulatedALFWorld,
        )

        _only(settings, ("mimicry",), self.name)
        given: dict[str, Any] = dict(settings)
        with validation_as(SettingsError, f"the simulated learner of {self.name}: "):
            return SimulatedALFWorld(seed=seed, temperature=temperature, **given)


@cache
def _alfworld(name: str, semantics: str, *_places: str | None) -> ALFWorld:
    kind = ALFWorld if name == "alfworld" else GeneratedALFWorld
    return kind(semantics=cast("Semantics", semantics))


class _ReleasedOutline:
    """As many tasks as are dealt of a family's released games, under numbers."""

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        parse_domain(domain)
        count = {"train": TRAIN_GAMES, "test": TEST_GAMES}[split]
        return tuple(TextTask(f"{domain}/{i}", domain, split) for i in range(count))


def _only(settings: Mapping[str, JSON], known: Sequence[str], world: str) -> None:
    """Refuse settings that a learner does not have."""
    if unknown := sorted(set(settings) - set(known)):
        there = f"it has {', '.join(known)}" if known else "it has none"
        msg = f"the simulated learner of {world} has no setting {unknown[0]!r}; {there}"
        raise SettingsError(msg)


_REGISTRY: Final[Mapping[str, World]] = {
    world.name: world
    for world in (_BabyAI(), _ALFWorld("alfworld"), _ALFWorld("alfworld-generated"))
}


def world_of(domain: str) -> World:
    """Return the world a task family belongs to.

    Raises:
        SettingsError: There is no such world.
    """
    name = domain.partition("/")[0]
    if name not in _REGISTRY:
        msg = f"no world of task family {domain!r}; families begin with {', '.join(_REGISTRY)}"
        raise SettingsError(msg)
    return _REGISTRY[name]
