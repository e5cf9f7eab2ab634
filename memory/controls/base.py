"""What all controls share: they wrap a provider, read its bank and leave it as it is."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft.memory.deltas import Change, MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.policy import Need
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Question
from langgraft.memory.recall import Budget, Found, Recall, RecallContext, make_recall
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.drive import Program
from langgraft.memory.stores.read_only import ReadOnlyStore


class Control(MemoryProvider[ProviderSettings]):
    """Base of the controls: asked as the wrapped provider is, and files nothing.

    What is to be filed passes by; an import is refused.

    Args:
        inner: The provider to imitate; its bank is read, and not written.

    Attributes:
        inner: The wrapped provider.
    """

    @checked
    def __init__(self, inner: MemoryProvider[Any]) -> None:
        settings = ProviderSettings(same_task=inner.settings.same_task)
        super().__init__(ReadOnlyStore(inner.store), settings=settings)
        self.namespace = inner.namespace
        self._bank = inner._bank  # noqa: SLF001 - one lock, whichever of the two is called
        self.inner = inner

    @property
    @override
    def needs(self) -> frozenset[Need]:
        """A draft, where the wrapped provider wants one to recall; nothing for filing."""
        return self.inner.needs & {"draft"}

    @override
    def refresh(self) -> None:
        self.inner.refresh()

    @override
    def close(self) -> None:
        self.inner.close()

    @override
    def asks_again(self, query: str, context: RecallContext, last: RecallContext) -> bool:
        """Ask again when the wrapped provider does."""
        return self.inner.asks_again(query, context, last)

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the control and the architecture it wraps."""
        return {"control": self.name, "of": self.inner.describe()}

    @override
    def _ask_draft(self, query: str, context: RecallContext) -> Program[Sequence[Question]]:
        return (yield from self.inner._ask_draft(query, context))  # noqa: SLF001

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        return (yield from self.inner._recall(query, context))  # noqa: SLF001

    def _real(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        """Recall what the wrapped provider delivers under this budget."""
        return (yield from self.inner._provide(query, context, budget))  # noqa: SLF001

    @override
    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        return MemoryDelta()
        yield

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        return ()
        yield


def nothing(query: str, context: RecallContext, budget: Budget) -> Recall:
    """Return an empty recall, whose receipt gives no item credit."""
    return make_recall(query, context, budget, Found())
