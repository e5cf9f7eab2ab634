"""The picture of a search: a shape for what a program was written for, a color for its score.

Colors go from light (worst) to dark (best) through one sequence, so that they stay in order for
color-blind readers and in print: it is ColorBrewer's YlGnBu. A program that failed is white with an
orange outline and a cross at its corner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.mle.markup import Markup, classed, joined, tag
from langgraft.benchmarks.mle.tree_layout import tree_layout
from langgraft.benchmarks.mle.tree_view import TreeView, number
from langgraft.nodes.search.journal import Stage

RAMP: Final = ("#ffffcc", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84")
"""Worst to best."""
INK_FROM: Final = 0.5
"""The rank from which the step is written in white."""
BAR: Final = (180, 12)


@dataclass(frozen=True, slots=True)
class Scale:
    """How large things are drawn, in pixels."""

    column: float
    row: float
    radius: float
    letters: float


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


def draw_tree(view: TreeView) -> tuple[Markup, str]:
    """Return the picture of a search, and the style that only this picture has."""
    scale = scale_for(len(view.nodes))
    places = tree_layout(view.parents)
    margin = scale.radius * 2.4
    width = max((place.column for place in places), default=0) * scale.column + 2 * margin
    height = (
        max((place.row for place in places), default=0) * scale.row + 2 * margin + scale.row / 2
    )
    points = [
        (margin + place.column * scale.column, margin + scale.row / 2 + place.row * scale.row)
        for place in places
    ]
    roots = [point for point, parent in zip(points, view.parents, strict=True) if parent is None]
    task = ((roots[0][0] + roots[-1][0]) / 2, margin / 2) if roots else (margin, margin / 2)
    attributes = {
        "viewBox": f"0 0 {_px(width)} {_px(height)}",
        "role": "group",
        "aria-label": f"Tree of {len(view.nodes)} programs",
    }
    drawn = tag(
        "svg",
        *_edges(view, points, task),
        tag("circle", attributes=_circle(task, 3.5) | {"class": "task"}),
        *(_node(view, position, points[position], scale) for position in range(len(points))),
        attributes=attributes,
    )
    style = (
        f".tree svg {{ width: {_px(width)}px; }}\n.step {{ font-size: {_px(scale.letters)}px; }}\n"
    )
    return drawn, style


def _px(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _circle(point: tuple[float, float], radius: float) -> dict[str, str]:
    return {"cx": _px(point[0]), "cy": _px(point[1]), "r": _px(radius)}


def _edges(
    view: TreeView, points: Sequence[tuple[float, float]], task: tuple[float, float]
) -> list[Markup]:
    """Draw the lines; those of the lineage last, so that they lie above."""
    drawn: list[tuple[bool, Markup]] = []
    for position, parent in enumerate(view.parents):
        start, end = task if parent is None else points[parent], points[position]
        middle = _px((start[1] + end[1]) / 2)
        path = (
            f"M{_px(start[0])} {_px(start[1])}C{_px(start[0])} {middle}"
            f" {_px(end[0])} {middle} {_px(end[0])} {_px(end[1])}"
        )
        ours = position in view.lineage
        css = "edge line" if ours else "edge"
        drawn.append((ours, tag("path", attributes={"class": css, "d": path})))
    return [edge for _, edge in sorted(drawn, key=lambda pair: pair[0])]


def _node(view: TreeView, position: int, point: tuple[float, float], scale: Scale) -> Markup:
    node, stage = view.nodes[position], view.stages[position]
    rank = view.rank(position)
    parts = []
    if position == view.chosen_position:
        parts.append(
            tag("circle", attributes={"class": "ring", **_circle(point, scale.radius * 1.5)})
        )
    parts.append(_shape(stage, point, scale.radius, _kind(view, position), rank))
    parts.append(_step(node.step, point, dark=rank is not None and rank > INK_FROM))
    if node.is_buggy:
        parts.append(_cross(point, scale.radius))
    if position == view.best:
        parts.append(_star((point[0], point[1] - scale.radius * 1.65), scale.radius * 0.62))
    return tag(
        "a",
        tag("title", told(view, position)),
        *parts,
        attributes={"href": f"#n{position}", "id": f"m{position}"},
    )


def _kind(view: TreeView, position: int) -> str:
    if view.nodes[position].is_buggy:
        return "buggy"
    return "scored" if view.score(position) is not None else "plain"


def told(view: TreeView, position: int) -> str:
    """Say in a line what a program is and how it went."""
    node = view.nodes[position]
    score = view.score(position)
    how = "failed" if node.is_buggy else "ran"
    words = [f"Step {node.step}", view.stages[position], how]
    if node.is_buggy and (node.exc_type or node.reasons):
        words[-1] += f": {node.exc_type or node.reasons[0]}"
    if score is not None:
        words.append(f"metric {number(score)}")
    words += ["best metric"] * (position == view.best)
    words += ["chosen"] * (position == view.chosen_position)
    return ", ".join(words)


def _shape(
    stage: Stage, point: tuple[float, float], radius: float, kind: str, rank: float | None
) -> Markup:
    """Draw a circle for a draft, a square for a repair, a hexagon for an improvement."""
    look = {"class": f"node {kind}"} | ({} if rank is None else {"fill": color(rank)})
    x, y = point
    if stage == "draft":
        return tag("circle", attributes=look | _circle(point, radius))
    if stage == "debug":
        side = radius * 1.76
        corner = {"x": _px(x - side / 2), "y": _px(y - side / 2), "rx": "1.5"}
        size = {"width": _px(side), "height": _px(side)}
        return tag("rect", attributes=look | corner | size)
    across, up, half = radius * 1.12, radius * 0.98, radius * 0.56
    corners = [(-across, 0.0), (-half, -up), (half, -up), (across, 0.0), (half, up), (-half, up)]
    return tag("polygon", attributes=look | {"points": _points(corners, point)})


def _points(corners: Sequence[tuple[float, float]], point: tuple[float, float]) -> str:
    return " ".join(f"{_px(point[0] + x)},{_px(point[1] + y)}" for x, y in corners)


def _cross(point: tuple[float, float], radius: float) -> Markup:
    """Draw a cross at the upper right corner, where it leaves the step legible."""
    x, y = point[0] + radius * 0.86, point[1] - radius * 0.86
    arm = radius * 0.32
    path = (
        f"M{_px(x - arm)} {_px(y - arm)}L{_px(x + arm)} {_px(y + arm)}"
        f"M{_px(x + arm)} {_px(y - arm)}L{_px(x - arm)} {_px(y + arm)}"
    )
    halo = tag("path", attributes={"class": "halo", "d": path})
    return joined([halo, tag("path", attributes={"class": "cross", "d": path})])


def _step(step: int, point: tuple[float, float], *, dark: bool) -> Markup:
    place = {"x": _px(point[0]), "y": _px(point[1]), "class": "step on-dark" if dark else "step"}
    return tag("text", str(step), attributes=place)


_STAR: Final = (
    (0.0, -1.0), (0.235, -0.324), (0.951, -0.309), (0.38, 0.124), (0.588, 0.809),
    (0.0, 0.4), (-0.588, 0.809), (-0.38, 0.124), (-0.951, -0.309), (-0.235, -0.324),
)  # fmt: skip


def _star(point: tuple[float, float], radius: float) -> Markup:
    corners = [(x * radius, y * radius) for x, y in _STAR]
    return tag("polygon", attributes={"class": "star", "points": _points(corners, point)})


# The legend -------------------------------------------------------------------------------


def draw_legend(view: TreeView) -> Markup:
    """Return what shapes and colors mean."""
    shapes: tuple[Stage, ...] = ("draft", "debug", "improve")
    keys = [_key(stage, _shape(stage, (11, 11), 8, "plain", None)) for stage in shapes]
    failed = joined([_shape("draft", (10, 12), 8, "buggy", None), _cross((10, 12), 9)])
    keys.append(_key("failed, in any shape", failed))
    if view.best is not None:
        keys.append(_key("best metric", _star((11, 11), 8)))
    if view.chosen_position is not None:
        ring = tag("circle", attributes={"class": "ring", **_circle((11, 11), 9)})
        keys.append(_key("chosen", joined([ring, _shape("draft", (11, 11), 5, "plain", None)])))
    return classed("div", "legend", *keys, *_ramp(view))


def _key(word: str, drawing: Markup) -> Markup:
    icon = tag(
        "svg", drawing, attributes={"viewBox": "0 0 22 22", "class": "icon", "aria-hidden": "true"}
    )
    return classed("span", "key", icon, word)


def _ramp(view: TreeView) -> list[Markup]:
    if not view.ordered:
        return [classed("span", "key", "no program has a metric")]
    low, high = number(view.ordered[0]), number(view.ordered[-1])
    if len(view.ordered) == 1:
        dot = tag(
            "circle", attributes={"class": "node scored", "fill": color(1), **_circle((11, 11), 8)}
        )
        return [_key(f"metric {high}", dot)]
    ends = {
        None: (f"{low} (lowest)", f"{high} (highest); which is better is not told"),
        True: (f"{low} (worst)", f"{high} (best; lower is better)"),
        False: (f"{low} (worst)", f"{high} (best; higher is better)"),
    }[view.lower_is_better]
    return [classed("span", "key", f"metric by rank: {ends[0]}", _bar(), ends[1])]


def _bar() -> Markup:
    width, height = BAR
    stops = [
        tag("stop", attributes={"offset": f"{place / (len(RAMP) - 1):.3f}", "stop-color": each})
        for place, each in enumerate(RAMP)
    ]
    size = {"width": str(width), "height": str(height)}
    ramp = tag("linearGradient", *stops, attributes={"id": "ramp"})
    return tag(
        "svg",
        tag("defs", ramp),
        tag("rect", attributes={**size, "rx": "3", "fill": "url(#ramp)", "class": "bar"}),
        attributes={"viewBox": f"0 0 {width} {height}", **size, "aria-hidden": "true"},
    )
