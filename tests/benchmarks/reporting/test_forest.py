"""The figure of all differences shows of each condition the interval that its verdict goes by."""

import numpy as np
import pytest

from langgraft.benchmarks.comparison import compare
from langgraft.benchmarks.reporting.drawing import forest

NAMES = ("memory", "again", "placebo")


@pytest.mark.parametrize("seed", range(4))
def test_forest_when_a_control_is_equivalent_then_its_bar_is_inside_the_margin(seed: int) -> None:
    """And outside where it is not; a memory's bar is its interval of 95 %."""
    rng = np.random.default_rng(seed)
    chances = rng.uniform(0.05, 0.6, (80, 1))
    outcomes = {name: (rng.random((80, 5)) < chances) * 1.0 for name in ("none", *NAMES)}
    found = compare(
        outcomes, baseline="none", controls=["placebo"], rerun="again", margin=0.04 + seed / 100
    )
    (axes,) = forest(found, dict.fromkeys(NAMES, "black")).axes
    bars = {
        name: np.sort(np.asarray(line.get_xdata(), dtype=np.float64))
        for place, name in enumerate(NAMES)
        for line in axes.lines
        if np.asarray(line.get_ydata()).tolist() == [place, place]
    }
    memory = found["memory"].estimate
    assert memory is not None
    assert bars["memory"] == pytest.approx([100 * memory.low, 100 * memory.high])
    for name in ("again", "placebo"):
        low, high = bars[name]
        inside = -100 * found.margin < low and high < 100 * found.margin
        assert inside == (found.holds(found[name]) is True)
