"""`FullHistory`: everything that happened, in order; a baseline."""

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from langgraft.memory import bank
from langgraft.memory.deltas import Add, Change
from langgraft.memory.episodes import Episode
from langgraft.memory.forgetting import entries
from langgraft.memory.policy import Need
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.episode_items import trajectory_of
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.drive import Program


class FullHistory(MemoryProvider[ProviderSettings]):
    """Recalls the trajectory of every episode, the oldest first and the newest last.

    Under a budget those are recalled that fit, beginning with the newest; one that is too long
    for the room that is left is passed over, and older, shorter ones may still fit. The receipt
    names all that did not. Nothing is compared with the query: scores are 0.

    The method has no paper and no parameters. Each recall reads the whole bank, as what it
    recalls is the whole bank.
    """

    name: ClassVar[str] = "full_history"
    needs = frozenset[Need]()

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        content = yield from bank.read_content(self.namespace)
        newest_first = reversed(entries(content))
        return Found(tuple((entry.item, 0.0) for entry in newest_first), best_last=True)

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        return (Add(trajectory_of(episode, order_index)),)
        yield
