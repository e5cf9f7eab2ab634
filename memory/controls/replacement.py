"""Controls that recall something else in the place of what the wrapped provider delivers."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft.memory import bank
from langgraft.memory.controls.base import Control
from langgraft.memory.items import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Found, Recall, RecallContext, make_recall, render_block
from langgraft.memory.stores.drive import Program


class Replacement(Control):
    """Base of the controls that put other items in the place of those delivered.

    Its receipts tell what the wrapped provider searched for, and how many items tied there. Where
    that provider recalls nothing, so does the control.

    Args:
        inner: The provider to imitate; its bank is read, and not written.
        seed: Decides between equals.
    """

    @checked
    def __init__(self, inner: MemoryProvider[Any], *, seed: int = 0) -> None:
        super().__init__(inner)
        self.seed = seed

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the control, its seed and the architecture it wraps."""
        return {"control": self.name, "seed": self.seed, "of": self.inner.describe()}

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        real = yield from self._real(query, context, budget)
        if not real:
            return real
        found = yield from self._instead(real, query, context, budget)
        return make_recall(query, context, budget, found)

    @abstractmethod
    def _instead(
        self, real: Recall, query: str, context: RecallContext, budget: Budget
    ) -> Program[Found]:
        """Find what to recall in the place of what was really delivered."""

    def _others(self, context: RecallContext) -> Program[list[MemoryItem]]:
        """List the items of the bank that may be recalled for the task that asks, oldest first."""
        content = yield from bank.read_content(self.namespace)
        items = sorted(content.items.values(), key=lambda item: (item.order_index, item.id))
        if self.settings.same_task == "allow":
            return items
        return [item for item in items if item.task_id != context.task_id]


def instead(items: Iterable[MemoryItem], real: Recall) -> Found:
    """Return items as what was found in the place of a real recall; they have no scores."""
    scored = tuple((item, 0.0) for item in items)
    return Found(scored, query=real.receipt.searched, tied=real.receipt.tied)


def fits(items: Sequence[MemoryItem], budget: Budget) -> bool:
    """Say whether the block of some items is within a budget."""
    if budget.tokens is None:
        return True
    return budget.count(render_block([item.text for item in items])) <= budget.tokens
