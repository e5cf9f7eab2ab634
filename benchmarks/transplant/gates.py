"""The checks of a transplant study (memory-transplants §5, App. C): before any claim, and beside it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.contrasts import equivalent
from langgraft.benchmarks.comparison.estimates import Estimate, mean_estimate
from langgraft.benchmarks.comparison.verdicts import SIGNIFICANCE, Gate, State, alike
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.reporting.findings import (
    complete_runs,
    constant_prompts,
    disjoint,
    enough_orders,
    halves,
    study_gates,
)
from langgraft.benchmarks.reporting.words import points
from langgraft.benchmarks.transplant.cells import Cell, Place
from langgraft.benchmarks.transplant.plan import NOISE, NONE, TransplantPlan

BEFORE_CLAIMS: Final = ("Completeness", "G1", "G2", "G3", "G4", "G5", "G6")
"""Gates without which nothing is claimed, by how their names begin (§5: all six)."""

FEWEST_BUDGETS: Final = 2


CONTROL: Final = "Control: "
"""How gates begin that say what controls do: no claim waits for them."""
INERT: Final = ("placebo", "framing")
"""Controls in which nothing should make a difference."""


def claims_hold(gates: Sequence[Gate]) -> bool:
    """Say whether all gates before any claim have passed, and no other has failed but those of controls."""
    needed = [each for each in gates if each.name.startswith(BEFORE_CLAIMS)]
    return all(each.state == "passed" for each in needed) and all(
        each.state != "failed" for each in gates if not each.name.startswith(CONTROL)
    )


def gates_of(
    plan: TransplantPlan, log: PlanLogReader, cells: Mapping[Place, Cell]
) -> tuple[Gate, ...]:
    """Make all checks."""
    kinds = {kind: [run for run in log.runs if run.factors["kind"] == kind] for kind in _KINDS}
    noise = [cell for place, cell in cells.items() if place[3] == NOISE]
    return study_gates(
        log,
        complete_runs(
            ((run, log.results(run.name)) for run in log.runs),
            lambda _, result: result.get("problem"),
            "attempts",
        ),
        splits=disjoint(
            {item for kind in ("build", "admit") for run in kinds[kind] for item in run.item_ids},
            {item for run in kinds["eval"] for item in run.item_ids},
            "problems",
        ),
        prompts=_template(log),
        grader=_grader(log.manifest),
        orders=enough_orders(plan.seeds, "order"),
        budgets=_budgets(plan),
        utility=_utility(plan, cells),
        replicates=[halves(f"no memory, {c.place[0]}", c.scores, plan.margin) for c in noise]
        or "The plan has no runs without memory that share no reply (`noise_runs`).",
        reading=_read_backwards(cells),
        controls=[*_controls(plan, cells)]
        or f"The plan has no control of these: {', '.join(INERT)}.",
        own=(
            _off_is_none(cells),
            replace(constant_prompts(log.manifest), name="Constant prompts"),
        ),
    )


_KINDS: Final = ("build", "select", "admit", "eval")


def _read_backwards(cells: Mapping[Place, Cell]) -> Gate:
    """Check that no accuracy depends on the order in which attempts are read."""
    backwards = {
        place: replace(
            cell,
            scores={seed: dict([*row.items()][::-1]) for seed, row in [*cell.scores.items()][::-1]},
            prompts=dict([*cell.prompts.items()][::-1]),
        )
        for place, cell in [*cells.items()][::-1]
    }
    forward, again = (
        {" ".join(map(str, at)): _accuracy(cell) for at, cell in some.items()}
        for some in (cells, backwards)
    )
    return alike("Order of reading", forward, again)


def _accuracy(cell: Cell) -> float | None:
    return float(cell.matrix(cell.items).mean()) if cell.complete and cell.done else None


def _controls(plan: TransplantPlan, cells: Mapping[Place, Cell]) -> Iterator[Gate]:
    """Check of each inert control that it is equivalent to no memory, over all its cells of a solver."""
    kinds = [kind for kind in INERT if kind in plan.controls and plan.controlled]
    for kind in kinds:
        found = [_against_none(solver.name, kind, cells) for solver in plan.solvers]
        told = "; ".join(
            f"{solver.name} {points(each) if each else 'incomplete'}"
            for solver, each in zip(plan.solvers, found, strict=True)
        )
        known = [each for each in found if each is not None]
        state: State = "open"
        if any(each.p * len(kinds) * len(found) < SIGNIFICANCE for each in known):
            state = "failed"
        elif len(known) == len(found) and all(equivalent(e, plan.margin) for e in known):
            state = "passed"
        margin = f"within ±{100 * plan.margin:.0f} pp"
        words = {"passed": f"equivalent {margin}", "failed": "more than chance does"}
        yield Gate(
            f"{CONTROL}{kind}",
            state,
            f"Against no memory, over all its cells: {told}: {words.get(state, f'not shown to be equivalent {margin}')}.",
        )


def _against_none(solver: str, kind: str, cells: Mapping[Place, Cell]) -> Estimate | None:
    bare = next(
        (c for p, c in cells.items() if p[0] == solver and p[2] == NONE and p[3] == "NM"), None
    )
    mine = [cell for place, cell in cells.items() if (place[0], place[4]) == (solver, kind)]
    if bare is None or not mine or not all(each.complete and each.done for each in (bare, *mine)):
        return None
    items = bare.items
    means = np.mean([each.matrix(items).mean(axis=1) for each in mine], axis=0)
    values = (means - bare.matrix(items).mean(axis=1))[:, np.newaxis]
    return mean_estimate(values, bounds=(-1.0, 1.0), shared_effects=False)


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


def _budgets(plan: TransplantPlan) -> Gate:
    state: State = "passed" if len(plan.budgets) >= FEWEST_BUDGETS else "failed"
    told = " and ".join(map(str, sorted(plan.budgets)))
    return Gate("G5: budgets", state, f"Blocks of at most {told} tokens.")


def _utility(plan: TransplantPlan, cells: Mapping[Place, Cell]) -> Gate:
    name = "G6: frozen-store utility"
    found = [cell for place, cell in cells.items() if place[4] == "frozen"]
    missing = [cell.place for cell in found if not cell.complete]
    if not plan.controlled or not found:
        return Gate(name, "not applicable", "The plan has no arm with recall off on the same bank.")
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
