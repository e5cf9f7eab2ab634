"""What the figures of a report share: colors, bars, lines along training, and panels.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.metrics import SMALLEST_SUBSET
from langgraft.benchmarks.reporting.drawing import DASHES, GRAY, INK, WIDTH, ZERO, Grid, shades
from langgraft.benchmarks.reporting.words import sample_of, signed

ABREAST: Final = 5
"""Panels or groups that fit side by side."""

EASY, HARD = "#0E8A83", "#7B4EA3"
"""Baseline-success and baseline-fail items, as in the paper's figure 3."""

LABEL: Final[dict[str, Any]] = {
    "textcoords": "offset points",
    "ha": "center",
    "va": "bottom",
    "fontsize": 8,
}


def colors(analysis: Analysis) -> dict[str, str]:
    """Return the color of each condition; memories in plan order, others gray."""
    return dict.fromkeys(analysis.study.conditions, GRAY) | shades(analysis.study.memories)


def sizes(analysis: Analysis) -> str:
    """Write how many test items a task has, and in how many runs they were tested."""
    cells = [cell for c in analysis.study.memories for cell in analysis.study.final_cells(c)]
    items = max((run.planned for cell in cells for run in cell.runs), default=0)
    runs = max((len(cell.runs) for cell in cells), default=0)
    return f"n = {sample_of(items, runs, 'test item')} each"


def ends(difference: Estimate) -> tuple[float, float]:
    """Return the ends of a difference's interval, in points."""
    return 100 * difference.low, 100 * difference.high


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


def finish_bars(axes: Axes, names: Sequence[str], title: str) -> None:
    """Name the bars of a panel."""
    axes.axhline(0, color=ZERO, lw=1)
    crowded = len(names) > 2 * ABREAST or any("+" in name for name in names)  # controls' are long
    axes.set_xticks(range(len(names)), list(names), rotation=25 if crowded else 0)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.margins(y=0.14)
    axes.tick_params(axis="x", length=0, labelcolor=INK)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.grid(axis="y")
    axes.set_title(title, loc="left")


class TrainingGrid(Grid):
    """A row per sequence or task and a column per memory, along training, in percent."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__(
            rows, columns, abreast=ABREAST, height=1.75, margin=0.7, sharex=True, sharey=True
        )

    def finish(self, row: int, column: int, title: str, label: str) -> None:
        """Give a panel its lines, its title at the top and its label at the left."""
        panel, last = self.panel(row, column), row == self.rows - 1
        panel.set_ylim(0, 100)
        panel.grid()
        panel.set_title(title if row == 0 else "", loc="left")
        panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        panel.tick_params(length=0, labelbottom=last)
        if column % self.abreast == 0:
            panel.set_ylabel(label)


def along(
    axes: Axes,
    found: Iterable[tuple[int, Metric]],
    color: str,
    *,
    marker: str = "o",
    dashed: bool = False,
) -> None:
    """Draw a number along training, with its intervals."""
    known = [(at, metric.estimate) for at, metric in found if metric.estimate is not None]
    places, values = [at for at, _ in known], [100 * e.value for _, e in known]
    style = DASHES if dashed else "-"
    axes.plot(places, values, color=color, lw=1.6, ls=style, marker=marker, ms=4.2)
    low, high = [100 * e.low for _, e in known], [100 * e.high for _, e in known]
    axes.vlines(places, low, high, color=color, lw=1, alpha=0.58)
