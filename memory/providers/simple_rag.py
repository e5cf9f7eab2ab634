"""`SimpleRAG`: a flat store of notes, found by shared words (memory-transplants §4.2)."""

from dataclasses import replace
from functools import partial
from typing import ClassVar

from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft.memory.providers.episode_items import LatestNotes, LatestNotesSettings
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.lexical import TermOverlap
from langgraft.memory.recall import Found, RecallContext, ranked_items, searched
from langgraft.memory.stores.programs import Program


class SimpleRAGSettings(LatestNotesSettings):
    """Settings of `SimpleRAG`; the defaults are those of memory-transplants §4.2."""

    max_items: int = SettingsField(default=200, ge=1)
    """Items the bank holds (§4.2: 200); the first ones in are the first ones out."""
    top_k: int = SettingsField(default=5, ge=1)
    """Most items per recall: the first that fit the budget. The paper does not say; 5 is what Agent-KB's class and
    the lightweight memory of MemEvolve have as defaults."""
    ranker: SkipValidation[Ranker] = TermOverlap(ties="newest")
    """Shared words (§4.2, *term-overlap*). Ties are frequent, and the paper does not say how they
    are ordered; the latest experience comes first here."""


class SimpleRAG(LatestNotes[SimpleRAGSettings]):
    """Keeps a note of every episode and recalls those whose tasks share the most words.

    ================  ================================  ==================================
    what              published                         here
    ================  ================================  ==================================
    content           Lewis et al. 2020 retrieve        a note an episode (§4.2), as
                      passages of Wikipedia             `episode_items` words it
    retrieval         there a trained dense retriever;  §4.2; only notes that share a word
                      §4.2: term overlap                are recalled
    what is compared  not said                          the tasks
    items per recall  not said                          5, a setting
    what leaves       §4.2: the oldest                  the same
    ================  ================================  ==================================
    """

    name: ClassVar[str] = "simple_rag"
    settings_model = SimpleRAGSettings

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        return searched(partial(self._search, query, context))

    def _search(self, query: str, context: RecallContext, times: int) -> Program[Found]:
        top_k, where = self.settings.top_k, self._task_filter(context)
        found = yield from ranked_items(self.namespace, query, times * top_k, where=where)
        return replace(found, most=top_k)
