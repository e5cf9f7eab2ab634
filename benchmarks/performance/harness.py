"""What the harness costs per item: the same episodes with it and without it."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from langgraft.benchmarks.continual.plan import Condition, ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.graph import PlannedRun
from langgraft.benchmarks.harness.plans import PreparedPlan, prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.memory.deltas import MemoryDelta


def _plan(items: int) -> PreparedPlan[ContinualPlan]:
    plan = ContinualPlan(
        train_items=items,
        test_items=1,
        runs=1,
        baseline_runs=1,
        rerun=False,
        sequences=("A>B",),
        conditions=(Condition(name="agg", provider="insight"),),
    )
    return prepare(ContinualStudy(), plan)


def overhead_per_item(*, items: int = 40, rounds: int = 3) -> tuple[float, float]:
    """Measure CPU milliseconds the harness adds to an item, and those of the item itself.

    The items are training episodes of the continual study, whose records (transcript, recalls,
    deltas) have their usual size.
    """
    with_harness, without = [], []
    prepared = _plan(items)
    count = sum(run.length for run in prepared.graph)
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            with_harness.append(_cpu(lambda: _through_harness(prepared, Path(folder))))
        without.append(_cpu(lambda: _bare(prepared)))
    # The first round warms up imports and caches.
    bare = min(without[1:]) / count * 1e3
    return min(with_harness[1:]) / count * 1e3 - bare, bare


async def _through_harness(prepared: PreparedPlan[ContinualPlan], folder: Path) -> None:
    outcome = await run_plan(
        prepared, folder, model_for=prepared.study.simulated_model, parallel_items=1
    )
    assert outcome.complete


async def _bare(prepared: PreparedPlan[ContinualPlan]) -> None:
    deltas: dict[str, list[MemoryDelta]] = {}
    for run in prepared.graph:
        deltas[run.name] = await _bare_run(prepared, run, deltas)


async def _bare_run(
    prepared: PreparedPlan[ContinualPlan],
    run: PlannedRun,
    deltas: dict[str, list[MemoryDelta]],
) -> list[MemoryDelta]:
    study, plan = prepared.study, prepared.plan
    source = run.spec.source
    before = [] if source is None else deltas[source.run]
    session = study.open(plan, run.spec, before, study.simulated_model(plan, run.spec))
    made = list(before)
    for index, item_id in enumerate(run.spec.item_ids):
        outcome = await session.run_item(index, item_id)
        made.extend(outcome.deltas)
    await session.aclose()
    return made


def _cpu(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    started = time.process_time()
    asyncio.run(work())
    return time.process_time() - started
