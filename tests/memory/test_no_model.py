"""Memory is policy: nothing in it can call a language model."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

import langgraft.memory
from langgraft.memory.controls import CONTROLS
from langgraft.memory.model import fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.testing.providers.base import models_refused, sample_episode

ROOM = Path(langgraft.memory.__file__).resolve().parent
MODELS = (
    "langchain_core.language_models",
    "langchain",
    "langchain_anthropic",
    "langchain_community",
    "langchain_openai",
    "anthropic",
    "litellm",
    "openai",
)
UPPER = tuple(f"langgraft.{room}" for room in ("nodes", "graphs", "benchmarks", "environments"))


def imported(path: Path) -> Iterator[str]:
    """Yield all modules that a file imports, at whatever depth."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_memory_when_read_imports_no_model_and_no_upper_floor() -> None:
    """No file of the room imports a model, a node, a graph, a study or a world."""
    files = sorted(ROOM.rglob("*.py"))
    assert len(files) > 20
    found = {
        (path.name, name)
        for path in files
        for name in imported(path)
        if f"{name}.".startswith(tuple(f"{module}." for module in (*MODELS, *UPPER)))
    }
    assert not found


def test_memory_when_read_names_models_only_to_refuse_them() -> None:
    """`init_chat_model` and the classes of models occur in no file but the one that refuses them."""
    words = ("init_chat_model", "BaseChatModel", "ChatOpenAI", "BaseLLM")
    naming = {
        path.relative_to(ROOM).as_posix()
        for path in ROOM.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in words)
    }
    assert naming == {"testing/providers/base.py"}


def use(memory: MemoryProvider[Any]) -> None:
    """Do with a memory all that can be done with it."""
    for number in range(4):
        episode = sample_episode(number)
        memory.provide(episode.task, asking(draft="try it", stage="debug", observation="failed"))
        memory.draft_questions(episode.task, asking(draft="try it"))
        memory.asks_again(episode.task, asking(step=4), asking())
        memory.questions(episode)
        memory.file(episode)
        memory.manage(dry_run=True)
        memory.manage()
    memory.describe()
    memory.content()


@pytest.mark.parametrize("name", PROVIDERS)
def test_provider_when_used_calls_no_model(name: str, tmp_path: Path) -> None:
    """Whatever a provider does, transplants included, it does alone."""
    with models_refused():
        memory, other = (make_provider(name, InMemoryStore(), settings={}) for _ in range(2))
        use(memory)
        memory.export_items(tmp_path / "bank.jsonl")
        other.import_items(tmp_path / "bank.jsonl")
        other.restore(fold([]))


@pytest.mark.parametrize("inner", PROVIDERS)
@pytest.mark.parametrize("name", CONTROLS)
def test_control_when_used_calls_no_model(name: str, inner: str) -> None:
    """Nor does a control around any provider."""
    with models_refused():
        memory = make_provider(inner, InMemoryStore(), settings={})
        memory.file(make_episode("e"))
        use(CONTROLS[name](memory))
