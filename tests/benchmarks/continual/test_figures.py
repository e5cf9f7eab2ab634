"""What figures share: panels for few memories and for many."""

import math
from functools import partial

import pytest
from synthetic_log import SyntheticLog, World

from langgraft.benchmarks.continual.analysis import analyze
from langgraft.benchmarks.continual.bars import ABREAST, MARKERS, subset_bars
from langgraft.benchmarks.continual.figures import (
    TrainingGrid,
    diversity_panels,
    learning,
    within_task,
)
from langgraft.benchmarks.reporting.drawing import PALETTE, svg_text


@pytest.mark.parametrize("columns", [1, ABREAST, ABREAST + 1, 2 * ABREAST + 3])
def test_grid_when_memories_are_many_then_goes_on_below(columns: int) -> None:
    """Each memory has panels of its own, and no more than five stand side by side."""
    grid = TrainingGrid(2, columns)
    panels = [grid.panel(row, column) for row in range(2) for column in range(columns)]
    assert len(set(map(id, panels))) == 2 * columns
    assert all(panel.get_visible() for panel in panels)
    shown = [axes for axes in grid.figure.axes if axes.get_visible()]
    assert len(shown) == 2 * columns


def test_figures_when_memories_are_many_then_have_room_for_all() -> None:
    """Names are aslant, panels and legends go on below, colors come round again."""
    names = tuple(f"memory-{number}" for number in range(len(PALETTE) + 1))
    world = World(conditions=names, controls=(), train_items=2, test_items=4, replicates=2)
    analysis = analyze(SyntheticLog(world))
    assert len(within_task(analysis)) > 2 * ABREAST
    for draw in (diversity_panels, learning, subset_bars):
        assert "<path" in svg_text("many", partial(draw, analysis))


def test_markers_when_colors_come_round_again_then_differ() -> None:
    """Forty memories in one figure have forty looks."""
    assert math.gcd(len(MARKERS), len(PALETTE)) == 1
