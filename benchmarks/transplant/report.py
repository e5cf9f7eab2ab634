"""The report of a transplant study: one page, and every number as CSV, beside what the paper prints.

<out>/index.html     findings, gates, contrasts, tables by budget, controls, the paper's figures
<out>/tables/*.csv   cells, hypotheses, contrasts with no memory, controls, remedies, effects, budgets, gates
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Any, Final

import yaml
from pydantic import BaseModel

from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.harness.study import PlanLogReader, Report, is_simulated
from langgraft.benchmarks.published import Finding
from langgraft.benchmarks.reporting.findings import gate_findings
from langgraft.benchmarks.reporting.pages import check_extra, environment, write_folder
from langgraft.benchmarks.reporting.tables import (
    COLUMNS,
    PARTS,
    Meanings,
    Number,
    Table,
    gate_table,
    percent,
    registered_tables,
    spending_tables,
)
from langgraft.benchmarks.reporting.words import (
    detectable,
    flat,
    listing,
    p_value,
    points,
    several,
    signed,
)
from langgraft.benchmarks.transplant.analysis import (
    MODERATION,
    Analysis,
    Registered,
    analyze,
)
from langgraft.benchmarks.transplant.gates import Cell
from langgraft.benchmarks.transplant.plan import DISCORDANCE, TransplantPlan

_FILE: Final = "memory-transplants.yaml"
_STATIC: Final = frozenset({"C_ONLY", "FULL", "IN_DOM", "CROSS"})
_STEPS: Final = 10_000
"""Points at which the distribution of a maximum is averaged over."""


class Published(BaseModel, frozen=True, extra="forbid"):
    """Tables 3 to 6: accuracy in percent."""

    conditions: tuple[str, ...]
    problems: int
    tables: Mapping[str, Mapping[str, tuple[float, ...]]]
    """`<solver> <budget>` → system → a value for each condition."""
    starred: Mapping[str, Mapping[str, tuple[str, ...]]]
    """Cells of two runs, by table and system."""

    def cells(self, solver: str) -> Iterator[tuple[str, str, str, float]]:
        """Yield table, system, condition and value of a solver's cells."""
        for table, systems in self.tables.items():
            if table.startswith(solver):
                for system, values in systems.items():
                    for condition, value in zip(self.conditions, values, strict=True):
                        yield table, system, condition, value

    def runs_of(self, table: str, system: str, condition: str) -> int:
        """Return how many runs a cell is said to be of."""
        return 2 if condition in self.starred.get(table, {}).get(system, ()) else 3


@cache
def published() -> Published:
    """Return the paper's tables."""
    text = resources.files("langgraft.benchmarks.published").joinpath(_FILE).read_text("utf-8")
    return Published.model_validate(yaml.safe_load(text))


def possible(value: float, problems: int, runs: int) -> bool:
    """Say whether a mean accuracy, printed to one digit, can come of whole numbers of solved problems."""
    total = value / 100 * problems * runs
    return any(
        abs(100 * whole / (problems * runs) - value) < 0.05 + 1e-9
        for whole in (int(total), int(total) + 1)
    )


