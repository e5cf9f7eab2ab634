"""Checks that only this study can make, beside those of any comparison (`reporting.findings`)."""

from collections.abc import Iterable

from langgraft.benchmarks.comparison import verdicts
from langgraft.benchmarks.comparison.verdicts import Gate, State
from langgraft.benchmarks.continual.cells import RunResults, StudyLog
from langgraft.benchmarks.continual.metrics import IDENTITY_TOLERANCE, Transfer
from langgraft.benchmarks.reporting.words import several


def completeness(study: StudyLog) -> Gate:
    """Check that every planned episode has a result."""
    runs = list(study.runs)
    done, planned = sum(run.done for run in runs), sum(run.planned for run in runs)
    missing = [
        f"{run.spec.name} {run.done}/{run.planned}" for run in runs if run.done < run.planned
    ]
    detail = f"{done:,} of {planned:,} episodes in {len(runs)} runs have a result."
    return verdicts.completeness(detail, missing)


def identity(transfers: Iterable[Transfer]) -> Gate:
    """Check that FWT and BWT are the weighted sums of ΔRR and ΔNL."""
    rows = list(transfers)
    gaps = [row.identity_gap for row in rows if row.identity_gap is not None]
    name = "Identity"
    if not gaps:
        return Gate(name, "open", "No transfer could be computed yet.")
    wrong = [row for row in rows if row.identity_gap is not None and not row.identity_holds]
    detail = (
        f"transfer = (n_s·ΔRR + n_f·ΔNL) / N holds in {len(gaps) - len(wrong)} of {len(rows)} rows"
        f" to {IDENTITY_TOLERANCE:g}; largest gap {max(gaps):.1e}."
    )
    state: State = "failed" if wrong else "passed" if len(gaps) == len(rows) else "open"
    return Gate(name, state, detail)


def same_tests(study: StudyLog) -> Gate:
    """Check that every evaluation of a task tests the same items."""
    name = "Same test items"
    by_task: dict[str, set[frozenset[str]]] = {}
    for cell in study.cells.values():
        for run in cell.runs:
            by_task.setdefault(cell.key.task, set()).add(frozenset(run.spec.item_ids))
    wrong = [task for task, found in by_task.items() if len(found) > 1]
    if wrong:
        return Gate(
            name, "failed", f"Evaluations of task {', '.join(wrong)} differ in their items."
        )
    sizes = ", ".join(f"{len(next(iter(found)))} of {task}" for task, found in by_task.items())
    return Gate(name, "passed", f"Every evaluation tests the same held-out items: {sizes}.")


def training_orders(study: StudyLog) -> Gate:
    """Check that replicates train on the same items in other orders, alike for all conditions."""
    name = "Training orders"
    streams: dict[tuple[str, int], list[RunResults]] = {}
    for run in study.training:
        streams.setdefault((str(run.spec.factors["task"]), run.replicate), []).append(run)
    if not streams:
        return Gate(name, "open", "Nothing is trained in this plan.")
    if any(len({run.spec.item_ids for run in runs}) > 1 for runs in streams.values()):
        return Gate(name, "failed", "Conditions of one repetition train in different orders.")
    for task in sorted({task for task, _ in streams}):
        orders = [runs[0].spec.item_ids for (each, _), runs in streams.items() if each == task]
        if len({frozenset(order) for order in orders}) > 1:
            return Gate(name, "failed", f"Repetitions train on different items of task {task}.")
        if len(set(orders)) < len(orders):
            return Gate(name, "failed", f"Repetitions share an order of the items of task {task}.")
    replicates = len({replicate for _, replicate in streams})
    return Gate(
        name,
        "passed",
        f"{several(replicates, 'repetition')}, each with an order of its own, shared by all"
        " conditions.",
    )
