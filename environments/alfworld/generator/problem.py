"""Writing a household down as a PDDL problem of ALFWorld's domain."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from langgraft.environments.alfworld.generator.household import Household, Receptacle, Thing
from langgraft.environments.alfworld.generator.package import Package

START: Final = "loc_bar_00"
"""A place with no receptacle: elsewhere a first look would not say what the room holds."""

_ABLE: Final = {
    "Cleanable": "cleanable",
    "Heatable": "heatable",
    "Coolable": "coolable",
    "Toggleable": "toggleable",
}


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
