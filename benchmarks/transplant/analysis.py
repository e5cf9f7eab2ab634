"""From the log of a transplant study to what its report says (memory-transplants §3.3, §5, §6).

A *cell* is what one solver did with one system, budget, condition and control: problems by seeds. Cells
are compared problem by problem. Seeds whose prompts are the same, problem by problem, are one observation
and count once: at temperature 0 they say nothing new. A cell all of whose prompts are those without
memory is *not tested*: whatever it shows, memory did not do it.

All that the study may claim is a handful of families: H1 to H4 of each solver, the moderation by solver,
and every condition against no memory at each budget. Each is corrected by Holm, and they share one level
of 5 %: a study in which nothing is so claims anything in one case of twenty, at the most.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.contrasts import (
    Comparison,
    Difference,
    compare_outcomes,
    equivalent,
    judge,
)
from langgraft.benchmarks.comparison.estimates import (
    Estimate,
    Matrix,
    OrderEffects,
    mean_estimate,
    order_effects,
    proportion,
)
from langgraft.benchmarks.comparison.outcomes import Outcomes
from langgraft.benchmarks.comparison.power import detectable_difference, planned_difference
from langgraft.benchmarks.comparison.verdicts import (
    Gate,
    Hypothesis,
    HypothesisSide,
    Verdict,
    holm,
    matches,
    sides_of,
)
from langgraft.benchmarks.harness.progress import Spent, spending
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.reporting.findings import Registration, registration
from langgraft.benchmarks.transplant.gates import (
    Cell,
    Place,
    claims_hold,
    gates_of,
    read_admitted,
    read_cells,
    read_chosen,
)
from langgraft.benchmarks.transplant.plan import (
    NOISE,
    NONE,
    VARYING,
    Side,
    System,
    TransplantPlan,
)

NM: Final = "NM"
MODERATION: Final = "M"
ONE_ARCHITECTURE: Final = "one architecture for both domains"


@dataclass(frozen=True, slots=True)
class Registered:
    """One contrast that was declared beforehand."""

    hypothesis: str
    solver: str
    system: str
    """Empty: the mean of all with memory."""
    budget: int | None
    """`None`: the mean of all."""
    what: str
    """The subtraction, in names of conditions."""
    estimate: Estimate | None
    p_adjusted: float | None
    """By Holm over the hypothesis and solver, and for the families of the study."""
    verdict: Verdict | Literal["not testable", "not tested"]
    why: str = ""
    """Why it could not be tested."""
    detectable: float | None = None
    """True difference found with a probability of 80 % at the first step of the correction."""

    @property
    def claims(self) -> bool:
        """Whether it says that there is a difference."""
        return self.verdict in {"helped", "hurt"}


@dataclass(frozen=True, slots=True)
class ControlResult:
    """A control beside no memory and beside the condition it imitates."""

    cell: Cell
    against_none: Estimate | None
    equivalent: bool
    """Whether it is shown to be no memory's equal within the plan's margin."""
    of_condition: Estimate | None
    """The condition less the control: what the control takes away."""
    same_prompts: bool
    """Whether all its prompts are those without memory."""


@dataclass(frozen=True, slots=True)
class RemedyResult:
    """A condition with a remedy, beside no memory and beside the condition without it."""

    cell: Cell
    before: Estimate | None
    """The condition as it is, less no memory."""
    after: Estimate | None
    """With the remedy, less no memory."""
    gained: Estimate | None
    """With the remedy less without."""
    admitted: tuple[int, int] | None
    """Items that replay admitted, and of how many, over all draws; `None`: the remedy is another."""


@dataclass(frozen=True)
class Analysis:
    """What the runs show."""

    plan: TransplantPlan
    cells: Mapping[Place, Cell]
    untested: frozenset[Place]
    """Cells with memory whose prompts all equal those without."""
    accuracy: Mapping[Place, Estimate]
    """Of complete cells; what orders do is pooled over those of a solver and budget."""
    hypotheses: tuple[Registered, ...]
    against_none: Mapping[tuple[str, int], Comparison]
    """By solver and budget: every system and condition that is tested against no memory, a family."""
    budgets: Mapping[Place, Estimate]
    """The largest budget less the smallest, by cell of the largest."""
    effects: Mapping[tuple[str, str, str], Estimate]
    """By solver, factor and level: mean gain over no memory of a system over its conditions, of a
    condition over systems, and what a system in a condition gains beyond the two (`system in condition`)."""
    modes: Mapping[str, Estimate]
    """By solver: dynamic less static conditions, over systems and budgets."""
    controls: tuple[ControlResult, ...]
    remedies: tuple[RemedyResult, ...]
    chosen: Mapping[tuple[str, str], Mapping[Side, Mapping[str, JSON]]]
    """By solver and system: what each domain selected of the grid."""
    noise: Mapping[str, tuple[float, float, float]]
    """By solver: least and greatest accuracy of the runs that share no reply, and the share of
    problems on which they differ."""
    registration: Registration
    """What came of the hypotheses that the plan registers."""
    spent: tuple[Spent, ...]
    gates: tuple[Gate, ...]
    planned: Mapping[int, tuple[float, float]]
    """As `planned` says."""
    manifest: Mapping[str, JSON]

    @property
    def claims(self) -> tuple[Registered, ...]:
        """What the registered contrasts claim, where the gates before any claim have passed."""
        return tuple(each for each in self.hypotheses if each.claims) if self.sound else ()

    def told(self, verdict: str) -> str:
        """Return a verdict as it may be told: one that claims is `open` where a gate has not passed."""
        return verdict if self.sound or verdict not in {"helped", "hurt"} else "open"

    @property
    def sound(self) -> bool:
        """Whether the gates before any claim have passed."""
        return claims_hold(self.gates)

    @property
    def negative(self) -> tuple[tuple[str, int, str, Estimate], ...]:
        """Negative transfer: what hurt against no memory, the most first."""
        if not self.sound:
            return ()
        found = [
            (solver, budget, each.condition, each.estimate)
            for (solver, budget), comparison in self.against_none.items()
            for each in comparison.family
            if each.verdict == "hurt" and each.estimate is not None
        ]
        return tuple(sorted(found, key=lambda each: each[3].value))


def analyze(plan: TransplantPlan, log: PlanLogReader) -> Analysis:
    """Analyze a log, finished or under way.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    cells = read_cells(log)
    bare = {solver.name: _bare(cells, solver.name) for solver in plan.solvers}
    untested = frozenset(
        place
        for place, cell in cells.items()
        if cell.asked and cell.done and _same_prompts(cell, bare[place[0]])
    )
    chosen = read_chosen(log)
    design = _Design(plan, cells, bare, untested, chosen)
    gates = gates_of(plan, log, cells)
    doubt = "" if claims_hold(gates) else "a gate that stands before any claim has not passed"
    return Analysis(
        plan=plan,
        cells=cells,
        untested=untested,
        accuracy=design.accuracy(),
        hypotheses=(*design.hypotheses(), *design.moderation()),
        against_none=design.against_none(),
        budgets=design.budgets(),
        effects=design.effects(),
        modes=design.modes(),
        controls=tuple(design.controls()),
        remedies=tuple(design.remedies(read_admitted(log))),
        chosen=chosen,
        noise=design.noise(),
        registration=registration(plan.hypotheses, log.manifest, design.registered, doubt=doubt),
        spent=spending(log),
        gates=gates,
        planned=planned(plan),
        manifest=log.manifest,
    )


