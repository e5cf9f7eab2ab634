"""How figures are drawn: one style, one palette, panels that wrap, SVG text that fits into a page.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
Colors are those of Okabe and Ito, which color-blind readers can tell apart; gray is for what
has no memory. Text is drawn as paths, so that a figure looks alike everywhere.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from langgraft.benchmarks.comparison.contrasts import Comparison, Contrast
from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.verdicts import EQUIVALENCE
from langgraft.benchmarks.reporting.words import interval, signed

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GRAY = "#7a7f87"
INK = "#22262b"
BAND = "#e9ebee"
ZERO = "#8b9199"
"""Of the line at no difference."""
DASHES = (0, (4, 2))

WIDTH = 9.2
"""Inches; at 96 px an inch a little less than the text column of the report."""

_STYLE: dict[str, Any] = {
    "svg.fonttype": "path",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": "#b8bdc4",
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": "#555b63",
    "ytick.color": "#555b63",
    "grid.color": "#eceef1",
    "legend.frameon": False,
}


def svg_text(name: str, draw: Callable[[], Figure]) -> str:
    """Draw a figure under our style, whatever the user's is, and return it as SVG."""
    with mpl.rc_context():
        mpl.rcdefaults()
        style: Any = {**_STYLE, "svg.hashsalt": name}
        mpl.rcParams.update(style)
        buffer = io.StringIO()
        figure = draw()
        _arrange(figure)
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(buffer.getvalue(), name)


def _arrange(figure: Figure) -> None:
    """Lay a figure out; `savefig` would draw all of it for that, and throw the drawing away."""
    FigureCanvasSVG(figure)  # texts are as large as the file will have them
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)


def _inline(svg: str, name: str) -> str:
    """Make an SVG file fit into a page: no prolog, ids of its own, width of the column."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = body.replace("url(#", f"url(#{name}-")
    width = re.search(r'width="([\d.]+)pt"', body)
    points = float(width.group(1)) if width else WIDTH * 72
    head = f'<svg role="img" aria-hidden="true" style="width:{points * 96 / 72:.0f}px" '
    body = re.sub(r'\s(?:width|height)="[\d.]+pt"', "", body, count=2)
    return head + body.removeprefix("<svg ")


def shades(names: Sequence[str], palette: Sequence[str] = PALETTE) -> dict[str, str]:
    """Return a color for each name, in their order; where colors run out they come round again."""
    return dict(zip(names, cycle(palette), strict=False))


def drawable(text: str) -> str:
    """Return a text from outside in signs that every font has, of a length that fits."""
    shown = text.encode("ascii", "backslashreplace").decode()
    shown = "".join(each if each.isprintable() else "?" for each in shown)
    return shown if len(shown) <= 32 else f"{shown[:29]}..."  # noqa: PLR2004  (a figure's room)


class Grid:
    """Panels in rows and columns; columns that do not fit side by side go on below.

    Args:
        rows: What there is for each column.
        columns: What is compared.
        abreast: How many columns fit side by side.
        height: Of a panel, in inches.
        margin: Height of what is above and below the panels.
        shared: Whether all panels have the same axes, `sharex` and `sharey`.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        *,
        abreast: int,
        height: float,
        margin: float = 0.5,
        **shared: Any,
    ) -> None:
        self.rows, self.abreast = rows, min(max(columns, 1), abreast)
        blocks = -(-max(columns, 1) // self.abreast)
        inches = margin + height * rows * blocks
        self.figure = Figure(figsize=(WIDTH, inches), layout="constrained")
        self._axes: Any = self.figure.subplots(rows * blocks, self.abreast, squeeze=False, **shared)
        for unused in range(columns, blocks * self.abreast):
            for row in range(rows):
                self.panel(row, unused).set_visible(False)

    def panel(self, row: int, column: int) -> Axes:
        """Return a panel."""
        block, place = divmod(column, self.abreast)
        panel: Axes = self._axes[block * self.rows + row][place]
        return panel


def chart(height: float) -> tuple[Figure, Axes]:
    """Return a figure of one panel as wide as the page; `height` in inches."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def finish_rows(axes: Axes, names: Sequence[str], label: str = "") -> None:
    """Name the rows of a panel whose values go from left to right."""
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.set_xlabel(label)


def line(color: str, *, dashed: bool = False, marker: str = "", width: float = 1.7) -> Line2D:
    """Return a line for a legend."""
    style = DASHES if dashed else "-"
    return Line2D([], [], color=color, ls=style, lw=width, marker=marker, ms=4)


def legend(
    figure: Figure, entries: Mapping[str, Artist], columns: int, *, side: str = "right"
) -> None:
    """Put a legend above all panels."""
    place: Any = f"outside upper {side}"
    figure.legend(
        list(entries.values()),
        list(entries),
        loc=place,
        ncols=columns,
        fontsize=8.5,
    )


def ends(difference: Estimate) -> tuple[float, float]:
    """Return the ends of a difference's interval, in points."""
    return 100 * difference.low, 100 * difference.high


def forest(found: Comparison, palette: Mapping[str, str]) -> Figure:
    """Draw each condition's difference against no memory, with the margin of equivalence.

    What is held to equivalence has the interval that this goes by, of 90 %; all else has that of 95 %.
    """
    rows = [c for c in (*found.family, *found.beside) if c.estimate is not None]
    figure, axes = chart(0.8 + 0.34 * max(len(rows), 1))
    margin = 100 * found.margin
    axes.axvspan(-margin, margin, color=BAND, lw=0, label="margin of equivalence")
    axes.axvline(0, color=ZERO, lw=1)
    for place, contrast in enumerate(rows):
        held = contrast.inert and contrast not in found.family
        _forest_row(axes, place, contrast, palette[contrast.condition], held=held)
    label = "difference in success rate against no memory (percentage points)"
    finish_rows(axes, [contrast.condition for contrast in rows], label)
    figure.legend(loc="outside upper right", fontsize=8)
    return figure


def _forest_row(axes: Axes, place: int, contrast: Contrast, color: str, *, held: bool) -> None:
    estimate = contrast.estimate
    assert estimate is not None
    if held:
        low, high = estimate.interval(EQUIVALENCE)
        estimate = replace(estimate, low=max(low, -1.0), high=min(high, 1.0))
    axes.plot(ends(estimate), [place, place], color=color, lw=2.2, solid_capstyle="butt")
    hollow = contrast.verdict == "incomplete"
    face = "white" if hollow else color
    axes.plot([100 * estimate.value], [place], "o", ms=7, mec=color, mfc=face, mew=1.6)
    text = f"{signed(estimate.value)}  {interval(estimate)}{'  90 %' if held else ''}"
    axes.annotate(
        text + ("  incomplete" if hollow else ""),
        (1.01, place),
        xycoords=("axes fraction", "data"),
        va="center",
        color=INK,
        fontsize=8.5,
    )
