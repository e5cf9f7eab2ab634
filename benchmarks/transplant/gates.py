"""The checks of a transplant study (memory-transplants §5, App. C): before any claim, and beside it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.verdicts import FEWEST_RUNS, Gate, State, completeness
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.reporting.findings import constant_prompts
from langgraft.benchmarks.transplant.cells import Cell, Place
from langgraft.benchmarks.transplant.plan import NONE, TransplantPlan

BEFORE_CLAIMS: Final = ("Completeness", "G1", "G2", "G3", "G4", "G5", "G6")
"""Gates without which nothing is claimed, by how their names begin (§5: all six)."""

FEWEST_BUDGETS: Final = 2


def claims_hold(gates: Sequence[Gate]) -> bool:
    """Say whether all gates before any claim have passed, and no other has failed."""
    needed = [each for each in gates if each.name.startswith(BEFORE_CLAIMS)]
    return all(each.state == "passed" for each in needed) and all(
        each.state != "failed" for each in gates
    )


def gates_of(
    plan: TransplantPlan, log: PlanLogReader, cells: Mapping[Place, Cell]
) -> tuple[Gate, ...]:
    """Make all checks."""
    return (
        _complete(log),
        _splits(log),
        _template(log),
        _grader(log.manifest),
        _seeds(plan),
        _budgets(plan),
        _utility(plan, cells),
        _off_is_none(cells),
        constant_prompts(log.manifest),
    )


def _complete(log: PlanLogReader) -> Gate:
    done = {run.name: len(log.results(run.name)) for run in log.runs}
    planned = sum(run.length for run in log.runs)
    missing = [run.name for run in log.runs if done[run.name] < run.length]
    return completeness(f"{sum(done.values()):,} of {planned:,} attempts have a result.", missing)


def _splits(log: PlanLogReader) -> Gate:
    name = "G1: splits"
    evaluated = {item for run in log.runs if run.factors["kind"] == "eval" for item in run.item_ids}
    built = {
        item
        for run in log.runs
        if run.factors["kind"] in {"build", "admit"}
        for item in run.item_ids
    }
    shared = sorted(evaluated & built)
    told = f"{len(evaluated)} evaluated problems, {len(built)} that banks were built from"
    if shared:
        return Gate(name, "failed", f"{told}; {len(shared)} in both, such as {shared[0]}.")
    return Gate(name, "passed", f"{told}; none in both, by id and (when drawn) by text.")


def _template(log: PlanLogReader) -> Gate:
    name = "G2: one template"
    asking = [run.name for run in log.runs if run.factors["kind"] != "select"]
    found = {str(each["template"]) for name in asking for each in log.results(name)}
    if not found:
        return Gate(name, "open", "There are no results.")
    told = ", ".join(sorted(sha[:12] for sha in found))
    return Gate(
        name,
        "passed" if len(found) == 1 else "failed",
        f"SHA-256 of the solver's template in all results: {told}.",
    )


def _grader(manifest: Mapping[str, JSON]) -> Gate:
    name = "G3: grader"
    prints = cast("Mapping[str, Any]", manifest.get("fingerprints") or {})
    checked = prints.get("grader")
    if not checked:
        return Gate(name, "open", "The manifest does not say that the grader was checked.")
    return Gate(name, "passed", f"Checked on known pairs before the first call: {checked}.")


def _seeds(plan: TransplantPlan) -> Gate:
    state: State = "passed" if plan.seeds >= FEWEST_RUNS else "failed"
    return Gate("G4: orders", state, f"{plan.seeds} orders of the problems in every dynamic cell.")


def _budgets(plan: TransplantPlan) -> Gate:
    state: State = "passed" if len(plan.budgets) >= FEWEST_BUDGETS else "failed"
    told = " and ".join(map(str, sorted(plan.budgets)))
    return Gate("G5: budgets", state, f"Blocks of at most {told} tokens.")


def _utility(plan: TransplantPlan, cells: Mapping[Place, Cell]) -> Gate:
    name = "G6: frozen-store utility"
    found = [cell for place, cell in cells.items() if place[4] == "frozen"]
    missing = [cell.place for cell in found if not cell.complete]
    if not plan.controlled or not found:
        return Gate(name, "open", "The plan has no arm with recall off on the same bank.")
    if missing:
        return Gate(name, "failed", f"Incomplete: {' '.join(map(str, missing[0]))} and others.")
    return Gate(
        name, "passed", f"Recall on and off on the same frozen banks, in {len(found)} cells."
    )


def _off_is_none(cells: Mapping[Place, Cell]) -> Gate:
    """Check that where nothing is recalled, and in every `NM`, prompts are those without memory."""
    name = "Off is none"
    without: dict[tuple[str, str], str] = {}
    for place, cell in cells.items():
        if place[2] == NONE:
            without |= {(place[0], item): sha for (_, item), sha in cell.prompts.items()}
    arms = [c for p, c in cells.items() if p[3] == "NM" or p[4] in {"write_only", "frozen"}]
    if not arms or not without:
        return Gate(name, "open", "The plan has no runs without memory.")
    wrong = [
        cell.place
        for cell in arms
        if any(without.get((cell.place[0], item)) != sha for (_, item), sha in cell.prompts.items())
    ]
    if wrong:
        return Gate(name, "failed", f"Prompts differ from those without memory: {wrong[0]}.")
    return Gate(
        name,
        "passed",
        "Prompts of all NM cells, of write-only ones and of those with recall off are those without"
        f" memory, byte for byte, in {len(arms)} cells.",
    )
