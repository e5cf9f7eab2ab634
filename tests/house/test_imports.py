"""How modules import each other."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import langgraft

HOME = Path(langgraft.__file__).parent


def modules() -> dict[str, Path]:
    """Return the file of each module, also of rooms that are links."""
    rooms = (each for each in HOME.iterdir() if each.is_dir())
    files = [*HOME.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))]
    names = {file: ".".join(file.relative_to(HOME.parent).with_suffix("").parts) for file in files}
    return {name.removesuffix(".__init__"): file for file, name in names.items()}


def imported(file: Path, known: dict[str, Path]) -> Iterator[str]:
    """Name what a file imports, wherever in it, and for type checkers too.

    What a package exports lazily it imports for type checkers alone, and does not need.
    """
    tree = ast.parse(file.read_bytes())
    for each in tree.body if file.name == "__init__.py" else ast.walk(tree):
        if isinstance(each, ast.Import):
            yield from (name.name for name in each.names)
        elif isinstance(each, ast.ImportFrom):
            inside = (f"{each.module}.{name.name}" for name in each.names)
            yield from (name if name in known else str(each.module) for name in inside)


def test_imports_when_followed_never_lead_back() -> None:
    """No two modules need each other."""
    known = modules()
    graph = {
        name: {each for each in imported(file, known) if each in known}
        for name, file in known.items()
    }
    assert len(graph) > 500
    TopologicalSorter(graph).prepare()
