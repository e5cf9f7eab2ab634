"""`CodingMemory` in a tree search: where it speaks, what it looks for, and what it files."""

import re
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from tree_cases import (
    ABSENT,
    BROKEN,
    FIX,
    Hurrying,
    feedback,
    good,
    reply,
    reviewing,
    sandbox,
    toy,
    writing,
)

from langgraft import CodingMemory
from langgraft.graphs.tree import build_tree_agent
from langgraft.memory.model import fold
from langgraft.memory.providers.coding import coding_preset
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.search.journal import Search, read_search
from langgraft.nodes.search.policy import AIDEPolicy

pytestmark = pytest.mark.matrix  # whole searches

ERROR = "TypeError: fit() got an unexpected keyword argument 'rate'"


def rule(text: str, sample: str) -> str:
    """Write two drafts that fail, one of them without an exception, and repair whatever fails."""
    step = int(re.split(r"\D+", sample.split("/")[1])[0])
    if step < 2:
        return reply((BROKEN.format(number=1), ABSENT)[step])
    return reply(good(0.5 + step / 100), plan=f"{FIX} So it runs. And more.")


def review(text: str, sample: str) -> str:
    """Review and diagnose by what is shown; every error is new."""
    return '{"action": "add"}' if sample.endswith("/judge") else feedback(text, sample)


@pytest.fixture
def memory() -> CodingMemory:
    """Make a memory that speaks where the paper says."""
    return CodingMemory(InMemoryStore(), settings=coding_preset("described"))


@pytest.fixture
def search(memory: CodingMemory, tmp_path: Path) -> Search:
    """Search with two drafts, their repairs and an improvement."""
    competition, artifacts = toy(tmp_path), MemoryArtifacts()
    with sandbox(competition) as place:
        agent = build_tree_agent(
            writing(rule),
            competition=competition,
            sandbox=place,
            feedback_model=reviewing(review),
            memory=memory,
            artifacts=artifacts,
            policy=AIDEPolicy(2, 1.0, 3),
            steps=5,
        )
        done = agent.invoke({"episode_id": "run", "seed": 0})
    return read_search(artifacts, done["journal"], run="run", task="toy")


def test_memory_when_described_speaks_to_repairs_and_improvements_alone(search: Search) -> None:
    """Drafts are told nothing; others are told what the search itself has met."""
    stages = [search.journal.stage(node) for node in search.nodes]
    assert stages == ["draft", "draft", "debug", "debug", "improve"]
    assert [bool(node.recalled) for node in search.nodes] == [False, False, True, True, True]


def test_memory_when_debugging_looks_for_the_error_as_it_was_filed(search: Search) -> None:
    """Its exception in canonical form, or the diagnosis where nothing was raised."""
    searched = {
        search.nodes[2 + at].parent_id: str((node.receipt or {})["searched"])
        for at, node in enumerate(search.nodes[2:4])
    }
    assert searched == {search.nodes[0].id: ERROR, search.nodes[1].id: "no submission was written"}


def test_memory_when_a_repair_runs_has_its_plan_as_a_proven_fix(
    search: Search, memory: CodingMemory
) -> None:
    """In the words of two sentences, as an entry of the repair's own; the journal folds to it."""
    content = memory.content()
    proven = [item for item in content.items.values() if item.metadata.get("verified")]
    assert {(item.metadata["error"], item.metadata["fix"]) for item in proven} == {
        (ERROR, f"{FIX} So it runs."),
        ("no submission was written", f"{FIX} So it runs."),
    }
    assert len(content.items) == 2  # the failures' own entries, which knew no fix, made way
    assert all(content.notes[item.id]["verified"] for item in proven)
    assert fold(search.deltas) == content


SLOW = """\
import time, traceback
try:
    {}["gpu"]
except KeyError:
    traceback.print_exc()
time.sleep(60)
"""


def test_failure_when_a_limit_ended_it_is_of_resources_whatever_a_model_calls_it(
    tmp_path: Path,
) -> None:
    """Nor is it taken for an error that the program had printed and gone on after."""

    def call_it_code(text: str, sample: str) -> str:
        if "/diagnose" not in sample:
            return review(text, sample)
        said = "TimeoutError: it was stopped" if text.count("TimeoutError: ") else "KeyError: gpu"
        return f'{{"package": "general", "error": "{said}", "fix": "", "kind": "code"}}'

    memory = CodingMemory(InMemoryStore(), settings=coding_preset("kinds_by_stage"))
    competition, artifacts = toy(tmp_path), MemoryArtifacts()
    with Hurrying(competition) as place:
        agent = build_tree_agent(
            writing(lambda _, sample: reply(SLOW if "/000/" in sample else good())),
            competition=competition,
            sandbox=place,
            feedback_model=reviewing(call_it_code),
            memory=memory,
            artifacts=artifacts,
            policy=AIDEPolicy(1, 1.0, 3),
            steps=3,
            seconds=60,
        )
        done = agent.invoke({"episode_id": "run", "seed": 0})
    search = read_search(artifacts, done["journal"])
    assert [node.recalled_kinds for node in search.nodes] == [(), ("resource",), ()]
    error = search.nodes[0].error or {}
    assert (error["kind"], error["error"]) == ("resource", "TimeoutError: it was stopped")
