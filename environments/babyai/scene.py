"""What the agent sees, as AgentGym words it, the actions on offer, and why others are refused (notes §2.3 to §2.5).

An option is a line of text and a plan: the primitive moves it runs one after the other. The way to a
thing is a breadth-first search over where the agent stands and looks; one search serves every question
about one scene, and goes only as far as the questions need.

AgentGym's search (`compat`) differs from a textbook's in two ways that show in the plans
(notes §2.4): a state waiting in the queue is reached from the *last* state that saw it, so
that paths may be longer than needed, and the searched rectangle is one cell too long on the
sides where the view runs towards smaller coordinates.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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


LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, NOTHING = range(7)
CHECK = "check available actions"

Plan: TypeAlias = tuple[int, ...]
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


@dataclass(frozen=True, slots=True)
class Options:
    """What can be done in one scene."""

    plans: dict[str, Plan] = field(default_factory=dict)
    """Option → primitive moves, in the order AgentGym lists them."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Known but impossible action → the sentence that says why."""


def options_in(scene: Scene, *, fixed: bool) -> Options:
    """List what can be done in a scene.

    Args:
        scene: What the agent sees and carries.
        fixed: Put right what AgentGym gets wrong (see the package's table).
    """
    routes = tidy_routes(scene) if fixed else agentgym_routes(scene)
    movable = [t for t in scene.things if t.kind not in {"wall", "door", "goal"}]
    approachable = [t for t in scene.things if t.kind not in {"wall", "goal"}]
    options = Options({"turn left": (LEFT,), "turn right": (RIGHT,)})
    _offer_step(options, scene, fixed=fixed)
    if scene.load is None:
        _offer_each(options, "pickup", movable, routes, (PICKUP,), fixed=fixed)
    _offer_drop(options, scene, fixed=fixed)
    _offer_doors(options, scene, routes, fixed=fixed)
    _offer_goal(options, scene, routes)
    _offer_each(options, "go to", approachable, routes, (), fixed=fixed)
    options.plans[CHECK] = ()
    return options


def _offer_step(options: Options, scene: Scene, *, fixed: bool) -> None:
    """`move forward`; AgentGym offers it against closed doors, keys and balls too."""
    if fixed:
        free = not any(t.cell == scene.front and not t.walkable for t in scene.things)
    else:
        free = scene.barrier is None or scene.barrier.ahead > 1
    if free:
        options.plans["move forward"] = (FORWARD,)
    else:
        options.refusals["move forward"] = (
            "There is a barrier in front of you, you can't move forward."
        )


def _offer_each(
    options: Options,
    verb: str,
    things: Iterable[Thing],
    routes: Routes,
    ending: Plan,
    *,
    fixed: bool,
) -> None:
    """Offer `verb` for each thing there is a way to.

    AgentGym counts ids over the things reached so far, which can differ from the ids in the
    description; a thing out of reach takes the id that the next one in reach gets.
    """
    reached: dict[str, int] = {}
    for thing in things:
        number = thing.number if fixed else reached.get(thing.name, 0) + 1
        action = f"{verb} {thing.name} {number}"
        way = routes.facing(thing.cell)
        if way is None:
            options.refusals[action] = f"You cannot {action}, as there is no path leading to it."
            continue
        reached[thing.name] = number
        # With nothing to run, the mission would never be checked: let one empty step pass.
        options.plans[action] = (way + ending) or ((NOTHING,) if fixed else ())


def _offer_drop(options: Options, scene: Scene, *, fixed: bool) -> None:
    """`drop`; AgentGym overlooks a door or a goal in the way."""
    overlooked = set() if fixed else {"door", "goal"}
    if scene.load is None:
        why = "you are not carrying anything"
    elif any(t.cell == scene.front and t.kind not in overlooked for t in scene.things):
        why = "there is already an object in front of you"
    else:
        options.plans["drop"] = (DROP,)
        return
    options.refusals["drop"] = f"You cannot drop the object, as {why}."


def _offer_doors(options: Options, scene: Scene, routes: Routes, *, fixed: bool) -> None:
    counts: dict[str, int] = {}
    for door in scene.things:
        if door.kind != "door":
            continue
        counts[door.name] = door.number
        label = f"{door.name} {door.number}"
        if door.door == "open":
            _offer_passage(options, label, routes.onto(door.cell))
            continue
        if door.door == "closed":
            options.refusals[f"go through {label}"] = (
                f"You cannot go through {label}, as it is closed. You should toggle it first."
            )
        # AgentGym prints its table of counts where the id belongs.
        told = label if fixed else f"{door.name} {counts}"
        lock = _lock(scene, door)
        if lock is not None:
            options.refusals[f"toggle and go through {label}"] = (
                f"You cannot toggle and go through {label}, as {lock}."
            )
        else:
            _offer_opening(options, label, told, routes.facing(door.cell))


def _offer_passage(options: Options, label: str, way: Plan | None) -> None:
    if way is None:
        why = f"You cannot go through {label}, as there is no path leading to it."
        options.refusals[f"go through {label}"] = why
    else:
        options.plans[f"go through {label}"] = way


def _offer_opening(options: Options, label: str, told: str, way: Plan | None) -> None:
    """Offer to open a door and pass, and to open it only when standing before it."""
    if way is None:
        options.refusals[f"toggle and go through {label}"] = (
            f"You cannot toggle and go through {told}, as there is no path leading to it."
        )
        return
    options.plans[f"toggle and go through {label}"] = (*way, TOGGLE, FORWARD)
    if not way:
        options.plans["toggle"] = (TOGGLE,)


def _offer_goal(options: Options, scene: Scene, routes: Routes) -> None:
    for thing in scene.things:
        if thing.kind != "goal":
            continue
        way = routes.onto(thing.cell)
        if way is None:
            options.refusals["go to goal"] = (
                "You cannot go to the goal, as there is no path leading to it."
            )
        else:
            options.plans["go to goal"] = way


def _lock(scene: Scene, door: Thing) -> str | None:
    """Say why a door cannot be opened with what the agent carries."""
    if door.door != "locked":
        return None
    if scene.load is None or scene.load[0] != "key":
        return "you are not carrying a key"
    if scene.load[1] != door.color:
        return "the color of the key you are carrying does not match the color of door"
    return None
