"""What all controls share, and the two that recall what the wrapped provider does, or nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft.memory.deltas import Change, MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.importing import ImportChoices
from langgraft.memory.provider import MemoryProvider, Need
from langgraft.memory.questions import Question
from langgraft.memory.recall import Budget, Found, Recall, RecallContext, make_recall
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.drive import Program, program
from langgraft.memory.stores.forked import ReadOnlyStore


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
        return program(self.inner._ask_draft(query, context))  # noqa: SLF001

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        return program(self.inner._recall(query, context))  # noqa: SLF001

    def _real(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        """Recall what the wrapped provider delivers under this budget."""
        return self.inner._provide(query, context, budget)  # noqa: SLF001

    @override
    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        return program(MemoryDelta())

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        return ()


def empty_recall(query: str, context: RecallContext, budget: Budget) -> Recall:
    """Return an empty recall, whose receipt gives no item credit."""
    return make_recall(query, context, budget, Found())


class Frozen(Control):
    """Files and manages nothing; recalls what the wrapped provider does, or nothing.

    The two arms of the marginal utility of retrieval (memory-transplants §4.5, gate G6): the same
    bank, with and without recall, and its digest the same after both.

    Args:
        inner: The provider whose bank is frozen.
        provide: Whether anything is recalled.
    """

    name: ClassVar[str] = "frozen"

    @checked
    def __init__(self, inner: MemoryProvider[Any], *, provide: bool = True) -> None:
        super().__init__(inner)
        self.recalls = provide

    @property
    @override
    def needs(self) -> frozenset[Need]:
        """A draft, where one is wanted to recall."""
        return super().needs if self.recalls else frozenset()

    @override
    def asks_again(self, query: str, context: RecallContext, last: RecallContext) -> bool:
        """Ask again when the wrapped provider does, if anything is recalled."""
        return self.recalls and super().asks_again(query, context, last)

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the arm and the architecture it wraps."""
        return {**super().describe(), "provide": self.recalls}

    @override
    def _ask_draft(self, query: str, context: RecallContext) -> Program[Sequence[Question]]:
        return (yield from super()._ask_draft(query, context)) if self.recalls else ()

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        if self.recalls:
            return (yield from self._real(query, context, budget))
        return empty_recall(query, context, budget)


class WriteOnly(Control):
    """Files and manages as the wrapped provider does, and recalls nothing (§4.5, *write-only*).

    Tells what reflection and filing do to an agent without retrieval (memory-transplants §4.5,
    H4). Questions and needs are the wrapped provider's, so that the agent does all else that it
    would do, drafts included. Receipts are of nothing, so that no item earns credit.

    Args:
        inner: The provider that learns; its bank is written through it.
    """

    name: ClassVar[str] = "write_only"

    @checked
    def __init__(self, inner: MemoryProvider[Any]) -> None:
        super().__init__(inner)
        self.store = inner.store
        self._frozen = inner._frozen  # noqa: SLF001 - it is written, unless the inner one is not

    @property
    @override
    def needs(self) -> frozenset[Need]:
        """What the wrapped provider needs."""
        return self.inner.needs

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        return program(empty_recall(query, context, budget))

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        return program(self.inner._ask(episode))  # noqa: SLF001

    @override
    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        return self.inner._file(episode)  # noqa: SLF001

    @override
    def _manage(self, *, dry_run: bool = False) -> Program[MemoryDelta]:
        return self.inner._manage(dry_run=dry_run)  # noqa: SLF001

    @override
    def _import(
        self, path: Path, choices: ImportChoices | None, *, dry_run: bool
    ) -> Program[MemoryDelta]:
        return self.inner._import(path, choices, dry_run=dry_run)  # noqa: SLF001
