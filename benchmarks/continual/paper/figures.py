"""The paper's figures over all pairs: environments side by side, published values beside ours.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from langgraft.benchmarks.continual.bars import (
    EASY,
    HARD,
    MARKERS,
    bar,
    finish_bars,
    reference,
    slope,
)
from langgraft.benchmarks.continual.figures import (
    diversity_panels,
    learning,
    retention_lines,
    within_task,
)
from langgraft.benchmarks.continual.metrics import Direction
from langgraft.benchmarks.continual.paper.counterparts import Cast, Side
from langgraft.benchmarks.published import STUDY_1, STUDY_2, Role
from langgraft.benchmarks.reporting.drawing import (
    GRAY,
    INK,
    PALETTE,
    WIDTH,
    Grid,
    legend,
    line,
    svg_text,
)

SHORT: Final[Mapping[Role, str]] = {"raw": "Raw", "agg": "Insight", "ind": "Ind", "step": "Step"}
COLORS: Final[Mapping[Role, str]] = dict(zip(SHORT, PALETTE, strict=False))
ABREAST = 2
"""Pairs side by side; more go on below."""

_CONTRASTS: Final[tuple[tuple[Role, Role], ...]] = (("agg", "ind"), ("ind", "step"))

Draw = Callable[[Axes, Side, str], None]


def draw(sides: Sequence[Side], cast: Cast) -> dict[str, str]:
    """Return the figures as SVG by name; those there is something to draw for."""
    drawn: dict[str, str] = {}
    first, second = ([role for role in study if role in cast] for study in (STUDY_1, STUDY_2))
    if first:
        drawn["figure-2"] = _transfers("figure-2", sides, cast, first, "forward")
        drawn["figure-3"] = _subsets("figure-3", sides, cast, first)
        drawn["figure-4"] = _within_cross(sides, cast, first)
        drawn["figure-5"] = _transfers("figure-5", sides, cast, first, "backward")
    if second:
        drawn["figure-7"] = _transfers("figure-7", sides, cast, second, "forward")
        drawn["figure-9"] = _subsets("figure-9", sides, cast, second)
        drawn["figure-10"] = _transfers("figure-10", sides, cast, second, "backward")
    if any(set(pair) <= cast.keys() for pair in _CONTRASTS):
        drawn["figure-8"] = _contrasts(sides, cast)
    for side in sides:
        drawn |= _of_one(side, cast)
    return drawn


def _panels(name: str, sides: Sequence[Side], each: Draw, entries: Mapping[str, Artist]) -> str:
    """Draw a panel for each sequence, below, and each pair, beside."""

    def figure() -> Figure:
        sequences = list(dict.fromkeys(s for side in sides for s in side.sequences))
        grid = Grid(max(len(sequences), 1), len(sides), abreast=ABREAST, height=2.5, sharey=True)
        for column, side in enumerate(sides):
            for row, sequence in enumerate(sequences):
                each(grid.panel(row, column), side, sequence)
        legend(grid.figure, entries, 4)
        return grid.figure

    return svg_text(name, figure)


def _title(side: Side, sequence: str) -> str:
    return f"{side.name}, {sequence.replace('>', ' → ')}"


def _published(axes: Axes, place: float, value: float | None) -> None:
    """Mark what the paper prints."""
    if value is not None:
        axes.plot([place], [value], "D", ms=6, mfc="white", mec=INK, mew=1.3, zorder=5)


def _mark() -> Artist:
    return Line2D([], [], ls="", marker="D", ms=6, mfc="white", mec=INK, mew=1.3)


_THEIRS = "published (language model)"


def _transfers(
    name: str, sides: Sequence[Side], cast: Cast, wanted: Sequence[Role], direction: Direction
) -> str:
    """Draw forward or backward transfer (Figures 2, 5, 7 and 10)."""
    study = 1 if "raw" in wanted else 2

    def each(axes: Axes, side: Side, sequence: str) -> None:
        for place, role in enumerate(wanted):
            row = side.row(direction, sequence, cast[role].name)
            if row is not None:
                bar(axes, place, row.transfer, COLORS[role], 0.5)
            forward, backward = side.forward(sequence, role), side.backward(sequence, role, study)
            printed = forward if direction == "forward" else backward
            _published(axes, place + 0.36, None if printed is None else printed.transfer)
        finish_bars(axes, [SHORT[role] for role in wanted], _title(side, sequence))
        axes.set_ylabel(f"{'FWT' if direction == 'forward' else 'BWT'} (pp)")

    return _panels(name, sides, each, {_THEIRS: _mark()})


def _subsets(name: str, sides: Sequence[Side], cast: Cast, wanted: Sequence[Role]) -> str:
    """Draw forward transfer on easy and on hard items (Figures 3 and 9)."""

    def each(axes: Axes, side: Side, sequence: str) -> None:
        for place, role in enumerate(wanted):
            row, printed = (
                side.row("forward", sequence, cast[role].name),
                side.forward(sequence, role),
            )
            if row is not None:
                bar(axes, place - 0.21, row.delta_rr, EASY, 0.3)
                bar(axes, place + 0.21, row.delta_nl, HARD, 0.3)
            if printed is not None:
                _published(axes, place - 0.41, printed.delta_rr)
                _published(axes, place + 0.41, printed.delta_nl)
        finish_bars(axes, [SHORT[role] for role in wanted], _title(side, sequence))
        axes.set_ylabel("change (pp)")

    entries = {
        "ΔRR, solved without memory": Patch(color=EASY),
        "ΔNL, failed without memory": Patch(color=HARD),
        _THEIRS: _mark(),
    }
    return _panels(name, sides, each, entries)


def _within_cross(sides: Sequence[Side], cast: Cast, wanted: Sequence[Role]) -> str:
    """Draw success within a task beside success after the other one (Figure 4)."""

    def each(axes: Axes, side: Side, sequence: str) -> None:
        earlier, later = sequence.split(">")
        for place, role in enumerate(wanted):
            row, printed = (
                side.row("forward", sequence, cast[role].name),
                side.forward(sequence, role),
            )
            shift = 0.06 * (place - (len(wanted) - 1) / 2)
            if row is not None:
                slope(axes, row, shift, COLORS[role], MARKERS[place])
            if printed is not None:
                rates = [printed.scratch, printed.crossed]
                axes.plot([0, 1], rates, color=COLORS[role], lw=1.2, ls=(0, (2, 2)), zorder=1)
                for x, rate in enumerate(rates):
                    _published(axes, x, rate)
        reference(axes, side.analysis, later)
        axes.set_xticks([0, 1], [f"within: ∅ → {later}", f"cross: {earlier} → {later}"])
        axes.set_xlim(-0.35, 1.35)
        axes.set_ylim(0, 100)
        axes.tick_params(length=0, labelcolor=INK)
        axes.grid(axis="y")
        axes.set_title(f"{_title(side, sequence)}, tested on {later}", loc="left")
        axes.set_ylabel("success rate (%)")

    entries: dict[str, Artist] = {
        SHORT[role]: line(COLORS[role], marker=MARKERS[place]) for place, role in enumerate(wanted)
    }
    entries |= {_THEIRS: _mark(), "without memory": line(GRAY, dashed=True)}
    return _panels("figure-4", sides, each, entries)


def _contrasts(sides: Sequence[Side], cast: Cast) -> str:
    """Draw storage granularity and retrieval timing by direction (Figure 8)."""
    pairs = [pair for pair in _CONTRASTS if set(pair) <= cast.keys()]

    def figure() -> Figure:
        made = Figure(figsize=(WIDTH, 0.5 + 2.4 * len(sides)), layout="constrained")
        axes: Any = made.subplots(len(sides), len(pairs), sharey=True, squeeze=False)
        for row, side in enumerate(sides):
            for column, pair in enumerate(pairs):
                _contrast(axes[row][column], side, cast, pair)
        found = dict.fromkeys(role for pair in pairs for role in pair)
        entries: dict[str, Artist] = {SHORT[role]: Patch(color=COLORS[role]) for role in found}
        legend(made, {**entries, _THEIRS: _mark()}, 4)
        return made

    return svg_text("figure-8", figure)


def _contrast(axes: Axes, side: Side, cast: Cast, pair: Sequence[Role]) -> None:
    sequences = side.sequences
    for place, sequence in enumerate(sequences):
        for shift, role in zip((-0.21, 0.21), pair, strict=True):
            row, printed = (
                side.row("forward", sequence, cast[role].name),
                side.forward(sequence, role),
            )
            if row is not None:
                bar(axes, place + shift, row.transfer, COLORS[role], 0.3)
            _published(axes, place + 1.95 * shift, None if printed is None else printed.transfer)
    title = f"{side.name}: {' and '.join(SHORT[role] for role in pair)}"
    finish_bars(axes, [each.replace(">", " → ") for each in sequences], title)
    axes.set_ylabel("FWT (pp)")


def _of_one(side: Side, cast: Cast) -> dict[str, str]:
    """Draw what has its own panels for each pair, with the figures of the pair's report."""
    made: dict[str, partial[Figure]] = {}
    playing = {condition.name for condition in cast.values()}
    retrievals = [cell for cell in side.analysis.retrievals if cell.key.condition in playing]
    alone = replace(side.analysis, retrievals=tuple(retrievals))
    if any(cell.spread("top1_share") is not None for cell in within_task(alone)):
        made[f"figure-11-{side.name}"] = partial(diversity_panels, alone)
    if any(curve.length for curve in side.analysis.curves):
        made[f"figure-12-{side.name}"] = partial(learning, side.analysis)
    if any(each.accuracy.estimate for each in side.analysis.milestones):
        made[f"figure-13-{side.name}"] = partial(retention_lines, side.analysis)
    return {name: svg_text(name, figure) for name, figure in made.items()}
