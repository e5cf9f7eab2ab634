"""What the figures of the study share: colors of conditions, panels, and bands.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from langgraft.benchmarks.continual.drawing import GRAY, INK, PALETTE, WIDTH
from langgraft.benchmarks.mle.searches import Searches
from langgraft.benchmarks.mle.spreads import Spread

ABREAST: Final = 3
"""Panels that fit side by side."""

_CONTROLS: Final = ("#b9a27a", "#6b4f2a", "#d8c7a4", "#93803f")
"""Earth, for what is no memory."""


def colors(searches: Searches) -> dict[str, str]:
    """Return the color of each condition: gray without memory, earth for controls."""
    controls = [name for name in searches.conditions if name in searches.roles.controls]
    found = dict(zip(controls, cycle(_CONTROLS), strict=False))
    found |= dict(zip(searches.memories, cycle(PALETTE), strict=False))
    return found | {searches.baseline: GRAY}


def dashed(searches: Searches, condition: str) -> bool:
    """Say whether a condition is drawn with a dashed line: all that is no memory."""
    return condition not in searches.memories


def plain(text: str) -> str:
    """Return a text that every font can draw, of a length that fits."""
    shown = text.encode("ascii", "backslashreplace").decode()
    shown = "".join(each if each.isprintable() else "?" for each in shown)
    return shown if len(shown) <= 32 else f"{shown[:29]}..."  # noqa: PLR2004  (a figure's room)


def panels(rows: int, columns: int, height: float) -> tuple[Figure, list[list[Axes]]]:
    """Make panels in rows and columns; columns beyond `ABREAST` go on below."""
    blocks = -(-columns // ABREAST)
    abreast = min(columns, ABREAST)
    figure = Figure(figsize=(WIDTH, 0.5 + height * rows * blocks), layout="constrained")
    grid = figure.subplots(rows * blocks, abreast, squeeze=False)
    made = [
        [grid[(column // ABREAST) * rows + row][column % ABREAST] for column in range(columns)]
        for row in range(rows)
    ]
    for unused in range(columns, blocks * abreast):
        for row in range(rows):
            grid[(unused // ABREAST) * rows + row][unused % ABREAST].set_visible(False)
    return figure, made


def band(axes: Axes, points: Sequence[Spread | None], color: str, *, broken: bool) -> None:
    """Draw a mean over the steps with one standard error to either side."""
    known = [(step, point) for step, point in enumerate(points) if point is not None]
    steps = [step for step, _ in known]
    means = [point.mean for _, point in known]
    errors = [point.sem or 0.0 for _, point in known]
    style = (0, (4, 2)) if broken else "-"
    axes.plot(steps, means, color=color, lw=1.8, linestyle=style, marker="o", ms=2.2)
    low = [mean - error for mean, error in zip(means, errors, strict=True)]
    high = [mean + error for mean, error in zip(means, errors, strict=True)]
    axes.fill_between(steps, low, high, color=color, alpha=0.15, lw=0)


def legend(figure: Figure, searches: Searches) -> None:
    """Name the conditions above a figure."""
    palette = colors(searches)
    lines = [
        Line2D(
            [], [], color=palette[name], lw=2.2, linestyle="--" if dashed(searches, name) else "-"
        )
        for name in searches.conditions
    ]
    names = [plain(name) for name in searches.conditions]
    figure.legend(lines, names, loc="outside upper left", ncols=6, fontsize=8.5)


def finish(axes: Axes) -> None:
    """Give a panel its grid and quiet ticks."""
    axes.grid(axis="y")
    axes.tick_params(length=0, labelcolor=INK)