def findings() -> tuple[Finding, ...]:
    """Recompute what the paper says of its tables."""
    paper = published()
    strong, weak = list(paper.cells("7B")), list(paper.cells("3B"))
    bare = [value for _, system, condition, value in strong if _is_bare(system, condition)]
    either = [
        cell for cell in weak if not any(possible(cell[3], paper.problems, n) for n in (2, 3))
    ]
    marked = [
        cell for cell in weak if not possible(cell[3], paper.problems, paper.runs_of(*cell[:3]))
    ]
    static = [(value, cell) for *cell, value in weak if cell[2] in _STATIC]
    best_static = max(static)
    starred = sum(map(len, chain.from_iterable(s.values() for s in paper.starred.values())))
    gains = {name: _own_gain(cells) for name, cells in (("7B", strong), ("3B", weak))}
    lucky = [_best_by_chance(cells) for cells in (strong, weak)]
    ranges = _ranges(paper.tables["7B 800"])
    steadier = [name for name, each in ranges.items() if each < ranges["lightweight"]]
    room = [
        more - less
        for less, more in zip(
            paper.tables["7B 400"]["none"], paper.tables["7B 800"]["none"], strict=True
        )
    ]
    return (
        Finding(
            "Tables 3, 4",
            "cells of the very same prompts, without memory",
            "(spread ascribed to orders)",
            f"{len(bare)} of {len(strong)} cells, {min(bare)} to {max(bare)} %",
            None,
        ),
        Finding(
            "Tables 5, 6",
            "cells that no whole number of solved problems gives",
            "0",
            f"{len(either)} of {len(weak)} with two or three runs a cell; {len(marked)} with two only"
            " where starred",
            False,
        ),
        Finding(
            "§7.1",
            "largest gain, 7B and 3B",
            "+6.7 and +15.0, against chosen baselines",
            f"{gains['7B']:+.1f} and {gains['3B']:+.1f} against the system's own NM in the same table",
            False,
        ),
        Finding(
            "§7.1",
            "gain of the best of 48 cells if memory did nothing, 7B and 3B",
            "(none told)",
            f"{lucky[0]:+.1f} and {lucky[1]:+.1f}: 48 normal draws that vary as the 22 cells do",
            None,
        ),
        Finding(
            "§7.4",
            "what more room does without memory",
            "67.7 to 63.3, ascribed to noise from what is retrieved",
            f"{min(room):+.1f} to {max(room):+.1f} by condition, where nothing is retrieved",
            False,
        ),
        Finding(
            "App. D",
            "best static cell, 3B",
            "44.3",
            f"{best_static[0]} ({best_static[1][1]} {best_static[1][2]}, {best_static[1][0]})",
            False,
        ),
        Finding(
            "§7.3",
            "most stable system",
            "lightweight",
            "7B, by range over conditions at 800 tokens: "
            + ", ".join(f"{name} {each:.1f}" for name, each in ranges.items()),
            not steadier,
        ),
        Finding(
            "App. D",
            "runs of the 3B plan",
            "156 of 210",
            f"{3 * len(weak) - starred}, by {starred} starred cells of two runs",
            False,
        ),
        Finding(
            "App. A",
            "95 % interval of three seeds",
            "least and greatest of the three",
            "covers the mean in 75 % of cases, 1 - 2 × (1/2)³, if seeds are normal draws about it; what"  # noqa: RUF001
            " other problems would give, in fewer",
            False,
        ),
    )


def _own_gain(cells: Sequence[tuple[str, str, str, float]]) -> float:
    """Return the gain of the best cell over its own system's NM in the same table."""
    best = max((cell for cell in cells if cell[1] != "none"), key=lambda cell: cell[3])
    own = next(cell[3] for cell in cells if cell[:2] == best[:2] and cell[2] == "NM")
    return best[3] - own


def _best_by_chance(cells: Sequence[tuple[str, str, str, float]]) -> float:
    """Return what the best cell with memory gains where all vary as those without do, on average."""
    bare = [value for _, system, condition, value in cells if _is_bare(system, condition)]
    draws = len(cells) - len(bare)
    normal = NormalDist()
    below = [(step + 0.5) / _STEPS for step in range(_STEPS)]
    best = fmean(normal.inv_cdf(share ** (1 / draws)) for share in below)
    return best * stdev(bare)


