"""Conversations of a transplant study: the log tells the digest of every prompt."""

import asyncio

import pytest
from transplant_log import transplant_plan

from langgraft._core.canonical import text_digest
from langgraft._core.errors import InputError
from langgraft.benchmarks.harness import PlanLog, prepare, run_plan
from langgraft.benchmarks.studies import studies
from langgraft.memory.model import BLOCK_START

pytestmark = pytest.mark.matrix  # whole studies

PLAN = transplant_plan(
    source={"name": "counting", "problems": "generated"},
    target={"name": "algebra", "problems": "generated"},
    systems=[
        {"name": "none", "provider": "none"},
        {"name": "rag", "provider": "simple_rag", "source": {"max_items": 3}},
        {"name": "recency", "provider": "recency"},
    ],
    solvers=[{"name": "strong"}],
    controlled=["rag"],
    controls=["random", "placebo", "framing"],
    budgets=[400],
    seeds=1,
    build_items=6,
    target_build_items=5,
    eval_items=4,
    noise_runs=1,
)
STUDY = studies()["transplant"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PlanLog:
    """Play the plan once."""
    out = tmp_path_factory.mktemp("study") / "out"
    asyncio.run(run_plan(prepare(STUDY, PLAN), out, model_for=STUDY.simulated_model))
    return PlanLog(out)


def test_prompts_when_made_again_have_the_digests_of_the_log(log: PlanLog) -> None:
    """Builds and evaluations, whatever the order of a block: byte for byte, with the reply itself."""
    results = iter([(run, result) for run in log.runs for result in log.results(run.name)])
    blocks = refused = 0
    for each, (run, result) in zip(STUDY.episodes(PLAN, log), results, strict=True):
        assert (each.run, each.task) == (run.name, result["problem"])
        assert each.split == ("train" if run.factors["kind"] == "build" else "evaluate")
        assert each.domain == ("counting" if "/counting/" in run.name else "algebra")
        if each.condition.endswith("~placebo") and result["recalled"]:
            refused += 1
            with pytest.raises(InputError, match=r"a placebo's filler.*--without-memory"):
                each.conversations(True)
            continue
        for conversation in each.conversations(True):
            asked, reply = conversation.messages
            assert text_digest(asked.content) == result["prompt"]
            assert reply.content == result["reply"]
            blocks += BLOCK_START in asked.content
        for conversation in each.conversations(False):
            assert BLOCK_START not in conversation.messages[0].content
    assert blocks > 0
    assert refused > 0
