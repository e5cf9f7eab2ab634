"""The rooms that games take place in: what stands in them, and what lies about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


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
