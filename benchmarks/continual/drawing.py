"""How a figure is drawn: one style, one palette, SVG text that fits into a page.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
Colors are those of Okabe and Ito, which color-blind readers can tell apart; gray is for what
has no memory. Text is drawn as paths, so that a figure looks alike everywhere.
"""

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GRAY = "#7a7f87"
INK = "#22262b"
BAND = "#e9ebee"
EASY, HARD = "#0E8A83", "#7B4EA3"
"""Baseline-success and baseline-fail items, as in the paper's figure 3."""

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
        draw().savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(buffer.getvalue(), name)


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
