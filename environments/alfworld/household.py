"""Drawing a household: the kinds of rooms, what lies where in one, and the errand to be run."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from langgraft.environments.alfworld.installed import Package

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