def planned(plan: TransplantPlan) -> dict[int, tuple[float, float]]:
    """Return what a plan of this shape finds, with as many problems as it has and with 1,000.

    Returns:
        Problems → difference found four times in five: taken alone, and as one of the contrasts of H1.
    """
    systems = sum(each.provider != NONE for each in plan.systems)
    contrasts = max(systems, 1) * len(plan.budgets) * families_of(plan)
    return {
        items: (_planned(items, plan.seeds, 1), _planned(items, plan.seeds, contrasts))
        for items in sorted({plan.eval_items, 1000})
    }


def families_of(plan: TransplantPlan) -> int:
    """Count the families that share one level: H1 to H4, moderation, and a comparison a budget."""
    attributed = bool(plan.controlled) and "write_only" in plan.controls
    several = len(plan.solvers) > 1
    return len(plan.solvers) * (3 + attributed + len(plan.budgets)) + several


def _planned(items: int, seeds: int, contrasts: int) -> float:
    """Return what a plan detects where two conditions differ on `DISCORDANCE` of the problems."""
    arithmetic: Any = VARYING
    return planned_difference(items, seeds, baseline_runs=1, contrasts=contrasts, **arithmetic)


def _bare(cells: Mapping[Place, Cell], solver: str) -> Cell | None:
    """Return a complete cell without memory; at temperature 0 all of a solver are the same."""
    found = [
        cell
        for place, cell in cells.items()
        if place[0] == solver and place[3] == NM and cell.complete and cell.done
    ]
    return next((cell for cell in found if cell.place[2] == NONE), found[0] if found else None)


