"""`CodingMemory` in the chain agent and in MLAB: over any store, and by any ranker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chain_cases
import mlab_cases
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from mlab_cases import edit, execute, fenced, stepping
from tree_cases import BROKEN, feedback, good, reviewing

from langgraft import CodingMemory
from langgraft.environments.competitions.competition import Competition
from langgraft.memory.providers.coding import coding_preset
from langgraft.memory.rankers import BM25, Dense, Hybrid
from langgraft.memory.stores import ChromaStore
from langgraft.nodes.workbench.log import steps_of

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

FAILING = BROKEN.format(number=1)
FIXED = FAILING.replace(", rate=1", "")
FIX = "Pass eta only."


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """Open a store."""
    if request.param == "in memory":
        yield InMemoryStore()
        return
    with ChromaStore.open(tmp_path / "bank") as chroma:
        yield chroma


def chain_runs(competition: Competition, **settings: Any) -> str:
    """Let the chain agent fail and mend it; return what its run was told at first."""
    model = chain_cases.scripted(
        chain_cases.call("run_python", "I fit.", code=FAILING),
        chain_cases.call("run_python", f"{FIX} So it runs.", code=FIXED),
        chain_cases.call("finish"),
    )
    asked = reviewing(lambda text, sample: judged(sample) or feedback(text, sample))
    _, log = chain_cases.ran(competition, model, feedback_model=asked, **settings)
    assert (steps_of(log)[0].recalled in model.asked[0][1].text) or not steps_of(log)[0].recalled
    return steps_of(log)[0].recalled


def mlab_runs(competition: Competition, **settings: Any) -> str:
    """Let MLAB fail and mend it; return what its run was told at first."""
    model = stepping(
        edit("train.py", "Fit."),
        execute("train.py"),
        edit("train.py", "Fit better.", f"{FIX} So it runs."),
        execute("train.py"),
        aside=[fenced(FAILING), fenced(good(0.7))],
        diagnose='{"package": "general", "error": "TypeError: rate", "fix": "", "kind": "code"}',
        judge='{"action": "add"}',
    )
    _, log = mlab_cases.ran(competition, model, **settings)
    return steps_of(log)[0].recalled


def judged(sample: str) -> str:
    """Say of every error that it is new."""
    return '{"action": "add"}' if sample.endswith("/judge") else ""


@pytest.mark.parametrize(
    ("runs", "store"), [(chain_runs, "chroma"), (mlab_runs, "in memory")], indirect=["store"]
)
def test_memory_when_a_run_has_mended_an_error_tells_the_next_one_over_any_store_and_ranker(
    runs: Any, store: BaseStore, competition: Competition
) -> None:
    """One run teaches, and the next one begins with the fix that worked."""
    memory = CodingMemory(store, settings=coding_preset("implied"))
    assert runs(competition, memory=memory) == ""
    for ranker in (Dense(ties="newest"), Hybrid((BM25(), Dense("hashing")))):
        settings = coding_preset("implied").model_copy(update={"ranker": ranker})
        memory = CodingMemory(store, settings=settings)
        assert FIX in runs(competition, memory=memory, learn=False)
