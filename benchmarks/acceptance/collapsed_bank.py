"""A frozen bank that has collapsed as continual-memory §D describes it, made of plain data.

Eighty episodes of one task, three lessons each: 240 entries. Two of the three say the same in
every episode, in slightly other words, and name the situation that every query is in, so they
fill all slots. The third is about the thing that was to be found; it is what would help, and it
ranks below some 160 near-duplicates.
"""

from typing import Final

from langgraft.memory.episodes import Episode, Lesson, Outcome, Step
from langgraft.memory.recall import RecallContext

DOMAIN: Final = "toy/find"

_HINTS: Final = {
    "lamp": ("stands on a desk in the study", "shines yellow when switched on"),
    "mug": ("is kept near the coffee machine", "has blue stripes and one handle"),
    "towel": ("hangs over a rail in the bathroom", "feels soft and damp"),
    "spoon": ("lies inside some kitchen drawer", "clinks among forks"),
    "book": ("waits high up on shelves", "carries gold letters along its spine"),
    "pillow": ("rests at one end of a bed", "smells faintly of lavender"),
    "hammer": ("hides down in the workshop", "weighs more than it seems"),
    "candle": ("sits beside matches and plates", "drips wax upon silver"),
    "kettle": ("whistles upon an old stove", "steams every morning"),
    "rake": ("leans out in the garden shed", "misses two teeth"),
    "violin": ("sleeps within a black leather case", "needs new strings"),
    "globe": ("spins between maps of far countries", "shows oceans painted green"),
    "saddle": ("gathers dust where horses are kept", "creaks under weight"),
    "anchor": ("rusts aboard boats by the lake", "ends in a long chain"),
    "ladder": ("reaches up against barn walls", "folds into three parts"),
    "mirror": ("gleams behind wardrobe curtains upstairs", "cracked across its corner"),
}
_THINGS: Final = tuple(_HINTS)
_GENERAL: Final = (
    "Open the closed doors one after another and look into each room once",
    "Look into each room once and open the closed doors one after another",
)
_ADDED: Final = (".", " first.", ", calmly.", ", as before.", ", then go on.")


def episodes() -> list[Episode]:
    """Return the episodes that fill the bank."""
    return [_episode(number) for number in range(80)]


def queries() -> list[tuple[str, RecallContext]]:
    """Return a hundred homogeneous queries: another thing, much the same sight."""
    return [_query(number) for number in range(80, 180)]


def _episode(number: int) -> Episode:
    thing = _THINGS[number % len(_THINGS)]
    hint = _HINTS[thing][number // len(_THINGS) % 2]
    first, second = (general + _ADDED[number % len(_ADDED)] for general in _GENERAL)
    return Episode(
        id=f"e{number}",
        domain=DOMAIN,
        task_id=f"{DOMAIN}/{number}",
        task=f"find the {thing}",
        steps=(Step("", "", _seen(number)),),
        outcome=Outcome(success=number % 2 == 0),
        lessons=(
            Lesson(first, "no object is in view and there are closed doors"),
            Lesson(second, "no object is in view in the room"),
            Lesson(f"The {thing} {hint}.", f"looking for a {thing}"),
        ),
    )


def _query(number: int) -> tuple[str, RecallContext]:
    context = RecallContext(
        domain=DOMAIN,
        task_id=f"{DOMAIN}/{number}",
        episode_id=f"e{number}",
        observation=_seen(number),
    )
    return f"find the {_THINGS[7 * number % len(_THINGS)]}", context


def _seen(number: int) -> str:
    return f"In this room there are {number % 3 + 1} closed doors. No object is in view."
