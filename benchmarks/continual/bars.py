"""Figures of bars and slopes: transfer by sequence, what it is made of, success within and across.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Sequence
from typing import Any, Final

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.metrics import SMALLEST_SUBSET, Direction, Transfer
from langgraft.benchmarks.continual.plan import phases
from langgraft.benchmarks.reporting.drawing import (
    DASHES,
    GRAY,
    INK,
    WIDTH,
    ZERO,
    ends,
    legend,
    line,
    shades,
)
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

MARKERS = "osD^vPX"
"""Shapes, so that conditions can be told apart without their colors; one more than colors, so
that where colors come round again they come with other shapes."""


def transfer_bars(analysis: Analysis, direction: Direction) -> Figure:
    """Draw forward or backward transfer: one panel per sequence."""
    study, palette = analysis.study, colors(analysis)
    last = [(each, phases(each)[-1]) for each in study.sequences]
    moves = last if direction == "forward" else list(study.backward)
    figure, found = panels(analysis, 2.7, len(moves))
    for axes, (sequence, task) in zip(found, moves, strict=False):
        rows = [row for row in analysis.rows(direction, sequence) if row.task == task]
        for place, row in enumerate(rows):
            bar(axes, place, row.transfer, palette[row.condition], 0.62)
        finish_bars(axes, [row.condition for row in rows], _title(sequence, task))
    found[0].set_ylabel(f"{'FWT' if direction == 'forward' else 'BWT'} (pp)")
    return figure


def _title(sequence: str, task: str = "") -> str:
    """Name a sequence and the task tested, by default its last."""
    tested = task or phases(sequence)[-1]
    return f"{sequence.replace('>', ' → ')}, tested on {tested}"


def subset_bars(analysis: Analysis) -> Figure:
    """Draw forward transfer on the items solved and failed without memory."""
    figure, found = panels(analysis, 2.9)
    for axes, sequence in zip(found, analysis.study.sequences, strict=True):
        rows = analysis.rows("forward", sequence)
        for place, row in enumerate(rows):
            bar(axes, place - 0.21, row.delta_rr, EASY, 0.38)
            bar(axes, place + 0.21, row.delta_nl, HARD, 0.38)
        finish_bars(axes, [row.condition for row in rows], _title(sequence))
    found[0].set_ylabel("change (pp)")
    entries: dict[str, Artist] = {
        "ΔRR, items solved without memory": Patch(color=EASY),
        "ΔNL, items failed without memory": Patch(color=HARD),
    }
    legend(figure, entries, 2)
    return figure


def decomposition_bars(analysis: Analysis) -> Figure:
    """Draw forward transfer as the sum of what easy and hard items add (Figures 3 and 9)."""
    figure, found = panels(analysis, 2.9)
    for axes, sequence in zip(found, analysis.study.sequences, strict=True):
        rows = [
            row
            for row in analysis.decompositions
            if (row.transfer.direction, row.transfer.sequence) == ("forward", sequence)
        ]
        for place, row in enumerate(rows):
            _share(axes, place - 0.24, row.easy, EASY)
            _share(axes, place, row.hard, HARD)
            _sum(axes, place + 0.24, row.transfer.transfer)
        names = [row.transfer.condition for row in rows]
        finish_bars(axes, names, _title(sequence))
    found[0].set_ylabel("share of FWT (pp)")
    entries: dict[str, Artist] = {
        "(n_s / N) · ΔRR, solved without memory": Patch(color=EASY),
        "(n_f / N) · ΔNL, failed without memory": Patch(color=HARD),
        "FWT, their sum": line(INK, marker="D"),
    }
    legend(figure, entries, 3)
    figure.supxlabel(sizes(analysis), fontsize=9)
    return figure


def _share(axes: Axes, place: float, metric: Metric, color: str) -> None:
    """Draw a share of a transfer; a subset without items has none."""
    estimate = metric.estimate
    if estimate is not None:
        fill = color if metric.complete else "white"
        axes.bar(place, 100 * estimate.value, 0.22, color=fill, edgecolor=color, lw=1.2, alpha=0.88)
        axes.vlines(place, *ends(estimate), color=INK, lw=1)


def _sum(axes: Axes, place: float, metric: Metric) -> None:
    estimate = metric.estimate
    if estimate is not None:
        value, (low, high) = 100 * estimate.value, ends(estimate)
        axes.vlines(place, low, high, color=INK, lw=1.4)
        face = INK if metric.complete else "white"
        axes.plot([place], [value], "D", ms=5, mec=INK, mfc=face)
        text = signed(estimate.value)
        axes.annotate(text, (place, max(high, 0)), (0, 3), **LABEL, color=INK)


def within_cross(analysis: Analysis) -> Figure:
    """Draw success within a task beside success after another one (Figure 4)."""
    figure, found = panels(analysis, 3.1)
    palette, memories = colors(analysis), analysis.study.memories
    for axes, sequence in zip(found, analysis.study.sequences, strict=True):
        later = phases(sequence)[-1]
        for row in analysis.rows("forward", sequence):
            if row.condition not in memories:  # a control: the bars have it
                continue
            place = memories.index(row.condition)
            shift = 0.05 * (place - (len(memories) - 1) / 2)
            marker = MARKERS[place % len(MARKERS)]
            slope(axes, row, shift, palette[row.condition], marker)
        reference(axes, analysis, later)
        across = f"cross: {sequence.replace('>', ' → ')}"
        axes.set_xticks([0, 1], [f"within: ∅ → {later}", across])
        axes.set_xlim(-0.35, 1.35)
        axes.set_ylim(0, 100)
        axes.tick_params(length=0, labelcolor=INK)
        axes.grid(axis="y")
        axes.set_title(f"tested on {later}", loc="left")
    found[0].set_ylabel("success rate (%)")
    entries: dict[str, Artist] = {
        name: line(palette[name], marker=MARKERS[place % len(MARKERS)])
        for place, name in enumerate(memories)
    }
    legend(figure, {**entries, "without memory": line(GRAY, dashed=True)}, 6)
    figure.supxlabel(sizes(analysis), fontsize=9)
    return figure


def slope(axes: Axes, row: Transfer, shift: float, color: str, marker: str) -> None:
    """Draw success within a task and after the other one, joined, with their intervals."""
    known = [(x, m.estimate) for x, m in enumerate((row.before, row.after)) if m.estimate]
    places = [x + shift for x, _ in known]
    values = [100 * estimate.value for _, estimate in known]
    axes.plot(places, values, color=color, lw=1.7, marker=marker, ms=6)
    low, high = ([100 * getattr(e, end) for _, e in known] for end in ("low", "high"))
    axes.vlines(places, low, high, color=color, lw=1)


def reference(axes: Axes, analysis: Analysis, task: str) -> None:
    """Draw what no memory at all gives."""
    estimate = dict(analysis.baseline)[task].estimate
    if estimate is not None:
        axes.axhline(100 * estimate.value, color=GRAY, lw=1.2, ls=DASHES)


# What figures share ----------------------------------------------------------------------------


def colors(analysis: Analysis) -> dict[str, str]:
    """Return the color of each condition; memories in plan order, others gray."""
    return dict.fromkeys(analysis.study.conditions, GRAY) | shades(analysis.study.memories)


def sizes(analysis: Analysis) -> str:
    """Write how many test items a task has, and in how many runs they were tested."""
    cells = [cell for c in analysis.study.memories for cell in analysis.study.final_cells(c)]
    items = max((run.planned for cell in cells for run in cell.runs), default=0)
    runs = max((len(cell.runs) for cell in cells), default=0)
    return f"n = {sample_of(items, runs, 'test item')} each"


def panels(analysis: Analysis, height: float, count: int = 0) -> tuple[Figure, list[Axes]]:
    """Make a panel per sequence, or `count`: side by side, or stacked for many, or many memories."""
    count = count or max(len(analysis.study.sequences), 1)
    wide = len(analysis.study.memories) > ABREAST or count > ABREAST
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
