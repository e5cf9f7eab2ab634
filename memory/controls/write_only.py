"""`WriteOnly`: learning goes on, and nothing of it is recalled."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft.memory.controls.base import Control, nothing
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.importing import ImportChoices
from langgraft.memory.policy import Need
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Question
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.stores.drive import Program


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
        return nothing(query, context, budget)
        yield

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        return (yield from self.inner._ask(episode))  # noqa: SLF001

    @override
    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        return (yield from self.inner._file(episode))  # noqa: SLF001

    @override
    def _manage(self, *, dry_run: bool = False) -> Program[MemoryDelta]:
        return (yield from self.inner._manage(dry_run=dry_run))  # noqa: SLF001

    @override
    def _import(
        self, path: Path, choices: ImportChoices | None, *, dry_run: bool
    ) -> Program[MemoryDelta]:
        return (yield from self.inner._import(path, choices, dry_run=dry_run))  # noqa: SLF001
