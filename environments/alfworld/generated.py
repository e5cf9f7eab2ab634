"""Household games of our own making, from the installed ALFWorld's own rules and words: no data needed.

They are played by the real engine under the real rules, and they are not the benchmark: what is
scored on them must not be called an ALFWorld score.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from typing_extensions import override

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.games import FAMILIES, Dialect, Game, Library, check_family
from langgraft.environments.alfworld.household import (
    TREATMENTS,
    Household,
    Receptacle,
    Thing,
    draw_household,
)
from langgraft.environments.alfworld.installed import Package, installed_package
from langgraft.environments.alfworld.reading import UNKNOWN_GOAL

SPLITS: Final[dict[str, range]] = {"train": range(200), "test": range(200, 300)}
"""Split → seeds."""

SAMPLE: Final = 20
"""How many games of a family tell one generator from another."""

START: Final = "loc_bar_00"
"""A place with no receptacle: elsewhere a first look would not say what the room holds."""

_ABLE: Final = {
    "Cleanable": "cleanable",
    "Heatable": "heatable",
    "Coolable": "coolable",
    "Toggleable": "toggleable",
}

SET_DOWN: Final[dict[Dialect, str]] = {"move": "move {} to {}", "put": "put {} in/on {}"}


@dataclass(frozen=True, slots=True)
class GeneratedLibrary(Library):
    """Games made on demand by family and seed, from the installed package's rules.

    Use it to try things out and in tests. The rooms are smaller than the released ones: success
    rates on these games say nothing of the ALFWorld benchmark.
    """

    world: ClassVar[str] = "alfworld-generated"

    @override
    def splits(self) -> tuple[str, ...]:
        return tuple(SPLITS)

    @override
    def names(self, family: str, split: str) -> tuple[str, ...]:
        check_family(family)
        if split not in SPLITS:
            raise SettingsError(f"generated games have no split {split!r}: {', '.join(SPLITS)}")
        return tuple(map(str, SPLITS[split]))

    @override
    def find(self, family: str, name: str) -> Game:
        check_family(family)
        if re.fullmatch("0|[1-9][0-9]{0,2}", name):
            for split, seeds in SPLITS.items():
                if int(name) in seeds:
                    return make_game(family, int(name), split)
        raise SettingsError(
            f"no generated game {name!r}: they are named by a seed from 0 to {SPLITS['test'][-1]}"
        )

    @override
    def describe(self, *families: str) -> dict[str, JSON]:
        games: dict[str, JSON] = {}
        for family in families or FAMILIES:
            first = [self.find(family, str(seed)) for seed in range(SAMPLE)]
            games[family] = digest([[game.domain, game.grammar, game.problem] for game in first])
        return {"world": self.world, "games": games}


def make_game(family: str, seed: int, split: str = "train") -> Game:
    """Make the game of a family and a seed: the same on every machine and Python.

    Raises:
        MissingExtraError: alfworld is not installed.
    """
    package = installed_package()
    rng = random.Random(f"{FAMILIES[family]}/{seed}")  # noqa: S311
    household = draw_household(family, rng, package)
    goal = rng.choice(package.goals[family].sentences).format(
        obj=household.sought.lower(),
        recep=household.target.lower(),
        toggle=household.lamp.kind.lower() if household.lamp else "",
    )
    dialect: Dialect = "move" if "move {o} to {r}" in package.grammar else "put"
    return Game(
        name=str(seed),
        family=family,
        split=split,
        goal=goal,
        dialect=dialect,
        domain=package.domain,
        grammar=package.grammar.replace(UNKNOWN_GOAL, goal),
        problem=write_problem(household, f"{FAMILIES[family]}_{seed}", package),
        walkthrough=walk_through(household, dialect, package),
        source=f"generated game {family}/{seed}",
        world="alfworld-generated",
    )


def write_problem(household: Household, name: str, package: Package) -> str:
    """Return the problem, in which only the kinds in use are declared.

    Problems of all kinds there are would be five times as long and as slow to read.
    """
    writer = _Writer(household, package)
    objects = "\n  ".join(writer.objects())
    facts = "\n  ".join(writer.facts())
    goal = package.goals[household.family].pddl.format(
        obj=household.sought,
        recep=household.target,
        toggle=household.lamp.kind if household.lamp else "",
    )
    return (
        f"(define (problem plan_{name})\n(:domain alfred)\n(:objects\n  {objects}\n)\n"
        f"(:init\n  {facts}\n)\n{goal}"  # the goal's own text closes the problem
    )


class _Writer:
    def __init__(self, household: Household, package: Package) -> None:
        self.package = package
        self.receptacles = household.receptacles
        lamps = (household.lamp,) if household.lamp else ()
        self.lamps = frozenset(lamps)
        self.things = (*household.things, *lamps)
        self.furniture = Counter(receptacle.kind for receptacle in self.receptacles)
        self.counts = Counter(thing.kind for thing in self.things)
        self.location = {
            receptacle: f"loc_bar_{number:02d}"
            for number, receptacle in enumerate(self.receptacles, start=1)
        }

    def objects(self) -> Iterator[str]:
        yield "agent1 - agent"
        yield f"{START} - location"
        yield from (f"{kind}Type - otype" for kind in self.counts)
        yield from (f"{kind}Type - rtype" for kind in self.furniture)
        for receptacle in self.receptacles:
            yield f"{self._id(receptacle)} - receptacle"
            yield f"{self.location[receptacle]} - location"
        yield from (f"{self._id(thing)} - object" for thing in self.things)

    def facts(self) -> Iterator[str]:
        yield f"(atLocation agent1 {START})"
        for receptacle in self.receptacles:
            name = self._id(receptacle)
            yield f"(receptacleType {name} {receptacle.kind}Type)"
            yield f"(receptacleAtLocation {name} {self.location[receptacle]})"
            if receptacle.kind in self.package.openable:
                yield f"(openable {name})"
        for place in self.furniture:
            held = self.package.holds.get(place, frozenset())
            yield from (
                f"(canContain {place}Type {kind}Type)" for kind in self.counts if kind in held
            )
        for thing in self.things:
            yield from self._facts_of(thing)

    def _facts_of(self, thing: Thing) -> Iterator[str]:
        name = self._id(thing)
        yield f"(objectType {name} {thing.kind}Type)"
        yield f"(inReceptacle {name} {self._id(thing.place)})"
        yield f"(objectAtLocation {name} {self.location[thing.place]})"
        if thing not in self.lamps:
            yield f"(pickupable {name})"
        for able, predicate in _ABLE.items():
            if thing.kind in self.package.able[able]:
                yield f"({predicate} {name})"
        if thing.kind in self.package.vessels:
            yield f"(isReceptacleObject {name})"

    def _id(self, one: Receptacle | Thing) -> str:
        """Return the name that ALFWorld's demangler turns into `<kind> <number>`.

        It wants a `_bar_` in the name, numbers the names of a kind from the last in order to the
        first, and appends `basin` to what stands before the `_bar_` of a basin.
        """
        count = self.furniture[one.kind] if isinstance(one, Receptacle) else self.counts[one.kind]
        place = f"{count - one.number:02d}"
        if one.kind.endswith("Basin"):
            return f"{one.kind.removesuffix('Basin')}_bar_{place}_bar_{one.kind}"
        return f"{one.kind}_bar_{place}"


def walk_through(household: Household, dialect: Dialect, package: Package) -> tuple[str, ...]:
    """Return the commands that win, with nothing searched for."""
    walk = _Walk(package)
    if household.lamp is not None:
        walk.take(household.things[0])
        walk.go(household.lamp.place)
        walk.commands.append(f"use {household.lamp.name}")
        return tuple(walk.commands)
    treatment = TREATMENTS.get(household.family)
    for thing in household.things[: household.wanted]:
        walk.take(thing)
        if treatment is not None:
            appliance = Receptacle(treatment.appliance, 1)
            walk.go(appliance)
            walk.commands.append(f"{treatment.verb} {thing.name} with {appliance.name}")
        target = Receptacle(household.target, 1)
        walk.open(target)
        walk.commands.append(SET_DOWN[dialect].format(thing.name, target.name))
    return tuple(walk.commands)


class _Walk:
    def __init__(self, package: Package) -> None:
        self.package = package
        self.commands: list[str] = []
        self.here: Receptacle | None = None
        self.opened: set[Receptacle] = set()

    def go(self, there: Receptacle) -> None:
        if there != self.here:  # the engine knows no way to where one is
            self.commands.append(f"go to {there.name}")
            self.here = there

    def open(self, there: Receptacle) -> None:
        self.go(there)
        if there.kind in self.package.openable and there not in self.opened:
            self.commands.append(f"open {there.name}")
            self.opened.add(there)

    def take(self, thing: Thing) -> None:
        self.open(thing.place)
        self.commands.append(f"take {thing.name} from {thing.place.name}")