def _same_prompts(cell: Cell, bare: Cell | None) -> bool:
    if bare is None:
        return False
    without = {item: sha for (_, item), sha in bare.prompts.items()}
    return all(without.get(item) == sha for (_, item), sha in cell.prompts.items())


_Sum: TypeAlias = Sequence[tuple[float, Cell]]
"""Cells with the weight each has in a contrast: 1 or -1, or its share of a mean."""


def _cancels(terms: _Sum) -> bool:
    """Say whether cells of the same prompts stand against each other: then nothing can differ."""
    left = list(terms)
    while left:
        sign, cell = left.pop()
        other = next(
            (n for n, (s, c) in enumerate(left) if s == -sign and c.prompts == cell.prompts), None
        )
        if other is None:
            return False
        left.pop(other)
    return True


class _Design:
    """Contrasts of cells."""

    def __init__(
        self,
        plan: TransplantPlan,
        cells: Mapping[Place, Cell],
        bare: Mapping[str, Cell | None],
        untested: frozenset[Place],
        chosen: Mapping[tuple[str, str], Mapping[Side, Mapping[str, JSON]]],
    ) -> None:
        self._plan, self._cells, self._bare, self._untested = plan, cells, bare, untested
        self._chosen = chosen
        self._systems = [each for each in plan.systems if each.provider != NONE]
        source, target = plan.source.name.upper(), plan.target.name.upper()
        self._dynamic = [f"E_{target}", f"E_{source}"]
        self._static = ["C_ONLY", "FULL", "IN_DOM", "CROSS"]
        self._terms: Mapping[str, tuple[tuple[int, str], ...]] = {
            "H1": ((1, f"E_{source}"), (-1, f"E_{target}")),
            "H2": ((1, "C_ONLY"), (-1, NM)),
            "H3": ((1, "FULL"), (-1, "C_ONLY"), (-1, "CROSS"), (1, "IN_DOM")),
        }
        self._families = families_of(plan)

    def hypotheses(self) -> Iterable[Registered]:
        """Judge H1 to H3, and H4 where there are write-only controls; each a family by solver."""
        for solver in self._plan.solvers:
            for name, terms in self._terms.items():
                declared = [
                    (system.name, budget, terms, "")
                    for system in self._systems
                    for budget in self._plan.budgets
                ]
                yield from self._family(name, solver.name, declared)
            written = sorted(p for p in self._cells if p[0] == solver.name and p[4] == "write_only")
            attributed = [
                (system, budget, ((1, condition), (-1, condition)), "write_only")
                for _, budget, system, condition, _ in written
            ]
            yield from self._family("H4", solver.name, attributed)

    def _family(
        self,
        name: str,
        solver: str,
        declared: Sequence[tuple[str, int, tuple[tuple[int, str], ...], str]],
    ) -> Iterable[Registered]:
        sums: list[_Sum | str] = []
        for system, budget, terms, control in declared:
            sums.append(self._sum(name, (solver, budget, system), terms, control))
        values = [_values(each) if not isinstance(each, str) else None for each in sums]
        orders = _orders(values)
        bound = 2.0 if name == "H3" else 1.0
        estimates = [_estimate(each, orders, bound) for each in values]
        adjusted = holm([each.p if each else 1.0 for each in estimates], families=self._families)
        size = len(declared) * self._families
        for place, (system, budget, terms, control) in enumerate(declared):
            given, estimate = sums[place], estimates[place]
            what = _written(terms, control)
            if isinstance(given, str):
                kind: Literal["not testable", "not tested", "incomplete"] = (
                    "not testable" if given.startswith("one arch") else "not tested"
                )
                if given == "incomplete":
                    kind = "incomplete"
                yield Registered(name, solver, system, budget, what, None, None, kind, given)
                continue
            assert estimate is not None
            treated = float(given[0][1].matrix(given[0][1].items).mean())
            reach, p = _detectable(estimate, treated, size), adjusted[place]
            verdict = self._judged(estimate, p, reach)
            found = Registered(name, solver, system, budget, what, estimate, p, verdict)
            yield replace(found, detectable=reach)

    def registered(self, hypothesis: Hypothesis) -> Difference:
        """Return what a hypothesis of the plan is judged by: the same sums of cells."""
        cells = [
            *self._places(hypothesis.treated, 1.0),
            *self._places(hypothesis.baseline, -1.0),
        ]
        complete = all(cell is not None and cell.complete and cell.done for _, cell in cells)
        terms = [(weight, cell) for weight, cell in cells if cell is not None]
        why = "all prompts of both sides are the same" if complete and _cancels(terms) else ""
        values = _values(terms) if complete else None
        return Difference(values, complete, self._plan.seeds, why=why)

    def _places(self, sides: HypothesisSide, sign: float) -> list[tuple[float, Cell | None]]:
        """Return the cells of a side, each with its share; of those without memory one a solver."""
        parts, memories = sides_of(sides), {each.name for each in self._systems}
        found: list[tuple[float, Cell | None]] = []
        for part in parts:
            chosen: dict[Place, Cell | None] = {}
            for place, cell in self._cells.items():
                solver, budget, system, condition, control = place
                levels: Mapping[str, str | int] = {
                    "solver": solver,
                    "budget": budget,
                    "system": system,
                    "condition": f"{condition}~{control}" if control else condition,
                }
                if condition == NM and matches(part, levels):
                    chosen[solver, 0, NONE, NM, ""] = self._bare[solver]
                elif (system in memories or condition == NOISE) and matches(part, levels):
                    chosen[place] = cell
            share = sign / (len(parts) * max(len(chosen), 1))
            found += [(share, cell) for cell in chosen.values()]
        return found

    def _judged(self, estimate: Estimate, p: float, detectable: float) -> Verdict:
        """Judge a difference; seeds that are one observation are no lack of runs, if they were played."""
        if estimate.n_replicates == 1:
            estimate = replace(estimate, n_replicates=self._plan.seeds)
        return judge(estimate, p, complete=True, detectable=detectable)

    def _sum(
        self,
        name: str,
        where: tuple[str, int, str],
        terms: tuple[tuple[int, str], ...],
        control: str,
    ) -> _Sum | str:
        """Return the cells of a contrast, or why it cannot be tested."""
        found = next(each for each in self._systems if each.name == where[2])
        chosen = self._chosen.get((where[0], where[2]))
        if name in {"H1", "H3"} and self._plan.same_architecture(found, chosen):
            return ONE_ARCHITECTURE
        cells: list[tuple[int, Cell]] = []
        for sign, condition in terms:
            place = (*where, condition, control if sign < 0 else "")
            cell = self._cells.get(place)
            if condition == NM:
                cell = self._bare[where[0]]
            if cell is None or not cell.complete or not cell.done:
                return "incomplete"
            if place in self._untested and place[4] != "write_only":
                return f"all prompts of {condition} are those without memory"
            cells.append((sign, cell))
        if _cancels(cells):
            return "all prompts of both sides are the same"
        return cells

    def accuracy(self) -> dict[Place, Estimate]:
        """Estimate the mean accuracy of every complete cell."""
        values = {
            place: cell.matrix(cell.items)
            for place, cell in self._cells.items()
            if cell.complete and cell.done
        }
        orders = {
            group: _orders(each for place, each in values.items() if place[:2] == group)
            for group in {place[:2] for place in values}
        }
        return {
            place: proportion(int(each.sum()), len(each))
            if each.shape[1] == 1
            else mean_estimate(each, orders=orders[place[:2]])
            for place, each in values.items()
        }

    def against_none(self) -> dict[tuple[str, int], Comparison]:
        """Compare every system and condition that is tested with no memory, by solver and budget."""
        found = {}
        for solver in self._plan.solvers:
            bare = self._bare[solver.name]
            for budget in self._plan.budgets:
                outcomes = {
                    f"{place[2]} {place[3]}": _outcomes(cell)
                    for place, cell in sorted(self._cells.items())
                    if place[:2] == (solver.name, budget)
                    if cell.asked and not place[4] and not cell.remedied
                    if place not in self._untested
                }
                if bare is not None and outcomes:
                    once = replace(bare, scores={each: bare.scores[each] for each in bare.seeds})
                    sides = {NM: replace(_outcomes(once), planned=once.done), **outcomes}
                    found[solver.name, budget] = compare_outcomes(
                        sides, baseline=NM, margin=self._plan.margin, families=self._families
                    )
        return found

    def budgets(self) -> dict[Place, Estimate]:
        """Say what the larger room does, condition by condition."""
        least, most = min(self._plan.budgets), max(self._plan.budgets)
        pairs: dict[Place, Matrix | None] = {}
        for place, cell in self._cells.items():
            other = self._cells.get((place[0], least, *place[2:]))
            if place[1] != most or most == least or place[4] or cell.remedied or not cell.asked:
                continue
            if other is not None and cell.complete and other.complete:
                pairs[place] = _values([(1, cell), (-1, other)])
        orders = _orders(pairs.values())
        found = {place: _estimate(values, orders) for place, values in pairs.items()}
        return {place: each for place, each in found.items() if each is not None}

    def effects(self) -> dict[tuple[str, str, str], Estimate]:
        """Part the gains over no memory by system, by condition, and by what is left of both."""
        names = [*self._dynamic, *self._static]
        found: dict[tuple[str, str, str], Matrix] = {}
        for solver in (each.name for each in self._plan.solvers):
            gains = {
                (system.name, condition): self._gains(solver, [condition], [system])
                for system in self._systems
                for condition in names
            }
            known = {place: each for place, each in gains.items() if each is not None}
            if len(known) < len(gains) or not known:
                continue
            mean: Matrix = np.mean([*known.values()], axis=0)
            of: dict[str, Matrix] = {}
            for factor, place in (("system", 0), ("condition", 1)):
                for level in dict.fromkeys(each[place] for each in known):
                    alike = [each for at, each in known.items() if at[place] == level]
                    of[level] = found[solver, factor, level] = np.mean(alike, axis=0)
            for (system, condition), each in known.items():
                rest = each - of[system] - of[condition] + mean
                found[solver, "system in condition", f"{system} {condition}"] = rest
        orders = {
            factor: _orders(v for at, v in found.items() if at[1] == factor)
            for factor in {at[1] for at in found}
        }
        estimates = {at: _estimate(values, orders[at[1]], 2.0) for at, values in found.items()}
        return {at: each for at, each in estimates.items() if each is not None}

    def modes(self) -> dict[str, Estimate]:
        """Compare dynamic with static mode, over systems and budgets.

        On the same banks where the plan plays them in both modes; else what learning does is compared
        with what imported content does.
        """
        found = {}
        both = [f"{each}+dynamic" for each in self._static] if self._plan.dynamic_content else []
        for solver in self._plan.solvers:
            learned = self._gains(solver.name, both or self._dynamic)
            imported = self._gains(solver.name, self._static)
            if learned is not None and imported is not None:
                estimate = _estimate(learned - imported, None)
                assert estimate is not None
                found[solver.name] = estimate
        return found

    def moderation(self) -> Iterable[Registered]:
        """Judge how much more the last solver gains from memory than the first: a family of one."""
        first, last = self._plan.solvers[0].name, self._plan.solvers[-1].name
        if first == last:
            return
        conditions = [*self._dynamic, *self._static]
        gains = [self._gains(name, conditions) for name in (last, first)]
        what = f"mean gain over {NM}, {last} - {first}"
        found = Registered(
            MODERATION, f"{last} - {first}", "", None, what, None, None, "incomplete"
        )
        if gains[0] is not None and gains[1] is not None:
            estimate = _estimate(gains[0] - gains[1], None, 2.0)
            assert estimate is not None
            (p,) = holm([estimate.p], families=self._families)
            reach = _detectable(estimate, self._mean(last, gains[0]), self._families)
            found = replace(
                found,
                estimate=estimate,
                p_adjusted=p,
                verdict=judge(estimate, p, complete=True, detectable=reach),
                detectable=reach,
            )
        yield found

    def _mean(self, solver: str, gains: Matrix) -> float:
        """Return the mean accuracy of a solver with memory."""
        bare = self._bare[solver]
        assert bare is not None
        return float(bare.matrix(bare.items).mean() + gains.mean())

    def _gains(
        self, solver: str, conditions: Sequence[str], systems: Sequence[System] | None = None
    ) -> Matrix | None:
        """Return the mean gain over no memory of each problem and seed, over cells; of all systems by default."""
        bare = self._bare[solver]
        cells = [
            self._cells.get((solver, budget, system.name, condition, ""))
            for system in systems or self._systems
            for budget in self._plan.budgets
            for condition in conditions
        ]
        if bare is None or not cells or any(each is None or not each.complete for each in cells):
            return None
        items = bare.items
        base = bare.matrix(items).mean(axis=1, keepdims=True)
        seeds = range(self._plan.seeds)
        stacked = [
            np.array([[cell.scores[seed][item] for seed in seeds] for item in items])
            for cell in cells
            if cell is not None
        ]
        gains: Matrix = np.mean(stacked, axis=0) - base
        return gains

    def controls(self) -> Iterable[ControlResult]:
        """Set every control beside no memory, and beside what it imitates."""
        places = sorted(place for place in self._cells if place[4])
        against, beside = {}, {}
        for place in places:
            cell, bare = self._cells[place], self._bare[place[0]]
            real = self._cells.get((*place[:4], ""))
            if bare is not None and cell.complete:
                against[place] = _values([(1, cell), (-1, bare)])
            if real is not None and real.complete and cell.complete:
                beside[place] = _values([(1, real), (-1, cell)])
        ours, theirs = _orders(against.values()), _orders(beside.values())
        for place in places:
            estimate = _estimate(against.get(place), ours)
            yield ControlResult(
                self._cells[place],
                estimate,
                estimate is not None and equivalent(estimate, self._plan.margin) is True,
                _estimate(beside.get(place), theirs),
                _same_prompts(self._cells[place], self._bare[place[0]]),
            )

    def remedies(
        self, admitted: Mapping[tuple[str, str, str], tuple[int, int]]
    ) -> Iterable[RemedyResult]:
        """Set every condition with a remedy beside no memory, and beside the one without."""
        found = []
        for place, cell in sorted(self._cells.items()):
            plain = self._cells.get((*place[:3], place[3].split("+")[0], place[4]))
            bare = self._bare[place[0]]
            if not (cell.remedied and plain and bare and cell.complete and plain.complete):
                continue
            pairs = ((plain, bare), (cell, bare), (cell, plain))
            found.append((cell, [_values([(1, one), (-1, other)]) for one, other in pairs]))
        orders = [_orders(values[n] for _, values in found) for n in range(3)]
        for cell, values in found:
            before, after, gained = map(_estimate, values, orders)
            items = admitted.get((cell.place[0], cell.place[2], cell.place[3]))
            yield RemedyResult(cell, before, after, gained, items)

    def noise(self) -> dict[str, tuple[float, float, float]]:
        """Say how much runs without memory differ that share no reply."""
        found = {}
        for place, cell in self._cells.items():
            if place[3] == NOISE and cell.done:
                runs = [each for each in cell.scores.values() if each]
                means = [float(np.mean(list(each.values()))) for each in runs]
                shared = set.intersection(*(set(each) for each in runs))
                differ = sum(len({each[item] for each in runs}) > 1 for item in shared)
                found[place[0]] = min(means), max(means), differ / max(len(shared), 1)
        return found


