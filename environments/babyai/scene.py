"""What the agent sees, and how AgentGym words it (notes §2.3)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Cell: TypeAlias = tuple[int, int]
"""A place in the world: x to the right, y down."""

AHEAD: tuple[Cell, ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""The step forward for each heading: right, down, left, up."""

VIEW = 7
"""Cells along one side of the square the agent sees; it stands in the middle of the near side."""

# Minigrid's codes for what is in a cell. Unseen, empty, floor and agent cells hold no thing.
_KINDS = {2: "wall", 4: "door", 5: "key", 6: "ball", 7: "box", 8: "goal", 9: "lava"}
_COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
_DOOR_STATES = ("open", "closed", "locked")


@dataclass(frozen=True, slots=True)
class Thing:
    """One seen cell that is not empty."""

    kind: str
    """`wall`, `door`, `key`, `ball`, `box`, `goal` or `lava`."""
    color: str
    door: str
    """`open`, `closed` or `locked` for a door, else empty."""
    cell: Cell
    ahead: int
    """Steps in front of the agent."""
    right: int
    """Steps to the agent's right; negative to its left."""
    number: int
    """Position among the seen things of the same name, from 1, near ones first."""

    @property
    def name(self) -> str:
        """What the agent calls it: a door's state is part of its name."""
        return _name(self.kind, self.color, self.door)

    @property
    def walkable(self) -> bool:
        """A step onto its cell is possible and does no harm."""
        return self.door == "open" or self.kind == "goal"


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything the agent knows at one moment."""

    cell: Cell
    """Where the agent stands."""
    heading: int
    """0 right, 1 down, 2 left, 3 up."""
    things: tuple[Thing, ...]
    """What is seen, nearest first (walls included)."""
    seen: frozenset[Cell]
    """Every cell the agent can see, its own included."""
    load: tuple[str, str] | None
    """Kind and color of what the agent carries."""

    @property
    def front(self) -> Cell:
        """The cell one step ahead."""
        (x, y), (dx, dy) = self.cell, AHEAD[self.heading]
        return x + dx, y + dy

    @property
    def barrier(self) -> Thing | None:
        """The nearest wall or box straight ahead; doors, keys and balls do not count."""
        ahead = (t for t in self.things if t.right == 0 and t.kind in {"wall", "box"})
        return min(ahead, key=lambda thing: thing.ahead, default=None)


def look(world: Any, observation: Any) -> Scene:
    """Read a scene off a minigrid world and the observation it gave."""
    cell, heading = (int(world.agent_pos[0]), int(world.agent_pos[1])), int(world.agent_dir)
    found: list[tuple[int, str, str, str, Cell, int, int]] = []
    seen = {cell}
    for code, color, state, place, ahead, right in _cells(observation["image"], cell, heading):
        seen.add(place)
        kind = _KINDS.get(code)
        if kind is not None:
            door = _DOOR_STATES[state] if kind == "door" else ""
            distance = ahead + abs(right)
            found.append((distance, kind, _COLORS[color], door, place, ahead, right))
    found.sort(key=lambda entry: entry[0])
    load = world.carrying
    return Scene(
        cell=cell,
        heading=heading,
        things=tuple(_numbered(found)),
        seen=frozenset(seen),
        load=None if load is None else (str(load.type), str(load.color)),
    )


def describe(scene: Scene) -> str:
    """Word a scene as AgentGym does, grammar included."""
    things = "You cannot see any objects within sight."
    if scene.things:
        things = "In front of you in this room, you can see several objects: " + "".join(
            f"There is a {thing.name} {thing.number} {_where(thing)}.  "
            for thing in scene.things
            if thing.kind != "wall"
        )
    barrier = scene.barrier
    facing = f"You are facing a {barrier.kind} {barrier.ahead} steps away. " if barrier else ""
    load = "not carrying anything"
    if scene.load is not None:
        kind, color = scene.load
        load = f"carrying a {color} {kind}"
    return f"{things}The room has walls around you. {facing}You are {load}."


def _cells(image: Any, cell: Cell, heading: int) -> Iterator[tuple[int, int, int, Cell, int, int]]:
    """Go over the seen cells from the far row to the near one, left to right.

    The agent's own cell shows what it carries, and cells with a negative coordinate lie
    outside the world: both are passed over, like cells that are out of sight.
    """
    (x, y), (fx, fy), (rx, ry) = cell, AHEAD[heading], AHEAD[(heading + 1) % 4]
    columns = image.tolist()
    for row in range(VIEW):
        ahead = VIEW - 1 - row
        for column in range(VIEW):
            code, color, state = columns[column][row]
            right = column - VIEW // 2
            if code == 0 or (ahead == 0 and right == 0):
                continue
            place = (x + fx * ahead + rx * right, y + fy * ahead + ry * right)
            if place[0] >= 0 and place[1] >= 0:
                yield code, color, state, place, ahead, right


def _numbered(
    found: list[tuple[int, str, str, str, Cell, int, int]],
) -> Iterator[Thing]:
    """Number things of one name in the order they are listed."""
    count: Counter[str] = Counter()
    for _, kind, color, door, place, ahead, right in found:
        name = _name(kind, color, door)
        count[name] += 1
        yield Thing(kind, color, door, place, ahead, right, count[name])


def _name(kind: str, color: str, door: str) -> str:
    return f"{color} {door} door" if door else f"{color} {kind}"


def _where(thing: Thing) -> str:
    if thing.right == 0:
        return f"right in front of you {thing.ahead} steps away"
    side = "right" if thing.right > 0 else "left"
    return f"{thing.ahead} steps in front of you and {abs(thing.right)} steps to your {side}"
