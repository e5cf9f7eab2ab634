"""The figures of a report, as SVG text that is the same for the same numbers.

Drawn here are those along training (success while training, on held-out items along it, dilution) and
what memory retrieved; `bars` has those of transfer.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from langgraft.benchmarks.comparison.outcomes import Metric, Spread
from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.bars import (
    ABREAST,
    EASY,
    HARD,
    colors,
    decomposition_bars,
    sizes,
    subset_bars,
    transfer_bars,
    within_cross,
)
from langgraft.benchmarks.continual.cells import BASELINE, CellKey, beginnings
from langgraft.benchmarks.continual.curves import LearningCurve, Milestone, Tested, Window
from langgraft.benchmarks.continual.plan import phases
from langgraft.benchmarks.continual.retrieval import CellRetrieval
from langgraft.benchmarks.reporting.drawing import (
    DASHES,
    GRAY,
    INK,
    PALETTE,
    WIDTH,
    ZERO,
    Grid,
    forest,
    legend,
    line,
    shades,
    svg_text,
)
from langgraft.benchmarks.reporting.words import several


def draw(analysis: Analysis) -> dict[str, str]:
    """Return the figures as SVG by name: those there is something to draw for."""
    made: dict[str, Callable[[Analysis], Figure]] = {}
    if any(contrast.estimate for contrast in (*analysis.family, *analysis.beside)):
        made["forest"] = lambda each: forest(each.comparison, colors(each))
    if any(row.transfer.estimate is not None for row in analysis.transfers):
        made["forward"] = partial(transfer_bars, direction="forward")
        made["subsets"] = subset_bars
        made["decomposition"] = decomposition_bars
        made["within-cross"] = within_cross
        made["backward"] = partial(transfer_bars, direction="backward")
    if any(curve.length for curve in analysis.curves):
        made["learning"] = learning
    if any(each.length for each in analysis.regrets):
        made["regret"] = regret_lines
    if analysis.sequences:
        made["matrix"] = matrix_lines
    if any(milestone.accuracy.estimate for milestone in analysis.milestones):
        made["milestones"] = milestone_lines
    if "milestones" in made and analysis.study.sequences:
        made["retention"] = retention_lines
    if any(cell.spread("top1_share") is not None for cell in within_task(analysis)):
        made["retrieval"] = diversity_panels
    if any(row.own_share.estimate is not None for row in analysis.dilution.tested):
        made["dilution"] = dilution_lines
    return {name: svg_text(name, partial(figure, analysis)) for name, figure in made.items()}


# Along training --------------------------------------------------------------------------------


def learning(analysis: Analysis) -> Figure:
    """Draw cumulative success over all phases: a row per sequence, a column per condition."""
    conditions, sequences = analysis.study.memories, _streams(analysis)
    grid, palette = TrainingGrid(len(sequences), len(conditions)), colors(analysis)
    for row, sequence in enumerate(sequences):
        for column, condition in enumerate(conditions):
            _phases(grid.panel(row, column), analysis, condition, sequence, palette[condition])
            arrows = sequence.replace(">", " → ")
            grid.finish(row, column, condition, f"{arrows}\nsolved so far (%)")
    two = all(len(phases(each)) == 2 for each in sequences)  # noqa: PLR2004
    entries: dict[str, Artist] = {
        "first phase": line(INK, width=1.0),
        "second phase, after the first" if two else "later phases": line(INK, width=2.0),
        "the same task from an empty bank": line(GRAY, dashed=True),
    }
    if analysis.online:
        entries["the same without memory"] = Line2D([], [], color=INK, lw=1, ls=":")
    legend(grid.figure, entries, 3)
    runs = max((len(curve.replicates) for curve in analysis.curves), default=0)
    label = f"training items over {'both' if two else 'all'} phases (n = {several(runs, 'run')})"
    grid.figure.supxlabel(label, fontsize=9)
    return grid.figure


def _phases(axes: Axes, analysis: Analysis, condition: str, sequence: str, color: str) -> None:
    """Draw the first phase, then each switch, and the next phase over the scratch curve."""
    found = {(curve.condition, curve.sequence): curve for curve in analysis.curves}
    switch = 0
    for number, begun in enumerate(beginnings(sequence)):
        task = begun.rpartition(">")[2]
        scratch, here = found.get((condition, task)), found.get((condition, begun))
        without = found.get((BASELINE, task))
        if without is not None and without.length:
            steps = [switch + place for place in range(1, without.length + 1)]
            axes.plot(steps, [100 * each for each in without.mean], color=INK, lw=1, ls=":")
        if number and scratch is not None and scratch.length:
            _curve(axes, scratch, switch, GRAY, 1.4, dashed=True)
        if here is not None and here.length:
            _curve(axes, here, switch, color, 2.0 if number else 1.0, dashed=False)
        if number:
            axes.axvline(switch + 0.5, color=ZERO, lw=1)
        switch += 0 if here is None else here.planned


def _streams(analysis: Analysis) -> tuple[str, ...]:
    return (*analysis.study.whole_sequences, *analysis.study.mixtures)


def regret_lines(analysis: Analysis) -> Figure:
    """Draw what memory lost or gained in training beside no memory on the same instances."""
    conditions, sequences = analysis.study.memories, _streams(analysis)
    grid = Grid(
        len(sequences), len(conditions), abreast=ABREAST, height=1.75, sharex=True, sharey=True
    )
    palette = colors(analysis)
    found = {(each.condition, each.sequence): each for each in analysis.regrets}
    for row, sequence in enumerate(sequences):
        for column, condition in enumerate(conditions):
            axes, curve = grid.panel(row, column), found.get((condition, sequence))
            if curve is not None and curve.length:
                steps = range(1, curve.length + 1)
                color = palette[condition]
                axes.fill_between(steps, curve.low, curve.high, color=color, alpha=0.14, lw=0)
                axes.plot(steps, curve.mean, color=color, lw=1.6)
                count = len(beginnings(sequence))
                for number in range(1, count):
                    axes.axvline(number * curve.planned / count + 0.5, color=ZERO, lw=1)
            axes.axhline(0, color=ZERO, lw=1)
            axes.grid()
            axes.tick_params(length=0)
            axes.set_title(condition if row == 0 else "", loc="left")
            if column % grid.abreast == 0:
                axes.set_ylabel(f"{sequence.replace('>', ' → ')}\nregret (episodes)")
    grid.figure.supxlabel("training items over all phases", fontsize=9)
    return grid.figure


def matrix_lines(analysis: Analysis) -> Figure:
    """Draw success on each task of a sequence after each of its phases."""
    study, found = analysis.study, {(e.condition, e.sequence): e for e in analysis.sequences}
    grid = TrainingGrid(len(study.long_sequences), len(study.memories))
    tasks = shades(sorted(analysis.domains))
    for row, sequence in enumerate(study.long_sequences):
        for column, condition in enumerate(study.memories):
            axes = grid.panel(row, column)
            entries = found[condition, sequence].matrix
            for task in phases(sequence):
                mine = [each for each in entries if each.task == task]
                along(axes, [(e.phases, e.accuracy) for e in mine], tasks[task])
                early = [e for e in mine if not e.met and e.accuracy.estimate is not None]
                values = [100 * e.accuracy.estimate.value for e in early if e.accuracy.estimate]
                places = [e.phases for e in early]
                axes.plot(places, values, "o", ms=4.2, mec=tasks[task], mfc="white", zorder=3)
            label = f"{sequence.replace('>', ' → ')}\nsuccess rate (%)"
            grid.finish(row, column, condition, label)
    legend(grid.figure, {f"tested on {t}": line(c, marker="o") for t, c in tasks.items()}, 4)
    grid.figure.supxlabel(f"phases so far ({sizes(analysis)})", fontsize=9)
    return grid.figure


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
        later = phases(sequence)[-1]
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


# What was retrieved ----------------------------------------------------------------------------


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
    conditions, moves = analysis.study.memories, analysis.study.backward
    grid, found = TrainingGrid(len(moves), len(conditions)), analysis.dilution
    for row, (sequence, earlier) in enumerate(moves):
        for column, condition in enumerate(conditions):
            track = (condition, sequence)
            tested = [
                t for t in found.tested if (t.condition, t.sequence, t.task) == (*track, earlier)
            ]
            windows = [w for w in found.windows if (w.condition, w.sequence) == track]
            axes = grid.panel(row, column)
            _tested(axes, tested)
            _training(axes, windows)
            label = f"{earlier}, while\nlearning {phases(sequence)[-1]} (%)"
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
