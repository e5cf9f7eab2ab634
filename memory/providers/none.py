"""`NoMemory`: the baseline."""

from collections.abc import Sequence
from typing import ClassVar

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft.memory import bank
from langgraft.memory.deltas import Change, MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.policy import Need
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.drive import Program


class NoMemory(MemoryProvider[ProviderSettings]):
    """Recalls nothing and learns nothing (memory-transplants §4.2, `NO_MEMORY`).

    What is imported is kept and never recalled.
    """

    name: ClassVar[str] = "none"
    needs = frozenset[Need]()

    @checked
    def __init__(
        self,
        store: BaseStore | None = None,
        *,
        namespace: bank.Namespace | None = None,
        settings: ProviderSettings | None = None,
    ) -> None:
        super().__init__(store or InMemoryStore(), namespace=namespace, settings=settings)

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        return Found()
        yield

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        return ()
        yield

    @override
    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        return MemoryDelta()
        yield
