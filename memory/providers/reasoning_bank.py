"""`ReasoningBank`: strategies drawn from successes and failures (arXiv:2509.25140)."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft.memory.model import Add, Change, Episode, Lesson, MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.episode_items import authors
from langgraft.memory.providers.retrieval import RetrievalSettings, retrieve
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.dense import Dense
from langgraft.memory.recall import Found, RecallContext
from langgraft.memory.stores.programs import Program


class ReasoningBankSettings(RetrievalSettings):
    """Settings of `ReasoningBank`."""

    top_k: int = SettingsField(default=1, ge=1)
    """Past tasks whose strategies are recalled (the published code's `select_memory` with n = 1)."""
    ranker: SkipValidation[Ranker] = Dense(ties="newest")
    """How past tasks are compared with the one at hand: cosine. The default embedder works offline
    and compares letters and words; with a real one give `Dense("google_genai:gemini-embedding-001")`,
    the published one."""


class ReasoningBank(MemoryProvider[ReasoningBankSettings]):
    """Keeps the strategies of each episode, and recalls those of the task most like the one at hand.

    A strategy has a title, a description of one sentence, and content: what to do and why. Graphs
    ask for them with `distillation="strategies"`, which asks why an attempt succeeded, or why it
    failed; lessons that came another way do as well. Episodes without any leave no item.

    ================  ====================================  ====================================
    what              ReasoningBank's code                  here
    ================  ====================================  ====================================
    outcome           a model judges the trajectory         as the episode says; where it does
                                                            not, the question leaves it open
    strategies        at most three, as Markdown            at most three, as JSON that is
                                                            corrected once
    found by          the embedding of the task, asked      the embedding of the task
                      with an instruction
    recalled          all strategies of the nearest task    the same
    consolidation     none: appended                        the same; `forgetting` bounds a bank
    scaling (MaTTS)   several trajectories of a task        not a provider's: distil `by_outcome`
                      compared                              to compare two
    ================  ====================================  ====================================
    """

    name: ClassVar[str] = "reasoning_bank"
    settings_model = ReasoningBankSettings

    @property
    @override
    def revokes_exactly(self) -> bool:
        return True

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        where = self._task_filter(context)
        return retrieve(self.namespace, query, self.settings, domain=context.domain, where=where)

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        lessons = episode.lessons
        if not lessons:
            return ()
        item = MemoryItem(
            id=f"{episode.id}/strategies",
            text="\n".join(map(_strategy, lessons)),
            type=lessons[0].type,
            source_domain=episode.domain,
            episode_id=episode.id,
            success=episode.outcome.success,
            order_index=order_index,
            task_id=episode.task_id,
            key=episode.task,
            metadata=authors(lessons),
        )
        return (Add(item),)


def _strategy(lesson: Lesson) -> str:
    """Write a strategy: its title, what it is for, and what to do."""
    title = f"# {lesson.title}" if lesson.title else ""
    return "\n".join(each for each in (title, lesson.when_to_use, lesson.text) if each)
