"""The worlds a continual study can be played in.

Those of langgraft are found by the first part of a domain's name; one of somebody else's by the name
of its object, `package.module:Object`, which is imported when tasks are first asked for.
"""

import importlib
import importlib.metadata
import inspect
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeAlias, cast

from pydantic import AfterValidator

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON, digest, text_digest
from langgraft._core.errors import LanggraftError, SettingsError
from langgraft._core.lazy import require
from langgraft.benchmarks.harness.plans import is_path
from langgraft.environments.alfworld.environment import ALFWorld, GeneratedALFWorld
from langgraft.environments.alfworld.game_files import find_games
from langgraft.environments.alfworld.games import parse_domain
from langgraft.environments.alfworld.installed import alfworld_version, import_part
from langgraft.environments.alfworld.released import TEST_GAMES, TRAIN_GAMES
from langgraft.environments.alfworld.semantics import CONVENTIONS, Semantics, convention_of
from langgraft.environments.babyai import BabyAI
from langgraft.environments.babyai import Semantics as BabyAISemantics
from langgraft.environments.text import Graded, TextTask, TextWorldFactory
from langgraft.environments.textworld import CHALLENGES, INSTRUCTIONS, MAX_ROUNDS, TextWorldGames

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


@dataclass(frozen=True, slots=True)
class _TextWorld:
    """TextWorld's own games."""

    name: str = "textworld"
    semantics: tuple[str, ...] = ("compat",)
    packages: tuple[str, ...] = ("textworld", "jericho")

    def factory(self, semantics: str) -> TextWorldFactory:
        del semantics
        return _textworld()

    def outline(self, semantics: str) -> TaskList:
        return self.factory(semantics)

    def max_rounds(self, semantics: str) -> int:
        del semantics
        return MAX_ROUNDS

    def describe(self, semantics: str, domains: Sequence[str]) -> JSON:
        del semantics
        require("textworld", extra="alfworld", purpose="TextWorld's own games")
        families = [domain.partition("/")[2] for domain in domains]
        chosen: dict[str, JSON] = {each: CHALLENGES[each] for each in families}
        return {"instructions": INSTRUCTIONS, "challenges": chosen}

    def learner(
        self, *, seed: int, temperature: float, settings: Mapping[str, JSON]
    ) -> "BaseChatModel":
        del seed, temperature, settings
        raise _no_learner(self.name)


@cache
def _textworld() -> TextWorldGames:
    return TextWorldGames()


class _ReleasedOutline:
    """As many tasks as are dealt of a family's released games, under numbers."""

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        parse_domain(domain)
        return _numbered(domain, split, {"train": TRAIN_GAMES, "test": TEST_GAMES}[split])


def _numbered(domain: str, split: str, count: int) -> tuple[TextTask, ...]:
    """Return tasks that stand in for those of a family."""
    return tuple(TextTask(f"{domain}/{split}/{i}", domain, split) for i in range(count))


def _no_learner(world: str) -> SettingsError:
    msg = (
        f"world {world!r} has no simulated learner: name a model, as in --model openai:gpt-4.1-mini"
    )
    return SettingsError(msg)


Difficulty: TypeAlias = Callable[[str], float]
"""Says how hard a task is, by its id: more is harder."""


def grading(world: World, tasks: TaskList) -> Difficulty:
    """Return how hard the tasks of a world are.

    Raises:
        SettingsError: The world does not say; when asked, that a grade is no number.
    """
    if not isinstance(tasks, Graded):
        msg = f"order 'curriculum': world {world.name!r} has no method `difficulty(task_id)`"
        raise SettingsError(msg)

    def difficulty(task_id: str) -> float:
        asked = f"difficulty({task_id!r:.80})"
        with _theirs(world.name, asked):
            grade: object = tasks.difficulty(task_id)
        if not isinstance(grade, int | float) or math.isnan(grade):
            msg = f"world {world.name!r}: {asked} must return a number, got {grade!r:.80}"
            raise SettingsError(msg)
        return grade

    return difficulty


def _only(settings: Mapping[str, JSON], known: Sequence[str], world: str) -> None:
    """Refuse settings that a learner does not have."""
    if unknown := sorted(set(settings) - set(known)):
        there = f"it has {', '.join(known)}" if known else "it has none"
        msg = f"the simulated learner of {world} has no setting {unknown[0]!r}; {there}"
        raise SettingsError(msg)


