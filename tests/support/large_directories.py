"""Run directories of any size, as the harness writes them: the continual study, its episodes drawn."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chain_study import ChainPlan, ChainStudy, chain_plan, run_chain
from langchain_core.language_models import BaseChatModel
from synthetic_log import SyntheticLog, World
from typing_extensions import override

from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.progress import PlanOutcome
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import BankPlace, ItemOutcome, RunSession, RunSpec
from langgraft.memory.model import MemoryDelta

RUNS_A_REPLICATE = 28
"""Of the plan below: two each of no memory and its re-run, 20 of two conditions, four of a control."""

SAID = "Your goal: pick up the grey key. There is a red ball 1 step in front of you. " * 15
"""Makes an episode as long as one of BabyAI: some 6 kB."""


def large_plan(replicates: int, items: int) -> ContinualPlan:
    """Make a plan whose test runs have `items` items, and its training runs no more than 20."""
    return ContinualPlan.model_validate(
        {
            "study": "continual",
            "tasks": {"A": "babyai/action_obj_door", "B": "babyai/pickup_loc"},
            "runs": replicates,
            "baseline_runs": replicates,
            "train_items": min(items, 20),
            "test_items": items,
            "conditions": [
                {"name": "raw", "provider": "trajectory"},
                {"name": "agg", "provider": "insight", "settings": {"granularity": "aggregate"}},
            ],
            "controls": [{"control": "placebo", "of": "agg"}],
        }
    )


class DrawnStudy(ContinualStudy):
    """The continual study, but what comes of an episode is drawn at once."""

    def __init__(self, plan: ContinualPlan) -> None:
        self._runs = {run.name: run for run in self.expand(plan)}

    @override
    def open(
        self,
        plan: ContinualPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> RunSession:
        lineage = [run]
        while lineage[-1].source is not None:
            lineage.append(self._runs[lineage[-1].source.run])
        return _Drawn(SyntheticLog(World(told=SAID, tokens=(900, 40)), runs=lineage), run)


class _Drawn:
    """A run whose episodes are drawn."""

    def __init__(self, log: SyntheticLog, run: RunSpec) -> None:
        self._results, self._deltas = log.results(run.name), log.deltas(run.name)

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Return what was drawn."""
        return ItemOutcome(self._results[index], self._deltas[index])

    async def aclose(self) -> None:
        """Nothing is open."""


def make_directory(out: Path, replicates: int, items: int, **options: Any) -> PlanOutcome:
    """Run such a plan; `options` go to `run_plan`."""
    plan = large_plan(replicates, items)
    study = DrawnStudy(plan)
    prepared = prepare(study, plan)
    return asyncio.run(run_plan(prepared, out, model_for=study.simulated_model, **options))


class OneRun(ChainStudy):
    """A study of one run, whose items are independent and learn nothing."""

    @override
    def expand(self, plan: ChainPlan) -> tuple[RunSpec, ...]:
        items = tuple(f"item-{number}" for number in range(plan.items))
        return (RunSpec(self.name, "one", {}, items, frozen=True),)


def run_in_one(out: Path, items: int) -> None:
    """Run such a plan, whose items are answered at once."""
    asyncio.run(run_chain(out, chain_plan(items=items), OneRun()))


if __name__ == "__main__":
    run_in_one(Path(sys.argv[1]), int(sys.argv[2]))
