"""`TrajectoryMemory`: whole episodes, as they happened (continual-memory §3, *Raw*)."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft.memory.model import Add, Change, Episode
from langgraft.memory.provider import MemoryProvider, Need
from langgraft.memory.providers.episode_items import trajectory_of
from langgraft.memory.providers.retrieval import (
    Fields,
    RetrievalSettings,
    key_text,
    query_text,
    retrieve,
)
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.lexical import BM25
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.stores.programs import Program


class TrajectorySettings(RetrievalSettings):
    """Settings of `TrajectoryMemory`; the defaults are those of continual-memory Table 8."""

    top_k: int = SettingsField(default=1, ge=1)
    """Trajectories per recall (Table 8: 1)."""
    success_only: bool = False
    """Keep successful episodes only (Table 8: false)."""
    key_fields: Fields = ("task",)
    """What an episode is retrieved by. §A.1.4 says the instruction; the example of §B.1 adds
    the first observation: `("task", "observation")`."""
    query_fields: Fields = ("task",)
    """What is compared with the keys."""
    ranker: SkipValidation[Ranker] = BM25(ties="newest")
    """BM25 (§A.1.3). The paper does not say how equal scores are ordered; the latest
    experience comes first here."""


class TrajectoryMemory(MemoryProvider[TrajectorySettings]):
    """Keeps each episode's action-observation trajectory and recalls the most similar ones."""

    name: ClassVar[str] = "trajectory"
    settings_model = TrajectorySettings
    needs = frozenset[Need]()

    @property
    @override
    def revokes_exactly(self) -> bool:
        return True

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        settings = self.settings
        text = query_text(settings.query_fields, query, context)
        where = self._task_filter(context)
        return retrieve(self.namespace, text, settings, domain=context.domain, where=where)

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        if self.settings.success_only and not episode.succeeded:
            return ()
        key = key_text(self.settings.key_fields, episode)
        return (Add(trajectory_of(episode, order_index, key=key)),)
