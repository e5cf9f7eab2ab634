"""The commands that run the errand of a household."""

from typing import Final

from langgraft.environments.alfworld.games import Dialect
from langgraft.environments.alfworld.generator.household import (
    TREATMENTS,
    Household,
    Receptacle,
    Thing,
)
from langgraft.environments.alfworld.generator.package import Package

SET_DOWN: Final[dict[Dialect, str]] = {"move": "move {} to {}", "put": "put {} in/on {}"}


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
