"""What the harness costs per item: scheduling, folding, committing, and nothing else.

The episodes of a plan of the continual study are played once, without the harness. Then the
harness runs the same plan over what they gave, so that all CPU time is its own, and the
records (transcript, recalls, deltas) have their usual size.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from typing_extensions import override

from langgraft.benchmarks.continual.plan import Condition, ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.directory import places_in_memory
from langgraft.benchmarks.harness.plans import PreparedPlan, prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import BankPlace, ItemOutcome, RunSession, RunSpec
from langgraft.memory.model import MemoryDelta

Outcomes = Mapping[str, Sequence[ItemOutcome]]
"""What each run's items gave, by the run's name."""


class ReplayedStudy(ContinualStudy):
    """The continual study with its episodes played already."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes

    @override
    def open(
        self,
        plan: ContinualPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> RunSession:
        return ReplayedSession(self._outcomes[run.name])


class ReplayedSession:
    """Gives back what the items of one run gave."""

    def __init__(self, outcomes: Sequence[ItemOutcome]) -> None:
        self._outcomes = outcomes

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:  # noqa: ARG002  (protocol)
        """Return the outcome of an item."""
        return self._outcomes[index]

    async def aclose(self) -> None:
        """Do nothing."""


def _plan(study: ContinualStudy, items: int) -> PreparedPlan[ContinualPlan]:
    plan = ContinualPlan(
        train_items=items,
        test_items=1,
        runs=1,
        baseline_runs=1,
        rerun=False,
        sequences=("A>B",),
        conditions=(Condition(name="agg", provider="insight"),),
    )
    return prepare(study, plan)


def overhead_per_item(*, items: int = 40, rounds: int = 5) -> tuple[float, float]:
    """Measure CPU milliseconds of the harness per item, and those of the item itself.

    Args:
        items: Training items a phase.
        rounds: How often the harness runs the plan; the best round counts.
    """
    played = _plan(ContinualStudy(), items)
    count = sum(run.length for run in played.graph)
    started = time.process_time()
    outcomes = asyncio.run(_play(played))
    item = (time.process_time() - started) / count * 1e3
    replayed = _plan(ReplayedStudy(outcomes), items)
    costs = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            costs.append(_cpu(lambda: _through_harness(replayed, Path(folder))))
    return min(costs) / count * 1e3, item


async def _play(prepared: PreparedPlan[ContinualPlan]) -> Outcomes:
    study, plan = prepared.study, prepared.plan
    deltas: dict[str, list[MemoryDelta]] = {}
    outcomes: dict[str, list[ItemOutcome]] = {}
    for run in prepared.graph:
        source = run.spec.source
        before = [] if source is None else deltas[source.run]
        model = study.simulated_model(plan, run.spec)
        session = study.open(plan, run.spec, before, model, places_in_memory().of(run))
        outcomes[run.name] = [
            await session.run_item(index, item_id)
            for index, item_id in enumerate(run.spec.item_ids)
        ]
        made = [delta for outcome in outcomes[run.name] for delta in outcome.deltas]
        deltas[run.name] = [*before, *made]
        await session.aclose()
    return outcomes


async def _through_harness(prepared: PreparedPlan[ContinualPlan], folder: Path) -> None:
    outcome = await run_plan(prepared, folder, model_for=prepared.study.simulated_model)
    assert outcome.complete


def _cpu(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    started = time.process_time()
    asyncio.run(work())
    return time.process_time() - started
