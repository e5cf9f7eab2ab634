"""`MemRL`: trajectories chosen by what they were worth to whoever recalled them (arXiv:2601.03192)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final, cast

import numpy as np
from langgraph.store.base import GetOp, Item
from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft._core.canonical import seeded_fraction
from langgraft.memory import bank
from langgraft.memory.forgetting import Notes
from langgraft.memory.model import Add, Change, Episode, MemoryItem
from langgraft.memory.provider import MemoryProvider, Need
from langgraft.memory.providers.episode_items import trajectory_of
from langgraft.memory.rankers.base import SCORE_DECIMALS, Ranker
from langgraft.memory.rankers.dense import Dense
from langgraft.memory.recall import Found, RecallContext, ranked_items
from langgraft.memory.settings import RankedSettings
from langgraft.memory.stores.programs import Program

UTILITY: Final = "utility"
"""Note: what recalling the item was worth so far, from 0 (failure) to 1 (success)."""


class MemRLSettings(RankedSettings):
    """Settings of `MemRL`; the defaults are those of the published code's `configs/rl_llb_config.yaml`."""

    candidates: int = SettingsField(default=10, ge=1)
    """Items that the ranker nominates (`k_retrieve`)."""
    top_k: int = SettingsField(default=5, ge=1)
    """Most items per recall (`topk`)."""
    least_similarity: float = 0.0
    """Score of the ranker below which an item is no candidate, so that the unlike is not recalled for
    its worth alone. The published one is 0.37 to 0.5 for the embedder it was tuned with
    (`sim_threshold`); another embedder needs another, and 0 leaves out what has nothing in common."""
    utility_weight: float = SettingsField(default=0.5, ge=0, le=1)
    """Share of utility in the final score; similarity has the rest (`weight_q`, `weight_sim`)."""
    learning_rate: float = SettingsField(default=0.3, gt=0, le=1)
    """How far one outcome moves an item's utility (`alpha`)."""
    initial_utility: float = SettingsField(default=0.5, ge=0, le=1)
    """Of an item that was never recalled (`q_init_pos`, `q_init_neg`)."""
    explore: float = SettingsField(default=0.01, ge=0, le=1)
    """Share of recalls that take candidates at random (`epsilon`)."""
    ranker: SkipValidation[Ranker] = Dense(ties="newest")
    """First stage: cosine. The default embedder works offline and compares letters and words; with a
    real one give `Dense("openai:text-embedding-3-large")`, the published one."""


class MemRL(MemoryProvider[MemRLSettings]):
    """Keeps whole episodes; of those that match, recalls what has helped.

    Each item has a utility, a running mean of the outcomes of the episodes that recalled it: 1 for
    success, 0 for failure; those nobody could judge change nothing. A recall takes the candidates
    that the ranker finds, and orders them by similarity and utility, each as standard scores among
    the candidates, weighted. Once in a while (`explore`) lots decide, drawn from the episode's id and
    the query, so that an item that failed once is met again.

    Utility is a note: it is not exported, and an imported item begins with the initial one.

    ================  ====================================  ====================================
    what              MemRL's code                          here
    ================  ====================================  ====================================
    experience        a model rewrites a trajectory as a    the trajectory as it happened, and
                      procedure, or adds a reflection       how it ended; no model is asked
    standard scores   means and deviations of similarity    of the candidates at hand
                      fitted to a benchmark beforehand
    near-duplicates   merged from a similarity of .99 on    kept; `forgetting` bounds a bank
    exploring         draws of a generator                  lots of episode and query
    lists at once     utilities move by batches             each episode by itself
    ================  ====================================  ====================================
    """

    name: ClassVar[str] = "memrl"
    settings_model = MemRLSettings
    needs = frozenset[Need]()

    @property
    @override
    def revokes_exactly(self) -> bool:
        return True

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        settings = self.settings
        found = yield from ranked_items(
            self.namespace, query, settings.candidates, where=self._task_filter(context)
        )
        held = [each for each in found.items if each[1] > settings.least_similarity]
        if not held:
            return Found(query=found.query)
        utilities = yield from self._utilities([item for item, _ in held])
        parts = ("explore", context.episode_id, found.query)
        if seeded_fraction(*parts) < settings.explore:
            final = [seeded_fraction(*parts, item.id) for item, _ in held]
        else:
            weight = settings.utility_weight
            similarity = _standard([score for _, score in held])
            final = list((1 - weight) * similarity + weight * _standard(utilities))
        scored = [
            (item, round(float(score), SCORE_DECIMALS))
            for (item, _), score in zip(held, final, strict=True)
        ]
        scored.sort(key=lambda each: -each[1])  # equals stay in the ranker's order
        best = sum(score == scored[0][1] for _, score in scored)
        return replace(found, items=tuple(scored[: settings.top_k]), tied=best)

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        return (Add(trajectory_of(episode, order_index)),)

    @property
    @override
    def _counts_uses(self) -> bool:
        return True

    @override
    def _credited(self, notes: Notes, times: int, *, succeeded: bool) -> Notes:
        kept = (1 - self.settings.learning_rate) ** times
        utility = kept * self._utility(notes) + (1 - kept) * succeeded
        counts = (
            super()._credited(notes, times, succeeded=succeeded) if super()._counts_uses else {}
        )
        return {**counts, UTILITY: round(utility, SCORE_DECIMALS)}

    def _utility(self, notes: Notes) -> float:
        return cast("float", notes.get(UTILITY, self.settings.initial_utility))

    def _utilities(self, items: Sequence[MemoryItem]) -> Program[list[float]]:
        records = yield [GetOp(self.namespace, bank.item_key(item.id)) for item in items]
        content = bank.loaded(cast("Sequence[Item | None]", records))
        return [self._utility(content.notes.get(item.id, {})) for item in items]


def _standard(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return how many standard deviations values lie above their mean; 0 where all are equal."""
    array = np.asarray(values, dtype=np.float64)
    spread = float(array.std())
    return np.zeros_like(array) if spread == 0 else (array - array.mean()) / spread
