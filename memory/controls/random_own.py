"""`RandomOwn`: random items again, but of one's own task family."""

from typing import ClassVar

from typing_extensions import override

from langgraft.memory.controls.random_retrieval import RandomRetrieval
from langgraft.memory.items import MemoryItem
from langgraft.memory.recall import RecallContext
from langgraft.memory.stores.drive import Program


class RandomOwn(RandomRetrieval):
    """Recalls random items of the bank that were learned in the domain that asks.

    It takes relevance away as `RandomRetrieval` does, and with it what other task families left:
    where their items are what harms (continual-memory §4), the harm is gone. Of a bank without
    items of the domain nothing is recalled; of one with fewer than were delivered, those it has.
    """

    name: ClassVar[str] = "random-own"

    @override
    def _others(self, context: RecallContext) -> Program[list[MemoryItem]]:
        items = yield from super()._others(context)
        return [item for item in items if item.source_domain == context.domain]
