"""The way to a thing: a breadth-first search over where the agent stands and looks.

One search serves every question about one scene, and goes only as far as the questions need.

AgentGym's search (`compat`) differs from a textbook's in two ways that show in the plans
(notes §2.4): a state waiting in the queue is reached from the *last* state that saw it, so
that paths may be longer than needed, and the searched rectangle is one cell too long on the
sides where the view runs towards smaller coordinates.
"""

from collections import deque
from typing import TypeAlias

from langgraft.environments.babyai.scene import AHEAD, VIEW, Cell, Scene

LEFT, RIGHT, FORWARD = 0, 1, 2

_State: TypeAlias = tuple[Cell, int]
"""Where the agent stands and which way it looks."""


class Routes:
    """Shortest ways from where the agent stands, found on demand.

    Args:
        cell: Where the agent stands.
        heading: Which way it looks.
        free: The cells it may walk on.
        relink: Let a waiting state be reached from the last state that saw it (`compat`)
            instead of the first.
    """

    def __init__(self, cell: Cell, heading: int, free: frozenset[Cell], *, relink: bool) -> None:
        self._start = (cell, heading)
        self._free = free
        self._relink = relink
        self._queue: deque[_State] = deque([self._start])
        self._reached: dict[_State, tuple[_State, int]] = {}
        self._expanded: set[_State] = set()
        self._standing: dict[Cell, _State] = {}
        self._facing: dict[Cell, _State] = {}

    def onto(self, cell: Cell) -> tuple[int, ...] | None:
        """Return the moves that end on `cell`, or `None` where there is no way."""
        return self._to(cell, self._standing)

    def facing(self, cell: Cell) -> tuple[int, ...] | None:
        """Return the moves that end one step before `cell`, looking at it."""
        return self._to(cell, self._facing)

    def _to(self, cell: Cell, ends: dict[Cell, _State]) -> tuple[int, ...] | None:
        while cell not in ends and self._queue:
            self._expand(self._queue.popleft())
        if cell not in ends:
            return None
        moves, state = [], ends[cell]
        while state != self._start:
            state, move = self._reached[state]
            moves.append(move)
        return tuple(reversed(moves))

    def _expand(self, state: _State) -> None:
        """Take one state from the queue; with `relink` the same one may come again."""
        (x, y), heading = state
        dx, dy = AHEAD[heading]
        front = (x + dx, y + dy)
        self._expanded.add(state)
        self._standing.setdefault((x, y), state)
        self._facing.setdefault(front, state)
        if front in self._free:
            self._push((front, heading), state, FORWARD)
        self._push(((x, y), (heading - 1) % 4), state, LEFT)
        self._push(((x, y), (heading + 1) % 4), state, RIGHT)

    def _push(self, state: _State, origin: _State, move: int) -> None:
        if state in self._expanded or (state in self._reached and not self._relink):
            return
        self._reached[state] = (origin, move)
        self._queue.append(state)


def agentgym_routes(scene: Scene) -> Routes:
    """Search as AgentGym does: unseen cells and doors, even closed ones, count as free."""
    (x, y), (fx, fy), (rx, ry) = scene.cell, AHEAD[scene.heading], AHEAD[(scene.heading + 1) % 4]
    reach, side = VIEW - 1, VIEW // 2
    columns = _span(x + fx * reach - rx * side, rx - fx)
    rows = _span(y + fy * reach - ry * side, ry - fy)
    solid = {thing.cell for thing in scene.things if thing.kind not in {"door", "goal"}}
    free = frozenset((i, j) for i in columns for j in rows if (i, j) not in solid)
    return Routes(scene.cell, scene.heading, free, relink=True)


def tidy_routes(scene: Scene) -> Routes:
    """Search over cells that are seen and can be walked on, so that every way found exists."""
    solid = {thing.cell for thing in scene.things if not thing.walkable}
    return Routes(scene.cell, scene.heading, scene.seen - solid, relink=False)


def _span(far: int, step: int) -> range:
    """Return the coordinates the view covers from its far left corner, one of them too many.

    AgentGym takes the end beyond the view as inclusive where the view runs downwards.
    """
    end = far + VIEW * step
    return range(far, end) if step > 0 else range(end, far + 1)
