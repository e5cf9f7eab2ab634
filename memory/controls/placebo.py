"""`Placebo`: as many tokens, and nothing in them."""

from collections.abc import Callable
from typing import ClassVar, Final

from typing_extensions import override

from langgraft._core.canonical import seeded_fraction
from langgraft.memory.controls.replacement import Replacement
from langgraft.memory.items import MemoryItem
from langgraft.memory.recall import Budget, Found, Recall, RecallContext, render_block
from langgraft.memory.stores.drive import Program

FILLER: Final = (
    "The weather was calm on that day.",
    "Rivers run down to the sea.",
    "Bread is baked early in the morning.",
    "A year has twelve months.",
    "Snow is cold and summers are warm.",
    "Some clouds looked like sheep.",
    "Libraries lend books to many people.",
    "Trains leave on the hour.",
)
"""Sentences about nothing an agent does."""

_NEAR: Final = 24
"""How far around the right length an exact one is looked for: tokenizers that join characters
may take back a token when a word is completed."""


class Placebo(Replacement):
    """Recalls neutral filler at the same token count (memory-transplants §4.5, *placebo context*).

    Item by item, filler takes the place of the text, of such a length that the block has as many
    tokens as the real one has so far, by the budget's own counter. Where no length gives that
    number, it is the nearest below, as long as the counter grows with the text. Filler of as many
    characters is preferred where it also has as many tokens.
    """

    name: ClassVar[str] = "placebo"

    @override
    def _instead(
        self, real: Recall, query: str, context: RecallContext, budget: Budget
    ) -> Program[Found]:
        texts: list[str] = []

        def whole(last: str) -> int:
            return budget.count(render_block([*texts, last]))

        for number, item in enumerate(real.items, start=1):
            before = [each.text for each in real.items[:number]]
            last = number == len(real.items)
            tokens = real.tokens if last else budget.count(render_block(before))
            texts.append(self._filler(item, whole, tokens))
        items = [
            (item.model_copy(update={"text": text}), score)
            for item, score, text in zip(real.items, real.scores, texts, strict=True)
        ]
        receipt = real.receipt
        return Found(tuple(items), query=receipt.searched, tied=receipt.tied, dropped=real.dropped)
        yield

    def _filler(self, item: MemoryItem, size: Callable[[str], int], tokens: int) -> str:
        start = int(seeded_fraction("placebo", self.seed, item.id) * len(FILLER))
        period = " ".join(FILLER[start:] + FILLER[:start]) + " "

        def cut(length: int) -> str:
            text = (period * (length // len(period) + 1))[:length]
            return text.rstrip().ljust(length, ".")

        return cut(_length(lambda length: size(cut(length)), tokens, len(item.text)))


def _length(size: Callable[[int], int], wanted: int, guess: int) -> int:
    """Return the length at which `size` is `wanted`, or the nearest below, if it grows with it."""
    if size(guess) == wanted:
        return guess
    low, high = 0, max(guess, 1)
    while size(high) <= wanted and high < 16 * (guess + wanted + 1):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) <= wanted else (low, middle)
    around = range(max(low - _NEAR, 0), low + _NEAR + 1)
    exact = (length for length in around if size(length) == wanted)
    return next(exact, low)
