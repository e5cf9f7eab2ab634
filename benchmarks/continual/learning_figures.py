"""Figures of learning: success while training, and on held-out items along it.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Sequence
from itertools import cycle

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.curves import LearningCurve, Milestone
from langgraft.benchmarks.continual.drawing import EASY, GRAY, HARD, INK, PALETTE, svg_text
from langgraft.benchmarks.continual.frames import Grid, colors, legend, line, sizes
from langgraft.benchmarks.continual.metrics import Metric
from langgraft.benchmarks.continual.wording import several


def learning(analysis: Analysis) -> str:
    """Draw cumulative success over both phases: a row per sequence, a column per condition."""
    return svg_text("learning", lambda: _learning(analysis))


def _learning(analysis: Analysis) -> Figure:
    conditions, sequences = analysis.study.memories, analysis.study.sequences
    grid, palette = Grid(len(sequences), len(conditions)), colors(analysis)
    found = {(curve.condition, curve.sequence): curve for curve in analysis.curves}
    for row, sequence in enumerate(sequences):
        earlier, later = sequence.split(">")
        for column, condition in enumerate(conditions):
            curves = [found.get((condition, each)) for each in (earlier, later, sequence)]
            _phases(grid.panel(row, column), curves, palette[condition])
            grid.finish(row, column, condition, f"{earlier} → {later}\nsolved so far (%)")
    entries: dict[str, Artist] = {
        "first phase": line(INK, width=1.0),
        "second phase, after the first": line(INK, width=2.0),
        "the same task from an empty bank": line(GRAY, dashed=True),
    }
    legend(grid.figure, entries, 3)
    runs = max((len(curve.replicates) for curve in analysis.curves), default=0)
    label = f"training items over both phases (n = {several(runs, 'run')})"
    grid.figure.supxlabel(label, fontsize=9)
    return grid.figure


def _phases(axes: Axes, curves: Sequence[LearningCurve | None], color: str) -> None:
    """Draw the first phase, the switch, and the second phase over the scratch curve."""
    first, scratch, second = curves
    switch = 0 if first is None else first.planned
    for curve, start, shade, width in (
        (first, 0, color, 1.0),
        (scratch, switch, GRAY, 1.4),
        (second, switch, color, 2.0),
    ):
        if curve is not None and curve.length:
            _curve(axes, curve, start, shade, width, dashed=curve is scratch)
    axes.axvline(switch + 0.5, color="#8b9199", lw=1)
    axes.set_ylim(0, 100)


def _curve(
    axes: Axes, curve: LearningCurve, start: int, color: str, width: float, *, dashed: bool
) -> None:
    steps = [start + number for number in range(1, curve.length + 1)]
    low, mean, high = (
        [100 * value for value in each] for each in (curve.low, curve.mean, curve.high)
    )
    axes.fill_between(steps, low, high, color=color, alpha=0.14, lw=0)
    axes.plot(steps, mean, color=color, lw=width, ls=(0, (4, 2)) if dashed else "-")


def milestone_lines(analysis: Analysis) -> str:
    """Draw accuracy on held-out items along training: a row per task tested."""
    return svg_text("milestones", lambda: _milestone_lines(analysis))


def _milestone_lines(analysis: Analysis) -> Figure:
    conditions = analysis.study.memories
    tasks = sorted({m.key.task for m in analysis.milestones})
    sequences = list(dict.fromkeys(m.key.sequence for m in analysis.milestones))
    grid = Grid(len(tasks), len(conditions))
    shades = dict(zip(sequences, cycle(PALETTE), strict=False))
    for row, task in enumerate(tasks):
        for column, condition in enumerate(conditions):
            axes = grid.panel(row, column)
            for sequence in sequences:
                found = _along(analysis, (condition, sequence, task))
                _points(axes, [(m.at, m.accuracy) for m in found], shades[sequence])
            axes.set_ylim(0, 100)
            grid.finish(row, column, condition, f"tested on {task}\nsuccess rate (%)")
    entries: dict[str, Artist] = {
        f"while training {sequence.replace('>', ' → ')}": line(shades[sequence], marker="o")
        for sequence in sequences
    }
    legend(grid.figure, entries, 4)
    grid.figure.supxlabel(f"training items of the last phase ({sizes(analysis)})", fontsize=9)
    return grid.figure


def _along(analysis: Analysis, track: tuple[str, str, str]) -> list[Milestone]:
    return [
        milestone
        for milestone in analysis.milestones
        if (milestone.key.condition, milestone.key.sequence, milestone.key.task) == track
    ]


def _points(
    axes: Axes, found: Sequence[tuple[int, Metric]], color: str, *, dashed: bool = False
) -> None:
    """Draw a number along training, with its intervals."""
    known = [(at, metric.estimate) for at, metric in found if metric.estimate is not None]
    places = [at for at, _ in known]
    style = (0, (4, 2)) if dashed else "-"
    values = [100 * e.value for _, e in known]
    axes.plot(places, values, color=color, lw=1.7, ls=style, marker="o", ms=4)
    low, high = [100 * e.low for _, e in known], [100 * e.high for _, e in known]
    axes.vlines(places, low, high, color=color, lw=1, alpha=0.55)


def retention_lines(analysis: Analysis) -> str:
    """Draw RR and NL of the later task along training (continual-memory Figure 13)."""
    return svg_text("retention", lambda: _retention_lines(analysis))


def _retention_lines(analysis: Analysis) -> Figure:
    conditions, sequences = analysis.study.memories, analysis.study.sequences
    grid = Grid(len(sequences), len(conditions))
    for row, sequence in enumerate(sequences):
        later = sequence[-1]
        for column, condition in enumerate(conditions):
            axes = grid.panel(row, column)
            for source, dashed in ((later, True), (sequence, False)):
                found = _along(analysis, (condition, source, later))
                _points(axes, [(m.at, m.rr) for m in found], EASY, dashed=dashed)
                _points(axes, [(m.at, m.nl) for m in found], HARD, dashed=dashed)
            axes.set_ylim(0, 100)
            label = f"{sequence.replace('>', ' → ')}, tested on {later}\nsuccess rate (%)"
            grid.finish(row, column, condition, label)
    entries: dict[str, Artist] = {
        "RR, solved without memory": line(EASY, marker="o"),
        "NL, failed without memory": line(HARD, marker="o"),
        "the same from an empty bank": line(GRAY, dashed=True),
    }
    legend(grid.figure, entries, 3)
    grid.figure.supxlabel(f"training items of the later task ({sizes(analysis)})", fontsize=9)
    return grid.figure
