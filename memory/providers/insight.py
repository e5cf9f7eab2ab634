"""`InsightMemory`: distilled lessons, bundled or one by one (continual-memory §4)."""

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft.memory.deltas import Add, Change
from langgraft.memory.episodes import Episode, Lesson
from langgraft.memory.items import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.retrieval import Fields, key_text, query_text, ranked_items
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.bm25 import BM25
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.settings import RankedSettings
from langgraft.memory.stores.drive import Program

Granularity: TypeAlias = Literal["aggregate", "individual"]


class InsightSettings(RankedSettings):
    """Settings of `InsightMemory`; the defaults are Cond-Agg of continual-memory Table 8.

    ==============  ===============  ========  ==================
    condition       `granularity`    `top_k`   `requery_interval`
    ==============  ===============  ========  ==================
    Cond-Agg        `aggregate`      1         `None`
    Cond-Ind        `individual`     3         `None`
    Cond-Step       `individual`     3         4
    ==============  ===============  ========  ==================
    """

    granularity: Granularity = "aggregate"
    """One item per episode with all its lessons, or one item per lesson (§A.1.5)."""
    top_k: int = SettingsField(default=1, ge=1)
    """Items per recall (Table 8: 1 for bundles, 3 for single lessons)."""
    requery_interval: int | None = SettingsField(default=None, ge=1)
    """Ask again after this many steps (Table 8: 4 for Cond-Step); `None`: never."""
    success_only: bool = False
    """Keep lessons of successful episodes only (Table 8: false)."""
    key_fields: Fields = ("task",)
    """What a bundle is retrieved by. §A.1.5 says the instruction; the example of §B.2 adds
    the first observation. Single lessons are always retrieved by their `when_to_use`."""
    query_fields: Fields = ("task",)
    """What is compared with the keys at the start of an episode."""
    requery_fields: Fields = ("task", "observation")
    """What is compared with them later on, so that guidance can follow the episode."""
    ranker: SkipValidation[Ranker] = BM25(ties="newest")
    """BM25 (§A.1.3). The paper does not say how equal scores are ordered; the latest
    experience comes first here."""


class InsightMemory(MemoryProvider[InsightSettings]):
    """Keeps the lessons distilled from episodes; episodes without lessons leave no item."""

    name: ClassVar[str] = "insight"
    settings_model = InsightSettings

    @property
    @override
    def requery_every(self) -> int | None:
        """After how many environment steps to ask again; `None`: only at the start."""
        return self.settings.requery_interval

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        settings = self.settings
        fields = settings.requery_fields if context.step else settings.query_fields
        text = query_text(fields, query, context)
        return (yield from ranked_items(self.namespace, text, settings.top_k))

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        lessons = episode.lessons
        if not lessons or (self.settings.success_only and not episode.succeeded):
            return ()
        if self.settings.granularity == "aggregate":
            key = key_text(self.settings.key_fields, episode)
            return (Add(_item(episode, "lessons", lessons, key=key, order_index=order_index)),)
        return tuple(
            Add(
                _item(
                    episode,
                    f"lesson-{number}",
                    [lesson],
                    key=lesson.when_to_use or lesson.text,
                    order_index=order_index + number,
                )
            )
            for number, lesson in enumerate(lessons)
        )
        yield


def render_lesson(lesson: Lesson) -> str:
    """Write a lesson as text: the situation first, then the advice."""
    if not lesson.when_to_use:
        return f"- {lesson.text}"
    return f"- When {lesson.when_to_use}: {lesson.text}"


def _item(
    episode: Episode, name: str, lessons: Sequence[Lesson], *, key: str, order_index: int
) -> MemoryItem:
    return MemoryItem(
        id=f"{episode.id}/{name}",
        text="\n".join(render_lesson(lesson) for lesson in lessons),
        type=lessons[0].type,
        source_domain=episode.domain,
        episode_id=episode.id,
        success=episode.succeeded,
        order_index=order_index,
        task_id=episode.task_id,
        key=key,
    )
