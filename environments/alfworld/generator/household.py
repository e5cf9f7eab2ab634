"""Drawing a household: the furniture of a room, what lies where, and the errand to be run."""

import random
from collections import Counter
from dataclasses import dataclass
from typing import Final

from langgraft.environments.alfworld.generator.package import Package
from langgraft.environments.alfworld.generator.rooms import (
    DISTRACTORS,
    HIDDEN,
    LAMP_STANDS,
    ROOMS,
    SIZES,
    Room,
)

MOST_OF_A_KIND: Final = 3


@dataclass(frozen=True, slots=True)
class Treatment:
    """What is done to a thing before it is put in its place."""

    verb: str
    able: str
    appliance: str


TREATMENTS: Final[dict[str, Treatment]] = {
    "pick_clean_then_place": Treatment("clean", "Cleanable", "SinkBasin"),
    "pick_heat_then_place": Treatment("heat", "Heatable", "Microwave"),
    "pick_cool_then_place": Treatment("cool", "Coolable", "Fridge"),
}


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A place for things, such as `cabinet 3`."""

    kind: str
    number: int

    @property
    def name(self) -> str:
        """What the engine calls it."""
        return f"{self.kind.lower()} {self.number}"


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing, and where it is."""

    kind: str
    number: int
    place: Receptacle

    @property
    def name(self) -> str:
        """What the engine calls it."""
        return f"{self.kind.lower()} {self.number}"


@dataclass(frozen=True, slots=True)
class Household:
    """A room with all that is in it, and the errand."""

    family: str
    receptacles: tuple[Receptacle, ...]
    things: tuple[Thing, ...]
    """The things sought come first."""
    sought: str
    """The kind of thing that the errand is about."""
    target: str
    """The kind of receptacle it is to be put in; empty where it is to be looked at."""
    lamp: Thing | None

    @property
    def wanted(self) -> int:
        """How many of the sought kind the errand needs."""
        return 2 if self.family == "pick_two_obj" else 1


def draw_household(family: str, rng: random.Random, package: Package) -> Household:
    """Draw a household in which the errand can be run, and has not been yet."""
    room = rng.choice(ROOMS[family])
    receptacles = _furnish(room, rng)
    errands = _errands(family, room, receptacles, package)
    sought = rng.choice(sorted(errands))
    target = rng.choice(errands[sought])
    places = [place for place in receptacles if place.kind != target]
    count = 2 if family == "pick_two_obj" else rng.choice((1, 1, 2))
    things = _place(sought, count, places, rng, package)
    lamp = None
    if family == "look_at_obj":
        stands = [stand for stand in receptacles if stand.kind in LAMP_STANDS]
        lamp = Thing(rng.choice(room.lamps), 1, rng.choice(stands))
    things += _strew(room, sought, receptacles, rng, package)
    return Household(family, receptacles, tuple(things), sought, target, lamp)


def _furnish(room: Room, rng: random.Random) -> tuple[Receptacle, ...]:
    while True:
        counts = {kind: rng.randint(few, many) for kind, (few, many) in room.furniture.items()}
        if sum(counts.values()) in SIZES:
            return tuple(
                Receptacle(kind, number)
                for kind, count in counts.items()
                for number in range(1, count + 1)
            )


def _errands(
    family: str, room: Room, receptacles: tuple[Receptacle, ...], package: Package
) -> dict[str, list[str]]:
    """Return what can be sought here → the kinds of receptacle it can be taken to."""
    treatment = TREATMENTS.get(family)
    kinds = sorted({receptacle.kind for receptacle in receptacles})
    errands = {}
    for thing in room.things:
        if treatment is not None and thing not in package.able[treatment.able]:
            continue
        places = [kind for kind in kinds if thing in package.holds.get(kind, ())]
        # As in ALFRED, nothing goes back into the appliance that changed it.
        targets = [kind for kind in places if treatment is None or kind != treatment.appliance]
        if family == "look_at_obj" and places:
            errands[thing] = [""]
        elif targets and len(places) > 1:
            errands[thing] = targets
    return errands


def _place(
    kind: str,
    count: int,
    places: list[Receptacle],
    rng: random.Random,
    package: Package,
) -> list[Thing]:
    """Lay out what is sought: in the open, or now and then behind doors and in drawers."""
    fit = [place for place in places if kind in package.holds.get(place.kind, ())]
    closed = [place for place in fit if place.kind in package.openable]
    in_sight = [place for place in fit if place.kind not in package.openable]
    fit = (closed or in_sight) if rng.random() < HIDDEN else (in_sight or closed)
    return [Thing(kind, number, rng.choice(fit)) for number in range(1, count + 1)]


def _strew(
    room: Room,
    sought: str,
    receptacles: tuple[Receptacle, ...],
    rng: random.Random,
    package: Package,
) -> list[Thing]:
    """Strew other things about; none is of the kind sought, or it might be in place already."""
    counts: Counter[str] = Counter()
    strewn = []
    others = [kind for kind in room.things if kind != sought]
    for _ in range(rng.randint(*DISTRACTORS)):
        kind = rng.choice(others)
        places = [place for place in receptacles if kind in package.holds.get(place.kind, ())]
        if places and counts[kind] < MOST_OF_A_KIND:
            counts[kind] += 1
            strewn.append(Thing(kind, counts[kind], rng.choice(places)))
    return strewn
