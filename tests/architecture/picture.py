"""The floors as a picture: rooms, what is in them, and who imports whom."""

from pathlib import Path
from typing import Any, Final

from architecture.imports import FLOORS, between_rooms, sizes
from langgraft._core.lazy import require

_HEIGHT: Final = 1.5
"""Of a floor, in inches; a third of it is left for arrows."""
_WIDTH: Final = 12.0
_LEAST: Final = 30
"""Lines of a folder that is shown; others hold data."""
_TITLES: Final = {
    "_core": "_core: errors, effects, canonical JSON, files",
    "cli": "cli: every command",
    "graphs": "graphs: agents, as wiring",
    "nodes": "nodes: what an agent does at a step",
    "memory": "memory: banks, providers, retrieval",
    "environments": "environments: worlds, competitions, sandboxes",
    "benchmarks": "benchmarks: harness, comparison, reporting, studies",
}


def draw(path: Path) -> None:
    """Write the picture as SVG, the same bytes for the same imports."""
    matplotlib: Any = require("matplotlib", extra="bench", purpose="The picture")
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "architecture"})
    figure_of: Any = require("matplotlib.figure", extra="bench", purpose="The picture")
    figure = figure_of.Figure(figsize=(_WIDTH, _HEIGHT * len(FLOORS)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, _WIDTH), ylim=(0, _HEIGHT * len(FLOORS)))
    axes.axis("off")
    places: dict[str, tuple[float, float, float]] = {}
    for level, floor in enumerate(FLOORS):
        width = (_WIDTH - 0.4 * (len(floor) + 1)) / len(floor)
        for number, room in enumerate(floor):
            left = 0.4 + number * (width + 0.4)
            bottom = _room(axes, room, left, level * _HEIGHT + 0.25, width)
            places[room] = (left, bottom, width)
    _arrows(axes, places)
    figure.savefig(path, metadata={"Date": None})


def _room(axes: Any, room: str, left: float, bottom: float, width: float) -> float:
    """Draw a room with the rooms in it, and return where it begins: lower ones are empty."""
    parts = {path[1:]: size for path, size in sizes().items() if path[:1] == (room,)}
    modules, lines = (sum(each[place] for each in parts.values()) for place in (0, 1))
    inside = [(path[0], size) for path, size in sorted(parts.items()) if path and size[1] > _LEAST]
    begin = bottom if inside else bottom + 0.65
    axes.add_patch(_box((left, begin), width, bottom + 1 - begin, "#eef3f8", "#33506b"))
    axes.text(left + 0.1, bottom + 0.8, _TITLES[room], fontsize=9, weight="bold")
    said = f"{modules} modules, {lines:,} lines"
    axes.text(left + width - 0.1, bottom + 0.8, said, fontsize=8, ha="right", color="#555555")
    each = (width - 0.1) / max(len(inside), 1)
    for number, (name, (_, lines)) in enumerate(inside):
        x = left + 0.1 + number * each
        axes.add_patch(_box((x, bottom + 0.1), each - 0.1, 0.55, "white", "#9fb4c8"))
        axes.text(x + each / 2 - 0.05, bottom + 0.43, name, fontsize=7, ha="center")
        text = f"{lines:,}"
        axes.text(
            x + each / 2 - 0.05, bottom + 0.2, text, fontsize=6.5, ha="center", color="#555555"
        )
    return begin


def _box(corner: tuple[float, float], width: float, height: float, face: str, edge: str) -> Any:
    patches: Any = require("matplotlib.patches", extra="bench", purpose="The picture")
    return patches.Rectangle(corner, width, height, facecolor=face, edgecolor=edge)


def _arrows(axes: Any, places: dict[str, tuple[float, float, float]]) -> None:
    """Draw an arrow to each room that another one imports from the floor below it.

    All import `_core`, and upper floors those further down: more arrows would hide the few that tell.
    """
    level = {room: number for number, floor in enumerate(FLOORS) for room in floor}
    counts = between_rooms()
    for room, (left, bottom, width) in places.items():
        below = [each for each in places if counts[room, each] and level[each] == level[room] - 1]
        for number, other in enumerate(below, start=1):
            there, _, wide = places[other]
            floor = level[other] * _HEIGHT + 0.25
            low, high = max(left, there), min(left + width, there + wide)
            x = low + (high - low) * (number / (len(below) + 1) if wide >= width else 0.5)
            arrow = {"arrowstyle": "->", "color": "#33506b", "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", (x, floor + 1.0), (x, bottom), arrowprops=arrow)
            said = f"{counts[room, other]}"
            axes.text(x + 0.08, (floor + 1.0 + bottom) / 2, said, fontsize=7, va="center")
