"""Figures of what memory retrieved: diversity and concentration, and dilution over time.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from langgraft.benchmarks.comparison.outcomes import Spread
from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.cells import CellKey
from langgraft.benchmarks.continual.dilution import Tested, Window
from langgraft.benchmarks.continual.frames import ABREAST, TrainingGrid, along, colors, sizes
from langgraft.benchmarks.continual.retrieval import CellRetrieval
from langgraft.benchmarks.reporting.drawing import DASHES, GRAY, INK, PALETTE, WIDTH, legend, line


def within_task(analysis: Analysis) -> list[CellRetrieval]:
    """Return the evaluations on the task that was learned, from an empty bank, at its end."""
    return [
        cell
        for cell in analysis.retrievals
        if cell.key.sequence == cell.key.task and cell.key.at is None
    ]


def diversity_panels(analysis: Analysis) -> Figure:
    """Draw diversity, coverage, concentration and success within each task (Figure 11)."""
    cells = within_task(analysis)
    cells.sort(key=lambda cell: (cell.key.task, analysis.study.memories.index(cell.key.condition)))
    crowded = len(cells) > 2 * ABREAST
    figure = Figure(figsize=(WIDTH, 6.6 if crowded else 5.4), layout="constrained")
    diversity, coverage, top1, success = figure.subplots(2, 2).flat
    palette = colors(analysis)
    for place, cell in enumerate(cells):
        color = palette[cell.key.condition]
        _pair(diversity, place, cell, color)
        _column(coverage, place - 0.2, cell.spread("coverage_bank"), color, 0.36)
        _column(coverage, place + 0.2, cell.spread("coverage_slots"), color, 0.36, hollow=True)
        _column(top1, place, cell.spread("top1_share"), color, 0.6)
        _success(success, place, analysis, cell.key, color)
    between = " " if crowded else "\n"
    names = [f"{cell.key.condition}{between}{cell.key.task}" for cell in cells]
    titles = {
        "(a) diversity, 0 to 1": diversity,
        "(b) retrieval coverage (%)": coverage,
        "(c) top-1 concentration (%)": top1,
        "(d) success within the task (%)": success,
    }
    for title, axes in titles.items():
        _finish(axes, title, names, 1 if axes is diversity else 100, crowded=crowded)
    entries: dict[str, Artist] = {
        "(a) keys in the bank": _mark("o", hollow=True),
        "(a) items retrieved": _mark("D"),
        "(b) of the bank": _mark("s"),
        "(b) of the items retrieved": _mark("s", hollow=True),
    }
    legend(figure, entries, 4)
    figure.supxlabel(sizes(analysis), fontsize=9)
    return figure


def _mark(marker: str, *, hollow: bool = False) -> Artist:
    mark = line(INK, marker=marker, width=0)
    mark.set_markerfacecolor("white" if hollow else INK)
    mark.set_markersize(7)
    return mark


def _pair(axes: Axes, place: int, cell: CellRetrieval, color: str) -> None:
    """Draw key and context diversity of a cell, joined."""
    keys, contexts = cell.spread("key_diversity"), cell.spread("context_diversity")
    if keys is not None and contexts is not None:
        ends = [place - 0.15, place + 0.15]
        axes.plot(ends, [keys.mean, contexts.mean], color=color, lw=1.2)
    for shift, spread, marker, face in ((-0.15, keys, "o", "white"), (0.15, contexts, "D", color)):
        if spread is not None:
            axes.vlines(place + shift, spread.low, spread.high, color=INK, lw=1)
            axes.plot([place + shift], [spread.mean], marker, ms=7, mec=color, mfc=face, mew=1.5)


def _column(
    axes: Axes,
    place: float,
    spread: Spread | None,
    color: str,
    width: float,
    *,
    hollow: bool = False,
) -> None:
    if spread is not None:
        face = "white" if hollow else color
        axes.bar(place, 100 * spread.mean, width, color=face, edgecolor=color, lw=1.2, alpha=0.88)
        axes.vlines(place, 100 * spread.low, 100 * spread.high, color=INK, lw=1.1)


def _success(axes: Axes, place: int, analysis: Analysis, key: CellKey, color: str) -> None:
    found = [r.accuracy.estimate for r in analysis.retentions if r.key == key]
    for estimate in found:
        if estimate is not None:
            axes.bar(place, 100 * estimate.value, 0.6, color=color, alpha=0.88)
            axes.vlines(place, 100 * estimate.low, 100 * estimate.high, color=INK, lw=1.1)


def _finish(axes: Axes, title: str, names: Sequence[str], top: float, *, crowded: bool) -> None:
    axes.set_title(title, loc="left")
    side: dict[str, Any] = (
        {"rotation": 50, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    )
    axes.set_xticks(range(len(names)), list(names), **side)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylim(0, 1.04 * top)
    axes.tick_params(length=0, labelcolor=INK, labelsize=8)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)


OWN, IN_BANK, IN_TRAINING = PALETTE[0], GRAY, PALETTE[4]


def dilution_lines(analysis: Analysis) -> Figure:
    """Draw how the earlier task fares while the later one is learned."""
    conditions, sequences = analysis.study.memories, analysis.study.sequences
    grid, found = TrainingGrid(len(sequences), len(conditions)), analysis.dilution
    for row, sequence in enumerate(sequences):
        for column, condition in enumerate(conditions):
            track = (condition, sequence)
            tested = [t for t in found.tested if (t.condition, t.sequence) == track]
            windows = [w for w in found.windows if (w.condition, w.sequence) == track]
            axes = grid.panel(row, column)
            _tested(axes, tested)
            _training(axes, windows)
            earlier, later = sequence.split(">")
            label = f"{earlier}, while\nlearning {later} (%)"
            grid.finish(row, column, condition, label)
    grid.panel(0, 0).set_ylim(0, 104)  # of all: what stays at 100 is seen whole
    entries: dict[str, Artist] = {
        "success when tested": line(INK, marker="s"),
        "share of what is retrieved when tested": line(OWN, marker="o"),
        "share of what is retrieved in training": line(IN_TRAINING, dashed=True),
        "share of the bank": line(IN_BANK, width=2.4),
    }
    legend(grid.figure, entries, 2)
    grid.figure.supxlabel(f"episodes of the later task ({sizes(analysis)})", fontsize=9)
    return grid.figure


def _tested(axes: Axes, rows: Sequence[Tested]) -> None:
    bank = [(row.at, 100 * row.bank_share.mean) for row in rows if row.bank_share is not None]
    axes.plot([at for at, _ in bank], [share for _, share in bank], color=IN_BANK, lw=2.4)
    along(axes, [(row.at, row.own_share) for row in rows], OWN)
    along(axes, [(row.at, row.success) for row in rows], INK, marker="s")


def _training(axes: Axes, windows: Sequence[Window]) -> None:
    """Draw what training retrieved, each window at its middle."""
    known = [
        ((window.first - 1 + window.last) / 2, 100 * window.earlier_retrieved.mean)
        for window in windows
        if window.earlier_retrieved is not None
    ]
    places, shares = [at for at, _ in known], [share for _, share in known]
    axes.plot(places, shares, color=IN_TRAINING, lw=1.6, ls=DASHES)
