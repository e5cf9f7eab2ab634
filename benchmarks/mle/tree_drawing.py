"""The picture of a search as numbers: where its programs stand, and in which color.

Templates draw it: a shape for what a program was written for, a color for its score. Colors go from
light (worst) to dark (best) through one sequence, so that they stay in order for color-blind readers
and in print: it is ColorBrewer's YlGnBu. A program that failed is white with an orange outline and a
cross at its corner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from langgraft.benchmarks.mle.tree_layout import tree_layout
from langgraft.benchmarks.mle.tree_view import TreeView
from langgraft.nodes.search.journal import Stage

RAMP: Final = ("#ffffcc", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84")
"""Worst to best."""
INK_FROM: Final = 0.5
"""The rank from which the step is written in white."""
HEXAGON: Final = ((-1.12, 0.0), (-0.56, -0.98), (0.56, -0.98), (1.12, 0.0), (0.56, 0.98), (-0.56, 0.98))  # fmt: skip
STAR: Final = (
    (0.0, -1.0), (0.235, -0.324), (0.951, -0.309), (0.38, 0.124), (0.588, 0.809),
    (0.0, 0.4), (-0.588, 0.809), (-0.38, 0.124), (-0.951, -0.309), (-0.235, -0.324),
)  # fmt: skip

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Scale:
    """How large things are drawn, in pixels."""

    column: float
    row: float
    radius: float
    letters: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A program in the picture."""

    position: int
    step: int
    stage: Stage
    told: str
    x: float
    y: float
    kind: str
    """`buggy`, `scored` or `plain`."""
    fill: str
    """Color of the score; empty: there is none."""
    dark: bool
    best: bool
    chosen: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """From a parent, or the task, to a program."""

    ends: tuple[float, float, float, float]
    lineage: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """A search as it is drawn."""

    width: float
    height: float
    scale: Scale
    task: Point
    edges: Sequence[Edge]
    """Those of the lineage last, so that they lie above."""
    marks: Sequence[Mark]


def picture_of(view: TreeView) -> Picture:
    """Lay out a search."""
    scale, places = scale_for(len(view.nodes)), tree_layout(view.parents)
    margin = scale.radius * 2.4
    top = margin + scale.row / 2
    points = [(margin + p.column * scale.column, top + p.row * scale.row) for p in places]
    width = max((place.column for place in places), default=0) * scale.column + 2 * margin
    height = max((place.row for place in places), default=0) * scale.row + margin + top
    roots = [x for (x, _), parent in zip(points, view.parents, strict=True) if parent is None]
    task = ((roots[0] + roots[-1]) / 2 if roots else margin, margin / 2)
    edges = [
        Edge((*(task if parent is None else points[parent]), *point), at in view.lineage)
        for at, (parent, point) in enumerate(zip(view.parents, points, strict=True))
    ]
    edges.sort(key=lambda edge: edge.lineage)
    marks = [_mark(view, position, point) for position, point in enumerate(points)]
    return Picture(width, height, scale, task, edges, marks)


def _mark(view: TreeView, position: int, point: Point) -> Mark:
    node, rank = view.nodes[position], view.rank(position)
    return Mark(
        position=position,
        step=node.step,
        stage=view.stages[position],
        told=view.told(position),
        x=point[0],
        y=point[1],
        kind="buggy" if node.is_buggy else "plain" if rank is None else "scored",
        fill="" if rank is None else color(rank),
        dark=rank is not None and rank > INK_FROM,
        best=position == view.best,
        chosen=position == view.chosen_position,
    )


def scale_for(programs: int) -> Scale:
    """Return the scale for a number of programs: at most a few screens, each node a target."""
    if programs <= 60:  # noqa: PLR2004
        return Scale(40, 54, 14, 11)
    if programs <= 200:  # noqa: PLR2004
        return Scale(30, 44, 11.5, 9)
    return Scale(25, 36, 10, 7.8)


def color(rank: float) -> str:
    """Return the color of a rank from 0 to 1."""
    place = rank * (len(RAMP) - 1)
    low = min(int(place), len(RAMP) - 2)
    ends = zip(_channels(RAMP[low]), _channels(RAMP[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - low)):02x}" for a, b in ends)


def _channels(text: str) -> Sequence[int]:
    return [int(text[at : at + 2], 16) for at in (1, 3, 5)]


def px(value: float) -> str:
    """Write a length in pixels."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def corners(shape: Sequence[Point], x: float, y: float, radius: float) -> str:
    """Write the corners of a shape around a point."""
    return " ".join(f"{px(x + radius * right)},{px(y + radius * down)}" for right, down in shape)