def _ranges(table: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return how far apart a system's conditions are, the steadiest system first."""
    found = {name: max(each) - min(each) for name, each in table.items() if name != "none"}
    return dict(sorted(found.items(), key=lambda each: (round(each[1], 1), each[0])))


def _is_bare(system: str, condition: str) -> bool:
    return system == "none" or condition == "NM"


HYPOTHESES: Final[Mapping[str, str]] = {
    "H1": "architecture: the source domain's settings against the target's, both from an empty bank",
    "H2": "content: the source domain's items under the target's settings, against no memory",
    "H3": "interaction: does content do more, or less, under the source domain's settings",
    "H4": "retrieval: a memory that learns against the same one that only writes",
    MODERATION: "moderation: does the last solver gain more from memory than the first",
}
_NAMED: Final = 3
"""Differences of a hypothesis that are told one by one."""
_ESTIMATE: Final = ("value", "low", "high", "p", "n_problems", "n_observations")
MEANINGS: Final = Meanings(
    {
        **COLUMNS,
        "solver": "the model that solves",
        "budget": "most tokens of a block of recalled memory",
        "system": "the memory system",
        "condition": "architecture, content and mode, by the name the paper has for them",
        "control": "what was recalled instead; empty: the condition itself",
        "mode": "static: nothing is learned while evaluated; dynamic: it is",
        "accuracy": "problems solved, percent",
        "last_token": "problems solved by the paper's extraction, the last token; percent",
        "observations": "seeds that differ in a prompt; those that do not are one",
        "done": "attempts with a result",
        "planned": "attempts planned",
        "empty": "attempts in which memory was asked and nothing recalled",
        "partial": "attempts in which something was recalled and something else found had no room",
        "tested": "whether any prompt differs from the one without memory",
        "factor": "what the cells are averaged by: system, condition, or what is left of both in a cell",
        "level": "which system, which condition, or which cell",
        "hypothesis": "which of the registered contrasts",
        "what": "the subtraction, in names of conditions",
        "difference": "the difference, percentage points",
        "why": "why it could not be tested",
        "against_none": "the control less no memory, percentage points",
        "equivalent": "whether it is shown to be no memory's equal within the plan's margin",
        "p_holm": "corrected by Holm over the family, and for the families of the study",
        "verdict": "helped (the difference is above 0), hurt (below), no detectable difference, too few runs, too small, incomplete, not tested, not"
        " testable; open: a gate before any claim has not passed",
        "before": "the condition without its remedy, less no memory, points",
        "after": "the condition with its remedy, less no memory, points",
        "gained": "the condition with its remedy less the one without, points",
        "items_kept": "items that paired replay admitted, over all draws",
        "items_offered": "items that were tried",
        "of_condition": "the condition less the control: what the control takes away, points",
        "same_prompts": "whether all prompts are those without memory",
    },
    {
        **PARTS,
        "n_problems": "problems it rests on",
        "n_observations": "observations of each problem",
        "p": "two-sided p value, uncorrected",
    },
)


def write_report(plan: TransplantPlan, log: PlanLogReader, out: Path) -> Report:
    """Write the report of a study, finished or under way.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    check_extra()
    found, simulated = analyze(plan, log), is_simulated(plan, log)
    tables = tables_of(found)
    page = write_folder(
        out,
        tables=(*tables, MEANINGS.table(tables)),
        figures={},
        page=render(found, simulated=simulated),
    )
    rows = tuple(
        (
            each.hypothesis,
            each.solver,
            each.system or "all",
            "all" if each.budget is None else str(each.budget),
            "-" if each.estimate is None else points(each.estimate),
            found.told(each.verdict),
        )
        for each in found.hypotheses
        if each.claims or each.verdict.startswith("not")
    )
    notice = ("The model is simulated.",) if simulated else ()
    columns = ("hypothesis", "solver", "system", "budget", "difference", "verdict")
    return Report(page, plan.title, columns, rows, (*notice, *sentences(found)))


def sentences(found: Analysis) -> list[str]:
    """Say what came of the study, verdicts first."""
    said = [*found.registration.lines]
    if not found.sound:
        said.append(
            "Nothing is claimed: a gate that stands before any claim has not passed. What follows"
            " are numbers of a study under way, or of one that cannot be trusted."
        )
    for name, meaning in HYPOTHESES.items():
        family = [each for each in found.hypotheses if each.hypothesis == name]
        if family:
            said.append(f"{name} ({meaning}): {_family(family, sound=found.sound)}")
    if found.sound:
        said.append(_against_none(found))
    if found.remedies:
        said.append(_remedies(found))
    if conditions := sorted(place for place in found.untested if not place[4]):
        named = listing([f"{p[2]} {p[3]} at {p[1]} ({p[0]})" for p in conditions[:5]])
        such = ", such as" if len(conditions) > 5 else ":"  # noqa: PLR2004  (as many are named)
        said.append(
            f"{several(len(conditions), 'cell')} cannot say anything of memory, as all prompts are"
            f" those without{such} {named}."
        )
    said += [reach_in_words(found.planned), gate_findings(found.gates)]
    return said


def reach_in_words(planned: Mapping[int, tuple[float, float]]) -> str:
    """Say what a plan of some shape finds, by its number of problems."""
    reach = [
        f"{detectable(alone)} taken alone and {detectable(shared)} as one of H1's with"
        f" {several(items, 'problem')}"
        for items, (alone, shared) in planned.items()
    ]
    return (
        f"What a plan of this shape finds four times in five, if two conditions differ on"
        f" {100 * DISCORDANCE:.0f} % of the problems and orders do nothing: {listing(reach)}."
    )


def _family(family: Sequence[Registered], *, sound: bool) -> str:
    """Say what is claimed of a hypothesis, the largest differences first; then how often nothing is."""
    count = several(len(family), "contrast")
    claims = [e for e in family if e.claims and e.estimate is not None] if sound else []
    parts = []
    if claims:
        claims.sort(key=lambda each: -abs(each.estimate.value if each.estimate else 0.0))
        named = listing([_claim(each) for each in claims[:_NAMED]])
        most = "the largest " if len(claims) > _NAMED else ""
        parts.append(f"a difference in {len(claims)} of {count}, {most}{named}")
    silent = [each for each in family if each.verdict == "no detectable difference"]
    if sound and silent:
        told = f"no detectable difference in {len(silent)} of {count}"
        reach = sorted(e.detectable for e in silent if e.detectable and math.isfinite(e.detectable))
        ends = list(dict.fromkeys(detectable(each) for each in (*reach[:1], *reach[-1:])))
        found = f", where {' to '.join(ends)} would have been found four times in five"
        parts.append(told + (found if ends else ", and none could have been detected"))
    kinds = ("too few runs", "too small", "not testable", "not tested", "incomplete")
    counts = {kind: sum(each.verdict == kind for each in family) for kind in kinds}
    parts += [f"{number} {kind}" for kind, number in counts.items() if number]
    return f"{'; '.join(parts) or 'no claim'}."


def _claim(each: Registered) -> str:
    assert each.estimate is not None
    assert each.p_adjusted is not None
    told = f"{points(each.estimate)} (corrected {p_value(each.p_adjusted)})"
    if each.budget is None:
        return told
    name = f"{each.system} {each.what.split()[0]}" if each.hypothesis == "H4" else each.system
    return f"{name} at {each.budget} ({each.solver}) {told}"


def _against_none(found: Analysis) -> str:
    """Count what helped, and name negative transfer, the most first."""
    family = [each for comparison in found.against_none.values() for each in comparison.family]
    helped = sum(each.verdict == "helped" for each in family)
    named = [f"{e[2]} at {e[1]} ({e[0]}) {points(e[3])}" for e in found.negative[:_NAMED]]
    hurt = f"hurt, which is negative transfer: {listing(named)}" if named else "hurt"
    if len(found.negative) > len(named):
        hurt += ", and others"
    return (
        f"Against no memory {several(len(family), 'condition')} of systems were tested: {helped} helped,"
        f" {len(found.negative)} {hurt}."
    )


def _remedies(found: Analysis) -> str:
    """Say what the remedies did where a condition was below no memory; a description, no claim."""
    parts = []
    for remedy in ("admitted", "gated"):
        harmed = [
            (e.before.value, e.after.value)
            for e in found.remedies
            if e.cell.place[3].endswith(remedy) and e.before and e.after and e.before.value < 0
        ]
        if harmed:
            before, after = (fmean(each) for each in zip(*harmed, strict=True))
            parts.append(
                f"{remedy}: {several(len(harmed), 'condition')} below no memory, on average"
                f" {signed(before)} points without the remedy and {signed(after)} with it"
            )
    if not parts:
        return "Remedies: no condition that has one was below no memory."
    return f"Remedies, not registered: {'; '.join(parts)}."


def estimate_columns(name: str) -> Number:
    """Return the columns of a difference, in percentage points."""

    def fields(found: Estimate) -> tuple[float | int, ...]:
        scaled = (100 * found.value, 100 * found.low, 100 * found.high)
        return (*scaled, found.p, found.n_items, found.n_replicates)

    return Number(name, _ESTIMATE, fields)


def share_columns(name: str) -> Number:
    """Return the columns of a share, in percent."""
    return Number(
        name, _ESTIMATE[:3], lambda found: (100 * found.value, 100 * found.low, 100 * found.high)
    )


def tables_of(found: Analysis) -> tuple[Table, ...]:
    """Return every number as tables."""
    where = ("solver", "budget", "system", "condition", "control")
    cells = Table.of(
        "cells",
        (
            *where,
            *("mode", share_columns("accuracy"), "last_token", "observations"),
            *("done", "planned", "empty", "partial", "tested"),
        ),
        (_cell_row(found, cell) for cell in found.cells.values()),
    )
    hypotheses = Table.of(
        "hypotheses",
        (
            *("hypothesis", "solver", "system", "budget", "what"),
            *(estimate_columns("difference"), "p_holm", percent("detectable_80"), "verdict", "why"),
        ),
        (
            (
                *(e.hypothesis, e.solver, e.system, e.budget, e.what),
                *(e.estimate, e.p_adjusted, _finite(e.detectable), found.told(e.verdict), e.why),
            )
            for e in found.hypotheses
        ),
    )
    against = Table.of(
        "against_none",
        (
            *("solver", "budget", "condition", estimate_columns("difference")),
            *("p_holm", percent("detectable_80"), "verdict"),
        ),
        (
            (
                *(*place, e.condition, e.estimate, e.p_adjusted),
                *(_finite(e.detectable), found.told(e.verdict)),
            )
            for place, comparison in found.against_none.items()
            for e in comparison.family
        ),
    )
    controls = Table.of(
        "controls",
        (
            *where,
            *(estimate_columns("against_none"), "equivalent"),
            *(estimate_columns("of_condition"), "same_prompts"),
        ),
        (
            (
                *e.cell.place,
                e.against_none,
                str(e.equivalent),
                e.of_condition,
                str(e.same_prompts),
            )
            for e in found.controls
        ),
    )
    remedies = Table.of(
        "remedies",
        (
            *("solver", "budget", "system", "condition", estimate_columns("before")),
            *(estimate_columns("after"), estimate_columns("gained"), "items_kept", "items_offered"),
        ),
        (
            (
                *(*e.cell.place[:4], e.before, e.after, e.gained),
                *(e.admitted or (None, None)),
            )
            for e in found.remedies
        ),
    )
    effects = Table.of(
        "effects",
        ("solver", "factor", "level", estimate_columns("difference")),
        ((*at, estimate) for at, estimate in found.effects.items()),
    )
    budgets = Table.of(
        "budgets",
        (*where, estimate_columns("difference")),
        ((*place, estimate) for place, estimate in found.budgets.items()),
    )
    return (
        *registered_tables(found.registration),
        *(cells, hypotheses, against, controls, remedies, effects, budgets),
        gate_table(found.gates),
        *spending_tables(found.spent),
    )


def _finite(reach: float | None) -> float | None:
    return reach if reach is None or math.isfinite(reach) else None


def _cell_row(found: Analysis, cell: Cell) -> tuple[Any, ...]:
    tokens = [value for each in cell.by_last_token.values() for value in each.values()]
    return (
        *cell.place,
        *(
            cell.mode,
            found.accuracy.get(cell.place),
            100 * sum(tokens) / len(tokens) if tokens else None,
        ),
        *(len(cell.seeds), cell.done, cell.planned, cell.empty, cell.partial),
        str(cell.place not in found.untested),
    )


def render(found: Analysis, *, simulated: bool) -> str:
    """Return the page as HTML."""
    plan = found.plan
    page: str = (
        environment(__package__ or "", points=points)
        .get_template("report.html.jinja")
        .render(
            plan=plan,
            title=plan.title or "Memory transplants",
            a=found,
            simulated=simulated,
            sentences=sentences(found)[len(found.registration.lines) :],
            hypotheses=HYPOTHESES,
            conditions=[each.name for each in plan.conditions()],
            tables=list(_grids(found)),
            paper=published(),
            findings=findings(),
            settings=flat(plan.model_dump(mode="json")),
            provenance=flat(dict(found.manifest)),
        )
    )
    return page


def _grids(found: Analysis) -> Iterator[tuple[str, int, list[tuple[str, list[Cell | None]]]]]:
    """Yield solver, budget, and a row of cells for each system."""
    plan = found.plan
    for solver in plan.solvers:
        for budget in plan.budgets:
            rows = [
                (
                    system.name,
                    [
                        found.cells.get((solver.name, budget, system.name, condition.name, ""))
                        for condition in plan.conditions()
                    ],
                )
                for system in plan.systems
            ]
            yield solver.name, budget, rows
