"""`Shuffled`: genuine advice about something else."""

from typing import ClassVar

from typing_extensions import override

from langgraft._core.canonical import seeded_fraction
from langgraft.memory.controls.replacement import Replacement, fits, instead
from langgraft.memory.items import MemoryItem
from langgraft.memory.rankers.tokens import tokenize
from langgraft.memory.recall import Budget, Found, Recall, RecallContext
from langgraft.memory.stores.drive import Program


class Shuffled(Replacement):
    """Recalls real items of other tasks: as many, but those least like the query.

    Items are taken from the same bank: those whose key shares the fewest distinct words with
    the query, and none that the wrapped provider delivered while there are others. Among equals
    the seed decides. One that has no room left in the budget is passed over.
    """

    name: ClassVar[str] = "shuffled"

    @override
    def _instead(
        self, real: Recall, query: str, context: RecallContext, budget: Budget
    ) -> Program[Found]:
        words = frozenset(tokenize(query))
        same = frozenset(item.id for item in real.items)

        def unlikeness(item: MemoryItem) -> tuple[bool, int, float]:
            shared = len(words.intersection(tokenize(item.retrieval_key)))
            chance = seeded_fraction("shuffled", self.seed, query, item.id)
            return item.id in same, shared, chance

        chosen: list[MemoryItem] = []
        for item in sorted((yield from self._others(context)), key=unlikeness):
            if len(chosen) == len(real.items):
                break
            if fits([*chosen, item], budget):
                chosen.append(item)
        return instead(chosen, real)
