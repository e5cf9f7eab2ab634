"""Readings of the paper that a plan may ask for: embeddings of a model, examples, banks of their own."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mle_study import HouseStudy, house_plan
from table_embeddings import TableEmbeddings

from langgraft._core.errors import SettingsError
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.progress import PlanOutcome
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.mle.plan import MlePlan, runs_of
from langgraft.benchmarks.mle.session import check_models

pytestmark = pytest.mark.matrix  # whole studies

NAME = "openai:text-embedding-3-small"
CONDITIONS = ["off", "cold", "warm"]


def run(plan: MlePlan, out: Path, study: HouseStudy) -> PlanOutcome:
    """Run a plan to its end, or to its first failure."""
    prepared = prepare(study, plan)
    return asyncio.run(run_plan(prepared, out, model_for=study.simulated_model, store="memory"))


@pytest.fixture
def embeddings(monkeypatch: pytest.MonkeyPatch) -> TableEmbeddings:
    """Return what LangChain makes of any name: vectors by the letters of a text."""
    made = TableEmbeddings(lambda text: [1.0 + text.count(each) for each in "abcdefgh"])
    monkeypatch.setattr("langchain.embeddings.init_embeddings", lambda *_, **__: made)
    return made


def test_embedder_when_named_embeds_each_text_once_for_all_runs_and_counts_it(
    embeddings: TableEmbeddings, tmp_path: Path
) -> None:
    """Vectors lie in the run directory; what was paid for stands in the events of the runs."""
    plan = house_plan(tmp_path, steps=4, memory=CONDITIONS, embedder=NAME)
    out = tmp_path / "out"
    assert run(plan, out, HouseStudy()).complete
    documents = [text for name, texts in embeddings.calls if "documents" in name for text in texts]
    queries = [text for name, texts in embeddings.calls if "query" in name for text in texts]
    assert documents
    assert max(Counter(documents).values()) == 1
    assert max(Counter(queries).values(), default=1) == 1
    assert (out / "shared" / "vectors.sqlite").is_file()
    log = PlanLog(out)
    events = [(run_folder(out, run) / "events.jsonl").read_text() for run in log.graph]
    told = [each for each in events if '"embedded_texts"' in each]
    assert 0 < len(told) < len(events)  # those without memory have none


def test_embedder_when_it_fails_stops_the_plan_and_goes_on_to_the_same_bytes(
    embeddings: TableEmbeddings, tmp_path: Path
) -> None:
    """As with a model that cannot be reached: nothing is lost, and nothing is asked again."""
    plan = house_plan(tmp_path, steps=4, memory=CONDITIONS, embedder=NAME)
    assert run(plan, tmp_path / "whole", HouseStudy()).complete
    embeddings.error = OSError("the network is away")
    stopped = run(plan, tmp_path / "out", HouseStudy())
    assert not stopped.complete
    assert f"embedder '{NAME}' failed: the network is away" in str(stopped)
    embeddings.error = None
    assert run(plan, tmp_path / "out", HouseStudy()).complete
    for each in PlanLog(tmp_path / "whole").graph:
        first, second = (
            (run_folder(tmp_path / name, each) / "items.jsonl").read_bytes()
            for name in ("whole", "out")
        )
        assert first == second


def test_embedder_when_its_key_is_missing_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a line that says what is missing; the simulated model needs none."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match=r"embeddings 'openai:.* cannot be made: .*key"):
        check_models(house_plan(tmp_path, prepared=False, embedder=NAME))
    simulated = MlePlan.with_model({"embedder": NAME, "model": "openai:o3"}, "simulated", None)
    assert simulated["embedder"] is None
    kept = MlePlan.with_model({"embedder": NAME, "model": "openai:o3"}, "openai:gpt-4o", None)
    assert kept["embedder"] == NAME


@pytest.mark.parametrize("name", ["text-embedding-3-small", ":x", "openai:", ""])
def test_embedder_when_it_is_no_provider_and_model_is_refused(tmp_path: Path, name: str) -> None:
    """When the plan is read."""
    with pytest.raises(ValueError, match="name a provider and a model"):
        house_plan(tmp_path, prepared=False, embedder=name)


@pytest.mark.parametrize("examples", [False, True])
def test_diagnosis_when_a_plan_asks_for_examples_is_asked_with_them(
    tmp_path: Path, examples: bool
) -> None:
    """As in the paper's Figure 5, in words of ours."""
    study = HouseStudy()
    plan = house_plan(
        tmp_path, memory=["cold"], build_seeds=[], steps=4, diagnosis_examples=examples
    )
    assert run(plan, tmp_path / "out", study).complete
    asked = [text for sample, text in study.asked if sample.endswith("/diagnose")]
    assert asked
    assert all(("Four records of other failures" in text) == examples for text in asked)


def test_bank_when_what_is_kept_is_decided_otherwise_is_built_with_that_memory(
    tmp_path: Path,
) -> None:
    """A reading of novelty is one of the bank, too; one of what is recalled is not."""
    conditions: list[Any] = [
        "off",
        "warm",
        "verified",
        {"name": "exact", "start": "warm", "settings": {"novelty": "message"}},
        {"name": "few", "start": "warm", "settings": {"top_k": 2}},
        {"name": "filler", "start": "warm", "control": "placebo", "of": "exact"},
    ]
    plan = house_plan(tmp_path, prepared=False, memory=conditions)
    runs = {run.name: run for run in runs_of(plan)}
    built = {
        str(run.factors["memory"]): run.source.run
        for run in runs.values()
        if run.source is not None
    }
    assert built == {
        "warm": "build/house-prices",
        "verified": "build/house-prices",
        "few": "build/house-prices",
        "exact": "build-exact/house-prices",
        "filler": "build-exact/house-prices",
    }
    assert runs["build-exact/house-prices"].factors["memory"] == "exact"
