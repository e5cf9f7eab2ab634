"""The figures of a report, as SVG text that is the same for the same numbers.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.contrasts import Contrast
from langgraft.benchmarks.continual.curves import LearningCurve, Milestone
from langgraft.benchmarks.continual.drawing import (
    BAND,
    EASY,
    GRAY,
    HARD,
    INK,
    PALETTE,
    WIDTH,
    svg_text,
)
from langgraft.benchmarks.continual.metrics import SMALLEST_SUBSET, Direction, Metric, Transfer
from langgraft.benchmarks.continual.wording import interval, signed


def colors(analysis: Analysis) -> dict[str, str]:
    """Return the color of each condition; memories in plan order, others gray."""
    found = dict.fromkeys(analysis.study.conditions, GRAY)
    return found | dict(zip(analysis.study.memories, cycle(PALETTE), strict=False))


def forest(analysis: Analysis) -> str:
    """Draw each condition's difference against no memory, with the noise of a re-run."""
    rows = [c for c in (*analysis.family, *analysis.beside) if c.estimate is not None]
    return svg_text("forest", lambda: _forest(analysis, rows))


def _forest(analysis: Analysis, rows: Sequence[Contrast]) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.8 + 0.34 * max(len(rows), 1)), layout="constrained")
    axes = figure.add_subplot()
    palette, band = colors(analysis), analysis.noise.band
    if band is not None:
        axes.axvspan(-100 * band, 100 * band, color=BAND, lw=0, label="noise of a re-run")
    axes.axvline(0, color="#8b9199", lw=1)
    for place, contrast in enumerate(rows):
        _forest_row(axes, place, contrast, palette[contrast.condition])
    axes.set_yticks(range(len(rows)), [contrast.condition for contrast in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.set_xlabel("difference in success rate against no memory (percentage points)")
    if band is not None:
        figure.legend(loc="outside upper right", fontsize=8)
    return figure


def _forest_row(axes: Axes, place: int, contrast: Contrast, color: str) -> None:
    estimate = contrast.estimate
    assert estimate is not None
    ends = [100 * estimate.low, 100 * estimate.high]
    axes.plot(ends, [place, place], color=color, lw=2.2, solid_capstyle="butt")
    hollow = contrast.verdict == "incomplete"
    face = "white" if hollow else color
    axes.plot([100 * estimate.value], [place], "o", ms=7, mec=color, mfc=face, mew=1.6)
    text = f"{signed(estimate.value)}  {interval(estimate)}"
    axes.annotate(
        text + ("  incomplete" if hollow else ""),
        (1.01, place),
        xycoords=("axes fraction", "data"),
        va="center",
        color=INK,
        fontsize=8.5,
    )


def transfer_bars(analysis: Analysis, direction: Direction) -> str:
    """Draw forward or backward transfer: one panel per sequence."""
    return svg_text(direction, lambda: _transfer_bars(analysis, direction))


def _transfer_bars(analysis: Analysis, direction: Direction) -> Figure:
    figure, panels = _panels(analysis, 2.7)
    palette = colors(analysis)
    for axes, sequence in zip(panels, analysis.study.sequences, strict=True):
        rows = analysis.rows(direction, sequence)
        for place, row in enumerate(rows):
            _bar(axes, place, row.transfer, palette[row.condition], 0.62)
        _finish_bars(axes, [row.condition for row in rows], _title(direction, sequence))
    panels[0].set_ylabel(f"{'FWT' if direction == 'forward' else 'BWT'} (pp)")
    return figure


def _title(direction: Direction, sequence: str) -> str:
    earlier, later = sequence.split(">")
    tested = later if direction == "forward" else earlier
    return f"{earlier} → {later}, tested on {tested}"


def subset_bars(analysis: Analysis) -> str:
    """Draw forward transfer on the items solved and failed without memory."""
    return svg_text("subsets", lambda: _subset_bars(analysis))


def _subset_bars(analysis: Analysis) -> Figure:
    figure, panels = _panels(analysis, 2.9)
    for axes, sequence in zip(panels, analysis.study.sequences, strict=True):
        rows = analysis.rows("forward", sequence)
        for place, row in enumerate(rows):
            _bar(axes, place - 0.21, row.delta_rr, EASY, 0.38)
            _bar(axes, place + 0.21, row.delta_nl, HARD, 0.38)
        _finish_bars(axes, [row.condition for row in rows], _title("forward", sequence))
    panels[0].set_ylabel("change (pp)")
    handles = [mpl.patches.Patch(color=color) for color in (EASY, HARD)]
    names = ["ΔRR, items solved without memory", "ΔNL, items failed without memory"]
    figure.legend(handles, names, loc="outside upper right", ncols=2, fontsize=8.5)
    return figure


def _panels(analysis: Analysis, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    count = max(len(analysis.study.sequences), 1)
    grid = figure.subplots(1, count, sharey=True, squeeze=False)
    return figure, list(grid[0])


def _bar(axes: Axes, place: float, metric: Metric, color: str, width: float) -> None:
    estimate = metric.estimate
    if estimate is None:
        text = f"n = {metric.n_items}" if metric.n_items < SMALLEST_SUBSET else "no data"
        axes.annotate(text, (place, 0), (0, 3), **_LABEL, color=GRAY)
        return
    value, low, high = 100 * estimate.value, 100 * estimate.low, 100 * estimate.high
    fill = color if metric.complete else "white"
    axes.bar(place, value, width, color=fill, edgecolor=color, lw=1.2, alpha=0.88)
    axes.vlines(place, low, high, color=INK, lw=1.1)
    axes.annotate(signed(estimate.value), (place, max(high, 0)), (0, 3), **_LABEL, color=INK)


_LABEL: dict[str, Any] = {
    "textcoords": "offset points",
    "ha": "center",
    "va": "bottom",
    "fontsize": 8,
}


def _finish_bars(axes: Axes, names: Sequence[str], title: str) -> None:
    axes.axhline(0, color="#8b9199", lw=1)
    axes.set_xticks(range(len(names)), list(names))
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.margins(y=0.14)
    axes.tick_params(axis="x", length=0, labelcolor=INK)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.grid(axis="y")
    axes.set_title(title, loc="left")


def learning(analysis: Analysis) -> str:
    """Draw cumulative success while training: a row per task, a column per condition."""
    return svg_text("learning", lambda: _learning(analysis))


def _learning(analysis: Analysis) -> Figure:
    conditions, tasks = analysis.study.memories, sorted({c.task for c in analysis.curves})
    figure, grid = _grid(len(tasks), len(conditions))
    palette = colors(analysis)
    for row, task in enumerate(tasks):
        for column, condition in enumerate(conditions):
            axes = grid[row][column]
            for curve in analysis.curves:
                if (curve.condition, curve.task) == (condition, task):
                    _curve(axes, curve, palette[condition])
            axes.set_ylim(0, 100)
            _finish_lines(axes, condition if row == 0 else "", last=row == len(tasks) - 1)
        grid[row][0].set_ylabel(f"task {task}\nsuccesses so far (%)")
    handles = [
        mpl.lines.Line2D([], [], color=GRAY, lw=1.4, ls=(0, (4, 2))),
        mpl.lines.Line2D([], [], color=INK, lw=1.9),
    ]
    names = ["from an empty bank", "after the other task"]
    figure.legend(handles, names, loc="outside upper right", ncols=2, fontsize=8.5)
    figure.supxlabel("training items", fontsize=9)
    return figure


def _curve(axes: Axes, curve: LearningCurve, color: str) -> None:
    crossed = ">" in curve.sequence
    shade = color if crossed else GRAY
    steps = range(1, curve.length + 1)
    axes.fill_between(
        steps,
        [100 * value for value in curve.low],
        [100 * value for value in curve.high],
        color=shade,
        alpha=0.16,
        lw=0,
    )
    axes.plot(
        steps,
        [100 * value for value in curve.mean],
        color=shade,
        lw=1.9 if crossed else 1.4,
        ls="-" if crossed else (0, (4, 2)),
    )


def milestone_lines(analysis: Analysis) -> str:
    """Draw accuracy on held-out items along training: a row per task tested."""
    return svg_text("milestones", lambda: _milestone_lines(analysis))


def _milestone_lines(analysis: Analysis) -> Figure:
    conditions = analysis.study.memories
    tasks = sorted({m.key.task for m in analysis.milestones})
    sequences = list(dict.fromkeys(m.key.sequence for m in analysis.milestones))
    figure, grid = _grid(len(tasks), len(conditions))
    shades = dict(zip(sequences, cycle(PALETTE), strict=False))
    for row, task in enumerate(tasks):
        for column, condition in enumerate(conditions):
            axes = grid[row][column]
            for sequence in sequences:
                key = (condition, sequence, task)
                found = [m for m in analysis.milestones if _track(m) == key]
                _milestone(axes, found, shades[sequence])
            axes.set_ylim(0, 100)
            _finish_lines(axes, condition if row == 0 else "", last=row == len(tasks) - 1)
        grid[row][0].set_ylabel(f"tested on {task}\nsuccess rate (%)")
    handles = [mpl.lines.Line2D([], [], color=shades[s], lw=1.8, marker="o") for s in sequences]
    names = [f"while training {sequence.replace('>', ' → ')}" for sequence in sequences]
    figure.legend(handles, names, loc="outside upper right", ncols=4, fontsize=8.5)
    figure.supxlabel("training items of the last phase", fontsize=9)
    return figure


def _track(milestone: Milestone) -> tuple[str, str, str]:
    key = milestone.key
    return key.condition, key.sequence, key.task


def _milestone(axes: Axes, found: Sequence[Milestone], color: str) -> None:
    known = [(m.at, m.accuracy.estimate) for m in found if m.accuracy.estimate is not None]
    places = [at for at, _ in known]
    axes.plot(places, [100 * e.value for _, e in known], color=color, lw=1.8, marker="o", ms=4)
    axes.vlines(
        places,
        [100 * e.low for _, e in known],
        [100 * e.high for _, e in known],
        color=color,
        lw=1,
        alpha=0.55,
    )


def _grid(rows: int, columns: int) -> tuple[Figure, list[list[Axes]]]:
    figure = Figure(figsize=(WIDTH, 0.7 + 1.75 * max(rows, 1)), layout="constrained")
    grid = figure.subplots(max(rows, 1), max(columns, 1), sharex=True, sharey=True, squeeze=False)
    return figure, [list(row) for row in grid]


def _finish_lines(axes: Axes, title: str, *, last: bool) -> None:
    axes.grid()
    axes.set_title(title, loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.tick_params(length=0, labelbottom=last)


def transfer_exists(rows: Sequence[Transfer]) -> bool:
    """Return whether there is any transfer to draw."""
    return any(row.transfer.estimate is not None for row in rows)
