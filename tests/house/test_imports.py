"""How modules import each other."""

from graphlib import TopologicalSorter

from architecture.imports import FLOORS, between_rooms, import_graph


def test_imports_when_followed_never_lead_back() -> None:
    """No two modules need each other."""
    graph = import_graph()
    assert len(graph) > 300
    TopologicalSorter(graph).prepare()


def test_imports_when_between_rooms_then_go_down() -> None:
    """A room needs floors below its own; memory and worlds know nothing of each other."""
    level = {room: number for number, floor in enumerate(FLOORS) for room in floor}
    up = {pair for pair in between_rooms() if level.get(pair[0], 9) <= level.get(pair[1], 0)}
    assert not up
