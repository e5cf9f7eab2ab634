"""The figures of a report, as SVG text that is the same for the same numbers; here those of bars.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Callable
from functools import partial

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from langgraft.benchmarks.comparison.contrasts import Contrast
from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.frames import (
    EASY,
    HARD,
    LABEL,
    bar,
    colors,
    ends,
    finish_bars,
    panels,
    sizes,
)
from langgraft.benchmarks.continual.learning_figures import (
    learning,
    milestone_lines,
    retention_lines,
)
from langgraft.benchmarks.continual.metrics import Direction, Transfer
from langgraft.benchmarks.continual.retrieval_figures import (
    dilution_lines,
    diversity_panels,
    within_task,
)
from langgraft.benchmarks.reporting.drawing import (
    BAND,
    DASHES,
    GRAY,
    INK,
    ZERO,
    chart,
    finish_rows,
    legend,
    line,
    svg_text,
)
from langgraft.benchmarks.reporting.words import interval, signed


def draw(analysis: Analysis) -> dict[str, str]:
    """Return the figures as SVG by name: those there is something to draw for."""
    made: dict[str, Callable[[Analysis], Figure]] = {}
    if any(contrast.estimate for contrast in (*analysis.family, *analysis.beside)):
        made["forest"] = _forest
    if any(row.transfer.estimate is not None for row in analysis.transfers):
        made["forward"] = partial(_transfer_bars, direction="forward")
        made["subsets"] = _subset_bars
        made["decomposition"] = _decomposition_bars
        made["within-cross"] = _within_cross
        made["backward"] = partial(_transfer_bars, direction="backward")
    if any(curve.length for curve in analysis.curves):
        made["learning"] = learning
    if any(milestone.accuracy.estimate for milestone in analysis.milestones):
        made["milestones"] = milestone_lines
        made["retention"] = retention_lines
    if any(cell.spread("top1_share") is not None for cell in within_task(analysis)):
        made["retrieval"] = diversity_panels
    if any(row.own_share.estimate is not None for row in analysis.dilution.tested):
        made["dilution"] = dilution_lines
    return {name: svg_text(name, partial(figure, analysis)) for name, figure in made.items()}


def _forest(analysis: Analysis) -> Figure:
    """Draw each condition's difference against no memory, with the margin of equivalence."""
    rows = [c for c in (*analysis.family, *analysis.beside) if c.estimate is not None]
    figure, axes = chart(0.8 + 0.34 * max(len(rows), 1))
    palette, margin = colors(analysis), 100 * analysis.comparison.margin
    axes.axvspan(-margin, margin, color=BAND, lw=0, label="margin of equivalence")
    axes.axvline(0, color=ZERO, lw=1)
    for place, contrast in enumerate(rows):
        _forest_row(axes, place, contrast, palette[contrast.condition])
    label = "difference in success rate against no memory (percentage points)"
    finish_rows(axes, [contrast.condition for contrast in rows], label)
    figure.legend(loc="outside upper right", fontsize=8)
    return figure


def _forest_row(axes: Axes, place: int, contrast: Contrast, color: str) -> None:
    estimate = contrast.estimate
    assert estimate is not None
    axes.plot(ends(estimate), [place, place], color=color, lw=2.2, solid_capstyle="butt")
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


def _transfer_bars(analysis: Analysis, direction: Direction) -> Figure:
    """Draw forward or backward transfer: one panel per sequence."""
    figure, found = panels(analysis, 2.7)
    palette = colors(analysis)
    for axes, sequence in zip(found, analysis.study.sequences, strict=True):
        rows = analysis.rows(direction, sequence)
        for place, row in enumerate(rows):
            bar(axes, place, row.transfer, palette[row.condition], 0.62)
        finish_bars(axes, [row.condition for row in rows], _title(direction, sequence))
    found[0].set_ylabel(f"{'FWT' if direction == 'forward' else 'BWT'} (pp)")
    return figure


def _title(direction: Direction, sequence: str) -> str:
    earlier, later = sequence.split(">")
    tested = later if direction == "forward" else earlier
    return f"{earlier} → {later}, tested on {tested}"


def _subset_bars(analysis: Analysis) -> Figure:
    """Draw forward transfer on the items solved and failed without memory."""
    figure, found = panels(analysis, 2.9)
    for axes, sequence in zip(found, analysis.study.sequences, strict=True):
        rows = analysis.rows("forward", sequence)
        for place, row in enumerate(rows):
            bar(axes, place - 0.21, row.delta_rr, EASY, 0.38)
            bar(axes, place + 0.21, row.delta_nl, HARD, 0.38)
        finish_bars(axes, [row.condition for row in rows], _title("forward", sequence))
    found[0].set_ylabel("change (pp)")
    entries: dict[str, Artist] = {
        "ΔRR, items solved without memory": Patch(color=EASY),
        "ΔNL, items failed without memory": Patch(color=HARD),
    }
    legend(figure, entries, 2)
    return figure


def _decomposition_bars(analysis: Analysis) -> Figure:
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
        finish_bars(axes, names, _title("forward", sequence))
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


def _within_cross(analysis: Analysis) -> Figure:
    """Draw success within a task beside success after another one (Figure 4)."""
    figure, found = panels(analysis, 3.1)
    palette, memories = colors(analysis), analysis.study.memories
    for axes, sequence in zip(found, analysis.study.sequences, strict=True):
        earlier, later = sequence.split(">")
        for row in analysis.rows("forward", sequence):
            if row.condition not in memories:  # a control: the bars have it
                continue
            place = memories.index(row.condition)
            shift = 0.05 * (place - (len(memories) - 1) / 2)
            marker = MARKERS[place % len(MARKERS)]
            slope(axes, row, shift, palette[row.condition], marker)
        reference(axes, analysis, later)
        axes.set_xticks([0, 1], [f"within: ∅ → {later}", f"cross: {earlier} → {later}"])
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


MARKERS = "osD^vPX"
"""Shapes, so that conditions can be told apart without their colors; one more than colors, so
that where colors come round again they come with other shapes."""


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
