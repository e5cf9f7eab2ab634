"""`LightweightMemory`: two tiers by success, asked every few episodes (memory-transplants §4.2)."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import ClassVar, Final

from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft._core.canonical import seeded_fraction
from langgraft.memory.model import BankContent, Change, Episode, MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.episode_items import (
    FifoOrder,
    NoteSettings,
    note_of,
    places_closed,
    places_left,
)
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.lexical import BM25
from langgraft.memory.recall import Found, Pool, RecallContext, ranked_items, searched
from langgraft.memory.stores.programs import Program

LONG_TERM: Final = "long_term"
"""The tier of items from successful episodes."""
SHORT_TERM: Final = "short_term"
"""The tier of all others."""


class LightweightSettings(NoteSettings):
    """Settings of `LightweightMemory`; the defaults are those of memory-transplants §4.2, App. B."""

    max_short_term: int = SettingsField(default=80, ge=1)
    """Items the short-term tier holds (§4.2: 80)."""
    max_long_term: int = SettingsField(default=160, ge=1)
    """Items the long-term tier holds (§4.2: 160)."""
    every: int = SettingsField(default=3, ge=1)
    """Recall in one of so many episodes, the first included (§4.2, App. B: N = 3)."""
    long_term_share: float = SettingsField(default=0.5, gt=0, lt=1)
    """Part of the token budget for the long-term tier; the other has the rest (§4.2: 50/50)."""
    top_k: int = SettingsField(default=5, ge=1)
    """Most items per recall of each tier: the first that fit its share. The paper does not say; 5 is the default
    for long-term items in the code of MemEvolve."""
    ranker: SkipValidation[Ranker] = BM25(ties="newest")
    """The paper does not say how either tier is searched, nor how ties are ordered; the latest
    experience comes first here."""


class LightweightMemory(MemoryProvider[LightweightSettings]):
    """Keeps notes of successes and of failures apart, and recalls both every third episode.

    The tier of an item is a function of its `success` and is written nowhere, so an imported item
    finds its own. What succeeded is long-term; what failed, or ended nobody knows how, is
    short-term. Each tier is pruned by itself, the first in first out.

    The position of an episode is `RecallContext.episode_index`. Without one its id draws lots, one
    in `every`: the number of episodes in a bank stands still where it is frozen or imported.

    ===============  =====================================  ===================================
    what             MemEvolve's `LIGHTWEIGHT_MEMORY`       here, after §4.2 and App. B
    ===============  =====================================  ===================================
    selection        a model reads all items, picks some    a ranker picks; items are recalled
                     and words them as guidance             as they are
    long term        at most two lessons of each of two     one note of each success
                     kinds, by a model, from successes
    short term       facts of the task under way, taken     one note of each episode that did
                     from every step by a model             not succeed, kept across tasks
    failures         leave nothing                          `error_trace` items
    cadence          every few steps of an episode          every third episode
    capacity         30 items of a kind and 20 to spare;    160 and 80; the oldest go
                     a model says which go
    beginning        seven items written by hand            empty: seeds would be content
    success counts   kept, and shown to the model           none, unless `credit` is set
    ===============  =====================================  ===================================
    """

    name: ClassVar[str] = "lightweight"
    settings_model = LightweightSettings

    @property
    @override
    def revokes_exactly(self) -> bool:
        return True

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        if not self._is_due(context):
            return Found()
        return (yield from searched(partial(self._search, query, context)))

    def _search(self, query: str, context: RecallContext, times: int) -> Program[Found]:
        where = self._task_filter(context)
        listed: list[tuple[MemoryItem, float]] = []
        tied: list[tuple[float, int]] = []
        found = Found()
        for success in (True, {"$ne": True}):
            found = yield from ranked_items(
                self.namespace,
                query,
                times * self.settings.top_k,
                where={**where, "item.success": success},
            )
            listed += found.items
            tied += [(found.items[0][1], found.tied)] if found.items else []
        listed.sort(key=lambda scored: -scored[1])
        return Found(
            tuple(listed),
            found.query,
            sum(count for score, count in tied if score == listed[0][1]),
            tuple(self._pool(item) for item, _ in listed),
        )

    @override
    def _pool(self, item: MemoryItem) -> Pool:
        share, most = self.settings.long_term_share, self.settings.top_k
        if item.success is True:
            return Pool(LONG_TERM, share, most)
        return Pool(SHORT_TERM, 1 - share, most)

    def _is_due(self, context: RecallContext) -> bool:
        every = self.settings.every
        if context.episode_index is None:
            return seeded_fraction("cadence", context.episode_id) * every < 1
        return context.episode_index % every == 0

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        item = note_of(episode, order_index, part_characters=self.settings.part_characters)
        return self._tier(success=item.success is True).add(item)

    @override
    def _maintain(self) -> Program[Sequence[Change]]:
        settings = self.settings
        long = yield from self._tier(success=True).overflow(settings.max_long_term)
        short = yield from self._tier(success=False).overflow(settings.max_short_term)
        return [*long, *short]

    @override
    def _settle(self, items: Sequence[MemoryItem]) -> Program[Sequence[Change]]:
        changes: list[Change] = []
        for success in (True, False):
            tier = [item for item in items if (item.success is True) is success]
            changes += yield from self._tier(success=success).join(tier)
        return changes

    @override
    def _follow(
        self, content: BankContent, old: MemoryItem, new: MemoryItem | None
    ) -> Sequence[Change]:
        return () if new else places_left(content, old)

    @override
    def _withdraw(self, left: BankContent, episodes: Collection[str]) -> Sequence[Change]:
        return places_closed(left)

    def _tier(self, *, success: bool) -> FifoOrder:
        return FifoOrder(self.namespace, LONG_TERM if success else SHORT_TERM)
