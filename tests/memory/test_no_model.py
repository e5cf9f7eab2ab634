"""Memory is policy: nothing in it can call a language model."""

import ast
from pathlib import Path

import langgraft.memory

ROOM = Path(langgraft.memory.__file__).resolve().parent
MODELS = ("langchain_core.language_models", "langchain.chat_models", "langchain_openai", "openai")


def imported(path: Path) -> set[str]:
    """Return all modules that a file imports, at whatever depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return names


def test_memory_when_read_imports_no_model_and_no_upper_floor() -> None:
    """No file of the room imports a model, a node, a graph, a study or a world."""
    upper = tuple(f"langgraft.{room}" for room in ("nodes", "graphs", "benchmarks", "environments"))
    files = sorted(ROOM.rglob("*.py"))
    assert len(files) > 20
    found = {
        (path.name, name)
        for path in files
        for name in imported(path)
        if name.startswith((*MODELS, *upper))
    }
    assert not found
