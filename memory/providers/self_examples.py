"""`SelfGeneratedExamples`: the agent's own successes on the most similar tasks; a baseline."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft.memory.deltas import Add, Change
from langgraft.memory.episodes import Episode
from langgraft.memory.policy import Need
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.episode_items import trajectory_of
from langgraft.memory.providers.retrieval import ranked_items, task_filter
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.bm25 import BM25
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.settings import RankedSettings
from langgraft.memory.stores.drive import Program


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

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        settings = self.settings
        where = {**task_filter(settings, context), "item.success": {"$ne": False}}
        found = yield from ranked_items(self.namespace, query, settings.top_k, where=where)
        return replace(found, best_last=settings.order == "most_similar_last")

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        failed = episode.outcome.success is False
        return () if failed else (Add(trajectory_of(episode, order_index)),)
        yield
