"""Checks that a result must pass before it is worth reading (evaluation §2.5)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.continual.cells import RunResults, StudyLog
from langgraft.benchmarks.continual.contrasts import WIDEST, Contrast, Noise
from langgraft.benchmarks.continual.metrics import IDENTITY_TOLERANCE, Transfer
from langgraft.benchmarks.continual.wording import flat, points, several, short

State: TypeAlias = Literal["passed", "failed", "open"]

_NAMED = 5
"""How many offenders a gate names."""

_TOO_WIDE = f"Intervals wider than ±{100 * WIDEST:.0f} pp show nothing: it cannot be told."


@dataclass(frozen=True, slots=True)
class Gate:
    """One check and how it came out; `open` says that it could not be made."""

    name: str
    state: State
    detail: str


def completeness(study: StudyLog) -> Gate:
    """Check that every planned episode has a result."""
    runs = list(study.runs)
    done, planned = sum(run.done for run in runs), sum(run.planned for run in runs)
    missing = [
        f"{run.spec.name} {run.done}/{run.planned}" for run in runs if run.done < run.planned
    ]
    detail = f"{done:,} of {planned:,} episodes in {len(runs)} runs have a result."
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        detail += f" Missing: {'; '.join(missing[:_NAMED])}{more}."
    return Gate("Completeness", "failed" if missing else "passed", detail)


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


def no_difference(noise: Noise) -> Gate:
    """Check that the re-run of the baseline does not differ from the baseline."""
    name = "A/A: re-run"
    if noise.rerun is None or noise.rerun.estimate is None:
        return Gate(name, "open", "The plan has no re-run of the baseline, or it has no results.")
    detail = f"The baseline against itself with other samples: {points(noise.rerun.estimate)}."
    if not noise.rerun.difference.complete:
        return Gate(name, "open", f"{detail} Incomplete.")
    if noise.quiet is None:
        return Gate(name, "open", f"{detail} {_TOO_WIDE}")
    return Gate(name, "passed" if noise.quiet else "failed", detail)


def control_gates(noise: Noise, controls: Iterable[Contrast]) -> tuple[Gate, ...]:
    """Check that each inert control stays within the noise of a re-run; see `Noise.holds`."""
    return tuple(_control_gate(noise, control) for control in controls if control.inert)


def _control_gate(noise: Noise, control: Contrast) -> Gate:
    name = f"A/A: {control.condition}"
    rerun = None if noise.rerun is None else noise.rerun.estimate
    if rerun is None or noise.band is None or control.estimate is None:
        return Gate(name, "open", "There is no re-run to compare with, or there are no results.")
    detail = (
        f"{points(control.estimate)} against no memory; a re-run of the baseline {points(rerun)},"
        f" a noise of ±{100 * noise.band:.1f} pp."
    )
    if control.verdict == "incomplete":
        return Gate(name, "open", f"{detail} Incomplete.")
    within = noise.holds(control)
    state: State = "open" if within is None else "passed" if within else "failed"
    return Gate(name, state, f"{detail} {_control_words(noise, control, within)}")


def _control_words(noise: Noise, control: Contrast, within: bool | None) -> str:
    """Say what was concluded from the two intervals, and what was not."""
    assert control.estimate is not None
    low, high = control.estimate.low, control.estimate.high
    if within is False:
        return "It differs from no memory, and by more than a re-run does."
    if within:
        reach = 100 * max(-low, high)
        return f"No detectable difference; what is ruled out is one beyond {reach:.1f} pp."
    if not (noise.sharp and control.estimate.half_width <= WIDEST):
        return _TOO_WIDE
    if low <= 0 <= high:
        return "Its interval holds 0, but it is further off than a re-run: it cannot be told."
    return "Its interval excludes 0, but it is no further off than a re-run: it cannot be told."


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
