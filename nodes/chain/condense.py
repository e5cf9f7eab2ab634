"""What is left out where the prompt is longer than what the model can read.

The conversation window: the newest half of what the agent did stays, behind its first message;
where that is still too long a quarter, and so on down to the last turn. Then long texts of that
turn lose their middle, and at the very last those of the first message. The last turn itself
always stays: without it the agent would do the same again. Nothing is left out of the log.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from langgraft.nodes.chain.sight import Cut, Sight

_LAST_RESORTS: Final = ((4_000, None), (1_000, None), (1_000, 8_000), (1_000, 2_000), (300, 500))
"""Characters of each text of the last turn, and of the first message."""

Measure: TypeAlias = Callable[[Cut], int]
"""Estimates the tokens of the prompt as a cut would leave it."""


def cut_to_fit(sight: Sight, end: int, *, most: int, now: int, measure: Measure) -> Cut | None:
    """Return what to leave in a prompt; `None` where it cannot be made any shorter.

    Args:
        sight: What the agent sees.
        end: Number of events in the log.
        most: Tokens that it should have at most.
        now: Tokens that it has.
        measure: Estimates the tokens that a cut leaves.

    Returns:
        The first cut that fits, or the shortest where none does.
    """
    shortest, least = None, now
    for cut in _cuts(sight, end):
        tokens = measure(cut)
        if tokens <= most and tokens < now:
            return cut
        if tokens < least:
            shortest, least = cut, tokens
    return shortest


def _cuts(sight: Sight, end: int) -> Iterator[Cut]:
    turns, first_message = sight.turns, sight.first_message
    kept = len(turns) // 2
    while kept:
        yield Cut(turns[-kept].action.id, None, first_message)
        kept //= 2
    newest = turns[-1:] or sight.parts[-1:]  # without a turn, that it went in circles
    last = newest[0].action.id if newest else end
    for texts, room in _LAST_RESORTS:
        rooms = [each for each in (room, first_message) if each is not None]
        yield Cut(last, texts, min(rooms, default=None))
