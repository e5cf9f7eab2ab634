"""Retrieval by rank: fields to compare, one ranked search, and remedies for what goes wrong with it.

=====================  ==========================================================================
setting                against, as continual-memory found it
=====================  ==========================================================================
`fold_above`           Retrieval diversity collapse (§D): near-identical entries fill all slots.
`mmr`                  The same, by degrees.
`own_domain_share`     Memory dilution (§4.3): entries of another task match better.
=====================  ==========================================================================

They work together in one order: the quota says for which slots only the asking domain competes;
each competition starts from the best `candidates` of the ranking; near-duplicates are folded;
MMR, or else rank, fills the slots; what was chosen comes best score first. Each choice takes
into account what the one before has taken. All of it is exact and a function of the bank and the
query: ties go by the ranker's order, similarities are rounded.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Literal, TypeAlias

from pydantic import Field as SettingsField

from langgraft._core.canonical import portable_text
from langgraft.memory import bank
from langgraft.memory.model import Episode, MemoryItem
from langgraft.memory.rankers.diversity import (
    Similarity,
    TfIdf,
    fold_near_duplicates,
    maximal_marginal_relevance,
)
from langgraft.memory.recall import Filter, Found, RecallContext, ranked_items
from langgraft.memory.settings import RankedSettings
from langgraft.memory.stores.programs import Namespace, Program

Field: TypeAlias = Literal["task", "observation"]
"""`task` is the instruction; `observation` is what the agent sees: at the start of the
episode for a key, at the time of asking for a query."""

Fields: TypeAlias = Annotated[tuple[Field, ...], SettingsField(min_length=1)]
"""Fields to put together, in this order."""


def query_text(fields: Sequence[Field], query: str, context: RecallContext) -> str:
    """Put a query together from the instruction and what the agent sees."""
    parts = {"task": query, "observation": context.observation}
    return "\n".join(parts[field] for field in fields)


def key_text(fields: Sequence[Field], episode: Episode) -> str:
    """Put a retrieval key together from the instruction and the first observation."""
    parts = {"task": episode.task, "observation": episode.first_observation}
    return "\n".join(parts[field] for field in fields)


class RetrievalSettings(RankedSettings):
    """How many items are recalled, and which of those that match; every remedy is off.

    A remedy costs, per recall: for folding and MMR the reading of `candidates` records and the
    vectors of their texts (0.5 ms for each thousand words); for a quota a second search, with a
    filter, which reads as many records as it finds; the first one lists the bank if its index is
    there already. A hybrid or MMR ranker ranks far down where items of the domain are rare.
    """

    top_k: int = SettingsField(default=1, ge=1)
    """Items per recall."""
    fold_above: float | None = SettingsField(default=None, gt=0, le=1)
    """From which similarity on an item counts as a near-duplicate of a better one, and is left
    out; `None`: never. It is the cosine of the texts' TF-IDF vectors with the candidates as the
    corpus; 1 folds those of the same words. Fewer than `top_k` are recalled where the
    candidates hold fewer that differ."""
    mmr: float | None = SettingsField(default=None, ge=0, le=1)
    """λ of maximal marginal relevance over the same similarity: 1 is the ranking, 0 variety
    alone; `None`: off."""
    candidates: int = SettingsField(default=200, ge=1)
    """How far down the ranking folding and MMR look; at least `top_k`."""
    own_domain_share: float | None = SettingsField(default=None, gt=0, le=1)
    """Least share of the slots, rounded up, for items of the asking domain, as long as there are
    any that match (and differ, where duplicates are folded); `None`: no quota."""


def retrieve(
    namespace: Namespace,
    query: str,
    settings: RetrievalSettings,
    *,
    domain: str,
    limit: int | None = None,
    where: Filter | None = None,
) -> Program[Found]:
    """Find what matches `query`, with the remedies that are set.

    Args:
        namespace: The bank.
        query: What to compare with the keys.
        settings: Says how many, and with which remedies.
        domain: The domain that asks.
        limit: How many, if not `top_k`.
        where: Items that may be found, as a LangGraph filter; `None`: all.
    """
    limit = limit or settings.top_k
    share = settings.own_domain_share
    varied = settings.fold_above is not None or settings.mmr is not None
    pool = max(limit, settings.candidates) if varied else limit
    found = yield from ranked_items(namespace, query, pool, where=where)
    if share is None and not varied:
        return found
    items = list(found.items)
    if share is not None:
        ours = {**(where or {}), bank.DOMAIN_FIELD: portable_text(domain)}
        own = yield from ranked_items(namespace, query, pool, where=ours)
        # What the first search did not find ranks below all that it did.
        seen = {item.id for item, _ in items}
        items += [hit for hit in own.items if hit[0].id not in seen]
    chosen = choose(items, settings, domain=domain, limit=limit)
    return Found(tuple(items[position] for position in chosen), found.query, found.tied)


def choose(
    found: Sequence[tuple[MemoryItem, float]],
    settings: RetrievalSettings,
    *,
    domain: str,
    limit: int,
) -> list[int]:
    """Choose `limit` of a ranking, best first; return the positions, ascending."""
    similarity = _similarity([item.text for item, _ in found])
    scores = [score for _, score in found]

    def pick(among: list[int], slots: int, chosen: list[int]) -> list[int]:
        if settings.fold_above is not None:
            # Each one that is kept costs a comparison with all: without MMR, no more than needed.
            enough = slots if settings.mmr is None else None
            above = settings.fold_above
            among = fold_near_duplicates(
                among, similarity, above=above, chosen=chosen, limit=enough
            )
        if settings.mmr is None:
            return among[:slots]
        return maximal_marginal_relevance(
            among, scores, similarity, trade_off=settings.mmr, limit=slots, chosen=chosen
        )

    chosen: list[int] = []
    if settings.own_domain_share is not None:
        # Rounded first: 0.1 * 30 is a little more than 3.
        quota = math.ceil(round(settings.own_domain_share * limit, 9))
        own = [i for i, (item, _) in enumerate(found) if item.source_domain == domain]
        chosen = pick(own, quota, [])
    others = [i for i in range(len(found)) if i not in chosen]
    return sorted(chosen + pick(others, limit - len(chosen), chosen))


def _similarity(texts: Sequence[str]) -> Similarity:
    """Return the likeness of texts; nothing is worked out before it is asked for."""

    @cache
    def vectors() -> TfIdf:
        return TfIdf.of(texts)

    return cache(lambda position: vectors().similarities(position))
