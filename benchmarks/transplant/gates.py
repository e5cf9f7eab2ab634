"""The cells of a transplant study, and its gates: checks on them (memory-transplants §5, App. C).

A cell is what one solver did with one system, budget, condition and control. Of the checks some come before any
claim, and some stand beside it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeAlias, cast

import numpy as np

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.contrasts import equivalent
from langgraft.benchmarks.comparison.estimates import Estimate, Matrix, mean_estimate
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
from langgraft.benchmarks.transplant.plan import NOISE, NONE, Side, TransplantPlan

Place: TypeAlias = tuple[str, int, str, str, str]
"""Solver, budget, system, condition, control."""


@dataclass(frozen=True)
class Cell:
    """What came of one cell of the design."""

    place: Place
    mode: str
    planned: int
    scores: Mapping[int, Mapping[str, float]]
    """Seed → problem → outcome."""
    by_last_token: Mapping[int, Mapping[str, float]]
    """The same by the paper's extraction, where that says something."""
    prompts: Mapping[tuple[int, str], str]
    """Seed and problem → SHA-256 of the prompt."""
    asked: int
    """Attempts in which memory was asked."""
    empty: int
    """Those of them in which nothing was recalled."""
    partial: int
    """Those in which something was recalled, and something else found had no room."""
    remedied: bool = False
    """Whether it is a condition with a remedy."""

    @property
    def done(self) -> int:
        """Attempts that have a result."""
        return sum(map(len, self.scores.values()))

    @property
    def complete(self) -> bool:
        """Whether no result is missing."""
        return self.done == self.planned

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Return a seed for each observation: those whose prompts are all the same are one.

        Runs that share no reply are what they are.
        """
        if self.place[3] == NOISE:
            return tuple(sorted(self.scores))
        seen: dict[tuple[tuple[str, str], ...], int] = {}
        for seed, outcomes in sorted(self.scores.items()):
            key = tuple((item, self.prompts[seed, item]) for item in sorted(outcomes))
            seen.setdefault(key, seed)
        return tuple(sorted(seen.values()))

    @property
    def items(self) -> list[str]:
        """Return the problems of its first observation, sorted."""
        return sorted(self.scores[self.seeds[0]])

    def matrix(self, items: Sequence[str]) -> Matrix:
        """Return the outcomes of problems by observations."""
        rows = [[self.scores[seed][item] for seed in self.seeds] for item in items]
        return np.array(rows, dtype=np.float64)


def read_chosen(log: PlanLogReader) -> dict[tuple[str, str], dict[Side, Mapping[str, JSON]]]:
    """Return what each domain selected, by solver and system; what is not selected yet is left out."""
    found: dict[tuple[str, str], dict[Side, Mapping[str, JSON]]] = {}
    for run in log.runs:
        f = run.factors
        if f["kind"] == "select" and (results := log.results(run.name)):
            sides = found.setdefault((str(f["solver"]), str(f["system"])), {})
            chosen = cast("Mapping[str, JSON]", results[0]["chosen"])
            sides[cast("Side", f["architecture"])] = chosen
    return found


def read_admitted(log: PlanLogReader) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return how many items were admitted, and of how many, by solver, system and condition."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for run in log.runs:
        f = run.factors
        last = log.results(run.name)[-1:] if f["kind"] == "admit" else []
        for result in last:
            if "admitted" in result:
                place = str(f["solver"]), str(f["system"]), str(f["condition"])
                kept, offered = found.get(place, (0, 0))
                here = cast("int", result["admitted"]), cast("int", result["offered"])
                found[place] = kept + here[0], offered + here[1]
    return found


def read_cells(log: PlanLogReader) -> dict[Place, Cell]:
    """Read the evaluated runs of a log, cell by cell; the order of runs and items plays no part."""
    cells: dict[Place, Cell] = {}
    for run in sorted(log.runs, key=lambda each: each.name):
        f = run.factors
        if f["kind"] != "eval":
            continue
        solver, system, condition, control = (
            str(f[name]) for name in ("solver", "system", "condition", "control")
        )
        place = solver, cast("int", f["budget"]), system, condition, control
        seed, results = cast("int", f["seed"]), log.results(run.name)
        known = cells.get(place) or Cell(
            place, str(f["mode"]), 0, {}, {}, {}, 0, 0, 0, remedied=f["remedy"] is not None
        )
        asked = [each for each in results if each["asked"]]
        tokens = {
            str(each["problem"]): float(bool(each["by_last_token"]))
            for each in results
            if each["by_last_token"] is not None
        }
        cells[place] = replace(
            known,
            planned=known.planned + run.length,
            scores={
                **known.scores,
                seed: {str(each["problem"]): float(bool(each["success"])) for each in results},
            },
            by_last_token={**known.by_last_token, seed: tokens},
            prompts={
                **known.prompts,
                **{(seed, str(each["problem"])): str(each["prompt"]) for each in results},
            },
            asked=known.asked + len(asked),
            empty=known.empty + sum(not each["recalled"] for each in asked),
            partial=known.partial
            + sum(bool(each["recalled"] and each["lacked_room"]) for each in asked),
        )
    return cells


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
