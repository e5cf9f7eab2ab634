"""Remedies on banks that have collapsed or were diluted: made up, and learned in BabyAI."""

import pytest

from langgraft.benchmarks.acceptance import collapsed_bank
from langgraft.benchmarks.acceptance.remedies import (
    FIELDS,
    SINGLE,
    Asked,
    Retrieved,
    played_bank,
    retrieved,
)
from langgraft.memory.episodes import Episode


def made_up(**settings: object) -> Retrieved:
    """Ask the made-up bank."""
    fields = {**SINGLE, **settings}
    return retrieved(collapsed_bank.episodes(), collapsed_bank.queries(), **fields)


@pytest.fixture(scope="module")
def played() -> tuple[list[Episode], Asked]:
    """Have a simulated learner play 80 episodes of each task."""
    return played_bank(80, 40)


def test_single_lessons_when_queries_are_alike_collapse_to_the_same_few() -> None:
    """All queries get the same three near-duplicates of one sentence."""
    found = made_up()
    assert found.collapsed
    assert found.concentration == 1.0
    assert found.diversity == 0.0


@pytest.mark.parametrize("remedy", [{"fold_above": 0.5}, {"mmr": 0.3}])
def test_folding_or_mmr_when_a_bank_has_collapsed_brings_up_what_differs(
    remedy: dict[str, float],
) -> None:
    """Contexts become at least as varied as those of bundles from the same episodes."""
    bundles = made_up(granularity="aggregate", top_k=1, key_fields=("task",))
    assert made_up(**remedy).diversity >= bundles.diversity > 0.4


def test_candidates_when_near_duplicates_fill_them_leave_folding_nothing_to_bring_up() -> None:
    """Some 160 entries say the same: one has to look further down than that."""
    assert made_up(fold_above=0.5, candidates=50).diversity == 0.0


def test_adaptive_granularity_when_queries_are_alike_is_as_varied_as_bundles(
    played: tuple[list[Episode], Asked],
) -> None:
    """It notices that nothing tells the lessons apart, in a learner's bank too."""
    bundles = made_up(granularity="aggregate", top_k=1)
    assert made_up(granularity="adaptive").diversity == pytest.approx(bundles.diversity)
    real = retrieved(*played, **{**SINGLE, "granularity": "adaptive"}).diversity
    assert real >= retrieved(*played, **FIELDS).diversity > retrieved(*played, **SINGLE).diversity


def test_quota_when_another_task_has_diluted_the_bank_restores_the_own_share(
    played: tuple[list[Episode], Asked],
) -> None:
    """What was learned first is found again."""
    assert retrieved(*played, **SINGLE).own_share < 0.5
    assert retrieved(*played, **SINGLE, own_domain_share=0.5).own_share >= 0.5
