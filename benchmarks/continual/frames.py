"""What the figures of a report share: colors, panels, bars and grids.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.drawing import GRAY, INK, PALETTE, WIDTH
from langgraft.benchmarks.continual.metrics import SMALLEST_SUBSET, Metric
from langgraft.benchmarks.continual.wording import sample_of, signed
from langgraft.benchmarks.harness.statistics import Estimate

ABREAST = 5
"""Panels or groups that fit side by side."""

LABEL: dict[str, Any] = {
    "textcoords": "offset points",
    "ha": "center",
    "va": "bottom",
    "fontsize": 8,
}


def colors(analysis: Analysis) -> dict[str, str]:
    """Return the color of each condition; memories in plan order, others gray."""
    found = dict.fromkeys(analysis.study.conditions, GRAY)
    return found | dict(zip(analysis.study.memories, cycle(PALETTE), strict=False))


def panels(analysis: Analysis, height: float) -> tuple[Figure, list[Axes]]:
    """Make a panel per sequence: side by side, or one below the other for many memories."""
    count = max(len(analysis.study.sequences), 1)
    wide = len(analysis.study.memories) > ABREAST
    figure = Figure(figsize=(WIDTH, height * (count if wide else 1)), layout="constrained")
    shape = (count, 1) if wide else (1, count)
    axes = figure.subplots(*shape, sharey=True, squeeze=False)
    return figure, list(axes.flat)


def bar(axes: Axes, place: float, metric: Metric, color: str, width: float) -> None:
    """Draw a difference with its interval; hollow where results are missing."""
    estimate = metric.estimate
    if estimate is None:
        text = f"n = {metric.n_items}" if metric.n_items < SMALLEST_SUBSET else "no data"
        axes.annotate(text, (place, 0), (0, 3), **LABEL, color=GRAY)
        return
    value, (low, high) = 100 * estimate.value, ends(estimate)
    fill = color if metric.complete else "white"
    axes.bar(place, value, width, color=fill, edgecolor=color, lw=1.2, alpha=0.88)
    axes.vlines(place, low, high, color=INK, lw=1.1)
    axes.annotate(signed(estimate.value), (place, max(high, 0)), (0, 3), **LABEL, color=INK)


def ends(difference: Estimate) -> tuple[float, float]:
    """Return the ends of a difference's interval, in points."""
    return 100 * difference.low, 100 * difference.high


def finish_bars(axes: Axes, names: Sequence[str], title: str) -> None:
    """Name the bars of a panel."""
    axes.axhline(0, color="#8b9199", lw=1)
    crowded = len(names) > 2 * ABREAST or any("+" in name for name in names)  # controls' are long
    axes.set_xticks(range(len(names)), list(names), rotation=25 if crowded else 0)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.margins(y=0.14)
    axes.tick_params(axis="x", length=0, labelcolor=INK)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.grid(axis="y")
    axes.set_title(title, loc="left")


class Grid:
    """Panels in rows and columns; columns that do not fit side by side go on below.

    Args:
        rows: What there is for each column.
        columns: One per memory.
    """

    def __init__(self, rows: int, columns: int) -> None:
        self._rows, self._abreast = rows, min(max(columns, 1), ABREAST)
        blocks = -(-max(columns, 1) // self._abreast)
        height = 0.7 + 1.75 * rows * blocks
        self.figure = Figure(figsize=(WIDTH, height), layout="constrained")
        self._axes = self.figure.subplots(
            rows * blocks, self._abreast, sharex=True, sharey=True, squeeze=False
        )
        for unused in range(columns, blocks * self._abreast):
            for row in range(rows):
                self.panel(row, unused).set_visible(False)

    def panel(self, row: int, column: int) -> Axes:
        """Return a panel."""
        block, place = divmod(column, self._abreast)
        panel: Axes = self._axes[block * self._rows + row][place]
        return panel

    def finish(self, row: int, column: int, title: str, label: str) -> None:
        """Give a panel its lines, its title at the top and its label at the left."""
        panel, last = self.panel(row, column), row == self._rows - 1
        panel.grid()
        panel.set_title(title if row == 0 else "", loc="left")
        panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        panel.tick_params(length=0, labelbottom=last)
        if column % self._abreast == 0:
            panel.set_ylabel(label)


def sizes(analysis: Analysis) -> str:
    """Write how many test items a task has, and in how many runs they were tested."""
    cells = [cell for c in analysis.study.memories for cell in analysis.study.final_cells(c)]
    items = max((run.planned for cell in cells for run in cell.runs), default=0)
    runs = max((len(cell.runs) for cell in cells), default=0)
    return f"n = {sample_of(items, runs, 'test item')} each"


def line(color: str, *, dashed: bool = False, marker: str = "", width: float = 1.7) -> Line2D:
    """Return a line for a legend."""
    style = (0, (4, 2)) if dashed else "-"
    return Line2D([], [], color=color, ls=style, lw=width, marker=marker, ms=4)


def legend(figure: Figure, entries: Mapping[str, Artist], columns: int) -> None:
    """Put a legend above all panels."""
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside upper right",
        ncols=columns,
        fontsize=8.5,
    )
