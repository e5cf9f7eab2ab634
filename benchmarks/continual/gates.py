"""Checks that a result must pass before it is worth reading (evaluation §2.5)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison import verdicts
from langgraft.benchmarks.comparison.contrasts import Comparison, Contrast
from langgraft.benchmarks.comparison.verdicts import Gate, State
from langgraft.benchmarks.continual.cells import RunResults, StudyLog
from langgraft.benchmarks.continual.metrics import IDENTITY_TOLERANCE, Transfer
from langgraft.benchmarks.reporting.words import flat, points, several, short

_NAMED = 5
"""Entries of a fingerprint that are told one by one."""


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


def no_difference(found: Comparison) -> Gate:
    """Check that the re-run of the baseline is equivalent to the baseline."""
    name = "A/A: re-run"
    if found.rerun is None or found.rerun.estimate is None:
        return Gate(name, "open", "The plan has no re-run of the baseline, or it has no results.")
    told = points(found.rerun.estimate)
    return _equivalence(
        name, found, found.rerun, f"The baseline against itself with other samples: {told}."
    )


def control_gates(found: Comparison) -> tuple[Gate, ...]:
    """Check that each inert control is equivalent to no memory; see `Comparison.holds`."""
    return tuple(_control_gate(found, control) for control in found.controls if control.inert)


def _control_gate(found: Comparison, control: Contrast) -> Gate:
    name = f"A/A: {control.condition}"
    if control.estimate is None:
        return Gate(name, "open", "There are no results.")
    return _equivalence(name, found, control, f"{points(control.estimate)} against no memory.")


def _equivalence(name: str, found: Comparison, contrast: Contrast, detail: str) -> Gate:
    if contrast.verdict == "incomplete" or contrast.estimate is None:
        return Gate(name, "open", f"{detail} Incomplete.")
    margin, held = f"±{100 * found.margin:.0f} pp", found.holds(contrast)
    tests = f"two one-sided tests, p = {contrast.estimate.p_beyond(found.margin):.3f}"
    if held:
        return Gate(name, "passed", f"{detail} Equivalent within {margin} ({tests}).")
    if held is False:
        return Gate(
            name, "failed", f"{detail} It differs, and may by more than {margin} ({tests})."
        )
    return Gate(
        name, "open", f"{detail} Neither equivalent within {margin} ({tests}) nor different."
    )


def like_orders(family: Sequence[Contrast]) -> Gate:
    """Check the assumption that training orders act alike on all memories.

    Each memory is judged once more with the order effects of the others alone.
    """
    name = "Order effects alike"
    known = [each for each in family if each.verdict_of_others is not None]
    if not known or any(each.verdict in {"too few runs", "incomplete"} for each in known):
        return Gate(name, "open", "It takes three memories, complete, with three runs each.")
    spreads = ", ".join(f"{each.condition} {100 * (each.order_sd or 0):.1f}" for each in known)
    detail = f"Standard deviations of whole runs: {spreads} pp."
    wrong = [
        f"{each.condition} ({each.verdict_of_others})"
        for each in known
        if each.verdict not in {each.verdict_of_others, "unclear"}
    ]
    if wrong:
        return Gate(name, "failed", f"{detail} With those of the others alone: {'; '.join(wrong)}.")
    return Gate(name, "passed", f"{detail} With those of the others alone all verdicts stay.")


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


def constant_prompts(manifest: Mapping[str, JSON]) -> Gate:
    """Name the one digest that each prompt has for the whole plan, and what else is held.

    A run directory refuses to go on when a fingerprint changes, so one digest per prompt in
    the manifest means one text in every run. Fingerprints are the study's own: they may be
    nested as it likes, and the provenance shows them in full.
    """
    name = "Constant prompts"
    fingerprints = cast("Mapping[str, JSON]", manifest.get("fingerprints") or {})
    prompts = fingerprints.get("prompts")
    if not prompts:
        return Gate(name, "open", "The manifest names no prompts.")
    detail = f"One text per prompt in all runs: {_held(prompts)}."
    others = sorted(key for key in fingerprints if key != "prompts")
    if others:
        held = "; ".join(f"{key} {_held(fingerprints[key])}" for key in others)
        detail += f" As constant: {held}."
    return Gate(name, "passed", detail)


def _held(value: JSON) -> str:
    """Write a fingerprint in short, whatever its shape; of many entries only the number."""
    rows = sorted(flat(value))
    if len(rows) > _NAMED:
        return f"({len(rows)} entries)"
    return ", ".join(f"{name} {short(text)}".strip() for name, text in rows)
