"""Modules of langgraft, what they import of each other, and the floors that they stand on."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import langgraft

HOME: Final = Path(langgraft.__file__).parent

FLOORS: Final = (
    ("_core",),
    ("memory", "environments"),
    ("nodes",),
    ("graphs",),
    ("benchmarks",),
    ("cli",),
)
"""Rooms by floor, from the ground up: a module imports from its own room and from floors below."""


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


def import_graph() -> dict[str, set[str]]:
    """Return which modules of ours each module imports."""
    known = modules()
    return {
        name: {each for each in imported(file, known) if each in known}
        for name, file in known.items()
    }


def room_of(module: str) -> str:
    """Return the room of a module: `memory` for `langgraft.memory.bank`, else `langgraft`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and any(parts[1] in floor for floor in FLOORS) else parts[0]


def between_rooms() -> Counter[tuple[str, str]]:
    """Count modules that import another room's, by the two rooms."""
    found: Counter[tuple[str, str]] = Counter()
    for module, needs in import_graph().items():
        rooms = {room_of(each) for each in needs} - {room_of(module)}
        found.update((room_of(module), each) for each in rooms)
    return found


def sizes(depth: int = 2) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return modules and lines that are not blank, by the first folders of their path."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for file in modules().values():
        folder = file.relative_to(HOME).parts[:-1][:depth]
        count, lines = found.get(folder, (0, 0))
        written = sum(bool(line.strip()) for line in file.read_text("utf-8").splitlines())
        found[folder] = count + 1, lines + written
    return found
