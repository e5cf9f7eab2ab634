"""Ways through a scene, found by the mended search and by AgentGym's."""

from hypothesis import given
from hypothesis import strategies as st

from langgraft.environments.babyai.scene import AHEAD, Cell, Routes, Scene, agentgym_routes

SIDE = 5
CELLS = [(x, y) for x in range(SIDE) for y in range(SIDE)]


def walk(cell: Cell, heading: int, moves: tuple[int, ...], free: frozenset[Cell]) -> list[Cell]:
    """Carry out moves; return where the agent ends and the cell it then faces."""
    x, y = cell
    for move in moves:
        if move == 2:
            x, y = x + AHEAD[heading][0], y + AHEAD[heading][1]
            assert (x, y) in free
        else:
            heading = (heading + (1 if move else -1)) % 4
    return [(x, y), (x + AHEAD[heading][0], y + AHEAD[heading][1])]


def fewest_moves(cell: Cell, heading: int, free: frozenset[Cell]) -> dict[Cell, int]:
    """Count by plain flooding how many moves it takes to face each cell."""
    found: dict[Cell, int] = {}
    layer, seen, moves = {(cell, heading)}, {(cell, heading)}, 0
    while layer:
        following = set()
        for (x, y), way in layer:
            front = (x + AHEAD[way][0], y + AHEAD[way][1])
            found.setdefault(front, moves)
            near = {((x, y), (way + 1) % 4), ((x, y), (way - 1) % 4)}
            following |= near | ({(front, way)} if front in free else set())
        layer = following - seen
        seen |= layer
        moves += 1
    return found


@given(
    free=st.frozensets(st.sampled_from(CELLS)),
    start=st.sampled_from(CELLS),
    heading=st.integers(0, 3),
    target=st.sampled_from(CELLS),
    relink=st.booleans(),
)
def test_routes_when_a_way_exists_then_it_is_found_walkable_and_shortest_if_mended(
    free: frozenset[Cell], start: Cell, heading: int, target: Cell, relink: bool
) -> None:
    """Both searches end facing the target exactly where flooding does; the mended one is shortest."""
    free |= {start}
    fewest = fewest_moves(start, heading, free)
    way = Routes(start, heading, free, relink=relink).facing(target)
    assert (way is None) == (target not in fewest)
    if way is not None:
        assert walk(start, heading, way, free)[1] == target
        assert len(way) >= fewest[target]
        assert relink or len(way) == fewest[target]


@given(
    free=st.frozensets(st.sampled_from(CELLS)),
    start=st.sampled_from(CELLS),
    targets=st.lists(st.sampled_from(CELLS), max_size=6),
    relink=st.booleans(),
)
def test_routes_when_asked_in_any_order_then_each_answer_is_the_same(
    free: frozenset[Cell], start: Cell, targets: list[Cell], relink: bool
) -> None:
    """One search that serves many questions answers each as a search of its own would."""
    free |= {start}
    shared = Routes(start, 0, free, relink=relink)
    for target in targets:
        alone = Routes(start, 0, free, relink=relink)
        assert shared.onto(target) == alone.onto(target)
        assert shared.facing(target) == alone.facing(target)


def test_agentgym_rectangle_when_heading_changes_then_it_is_too_long_on_the_known_sides() -> None:
    """Right: one column too many; down: a column and a row; left: a row; up: none."""
    extra: dict[int, set[Cell]] = {
        0: {(19, 20)},
        1: {(16, 20), (20, 19)},
        2: {(20, 16)},
        3: set(),
    }
    beyond = [(19, 20), (16, 20), (20, 19), (20, 16), (24, 20), (20, 24), (13, 20), (20, 13)]
    for heading, cells in extra.items():
        scene = Scene((20, 20), heading, (), frozenset(), None)
        (fx, fy), (rx, ry) = AHEAD[heading], AHEAD[(heading + 1) % 4]
        view = {
            (20 + fx * ahead + rx * right, 20 + fy * ahead + ry * right)
            for ahead in range(7)
            for right in range(-3, 4)
        }
        routes = agentgym_routes(scene)
        reached = {cell for cell in beyond if routes.onto(cell) is not None} - view
        assert reached == cells
