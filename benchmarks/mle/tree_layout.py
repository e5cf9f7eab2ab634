"""Where the programs of a search stand when it is drawn as a tree.

The rules are those of Reingold and Tilford (1981, *Tidier Drawings of Trees*): a row for each
depth, brothers in their order, parents above the middle of their children, no two closer than one
unit, and subtrees moved together until they touch.
"""

from collections.abc import Sequence
from dataclasses import dataclass


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
