"""The public face of the package."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import langgraft

REPOSITORY = Path(__file__).resolve().parents[2]
ROOMS = ("memory", "environments", "nodes", "graphs", "benchmarks")
HEAVY = (
    *("bm25s", "chromadb", "docker", "gymnasium", "hypothesis", "langchain_core", "langgraph"),
    *("matplotlib", "minigrid", "numpy", "pandas", "pytest", "scipy", "sklearn", "textworld"),
)
LAZY_PACKAGES = (
    "langgraft",
    "langgraft.memory",
    "langgraft.memory.converters",
    "langgraft.memory.embedders",
    "langgraft.memory.providers",
    "langgraft.memory.rankers",
    "langgraft.memory.stores",
    "langgraft.memory.stores.chroma",
    "langgraft.environments",
    "langgraft.environments.alfworld",
    "langgraft.environments.babyai",
    "langgraft.environments.competitions",
    "langgraft.environments.sandboxes",
    "langgraft.environments.sandboxes.docker",
    "langgraft.nodes",
    "langgraft.graphs",
    "langgraft.benchmarks.comparison",
    "langgraft.benchmarks.harness",
    "langgraft.benchmarks.simulated",
    "langgraft.benchmarks.transplant",
    "langgraft.testing",
)


def test_names_when_listed_are_these() -> None:
    """The face is what the README shows; adding to it is a decision."""
    assert sorted(langgraft.__all__) == [
        "ALFWorld",
        "AgentKB",
        "AgentKBSettings",
        "BM25",
        "BabyAI",
        "Banks",
        "Budget",
        "ChromaStore",
        "CodingMemory",
        "CodingSettings",
        "Dense",
        "Episode",
        "ErrorRecord",
        "ExpeL",
        "ExpeLSettings",
        "FactMemory",
        "FactSettings",
        "Hybrid",
        "InsightMemory",
        "InsightSettings",
        "LanggraftError",
        "Lesson",
        "LightweightMemory",
        "LightweightSettings",
        "MMR",
        "MemRL",
        "MemRLSettings",
        "MemoryDelta",
        "MemoryItem",
        "MemoryMiddleware",
        "MemoryProvider",
        "MemoryRetriever",
        "MemoryState",
        "NoMemory",
        "Outcome",
        "Prompt",
        "Question",
        "RankedStore",
        "ReadOnlyStore",
        "ReasoningBank",
        "ReasoningBankSettings",
        "Recall",
        "RecallContext",
        "Receipt",
        "SimpleRAG",
        "SimpleRAGSettings",
        "Step",
        "TermOverlap",
        "TrajectoryMemory",
        "TrajectorySettings",
        "Verdict",
        "build_chain_agent",
        "build_mlab_agent",
        "build_react_agent",
        "build_solver",
        "build_tree_agent",
        "fold",
        "memory_tools",
        "open_memory",
        "open_run",
        "with_memory",
    ]


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_package_when_asked_has_every_name_it_lists(package: str) -> None:
    """Lazy names resolve, and unknown ones are refused."""
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    assert {"TYPE_CHECKING", "lazy_exports", "Final", "Mapping", "annotations"}.isdisjoint(
        dir(module)
    )
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


@pytest.mark.parametrize("package", ["langgraft", "langgraft.memory", "langgraft.nodes"])
def test_import_when_nothing_is_used_loads_no_heavy_package(package: str) -> None:
    """Importing the face costs next to nothing."""
    code = f"import sys, {package}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", [["--help"], ["plans"], ["status", "."]])
def test_command_when_it_only_shows_loads_no_heavy_package(
    command: list[str], tmp_path: Path
) -> None:
    """Who asks what there is, or how far it is, does not wait for what would run it."""
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "runs.jsonl").write_text("")
    code = (
        "import sys; from langgraft.cli.app import app;"
        f"app({command!r}, standalone_mode=False);"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "LANGGRAFT_DATA"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


FLOORS = {
    "memory": {"_core", "memory"},
    "environments": {"_core", "environments"},
    "nodes": {"_core", "memory", "environments", "nodes"},
    "graphs": {"_core", "memory", "environments", "nodes", "graphs"},
    "benchmarks": {"_core", *ROOMS},
    "src/langgraft/_core": {"_core"},
    "src/langgraft/cli": {"_core", *ROOMS, "cli"},
}


@pytest.mark.parametrize("room", FLOORS)
def test_room_when_read_imports_only_from_its_floor_and_below(room: str) -> None:
    """Dependencies point one way."""
    for path in (REPOSITORY / room).rglob("*.py"):
        for module in _imports(path):
            if module.startswith("langgraft."):
                assert module.split(".")[1] in FLOORS[room], f"{path} imports {module}"


@pytest.mark.parametrize("room", ["memory", "environments", "src/langgraft/_core"])
def test_room_when_read_knows_no_language_model(room: str) -> None:
    """Providers and worlds never call a model."""
    for path in (REPOSITORY / room).rglob("*.py"):
        for module in _imports(path):
            assert "language_models" not in module, f"{path} imports {module}"
            assert module.partition(".")[0] not in {"openai", "langchain_openai", "langchain"}


def _imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found
