"""The providers, on the stores they have to work on, and no model to call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from file_store import FileStore
from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from postgres_server import Schemas

from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import (
    AgentKB,
    ExpeL,
    ExpeLSettings,
    FullHistory,
    InsightMemory,
    InsightSettings,
    LightweightMemory,
    NoMemory,
    RecencyFewShot,
    SelfGeneratedExamples,
    SimpleRAG,
    TrajectoryMemory,
    TrajectorySettings,
    VoteSettings,
)
from langgraft.memory.rankers import BM25, MMR, Dense, Hybrid

Make = Callable[[BaseStore], MemoryProvider[Any]]

SINGLE = InsightSettings(granularity="individual", top_k=3)
REMEDIES = {"fold_above": 0.8, "mmr": 0.5, "candidates": 10, "own_domain_share": 0.5}
PROVIDERS: dict[str, Make] = {
    "none": NoMemory,
    "raw": TrajectoryMemory,
    "aggregate": InsightMemory,
    "individual": lambda store: InsightMemory(store, settings=SINGLE),
    "step": lambda store: InsightMemory(
        store, settings=SINGLE.model_copy(update={"requery_interval": 4})
    ),
    "adaptive": lambda store: InsightMemory(
        store, settings=SINGLE.model_copy(update={"granularity": "adaptive", "top_k": 2})
    ),
    "fused": lambda store: InsightMemory(
        store, settings=SINGLE.model_copy(update={"ranker": Hybrid((BM25(), Dense("hashing:32")))})
    ),
    "diverse": lambda store: TrajectoryMemory(
        store, settings=TrajectorySettings(ranker=MMR(Dense("hashing:32")))
    ),
    "remedied": lambda store: InsightMemory(store, settings=SINGLE.model_copy(update=REMEDIES)),
    "agent_kb": AgentKB,
    "expel": ExpeL,
    "expel by votes": lambda store: ExpeL(store, settings=ExpeLSettings(votes=VoteSettings())),
    "full_history": FullHistory,
    "lightweight": LightweightMemory,
    "recency": RecencyFewShot,
    "self_examples": SelfGeneratedExamples,
    "simple_rag": SimpleRAG,
}


@pytest.fixture(params=PROVIDERS)
def make(request: pytest.FixtureRequest) -> Make:
    """Return what makes each provider over a store."""
    return PROVIDERS[request.param]


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every call of a language model fail."""

    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("memory called a language model")

    for name in ("invoke", "ainvoke", "stream", "astream", "generate", "agenerate"):
        monkeypatch.setattr(BaseChatModel, name, refuse)


@pytest.fixture(params=["in memory", "in a file", "in PostgreSQL"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], BaseStore]:
    """Return what makes empty stores of each kind."""
    made: list[BaseStore] = []
    if request.param == "in PostgreSQL":
        schemas: Schemas = request.getfixturevalue("postgres")
        return schemas.store

    def new() -> BaseStore:
        made.append(
            InMemoryStore()
            if request.param == "in memory"
            else FileStore(tmp_path / f"store-{len(made)}.json")
        )
        return made[-1]

    return new
