"""`RecencyFewShot`: the last trajectories that succeeded, whatever is asked; a baseline."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field as SettingsField
from typing_extensions import override

from langgraft.memory.deltas import Change
from langgraft.memory.episodes import Episode
from langgraft.memory.items import MemoryItem
from langgraft.memory.policy import Need
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.arrivals import Arrivals
from langgraft.memory.providers.episode_items import trajectory_of
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.drive import Program


class RecencySettings(ProviderSettings):
    """Settings of `RecencyFewShot`."""

    examples: int = SettingsField(default=16, ge=1)
    """Trajectories per recall, before the budget. LifelongAgentBench (arXiv:2505.11942) tries
    from 1 to 64; 16 is as many as `SelfGeneratedExamples` has, so that the two differ only in
    what they choose."""


class RecencyFewShot(MemoryProvider[RecencySettings]):
    """Recalls the last episodes that succeeded, in the order they happened.

    What memory is worth beyond this, it owes to more than having seen some successes. Nothing is
    compared with the query: scores are 0. Under a budget the newest come first; the block ends
    with the newest. Where nobody says how an episode ended, as in an app that judges no turn, it
    counts as well: only failures are left out.

    ==============  ====================================  ====================================
    what            LifelongAgentBench                    here
    ==============  ====================================  ====================================
    kept            correct sessions of the environment   trajectories of episodes that did not
                                                          fail, of whatever domain the bank has
                                                          seen
    too long        runs out of memory or context, or     the token budget decides
                    groups vote on answers
    imported items  none                                  failures stay in the bank and are
                                                          not recalled
    ==============  ====================================  ====================================
    """

    name: ClassVar[str] = "recency"
    settings_model = RecencySettings
    needs = frozenset[Need]()

    @property
    def _line(self) -> Arrivals:
        """The successes, in order: recalling a few reads a few, however large the bank is."""
        return Arrivals(self.namespace, "successes")

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        same_task = context.task_id if self.settings.same_task == "exclude" else None
        last = yield from self._line.newest(
            self.settings.examples,
            where=lambda item: same_task is None or item.task_id != same_task,
        )
        return Found(tuple((item, 0.0) for item in last), best_last=True)

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        if episode.outcome.success is False:
            return ()
        return (yield from self._line.add(trajectory_of(episode, order_index)))

    @override
    def _settle(self, items: Sequence[MemoryItem]) -> Program[Sequence[Change]]:
        return (yield from self._line.join([item for item in items if item.success is not False]))
