"""The picture of a search: what it shows of a journal, where its programs stand, and in which color.

Templates draw it: a shape for what a program was written for, a color for its score. Colors go from
light (worst) to dark (best) through one sequence, so that they stay in order for color-blind readers
and in print: it is ColorBrewer's YlGnBu. A program that failed is white with an orange outline and a
cross at its corner.

The layout's rules are those of Reingold and Tilford (1981, *Tidier Drawings of Trees*): a row for each
depth, brothers in their order, parents above the middle of their children, no two closer than one
unit, and subtrees moved together until they touch.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from langgraft._core.errors import InputError
from langgraft.nodes.search.journal import Journal, JournalNode, Stage

RAMP: Final = ("#ffffcc", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84")
"""Worst to best."""
INK_FROM: Final = 0.5
"""The rank from which the step is written in white."""
HEXAGON: Final = ((-1.12, 0.0), (-0.56, -0.98), (0.56, -0.98), (1.12, 0.0), (0.56, 0.98), (-0.56, 0.98))  # fmt: skip
DIAMOND: Final = ((0.0, -1.22), (1.22, 0.0), (0.0, 1.22), (-1.22, 0.0))
STAR: Final = (
    (0.0, -1.0), (0.235, -0.324), (0.951, -0.309), (0.38, 0.124), (0.588, 0.809),
    (0.0, 0.4), (-0.588, 0.809), (-0.38, 0.124), (-0.951, -0.309), (-0.235, -0.324),
)  # fmt: skip

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class TreeView:
    """A journal as it is drawn; programs are named by their position in it.

    Raises:
        InputError: No program of the journal has the id `chosen`.
    """

    journal: Journal
    lower_is_better: bool | None = None
    """The metric's direction; `None`: not known, so that none is best."""
    chosen: str = ""
    """Id of the program whose submission was handed in; empty: none was, or it is not known."""

    def __post_init__(self) -> None:
        if self.chosen and self.chosen not in self._positions:
            msg = f"run {self.journal.run!r:.80} has no program {self.chosen!r:.80} to be the chosen one"
            raise InputError(msg)

    @property
    def nodes(self) -> Sequence[JournalNode]:
        """The programs in the order of their steps."""
        return self.journal.nodes

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return {node.id: position for position, node in enumerate(self.nodes)}

    @cached_property
    def parents(self) -> Sequence[int | None]:
        """The parent of each program."""
        return [
            None if node.parent_id is None else self._positions[node.parent_id]
            for node in self.nodes
        ]

    @cached_property
    def partners(self) -> Sequence[int | None]:
        """The second parent of each program: of a merge."""
        return [
            None if node.partner_id is None else self._positions[node.partner_id]
            for node in self.nodes
        ]

    @cached_property
    def children(self) -> Sequence[Sequence[int]]:
        """The children of each program, in the order of their steps."""
        below: list[list[int]] = [[] for _ in self.nodes]
        for position, parent in enumerate(self.parents):
            if parent is not None:
                below[parent].append(position)
        return below

    @cached_property
    def stages(self) -> Sequence[Stage]:
        """What each program was written for."""
        return [self.journal.stage(node) for node in self.nodes]

    def score(self, position: int) -> float | None:
        """Return the metric of a program that ran, if it is a finite number."""
        node = self.nodes[position]
        scored = not node.is_buggy and node.metric is not None and math.isfinite(node.metric)
        return node.metric if scored else None

    @cached_property
    def ordered(self) -> Sequence[float]:
        """All different metrics, worst first; without a direction, lowest first."""
        scores = {self.score(position) for position in range(len(self.nodes))} - {None}
        known = sorted(score for score in scores if score is not None)
        return known[::-1] if self.lower_is_better else known

    def rank(self, position: int) -> float | None:
        """Return the rank of a metric among the different ones, from 0 (worst) to 1 (best).

        By rank, not by value: one metric far off would make all others alike.
        """
        score = self.score(position)
        if score is None:
            return None
        return self._ranks[score]

    @cached_property
    def _ranks(self) -> Mapping[float, float]:
        last = len(self.ordered) - 1
        return {score: place / last if last else 1.0 for place, score in enumerate(self.ordered)}

    @cached_property
    def best(self) -> int | None:
        """The program with the best metric, of equal ones the first; `None`: there is none."""
        if self.lower_is_better is None or not self.ordered:
            return None
        goal = self.ordered[-1]
        return next(p for p in range(len(self.nodes)) if self.score(p) == goal)

    @cached_property
    def chosen_position(self) -> int | None:
        """The chosen program."""
        return self._positions[self.chosen] if self.chosen else None

    @cached_property
    def lineage(self) -> frozenset[int]:
        """The chosen program, or else the best one, and those that it descends from."""
        line: set[int] = set()
        left = [self.best if self.chosen_position is None else self.chosen_position]
        while left:
            position = left.pop()
            if position is not None and position not in line:
                line.add(position)
                left += [self.parents[position], self.partners[position]]
        return frozenset(line)

    def told(self, position: int) -> str:
        """Say in a line what a program is and how it went."""
        node, score = self.nodes[position], self.score(position)
        words = [f"Step {node.step}", self.stages[position], "failed" if node.is_buggy else "ran"]
        if node.is_buggy and (node.exc_type or node.reasons):
            words[-1] += f": {node.exc_type or node.reasons[0]}"
        if score is not None:
            words.append(f"metric {number(score)}")
        words += ["best metric"] * (position == self.best)
        words += ["chosen"] * (position == self.chosen_position)
        return ", ".join(words)


