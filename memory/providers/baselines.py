"""Baselines: no memory, everything, the last successes, and one's own successes as examples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft.memory import bank
from langgraft.memory.forgetting import noted_items
from langgraft.memory.model import Add, BankContent, Change, Episode, MemoryDelta, MemoryItem
from langgraft.memory.provider import MemoryProvider, Need, program
from langgraft.memory.providers.episode_items import FifoOrder, places_left, trajectory_of
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.lexical import BM25
from langgraft.memory.recall import Found, RecallContext, ranked_items
from langgraft.memory.settings import ProviderSettings, RankedSettings
from langgraft.memory.stores.programs import Namespace, Program


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

    @property
    @override
    def revokes_exactly(self) -> bool:
        return True

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        content = yield from bank.read_content(self.namespace)
        newest_first = reversed(noted_items(content))
        return Found(tuple((entry.item, 0.0) for entry in newest_first), best_last=True)

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        return (Add(trajectory_of(episode, order_index)),)


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
        namespace: Namespace | None = None,
        settings: ProviderSettings | None = None,
    ) -> None:
        super().__init__(store or InMemoryStore(), namespace=namespace, settings=settings)

    @override
    def _recall(self, query: str, context: RecallContext) -> Found:
        return Found()

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        return ()

    @override
    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        return program(MemoryDelta())


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
    def _successes(self) -> FifoOrder:
        """The successes, in order: recalling a few reads a few, however large the bank is."""
        return FifoOrder(self.namespace, "successes")

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        left_out = {*context.in_conversation}
        if self.settings.same_task == "exclude":
            left_out.add(context.task_id)
        last = yield from self._successes.newest(
            self.settings.examples, where=lambda item: item.task_id not in left_out
        )
        return Found(tuple((item, 0.0) for item in last), best_last=True)

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        if episode.outcome.success is False:
            return ()
        return (yield from self._successes.add(trajectory_of(episode, order_index)))

    @override
    def _settle(self, items: Sequence[MemoryItem]) -> Program[Sequence[Change]]:
        return self._successes.join([item for item in items if item.success is not False])

    @override
    def _follow(
        self, content: BankContent, old: MemoryItem, new: MemoryItem | None
    ) -> Sequence[Change]:
        return () if new else places_left(content, old)


class SelfExamplesSettings(RankedSettings):
    """Settings of `SelfGeneratedExamples`; the defaults are StreamBench's (arXiv:2406.08747)."""

    top_k: int = SettingsField(default=16, ge=1)
    """Examples per recall, before the budget (Self-StreamICL: k = 16)."""
    order: Literal["most_similar_last", "most_similar_first"] = "most_similar_last"
    """Which way round the examples stand in the block (Self-StreamICL: the most similar last,
    next to the task). Under a budget the most similar are taken first either way."""
    ranker: SkipValidation[Ranker] = BM25(ties="newest")
    """How tasks are compared. StreamBench embeds them; BM25 works offline, and recalls fewer than
    `top_k` where fewer share a word. For its own way give `Dense("openai:…")`."""


class SelfGeneratedExamples(MemoryProvider[SelfExamplesSettings]):
    """Recalls trajectories of the agent's own that succeeded, as examples in the prompt.

    Where nobody says how an episode ended, as in an app that judges no turn, it counts as well:
    only failures are left out.

    ==============  ====================================  ====================================
    what            StreamBench's Self-StreamICL          here
    ==============  ====================================  ====================================
    kept            task and answer, where feedback says  task and trajectory of episodes that
                    that it is correct                    did not fail
    comparison      sentence embeddings of the tasks      BM25 on the tasks, a setting
    imported items  none                                  failures stay in the bank and are
                                                          not recalled
    ==============  ====================================  ====================================
    """

    name: ClassVar[str] = "self_examples"
    settings_model = SelfExamplesSettings
    needs = frozenset[Need]()

    @property
    @override
    def revokes_exactly(self) -> bool:
        return True

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        settings = self.settings
        where = {**self._task_filter(context), "item.success": {"$ne": False}}
        found = yield from ranked_items(self.namespace, query, settings.top_k, where=where)
        return replace(found, best_last=settings.order == "most_similar_last")

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        failed = episode.outcome.success is False
        return () if failed else (Add(trajectory_of(episode, order_index)),)