def _values(terms: _Sum) -> Matrix | None:
    """Return the signed sum of cells, problems by observations; one observation stands for all."""
    items = sorted(set.intersection(*(set(c.scores[c.seeds[0]]) for _, c in terms if c.seeds)))
    if not items:
        return None
    widest = max((cell for _, cell in terms), key=lambda cell: len(cell.seeds))
    total = np.zeros((len(items), len(widest.seeds)))
    for sign, cell in terms:
        if len(cell.seeds) == 1:
            total += sign * cell.matrix(items)
        else:
            rows = [[cell.scores[seed][item] for seed in widest.seeds] for item in items]
            total += sign * np.array(rows)
    return total


def _orders(values: Iterable[Matrix | None]) -> OrderEffects | None:
    return order_effects(each for each in values if each is not None)


def _estimate(
    values: Matrix | None, orders: OrderEffects | None, bound: float = 1.0
) -> Estimate | None:
    if values is None:
        return None
    return mean_estimate(values, bounds=(-bound, bound), orders=orders)


def _detectable(estimate: Estimate, treated: float, contrasts: int) -> float:
    """Return what would have been found, from where outcomes would be without the difference."""
    without = min(max(treated - estimate.value, 0.0), 1.0)
    return detectable_difference(estimate, contrasts=contrasts, rates=(without, treated))


def _outcomes(cell: Cell) -> Outcomes:
    items = {item for outcomes in cell.scores.values() for item in outcomes}
    return Outcomes(cell.scores, cell.done, cell.planned, len(items))


def _written(terms: tuple[tuple[int, str], ...], control: str) -> str:
    told = ""
    for place, (sign, condition) in enumerate(terms):
        mark = ("" if sign > 0 else "-") if not place else (" + " if sign > 0 else " - ")
        told += f"{mark}{condition}{f' ({control})' if control and sign < 0 else ''}"
    return told
