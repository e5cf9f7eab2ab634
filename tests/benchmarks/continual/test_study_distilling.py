"""The continual study with lessons distilled by outcome: costs, fingerprints, what is logged."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from langgraft._core.errors import PlanError
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import RunSpec

STUDY = ContinualStudy()
PROMPTS = {"reflect_success", "reflect_failure", "reflect_comparative", "validate", "repair"}
DISTILLED = {
    "name": "ind-outcome",
    "provider": "insight",
    "distillation": "by_outcome",
    "settings": {"granularity": "individual", "top_k": 3, "attempts": 5},
}


def small_plan(**fields: Any) -> ContinualPlan:
    """Return a plan of one condition in one direction."""
    settings: dict[str, Any] = {
        "conditions": [DISTILLED],
        "sequences": ["A>B"],
        "train_items": 6,
        "test_items": 1,
        "runs": 1,
        "baseline_runs": 1,
        "rerun": False,
    }
    return ContinualPlan.model_validate({**settings, **fields})


def run_of(plan: ContinualPlan, name: str) -> RunSpec:
    """Return a run of a plan by name."""
    return next(run for run in STUDY.expand(plan) if run.name == name)


async def play(out: Path, **settings: Any) -> PlanLog:
    """Run the small plan with the simulated learner."""
    prepared = prepare(STUDY, small_plan())
    await run_plan(prepared, out, model_for=STUDY.simulated_model, **settings)
    return PlanLog(out)


def test_plan_when_it_distills_by_outcome_counts_its_calls_and_names_its_prompts() -> None:
    """A reflection and a validation, each with a correction; only a plan that asks has them."""
    plan = small_plan()
    train, test = (run_of(plan, f"ind-outcome/0/{name}") for name in ("train A", "test A after A"))
    assert STUDY.most_calls(plan, train) == 6 * (20 + 4)
    assert STUDY.most_calls(plan, test) == 20
    prompts = STUDY.fingerprints(plan)["prompts"]
    assert isinstance(prompts, dict)
    assert set(prompts) >= PROMPTS
    plain = STUDY.fingerprints(small_plan(conditions=[{**DISTILLED, "distillation": "plain"}]))
    assert plain["prompts"] == {name: prompts[name] for name in ("act", "act_repair", "reflect")}


def test_plan_when_memory_keeps_no_lessons_refuses_to_distill_them() -> None:
    """A condition that would be another one under a name of its own."""
    raw = {"name": "raw", "provider": "trajectory", "distillation": "by_outcome"}
    with pytest.raises(PlanError, match="'by_outcome' is idle, as provider 'trajectory' keeps no"):
        STUDY.check(small_plan(conditions=[raw]))


def test_results_when_distilled_say_what_was_compared_and_dropped(tmp_path: Path) -> None:
    """Each lesson that was judged is kept, or dropped with a reason; there is no third way."""
    log = asyncio.run(play(tmp_path / "run"))
    results: list[dict[str, Any]]
    results = [dict(result) for result in log.results("ind-outcome/0/train A>B")]
    dropped = [each for result in results for each in result.get("dropped", ())]
    assert dropped
    assert {frozenset(each) for each in dropped} == {frozenset(("text", "node", "reason", "score"))}
    compared = [result["compared_with"] for result in results if "compared_with" in result]
    assert compared
    kept = sum(len(result["lessons"]) for result in results)
    judged = sum(len(result.get("validation", ())) for result in results)
    assert judged == kept + len(dropped)
