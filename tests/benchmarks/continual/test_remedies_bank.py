"""Remedies on a bank that a simulated learner filled in BabyAI, and that has collapsed."""

import pytest
from acceptance.remedies import (
    FIELDS,
    SINGLE,
    Asked,
    Retrieved,
    played_bank,
    retrieved,
)

from langgraft.memory.model import Episode

Played = tuple[list[Episode], Asked]


@pytest.fixture(scope="module")
def played() -> Played:
    """Have a simulated learner play 40 episodes of each task."""
    return played_bank(40, 20)


@pytest.fixture(scope="module")
def single(played: Played) -> Retrieved:
    """Ask the bank of single lessons."""
    return retrieved(*played, **SINGLE)


@pytest.fixture(scope="module")
def bundles(played: Played) -> Retrieved:
    """Ask a bank of bundles from the same episodes."""
    return retrieved(*played, **FIELDS)


def test_single_lessons_when_queries_are_alike_are_less_varied_than_bundles(
    single: Retrieved, bundles: Retrieved
) -> None:
    """Most queries get the same few entries."""
    assert single.concentration > 0.5
    assert single.diversity < bundles.diversity
    assert single.between_contexts < bundles.between_contexts


@pytest.mark.parametrize(("remedy", "value"), [("fold_above", 0.6), ("mmr", 0.5)])
def test_folding_or_mmr_when_a_bank_has_collapsed_is_nearly_as_varied_as_bundles(
    played: Played, single: Retrieved, bundles: Retrieved, remedy: str, value: float
) -> None:
    """The slots of a recall are no longer filled with one sentence; acceptance has larger banks."""
    found = retrieved(*played, **{**SINGLE, remedy: value})
    lost = bundles.diversity - single.diversity
    assert found.diversity >= single.diversity + 0.75 * lost


def test_adaptive_granularity_when_queries_are_alike_is_as_varied_as_bundles(
    played: Played, bundles: Retrieved
) -> None:
    """It notices that nothing tells the lessons apart."""
    found = retrieved(*played, **{**SINGLE, "granularity": "adaptive"})
    assert found.diversity >= bundles.diversity
    assert found.between_contexts >= bundles.between_contexts


def test_quota_when_another_task_has_diluted_the_bank_restores_the_own_share(
    played: Played, single: Retrieved
) -> None:
    """What was learned first is found again."""
    assert single.own_share < 0.5
    assert retrieved(*played, **SINGLE, own_domain_share=0.5).own_share >= 0.5
