"""Folding and MMR: what they keep, in which order, and why."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft.memory.rankers.diversity import fold_near_duplicates, maximal_marginal_relevance

ALIKE = np.array(
    [
        [1.0, 0.95, 0.2, 0.1],
        [0.95, 1.0, 0.9, 0.1],
        [0.2, 0.9, 1.0, 0.1],
        [0.1, 0.1, 0.1, 1.0],
    ]
)


@st.composite
def rankings(draw: st.DrawFn) -> tuple[list[float], np.ndarray]:
    """Draw scores from the best down, and a symmetric matrix of similarities."""
    size = draw(st.integers(1, 7))
    tenths = st.integers(0, 10).map(lambda n: n / 10)
    scores = sorted(draw(st.lists(tenths, min_size=size, max_size=size)), reverse=True)
    matrix = np.eye(size)
    for i in range(size):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = draw(tenths)
    return scores, matrix


def test_duplicates_when_folded_leave_the_better_ranked_one() -> None:
    """Likeness to a folded candidate counts for nothing: only those kept matter."""
    assert fold_near_duplicates(range(4), ALIKE.__getitem__, above=0.9) == [0, 2, 3]
    assert fold_near_duplicates(range(4), ALIKE.__getitem__, above=0.96) == [0, 1, 2, 3]
    assert fold_near_duplicates(range(4), ALIKE.__getitem__, above=0.1) == [0]
    assert fold_near_duplicates([0, 3], ALIKE.__getitem__, above=0.9, chosen=[1]) == [3]
    assert fold_near_duplicates([], ALIKE.__getitem__, above=0.9) == []


def test_duplicates_when_enough_are_kept_are_not_looked_for_any_more() -> None:
    """Whatever the limit, the first ones are the same, and only they were compared with all."""
    asked: list[int] = []

    def similarity(position: int) -> np.ndarray:
        asked.append(position)
        return np.asarray(ALIKE[position])

    assert fold_near_duplicates(range(4), similarity, above=0.9, limit=2) == [0, 2]
    assert asked == [0, 2]


@given(rankings(), st.integers(1, 10))
def test_kept_when_folded_are_pairwise_unlike_and_stand_for_the_rest(
    ranking: tuple[list[float], np.ndarray], tenths: int
) -> None:
    """No two kept are near-duplicates, and each folded one is that of a better kept one."""
    _, matrix = ranking
    above = tenths / 10
    kept = fold_near_duplicates(range(len(matrix)), matrix.__getitem__, above=above)
    assert kept == sorted(kept)
    assert all(matrix[i, j] < above for i in kept for j in kept if i != j)
    for folded in set(range(len(matrix))) - set(kept):
        assert any(matrix[better, folded] >= above for better in kept if better < folded)


def test_choice_when_relevance_is_weighed_against_likeness_is_this() -> None:
    """By hand: after 0, candidate 1 is worth .45 - .475, 2 is .4 - .1, and 3 is .1 - .05."""
    chosen = maximal_marginal_relevance(
        range(4), [2.0, 1.8, 1.6, 0.4], ALIKE.__getitem__, trade_off=0.5, limit=4
    )
    assert chosen == [0, 2, 3, 1]


@given(rankings(), st.integers(0, 8))
def test_choice_when_only_relevance_counts_is_the_ranking(
    ranking: tuple[list[float], np.ndarray], limit: int
) -> None:
    """λ = 1 changes nothing."""
    scores, matrix = ranking
    positions = range(len(scores))
    chosen = maximal_marginal_relevance(
        positions, scores, matrix.__getitem__, trade_off=1, limit=limit
    )
    assert chosen == list(positions)[:limit]


@given(rankings(), st.integers(0, 10), st.integers(1, 8))
def test_choice_when_made_starts_with_the_best_and_repeats_nothing(
    ranking: tuple[list[float], np.ndarray], tenths: int, limit: int
) -> None:
    """Whatever λ is, the best candidate comes first, and more room only adds."""
    scores, matrix = ranking

    def choose(room: int) -> list[int]:
        return maximal_marginal_relevance(
            range(len(scores)), scores, matrix.__getitem__, trade_off=tenths / 10, limit=room
        )

    chosen = choose(limit)
    assert chosen[0] == 0
    assert len(set(chosen)) == len(chosen) == min(limit, len(scores))
    assert choose(limit + 1)[:limit] == chosen


@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0, 0.0], [-1.0, -2.0, -3.0, -4.0]])
def test_choice_when_no_score_is_positive_goes_by_likeness(scores: list[float]) -> None:
    """Relevance below nothing is none, and equals go by rank."""
    chosen = maximal_marginal_relevance(range(4), scores, ALIKE.__getitem__, trade_off=0.5, limit=4)
    assert chosen == [0, 3, 2, 1]


def test_choice_when_some_are_chosen_already_keeps_away_from_them() -> None:
    """What was taken for another reason counts as taken."""
    chosen = maximal_marginal_relevance(
        [1, 2, 3], [1.0, 1.0, 1.0, 1.0], ALIKE.__getitem__, trade_off=0.5, limit=2, chosen=[0]
    )
    assert chosen == [3, 2]
