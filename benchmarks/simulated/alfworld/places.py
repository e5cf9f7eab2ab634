"""Where things usually are, as anybody would say who has been in a house."""

from collections.abc import Mapping, Sequence

_OPEN: Sequence[str] = (
    "countertop",
    "diningtable",
    "coffeetable",
    "sidetable",
    "desk",
    "dresser",
    "bed",
    "sofa",
    "armchair",
    "tvstand",
    "stoveburner",
    "coffeemachine",
    "sinkbasin",
    "bathtubbasin",
    "toilet",
    "shelf",
    "cart",
    "ottoman",
    "toaster",
    "toiletpaperhanger",
    "handtowelholder",
    "towelholder",
    "garbagecan",
    "laundryhamper",
)
_SHUT: Sequence[str] = ("fridge", "microwave", "cabinet", "drawer", "safe", "box")
RANKED: Mapping[str, int] = {kind: rank for rank, kind in enumerate((*_OPEN, *_SHUT))}
"""Kinds of places, in the order in which it would look there for just anything."""

OBVIOUS: Mapping[str, tuple[str, ...]] = {
    "book": ("bed", "desk"),
    "cellphone": ("bed", "desk"),
    "cloth": ("countertop", "bathtubbasin"),
    "handtowel": ("handtowelholder",),
    "kettle": ("stoveburner",),
    "laptop": ("bed", "desk"),
    "pan": ("stoveburner",),
    "pillow": ("bed", "sofa"),
    "pot": ("stoveburner",),
    "remotecontrol": ("sofa", "coffeetable"),
    "toiletpaper": ("toilet", "toiletpaperhanger"),
    "towel": ("towelholder",),
    "vase": ("shelf",),
}
"""Things that have a place of their own."""
SURFACES = frozenset(_OPEN[:12])
"""Kinds of places where things lie in the open."""
KINDS = frozenset((*_OPEN, *_SHUT))
"""Kinds of places it knows the names of."""


def rank_of(place: str, thing: str, first: Sequence[str]) -> tuple[int, int]:
    """Return a key by which likely kinds of places come first."""
    preferred = (*first, *OBVIOUS.get(thing, ()))
    if place in preferred:
        return 0, preferred.index(place)
    return 1, RANKED.get(place, len(RANKED))
