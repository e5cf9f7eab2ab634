"""Differences that are 0 in every item: said so, beside the interval that few items leave."""

import numpy as np
import pytest

from langgraft.benchmarks.comparison.estimates import mean_estimate, paired_difference
from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.reporting.drawing import ends
from langgraft.benchmarks.reporting.pages import environment
from langgraft.benchmarks.reporting.tables import metric_fields
from langgraft.benchmarks.reporting.words import MINUS, UNCHANGED, interval, points

SAME = paired_difference(np.eye(2), np.eye(2))
NUMBER = (
    '{% set small = 10 %}{% from "shared.jinja" import number with context %}'
    "{{ number(metric, true) }}"
)


def test_interval_when_no_item_changed_says_so_with_the_exact_interval() -> None:
    """Two items bound a difference of 0 by 84 points, eighteen by 18."""
    metric = Metric(SAME, 8, 8, 2)
    page = environment().from_string(NUMBER).render(metric=metric)
    assert UNCHANGED in page
    assert "84.2" in page
    assert points(SAME) == f"0.0 pp [{MINUS}84.2, +84.2] ({UNCHANGED})"
    assert ends(SAME) == pytest.approx((-84.2, 84.2), abs=0.1)
    assert metric_fields(metric)[1:3] == pytest.approx((-84.2, 84.2), abs=0.1)
    assert interval(paired_difference(np.eye(18), np.eye(18))).startswith(f"[{MINUS}18.5, +18.5]")


def test_interval_when_something_changed_or_it_is_a_share_is_shown() -> None:
    """A gain in every item, changes that make up for each other, and a success rate of 0."""
    gained = paired_difference(np.ones((3, 2)), np.zeros((3, 2)))
    turned = paired_difference(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [1, 1]]))
    never = mean_estimate(np.zeros((5, 2)))
    assert interval(gained).startswith("[")
    assert interval(turned).startswith("[")
    assert interval(never, difference=False) == "[0.0, 52.2]"
    assert ends(gained)[1] == 100
