"""What figures share: panels for few memories and for many."""

import math

import pytest

from langgraft.benchmarks.continual.bars import ABREAST, MARKERS
from langgraft.benchmarks.continual.figures import TrainingGrid
from langgraft.benchmarks.reporting.drawing import PALETTE


@pytest.mark.parametrize("columns", [1, ABREAST, ABREAST + 1, 2 * ABREAST + 3])
def test_grid_when_memories_are_many_then_goes_on_below(columns: int) -> None:
    """Each memory has panels of its own, and no more than five stand side by side."""
    grid = TrainingGrid(2, columns)
    panels = [grid.panel(row, column) for row in range(2) for column in range(columns)]
    assert len(set(map(id, panels))) == 2 * columns
    assert all(panel.get_visible() for panel in panels)
    shown = [axes for axes in grid.figure.axes if axes.get_visible()]
    assert len(shown) == 2 * columns


def test_markers_when_colors_come_round_again_then_differ() -> None:
    """Forty memories in one figure have forty looks."""
    assert math.gcd(len(MARKERS), len(PALETTE)) == 1
