"""The figures of an agent's runs, as SVG text that is the same for the same numbers.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from langgraft.benchmarks.comparison.measures import Level
from langgraft.benchmarks.comparison.outcomes import Spread
from langgraft.benchmarks.mle.analysis import Analysis
from langgraft.benchmarks.mle.outcomes import most_common
from langgraft.benchmarks.mle.searches import RUNS, TREE, Kind, Searches
from langgraft.benchmarks.reporting.drawing import (
    DASHES,
    GRAY,
    INK,
    WIDTH,
    ZERO,
    Grid,
    chart,
    drawable,
    finish_rows,
    legend,
    line,
    shades,
    svg_text,
)

ABREAST: Final = 3
"""Panels that fit side by side."""
_EARTH: Final = ("#b9a27a", "#6b4f2a", "#d8c7a4", "#93803f")
"""For controls: what is no memory."""

MOST_PACKAGES: Final = 12
"""Packages that are drawn: those that most valid programs import."""

_DRAWN: Final[Mapping[Kind, tuple[str, str]]] = {
    "tree": ("bug_rate", "first_valid"),
    "chain": ("bug_rate", "late_errors"),
    "mlab": ("bug_rate", "late_errors"),
}
"""Measures whose differences are drawn."""

_DIVERSITY: Final[Mapping[Kind, tuple[str, str]]] = {
    "tree": ("packages", "operators"),
    "chain": ("tools", "commands"),
    "mlab": ("tools", "operators"),
}
"""Effective numbers that are drawn."""


def draw(analysis: Analysis, prefix: str = "") -> dict[str, str]:
    """Return the figures as SVG by name: those there is something to draw for.

    Args:
        analysis: Of one agent.
        prefix: Before each name, so that figures of several agents are told apart.
    """
    if not analysis.searches.done:
        return {}
    made: dict[str, Callable[[Analysis], Figure]] = {
        "progress": _progress,
        "first-valid": _first_valid,
        "diversity": _diversity,
    }
    if any(each.packages for each in analysis.used):
        made["packages"] = _packages
    if any(each.estimate for each in analysis.contrasts):
        made["differences"] = _differences
    return {
        f"{prefix}{name}": svg_text(f"{prefix}{name}", partial(figure, analysis))
        for name, figure in made.items()
    }


def _colors(searches: Searches) -> dict[str, str]:
    """Return the color of each condition: gray without memory, earth for controls."""
    controls = [name for name in searches.conditions if name in searches.roles.controls]
    return shades(controls, _EARTH) | shades(searches.memories) | {searches.baseline: GRAY}


def _dashed(searches: Searches, condition: str) -> bool:
    """Say whether a condition is drawn with a dashed line: all that is no memory."""
    return condition not in searches.memories


def _legend(figure: Figure, searches: Searches) -> None:
    """Name the conditions above a figure."""
    palette = _colors(searches)
    entries: dict[str, Artist] = {
        drawable(name): line(palette[name], dashed=_dashed(searches, name), width=2.2)
        for name in searches.conditions
    }
    legend(figure, entries, 6, side="left")


def _progress(analysis: Analysis) -> Figure:
    """Draw bugs and best metric so far, a column per metric group (Figure 3)."""
    searches = analysis.searches
    palette, groups = _colors(searches), searches.metric_groups
    grid = Grid(2, len(groups), abreast=ABREAST, height=2.0)
    for curve in analysis.curves:
        axes = grid.panel(0 if curve.what == "bugs" else 1, groups.index(curve.metric_group))
        broken = _dashed(searches, curve.condition)
        _band(axes, curve.points, palette[curve.condition], broken=broken)
    for column, group in enumerate(groups):
        for row in range(2):
            panel = grid.panel(row, column)
            panel.grid(axis="y")
            panel.tick_params(length=0, labelcolor=INK)
            panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        grid.panel(0, column).set_title(drawable(group), loc="left")
        grid.panel(1, column).set_xlabel("step")
    grid.panel(0, 0).set_ylabel("bugs so far")
    grid.panel(1, 0).set_ylabel("best metric so far")
    _legend(grid.figure, searches)
    return grid.figure


def _band(axes: Axes, points: Sequence[Spread | None], color: str, *, broken: bool) -> None:
    """Draw a mean over the steps with one standard error to either side."""
    known = [(step, point) for step, point in enumerate(points) if point is not None]
    steps = [step for step, _ in known]
    style = DASHES if broken else "-"
    means = [point.mean for _, point in known]
    axes.plot(steps, means, color=color, lw=1.8, linestyle=style, marker="o", ms=2.2)
    low = [point.mean - (point.sem or 0.0) for _, point in known]
    high = [point.mean + (point.sem or 0.0) for _, point in known]
    axes.fill_between(steps, low, high, color=color, alpha=0.15, lw=0)


def _first_valid(analysis: Analysis) -> Figure:
    """Draw the first valid step of every run; hollow where there is none."""
    figure, axes = chart(0.9 + 0.42 * len(analysis.searches.conditions))
    palette = _colors(analysis.searches)
    for place, level in enumerate(analysis.measured["first_valid"].levels):
        color = palette[level.condition]
        _dots(axes, place, analysis, level.condition, color)
        _mean(axes, place, level, color)
    what = "program" if analysis.searches.kind == TREE else "metric"
    _rows(axes, analysis, f"step of the first valid {what}, from 0; hollow: none until the end")
    return figure


def _dots(axes: Axes, place: int, analysis: Analysis, condition: str, color: str) -> None:
    runs = analysis.searches.of(condition)
    for rank, run in enumerate(sorted(runs, key=lambda run: (run.competition, run.seed))):
        first = run.behavior.first_valid
        y = place - 0.24 + 0.12 * (rank % 5) / 4
        face = "white" if first.censored else color
        axes.plot([first.step], [y], "o", ms=4.5, mec=color, mfc=face, mew=1.0, alpha=0.75)


def _mean(axes: Axes, place: float, level: Level, color: str) -> None:
    """Draw a mean with its interval below the dots of its row."""
    estimate = level.estimate
    if estimate is None:
        return
    scale, y = level.measure.scale, place + 0.12
    axes.plot([scale * estimate.low, scale * estimate.high], [y, y], color=INK, lw=1.4)
    axes.plot([scale * estimate.value], [y], "D", ms=5.5, mec=INK, mfc=color)


def _rows(axes: Axes, analysis: Analysis, label: str) -> None:
    """Name the conditions of a figure with a row each."""
    finish_rows(axes, list(map(drawable, analysis.searches.conditions)), label)


def _diversity(analysis: Analysis) -> Figure:
    """Draw two effective numbers of every run, with the mean."""
    rows = len(analysis.searches.conditions)
    figure = Figure(figsize=(WIDTH, 1.0 + 0.42 * rows), layout="constrained")
    shown, run = _DIVERSITY[analysis.searches.kind], RUNS[analysis.searches.kind][0]
    for axes, name in zip(figure.subplots(1, 2, sharey=True), shown, strict=True):
        palette = _colors(analysis.searches)
        measured = analysis.measured[name]
        for place, level in enumerate(measured.levels):
            found = measured.values[level.condition]
            values = [value for _, value in sorted(found.items()) if value is not None]
            rise = [place - 0.24 + 0.12 * (rank % 5) / 4 for rank in range(len(values))]
            axes.plot(values, rise, "o", ms=4.5, color=palette[level.condition], alpha=0.6)
            _mean(axes, place, level, palette[level.condition])
        _rows(axes, analysis, f"effective number of {name}, pooled over a {run}")
        low, high = _span(analysis, name)
        axes.set_xlim(low, high)
    return figure


def _span(analysis: Analysis, name: str) -> tuple[float, float]:
    """Return the span of the values themselves: intervals may reach far beyond."""
    values = [
        value
        for found in analysis.measured[name].values.values()
        for value in found.values()
        if value is not None
    ] or [0.0, 1.0]
    margin = max(0.3 * (max(values) - min(values)), 0.5)
    high = max(values) + margin
    return max(-0.03 * high, min(values) - margin), high


def _packages(analysis: Analysis) -> Figure:
    """Draw the share of valid programs that import a package, a bar per condition."""
    names = most_common((each.packages for each in analysis.used), MOST_PACKAGES)
    searches = analysis.searches
    used = [each for each in analysis.used if each.valid]
    palette, width = _colors(searches), 0.8 / max(len(used), 1)
    height = 0.9 + 0.07 * len(names) * max(len(used), 3)
    figure, axes = chart(height)
    for rank, each in enumerate(used):
        places = [row - 0.4 + (rank + 0.5) * width for row in range(len(names))]
        shares = [100 * each.packages[name] / each.valid for name in names]
        axes.barh(places, shares, width * 0.9, color=palette[each.condition])
    what = "valid programs" if searches.kind == TREE else "successful executions"
    finish_rows(axes, list(map(drawable, names)), f"{what} that import it (%)")
    axes.set_xlim(0, 100)
    _legend(figure, searches)
    return figure


def _differences(analysis: Analysis) -> Figure:
    """Draw two measures of every condition against no memory."""
    names, drawn = analysis.searches.compared, _DRAWN[analysis.searches.kind]
    figure = Figure(figsize=(WIDTH, 1.1 + 0.46 * len(names)), layout="constrained")
    palette = _colors(analysis.searches)
    for axes, name in zip(figure.subplots(1, len(drawn), sharey=True), drawn, strict=True):
        axes.axvline(0, color=ZERO, lw=1)
        for place, condition in enumerate(names):
            _difference(axes, place, analysis, (condition, name), palette[condition])
        measure = analysis.contrast(names[0], name).measure
        unit = "points" if measure.unit == "%" else measure.unit
        finish_rows(axes, list(map(drawable, names)), f"{measure.label}: change ({unit})")
    return figure


def _difference(
    axes: Axes, place: int, analysis: Analysis, key: tuple[str, str], color: str
) -> None:
    """Draw both intervals of a difference: a thin one for all, a thick one for these tasks."""
    found = analysis.contrast(*key)
    scale, estimate = found.measure.scale, found.estimate
    if estimate is None:
        return
    face = color if found.complete else "white"
    _bar(axes, place, (scale * estimate.low, scale * estimate.high), color, 1.2)
    if found.same_items is not None:
        ends = (scale * found.same_items.low, scale * found.same_items.high)
        _bar(axes, place, ends, color, 4.5)
    axes.plot([scale * estimate.value], [place], "o", ms=7, mec=INK, mfc=face, mew=1.0)


def _bar(axes: Axes, place: int, ends: Sequence[float], color: str, width: float) -> None:
    axes.plot(list(ends), [place, place], color=color, lw=width, solid_capstyle="butt")
