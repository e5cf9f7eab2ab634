"""Which programs are scored again, and which one is submitted."""

import math

import pytest

from langgraft.nodes.search.ends import Candidate, candidates, choose
from langgraft.nodes.search.journal import JournalNode


def node(step: int, metric: float | None) -> JournalNode:
    """Make a program: without a metric it failed."""
    return JournalNode(
        step=step, id=str(step), plan="", code="", metric=metric, is_buggy=metric is None
    )


@pytest.mark.parametrize(("lower", "ids"), [(True, ["3", "1", "4"]), (False, ["0", "1", "4"])])
def test_candidates_when_more_worked_are_the_best_and_of_equal_ones_the_earlier(
    lower: bool, ids: list[str]
) -> None:
    """Failures, and what no metric orders, are none."""
    nodes = [node(0, 0.9), node(1, 0.5), node(2, None), node(3, 0.1), node(4, 0.5)]
    nodes += [node(5, math.inf), node(6, -math.inf)]
    assert [each.id for each in candidates(nodes, count=3, lower_is_better=lower)] == ids


def test_candidates_when_nothing_worked_are_none() -> None:
    """Nothing is submitted then."""
    assert candidates([node(0, None)], count=3, lower_is_better=True) == ()
    assert choose([], lower_is_better=True) is None


@pytest.mark.parametrize(
    ("fresh", "chosen"),
    [
        ([(0.5, 0.7), (0.4, 0.6), (0.5, 0.5)], 1),  # equal means: the earlier
        ([(0.1, None), (0.6, 0.6), (0.7, 0.7)], 1),
        ([(math.nan, 0.1), (0.9, 0.9), (math.inf, 0.0)], 1),
        ([(None, None), (None, 0.1), (math.nan, 0.1)], 0),
        ([(), (), ()], 0),
    ],
)
def test_choice_when_scored_again_is_the_best_mean_of_what_never_failed(
    fresh: list[tuple[float | None, ...]], chosen: int
) -> None:
    """Where nothing is whole, the best of the search stands, as in AIDE."""
    scored = [Candidate(str(at), 0.1 * at, metrics) for at, metrics in enumerate(fresh)]
    found = choose(scored, lower_is_better=True)
    assert found is scored[chosen]


def test_candidate_when_written_is_plain_json() -> None:
    """A number that JSON cannot hold is a failure."""
    scored = Candidate("3", 0.5, (0.25, None, math.nan))
    assert scored.to_json() == {"node": "3", "metric": 0.5, "metrics": [0.25, None, None]}
