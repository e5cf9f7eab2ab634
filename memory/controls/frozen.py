"""`Frozen`: a bank that learns nothing more, with recall on or off."""

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft.memory.controls.base import Control, nothing
from langgraft.memory.policy import Need
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Question
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.stores.drive import Program


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
        return nothing(query, context, budget)
