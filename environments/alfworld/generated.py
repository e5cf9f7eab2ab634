"""Household games of our own making, from the installed ALFWorld's own rules and words: no data needed.

A household is drawn (the kinds of rooms, what lies where in one, the errand to be run) and written as a
game. Such games are played by the real engine under the real rules, and they are not the benchmark: what is
scored on them must not be called an ALFWorld score.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from typing_extensions import override

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.games import FAMILIES, Dialect, Game, Library, check_family
from langgraft.environments.alfworld.installed import Package, installed_package
from langgraft.environments.alfworld.reading import UNKNOWN_GOAL

SIZES: Final = range(8, 26)
"""How many receptacles a room has."""
DISTRACTORS: Final = (4, 18)
"""How few and how many other things are strewn about, at most."""
HIDDEN: Final = 0.25
"""How often what is sought is put behind a door or in a drawer, where the room allows.

In the released games as few as one of ten are won by opening something first: these are harder.
"""
LAMP_STANDS: Final = frozenset({"CoffeeTable", "Desk", "Dresser", "SideTable", "TVStand"})
"""What a lamp may stand on."""

MOST_OF_A_KIND: Final = 3


@dataclass(frozen=True, slots=True)
class Room:
    """One kind of room."""

    name: str
    furniture: Mapping[str, tuple[int, int]]
    """Kind of receptacle → how few and how many a room of this kind has."""
    things: tuple[str, ...]
    lamps: tuple[str, ...] = ()
    """The kinds of lamp that tasks of looking at things use here."""


KITCHEN: Final = Room(
    "kitchen",
    {
        "Cabinet": (2, 6),
        "CoffeeMachine": (0, 1),
        "CounterTop": (1, 3),
        "DiningTable": (0, 1),
        "Drawer": (1, 5),
        "Fridge": (1, 1),
        "GarbageCan": (1, 1),
        "Microwave": (1, 1),
        "Shelf": (0, 3),
        "SinkBasin": (1, 1),
        "StoveBurner": (1, 4),
        "Toaster": (0, 1),
    },
    (
        *("Apple", "Bowl", "Bread", "ButterKnife", "Cup", "DishSponge", "Egg", "Fork", "Kettle"),
        *("Knife", "Ladle", "Lettuce", "Mug", "Pan", "PepperShaker", "Plate", "Pot", "Potato"),
        *("SaltShaker", "SoapBottle", "Spatula", "Spoon", "Tomato", "WineBottle"),
    ),
)
BEDROOM: Final = Room(
    "bedroom",
    {
        "Bed": (1, 1),
        "Desk": (1, 2),
        "Drawer": (2, 6),
        "Dresser": (0, 1),
        "GarbageCan": (1, 1),
        "LaundryHamper": (0, 1),
        "Safe": (0, 1),
        "Shelf": (1, 4),
        "SideTable": (1, 2),
    },
    (
        *("AlarmClock", "Book", "Bowl", "CD", "CellPhone", "CreditCard", "KeyChain", "Laptop"),
        *("Mug", "Pen", "Pencil", "Pillow", "TissueBox", "Watch"),
    ),
    lamps=("DeskLamp",),
)
LIVING_ROOM: Final = Room(
    "living room",
    {
        "ArmChair": (1, 2),
        "CoffeeTable": (1, 1),
        "Drawer": (1, 5),
        "GarbageCan": (1, 1),
        "Safe": (0, 1),
        "Shelf": (0, 4),
        "SideTable": (1, 2),
        "Sofa": (1, 2),
        "TVStand": (0, 1),
    },
    (
        *("Book", "Bowl", "Box", "CreditCard", "KeyChain", "Laptop", "Newspaper", "Pillow"),
        *("Plate", "RemoteControl", "Statue", "TissueBox", "Vase", "Watch", "WateringCan"),
    ),
    lamps=("DeskLamp", "FloorLamp"),
)
BATHROOM: Final = Room(
    "bathroom",
    {
        "BathtubBasin": (0, 1),
        "Cabinet": (2, 5),
        "Cart": (0, 1),
        "CounterTop": (1, 1),
        "Drawer": (0, 3),
        "GarbageCan": (1, 1),
        "HandTowelHolder": (1, 1),
        "Shelf": (0, 2),
        "SinkBasin": (1, 2),
        "Toilet": (1, 1),
        "ToiletPaperHanger": (1, 1),
        "TowelHolder": (0, 1),
    },
    (
        *("Candle", "Cloth", "HandTowel", "SoapBar", "SoapBottle", "SprayBottle", "TissueBox"),
        "ToiletPaper",
    ),
)

ROOMS: Final[dict[str, tuple[Room, ...]]] = {
    "pick_and_place": (KITCHEN, KITCHEN, KITCHEN, BATHROOM, BEDROOM, LIVING_ROOM),
    "look_at_obj": (BEDROOM, LIVING_ROOM),
    "pick_clean_then_place": (KITCHEN, KITCHEN, KITCHEN, BATHROOM),
    "pick_heat_then_place": (KITCHEN,),
    "pick_cool_then_place": (KITCHEN,),
    "pick_two_obj": (KITCHEN, BATHROOM, BEDROOM, LIVING_ROOM),
}
"""Task family → the rooms it is drawn from, each as often as it is named.

Kitchens make up half of `pick_and_place`, so that it is about the things and receptacles which
`pick_clean_then_place` is about too: that memories of one mislead in the other is what studies ask.
"""


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
