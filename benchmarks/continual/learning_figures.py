"""Figures of learning: success while training, and on held-out items along it.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.curves import LearningCurve, Milestone
from langgraft.benchmarks.continual.frames import EASY, HARD, TrainingGrid, along, colors, sizes
from langgraft.benchmarks.reporting.drawing import DASHES, GRAY, INK, ZERO, legend, line, shades
from langgraft.benchmarks.reporting.words import several


def learning(analysis: Analysis) -> Figure:
    """Draw cumulative success over both phases: a row per sequence, a column per condition."""
    conditions, sequences = analysis.study.memories, analysis.study.sequences
    grid, palette = TrainingGrid(len(sequences), len(conditions)), colors(analysis)
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
    axes.axvline(switch + 0.5, color=ZERO, lw=1)


def _curve(
    axes: Axes, curve: LearningCurve, start: int, color: str, width: float, *, dashed: bool
) -> None:
    steps = [start + number for number in range(1, curve.length + 1)]
    low, mean, high = (
        [100 * value for value in each] for each in (curve.low, curve.mean, curve.high)
    )
    axes.fill_between(steps, low, high, color=color, alpha=0.14, lw=0)
    axes.plot(steps, mean, color=color, lw=width, ls=DASHES if dashed else "-")


def milestone_lines(analysis: Analysis) -> Figure:
    """Draw accuracy on held-out items along training: a row per task tested."""
    conditions = analysis.study.memories
    tasks = sorted({m.key.task for m in analysis.milestones})
    sequences = list(dict.fromkeys(m.key.sequence for m in analysis.milestones))
    grid = TrainingGrid(len(tasks), len(conditions))
    palette = shades(sequences)
    for row, task in enumerate(tasks):
        for column, condition in enumerate(conditions):
            axes = grid.panel(row, column)
            for sequence in sequences:
                found = _track(analysis, (condition, sequence, task))
                along(axes, [(m.at, m.accuracy) for m in found], palette[sequence])
            grid.finish(row, column, condition, f"tested on {task}\nsuccess rate (%)")
    entries: dict[str, Artist] = {
        f"while training {sequence.replace('>', ' → ')}": line(palette[sequence], marker="o")
        for sequence in sequences
    }
    legend(grid.figure, entries, 4)
    grid.figure.supxlabel(f"training items of the last phase ({sizes(analysis)})", fontsize=9)
    return grid.figure


def _track(analysis: Analysis, track: tuple[str, str, str]) -> list[Milestone]:
    return [
        milestone
        for milestone in analysis.milestones
        if (milestone.key.condition, milestone.key.sequence, milestone.key.task) == track
    ]


def retention_lines(analysis: Analysis) -> Figure:
    """Draw RR and NL of the later task along training (continual-memory Figure 13)."""
    conditions, sequences = analysis.study.memories, analysis.study.sequences
    grid = TrainingGrid(len(sequences), len(conditions))
    for row, sequence in enumerate(sequences):
        later = sequence[-1]
        for column, condition in enumerate(conditions):
            axes = grid.panel(row, column)
            for source, dashed in ((later, True), (sequence, False)):
                found = _track(analysis, (condition, source, later))
                along(axes, [(m.at, m.rr) for m in found], EASY, dashed=dashed)
                along(axes, [(m.at, m.nl) for m in found], HARD, dashed=dashed)
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
