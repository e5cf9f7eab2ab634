"""`AgentKB`: retrieval in two stages, and a gate against contradictions (memory-transplants §4.2)."""

from collections.abc import Sequence
from typing import ClassVar, Final

from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft.memory.model import Dropped, ItemType, MemoryItem, Question
from langgraft.memory.provider import Need
from langgraft.memory.providers.episode_items import LatestNotes, LatestNotesSettings
from langgraft.memory.rankers.base import SCORE_DECIMALS, Ranker
from langgraft.memory.rankers.lexical import BM25
from langgraft.memory.recall import CONTRADICTS, Found, RecallContext, ranked_items
from langgraft.memory.stores.programs import Program

CONTRADICTION: Final = "contradiction"
"""Kind of the question which candidates conflict with a draft."""
CONTRADICTING: Final = "contradicts"
"""Action of a verdict that names a candidate which does."""

_BROADER: Final = 2
"""Candidates of the first stage to one item of the second (§4.2, App. B: twice top-k)."""


class AgentKBSettings(LatestNotesSettings):
    """Settings of `AgentKB`; the defaults are those of memory-transplants §4.2 and App. B.

    App. B gives the form of the second stage's score and not its weights: they are equal here.
    """

    max_items: int = SettingsField(default=220, ge=1)
    """Items the bank holds (§4.2: 220). What leaves is not said: the first in, first out."""
    top_k: int = SettingsField(default=5, ge=1)
    """Most items per recall: the first that fit the budget; twice as many are candidates (§4.2, App. B). The paper
    does not say how many; 5 is the default of the published system's class."""
    success_weight: float = SettingsField(default=1.0, ge=0)
    """App. B's w_s, for items of successful episodes."""
    type_weight: float = SettingsField(default=1.0, ge=0)
    """App. B's w_t, for items of the type that is asked for (`RecallContext.type`); where none
    is, it makes no difference."""
    recency_weight: float = SettingsField(default=1.0, ge=0)
    """App. B's w_r, for recency: 1 for the newest item of the bank, 0 for the oldest, between
    them by `order_index`."""
    gate: bool = False
    """Leave out what a judge finds to contradict the agent's draft (§4.2: optional). The draft
    and the judgment cost a model call each."""
    ranker: SkipValidation[Ranker] = BM25(ties="newest")
    """First stage (§4.2: *broad retrieval*). The published one adds TF-IDF and sentence
    embeddings, half and half. The embedder that works offline compares letters and words once
    more, so BM25 alone is the default; with a real embedder give
    `Hybrid((BM25(), Dense("openai:text-embedding-3-small")))`."""


class AgentKB(LatestNotes[AgentKBSettings]):
    """Keeps notes of episodes; of those that match best, recalls the most useful.

    The ranker finds twice `top_k` candidates. Their final score is `success_weight` if they come
    from a success, plus `type_weight` if they are of the type asked for, plus `recency_weight`
    times their recency; of equals, the one that matches better comes first. How well they match
    counts for nothing else. An episode that ended nobody knows how is no success.

    With the gate on, `draft_questions` shows a judge the draft and all candidates. Those that a
    verdict says contradict the draft are dropped, and the next ones have their slots. Should
    other candidates be found by then, the verdicts answer another question and say nothing.

    ==================  =================================  ==================================
    what                Tang et al. 2025, and their code   here, after §4.2 and App. B
    ==================  =================================  ==================================
    entry               task, plan and experience, worded  a note an episode, as
                        by a model                         `episode_items` words it
    first stage         the best 2k of TF-IDF and of       the best 2k of one ranker,
                        embeddings, half and half          BM25 by default
    second stage        none: the sum is final             the score of App. B
    use of what is      a model reasons before it asks     recalled as it is, once an episode
    found               and rewords what it is told, for
                        a student and for a teacher
    second attempt      after an answer that is wrong by   none
                        the gold answer
    gate                described, and not in the code     a judge's verdicts, asked for
                                                           about the draft
    capacity            none                               220, the oldest go
    items per recall    3, 1 or 5, depending on where      5, a setting
    ==================  =================================  ==================================
    """

    name: ClassVar[str] = "agent_kb"
    settings_model = AgentKBSettings

    @property
    @override
    def needs(self) -> frozenset[Need]:
        """Lessons, and with the gate on a draft."""
        return super().needs | ({"draft"} if self.settings.gate else frozenset())

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        found = yield from self._candidates(query, context)
        recency = yield from self._recency([item for item, _ in found.items])
        ranking = sorted(
            (
                (item, self._score(item, context.type, recent))
                for (item, _), recent in zip(found.items, recency, strict=True)
            ),
            key=lambda scored: -scored[1],
        )
        against = self._against(query, context, found)
        kept = tuple(scored for scored in ranking if scored[0].id not in against)
        dropped = (Dropped(item.id, CONTRADICTS) for item, _ in ranking if item.id in against)
        most = self.settings.top_k
        return Found(kept, found.query, dropped=tuple(dropped), most=most)

    def _candidates(self, query: str, context: RecallContext) -> Program[Found]:
        return ranked_items(
            self.namespace,
            query,
            _BROADER * self.settings.top_k,
            where=self._task_filter(context),
        )

    def _recency(self, items: Sequence[MemoryItem]) -> Program[list[float]]:
        """Say how recent items are among those of the bank, from 0 to 1."""
        newest = yield from self._fifo.newest(1)
        oldest = yield from self._fifo.oldest()
        if oldest is None or not newest or newest[0].order_index <= oldest.order_index:
            return [1.0] * len(items)
        first, span = oldest.order_index, newest[0].order_index - oldest.order_index
        # An item may come or go between two reads.
        return [min(1.0, max(0.0, (item.order_index - first) / span)) for item in items]

    def _score(self, item: MemoryItem, wanted: ItemType | None, recency: float) -> float:
        settings = self.settings
        score = (
            settings.success_weight * (item.success is True)
            + settings.type_weight * (item.type == wanted)
            + settings.recency_weight * recency
        )
        return round(score, SCORE_DECIMALS)

    @override
    def _ask_draft(self, query: str, context: RecallContext) -> Program[Sequence[Question]]:
        if not self._gates(context):
            return ()
        found = yield from self._candidates(query, context)
        return (_question(query, context, found),) if found.items else ()

    def _against(self, query: str, context: RecallContext, found: Found) -> frozenset[str]:
        """Return the ids of candidates that contradict the draft, by the verdicts at hand."""
        if not (self._gates(context) and context.verdicts):
            return frozenset()
        asked = _question(query, context, found).id
        return frozenset(
            verdict.item_id
            for verdict in context.verdicts
            if verdict.question_id == asked
            and verdict.action == CONTRADICTING
            and verdict.item_id is not None
        )

    def _gates(self, context: RecallContext) -> bool:
        return self.settings.gate and bool(context.draft.strip())


def _question(query: str, context: RecallContext, found: Found) -> Question:
    return Question(
        CONTRADICTION,
        context.episode_id,
        {
            "task": query,
            "draft": context.draft,
            "candidates": {item.id: item.text for item, _ in found.items},
        },
    )