def number(value: float) -> str:
    """Write a metric with six digits that count."""
    return f"{value:.6g}"


# The picture ---------------------------------------------------------------------------------


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
    partner: bool = False
    """Whether it comes from the second parent of a merge."""


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
    edges += [
        Edge((*points[partner], *points[at]), at in view.lineage, partner=True)
        for at, partner in enumerate(view.partners)
        if partner is not None
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


# Where programs stand --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands; columns are the least distance of two nodes of a row."""

    column: float
    """From 0, the leftmost."""
    row: int
    """Depth: 0 for a root."""


@dataclass(slots=True)
class _Outline:
    """The left and right edge of a subtree, deepest row first, measured from its root."""

    left: list[float]
    right: list[float]


def tree_layout(parents: Sequence[int | None]) -> list[Place]:
    """Lay out trees beside one another, as if they had a common parent.

    Args:
        parents: The parent of each node, by its position in this sequence; `None` for a root.
            Parents stand before their children, and brothers in the order in which they are drawn.

    Raises:
        ValueError: A parent does not stand before its child.
    """
    children: list[list[int]] = [[] for _ in parents]
    roots: list[int] = []
    for node, parent in enumerate(parents):
        if parent is not None and not 0 <= parent < node:
            msg = f"node {node} has the parent {parent}, which does not stand before it"
            raise ValueError(msg)
        (roots if parent is None else children[parent]).append(node)
    offsets = [0.0] * len(parents)
    """How far each node stands right of its parent."""
    outlines: dict[int, _Outline] = {}
    for node in reversed(range(len(parents))):
        below = _together(children[node], offsets, outlines)
        below.left.append(0.0)
        below.right.append(0.0)
        outlines[node] = below
    whole = _together(roots, offsets, outlines)
    return _places(parents, offsets, -min(whole.left, default=0.0))


def _together(
    brothers: Sequence[int], offsets: list[float], outlines: dict[int, _Outline]
) -> _Outline:
    """Move subtrees together; set how far each root stands from their middle."""
    joined = _Outline([], [])
    at: list[float] = []
    for brother in brothers:
        added = outlines.pop(brother)
        at.append(_beside(joined, added))
        joined = _joined(joined, added, at[-1])
    middle = (at[0] + at[-1]) / 2 if at else 0.0
    for brother, column in zip(brothers, at, strict=True):
        offsets[brother] = column - middle
    return _Outline([x - middle for x in joined.left], [x - middle for x in joined.right])


def _beside(joined: _Outline, added: _Outline) -> float:
    """Return how far right a subtree has to stand to touch those before it and cross none."""
    shared = min(len(joined.right), len(added.left))
    if not shared:
        return 0.0
    rows = zip(joined.right[-shared:], added.left[-shared:], strict=True)
    return max(right - left for right, left in rows) + 1


def _joined(joined: _Outline, added: _Outline, column: float) -> _Outline:
    """Return the outline of both; the deeper one alone shows its lowest rows."""
    left, right = [x + column for x in added.left], [x + column for x in added.right]
    deeper = max(0, len(left) - len(joined.left))
    shared = max(0, len(joined.right) - len(right))
    return _Outline(left[:deeper] + joined.left, joined.right[:shared] + right)


def _places(parents: Sequence[int | None], offsets: Sequence[float], origin: float) -> list[Place]:
    places: list[Place] = []
    for parent, offset in zip(parents, offsets, strict=True):
        above = Place(origin, -1) if parent is None else places[parent]
        # Rounded: a page is equal wherever it is written.
        places.append(Place(round(above.column + offset, 6), above.row + 1))
    return places