_REGISTRY: Final[Mapping[str, World]] = {
    world.name: world
    for world in (_BabyAI(), _ALFWorld("alfworld"), _ALFWorld("alfworld-generated"), _TextWorld())
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


SPLITS: Final = ("train", "test")

MOST_ROUNDS: Final = 100
"""Most replies that a world of somebody else's may give an agent in an episode: what a preview, which
does not import it, counts."""


def _path(name: str) -> str:
    """Return the name of an object, where it is one."""
    if not is_path(name):
        msg = (
            f"{name!r:.80} is no 'package.module:Object'; worlds of langgraft's own are found by"
            f" their task families: {', '.join(_REGISTRY)}"
        )
        raise ValueError(msg)
    return name


WorldPath: TypeAlias = Annotated[str, AfterValidator(_path)]
"""A field of a plan: the name of the object of a world that is not langgraft's own."""


@dataclass(frozen=True, slots=True)
class ForeignWorld:
    """A world that is not langgraft's own: an object that makes episodes and lists their tasks.

    The object is a `TextWorldFactory`, or a class of one that takes no arguments. What else of
    `World` it has is used: `semantics` with `factory(semantics)`, `packages`, `learner(…)`, and
    `describe(semantics, domains)`.
    """

    name: str
    """Where the object is: `package.module:Object`."""
    semantics: tuple[str, ...] = ()
    """Not known before it is imported."""
    packages: tuple[str, ...] = ()
    """As `semantics`: `describe` has their versions."""

    def factory(self, semantics: str) -> TextWorldFactory:
        """Return what makes its episodes; `compat` is its first semantics, where it has others."""
        return _foreign(self.name, semantics)

    def outline(self, semantics: str) -> TaskList:
        """Return as many tasks as a plan may ask for; nothing is imported."""
        del semantics
        return _ForeignOutline()

    def max_rounds(self, semantics: str) -> int:
        """Return the most that there may be; nothing is imported."""
        del semantics
        return MOST_ROUNDS

    def describe(self, semantics: str, domains: Sequence[str]) -> JSON:
        """Return what its results rest on: its code, packages, tasks and instructions."""
        found, world = _object(self.name), self.factory(semantics)
        tasks = [task.id for d in domains for split in SPLITS for task in world.tasks(d, split)]
        first = world(tasks[0])
        described: dict[str, JSON] = {
            "world": self.name,
            "semantics": semantics,
            "code": {
                each: source_digest(each) for each in sorted(self._modules(found, world, first))
            },
            "packages": {each: _version(each) for each in _strings(self.name, found, "packages")},
            "tasks": digest(tasks),
            "instructions": first.instructions,
            "max_rounds": first.max_rounds,
        }
        if hasattr(found, "describe"):
            with _theirs(self.name, "describe"):
                described["own"] = found.describe(semantics, domains)
        return described

    def _modules(self, *parts: object) -> set[str]:
        kinds = (base for part in parts for base in type(part).__mro__)
        top = self.name.partition(":")[0].partition(".")[0]
        modules = {self.name.partition(":")[0], *(kind.__module__ for kind in kinds)}
        return {each for each in modules if each.partition(".")[0] == top}

    def learner(
        self, *, seed: int, temperature: float, settings: Mapping[str, JSON]
    ) -> "BaseChatModel":
        """Return its simulated learner."""
        from langchain_core.language_models import BaseChatModel  # noqa: PLC0415  (slow)

        found = _object(self.name)
        if not hasattr(found, "learner"):
            raise _no_learner(self.name)
        with _theirs(self.name, "learner"):
            model = found.learner(seed=seed, temperature=temperature, settings=settings)
        if not isinstance(model, BaseChatModel):
            msg = f"world {self.name!r}: learner returned no chat model, but {model!r:.80}"
            raise SettingsError(msg)
        return model

    def check(self, semantics: str, domains: Sequence[str]) -> None:
        """Check that two families have tasks that a study can be made of, and an episode's shape.

        Raises:
            SettingsError: Something is missing or does not fit, and what.
        """
        world = self.factory(semantics)
        seen: dict[str, str] = {}
        for domain in domains:
            for split in SPLITS:
                for task in self._listed(world, domain, split):
                    if task.id in seen:
                        msg = (
                            f"world {self.name!r}: task {task.id!r:.80} of {domain!r}, {split}, is"
                            f" also in {seen[task.id]}; each task has an id of its own"
                        )
                        raise SettingsError(msg)
                    seen[task.id] = f"{domain!r}, {split}"
        first = next(iter(seen))
        with _theirs(self.name, f"making an episode of task {first!r}"):
            episode = world(first)
            task, told, rounds = episode.task, episode.instructions, episode.max_rounds
            fits = callable(episode.reset) and callable(episode.step) and callable(episode.close)
        if not fits or task.id != first or not isinstance(told, str):
            msg = (
                f"world {self.name!r}: the episode of task {first!r} is no `TextEnvironment` of it:"
                f" got {episode!r:.80} with task {task!r:.80}"
            )
            raise SettingsError(msg)
        if not isinstance(rounds, int) or not 1 <= rounds <= MOST_ROUNDS:
            msg = (
                f"world {self.name!r}: max_rounds of an episode must be from 1 to {MOST_ROUNDS},"
                f" got {rounds!r:.80}"
            )
            raise SettingsError(msg)

    def _listed(self, world: TextWorldFactory, domain: str, split: str) -> Sequence[TextTask]:
        asked = f"tasks({domain!r}, {split!r})"
        with _theirs(self.name, asked):
            tasks = world.tasks(domain, split)
        if not isinstance(tasks, Sequence) or not tasks:
            msg = f"world {self.name!r}: {asked} must return tasks, got {tasks!r:.80}"
            raise SettingsError(msg)
        for task in tasks:
            if not isinstance(task, TextTask) or (task.domain, task.split) != (domain, split):
                msg = f"world {self.name!r}: {asked} returned {task!r:.120}, no `TextTask` of these"
                raise SettingsError(msg)
            if not isinstance(task.id, str) or not task.id:
                msg = f"world {self.name!r}: {asked} returned a task with id {task.id!r:.80}"
                raise SettingsError(msg)
        return tasks


class _ForeignOutline:
    """As many tasks as a plan may ask for, under numbers: how many there are is not known."""

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        return _numbered(domain, split, {"train": 200, "test": 100}[split])


@contextmanager
def _theirs(name: str, asked: str) -> Iterator[None]:
    """Say of an error in a world's own code which world's it is, and what was asked of it."""
    try:
        yield
    except LanggraftError as error:
        raise SettingsError(f"world {name!r}: {asked}: {error}") from error
    except Exception as error:
        msg = f"world {name!r}: {asked} raised {type(error).__name__}: {error}"
        raise SettingsError(msg) from error


@cache
def _object(name: str) -> Any:
    """Import a world's object; a class is called, once."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        msg = f"world {name!r} cannot be imported: {error}"
        raise SettingsError(msg) from error
    if isinstance(found, type):
        with _theirs(name, f"calling {attribute} without arguments"):
            found = found()
    return found


@cache
def _foreign(name: str, semantics: str) -> TextWorldFactory:
    """Return what makes a world's episodes when it is played in one way."""
    found = _object(name)
    known = _strings(name, found, "semantics")
    if semantics == "compat" and known and semantics not in known:
        semantics = known[0]
    if semantics not in (known or ("compat",)):
        there = f"one of {', '.join(known)}" if known else "nothing: there is one way to play it"
        msg = f"world {name!r}: semantics can be {there} (got {semantics!r:.80})"
        raise SettingsError(msg)
    if known:
        with _theirs(name, f"factory({semantics!r})"):
            found = found.factory(semantics)
    if not callable(found) or not callable(getattr(found, "tasks", None)):
        msg = (
            f"world {name!r} is no world: it must make the episode of a task when called with its"
            f" id, and have a method `tasks(domain, split)`; got {found!r:.80}"
        )
        raise SettingsError(msg)
    return cast("TextWorldFactory", found)


def _strings(name: str, found: object, attribute: str) -> tuple[str, ...]:
    """Return an attribute that holds names, where there is one."""
    given = getattr(found, attribute, ())
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        msg = f"world {name!r}: {attribute} must be a tuple of names, got {given!r:.80}"
        raise SettingsError(msg)
    return tuple(given)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def source_digest(module: str) -> str | None:
    """Return the digest of an imported module's file; `None` in a notebook, which has no file."""
    try:
        return text_digest(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return None
