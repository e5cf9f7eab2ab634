"""Outcomes: shares per seed over tasks, with the standard error that is stated."""

import math
from typing import Any

import pytest
from mle_logs import Tree, TreeLog

from langgraft.benchmarks.comparison.outcomes import Spread, spread_of
from langgraft.benchmarks.mle.outcomes import outcomes
from langgraft.benchmarks.mle.searches import read_searches


def test_standard_error_when_made_divides_by_what_is_asked_for() -> None:
    """With ddof = 1, and with 0; a single value has none."""
    found, whole = spread_of([1.0, 2.0, 6.0]), spread_of([1.0, 2.0, 6.0], ddof=0)
    assert found is not None
    assert whole is not None
    assert (found.mean, found.low, found.high, found.n) == (3, 1, 6, 3)
    assert found.sem == pytest.approx(math.sqrt(14 / 2 / 3))
    assert whole.sem == pytest.approx(math.sqrt(14 / 3 / 3))
    assert spread_of([4.0]) == Spread(4.0, 4.0, 4.0, None, 1)
    assert spread_of([]) is None


def test_outcomes_when_searches_are_graded_are_means_over_seeds_of_shares_of_tasks() -> None:
    """Recounted from the results themselves."""
    log = TreeLog()
    shares = []
    for seed in range(3):
        runs = [r for r in log.runs if r.factors["memory"] == "warm" and r.factors["seed"] == seed]
        reports: list[Any] = [log.results(run.name)[0]["report"] for run in runs]
        shares.append(sum(report["any_medal"] for report in reports) / 3)
    row = next(each for each in outcomes(read_searches(log)) if each.condition == "warm")
    assert dict(row.shares)["any_medal"] == spread_of(shares)
    assert (row.seeds, row.seeds_planned, row.tasks) == (3, 3, 3)


def test_seed_when_it_lacks_a_task_is_left_out() -> None:
    """Its share would be of other tasks than that of the others."""
    log = TreeLog(Tree(conditions=("off",)), missing=["off/digits/1"])
    (row,) = outcomes(read_searches(log))
    assert (row.seeds, row.seeds_planned) == (2, 3)
    assert all(share is not None and share.n == 2 for _, share in row.shares)
    nothing = TreeLog(Tree(conditions=("off",)), missing=[run.name for run in log.runs])
    (empty,) = outcomes(read_searches(nothing))
    assert all(share is None for _, share in empty.shares)
