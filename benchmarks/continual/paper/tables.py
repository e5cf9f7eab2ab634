"""Tables 2 to 8 and Figure 11 of the paper with our numbers, and what the paper does not have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langgraft.benchmarks.comparison.outcomes import Metric, Spread
from langgraft.benchmarks.continual.cells import CellKey
from langgraft.benchmarks.continual.mechanisms import first_words
from langgraft.benchmarks.continual.metrics import Direction, Transfer
from langgraft.benchmarks.continual.paper.counterparts import (
    Cast,
    Side,
    departures,
    others,
    paper_condition,
    roles,
)
from langgraft.benchmarks.continual.plan import Condition, ContinualPlan
from langgraft.benchmarks.published import (
    ROLES,
    STUDY_1,
    STUDY_2,
    Role,
    Task,
    continual_memory,
)
from langgraft.benchmarks.reporting.tables import SPREAD, Field, Number, Table, metric
from langgraft.memory.providers import provider_settings

Kind: TypeAlias = Literal["metric", "change", "spread", "share", "count"]
"""Of a number: of items and runs in percent, the same of a difference in points, of whole runs from
0 to 1, of whole runs in percent, or a count."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of ours, and the published one."""

    ours: Metric | Spread | int | None
    published: float | None = None
    approximate: bool = False
    """Whether the published number is printed as about so."""
    note: str = ""
    """What stands below it on the page."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table of the page."""

    side: Side
    heads: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of the page, which becomes a CSV file as well."""

    name: str
    """Name of the file, such as `table_3`."""
    heads: tuple[tuple[str, str], ...]
    """Name and title of the columns before the numbers."""
    numbers: tuple[tuple[str, str, Kind], ...]
    """Name, title and kind of each number."""
    rows: tuple[Row, ...]

    def as_csv(self) -> Table:
        """Return the table as tidy CSV: `pair` first, then heads, then numbers."""
        columns: list[str | Number] = ["pair", *(name for name, _ in self.heads)]
        for name, _, kind in self.numbers:
            columns += [_columns(name, kind), f"{name}_published"]
        rows = (
            (
                *(row.side.name, *row.heads),
                *(value for cell in row.cells for value in (cell.ours, cell.published)),
            )
            for row in self.rows
        )
        return Table.of(self.name, columns, rows)

    @property
    def shown(self) -> frozenset[str]:
        """The heads that have a column of their own on the page; others stand below one."""
        names = {name for name, _ in self.heads}
        below = {"condition"} if "role" in names else {"kind"}
        return frozenset(names - below - {"sequence"})

    def named(self, row: Row) -> dict[str, str]:
        """Return the heads of a row by name; empty where it has no such head."""
        blank = {"sequence": "", "role": "", "condition": "", "kind": ""}
        return blank | {name: head for (name, _), head in zip(self.heads, row.heads, strict=True)}


def _columns(name: str, kind: Kind) -> str | Number:
    if kind == "count":
        return name
    if kind in {"metric", "change"}:
        return metric(name)
    scale = 100 if kind == "share" else 1

    def fields(found: Spread) -> tuple[Field, ...]:
        return (scale * found.mean, scale * found.low, scale * found.high, found.n)

    return Number(name, (*SPREAD, "runs"), fields)


_SEQUENCE: Final = (("sequence", "sequence"),)
_WHO: Final = (("role", "the paper's"), ("condition", "memory"))


def paper_tables(plan: ContinualPlan, sides: Sequence[Side]) -> dict[str, PaperTable]:
    """Return the tables of the page by name."""
    cast = roles(plan)
    found = (
        _table_2(sides),
        _transfers("table_3", sides, cast, STUDY_1, "forward"),
        _transfers("table_4", sides, cast, STUDY_1, "backward"),
        _transfers("table_5", sides, cast, STUDY_2, "forward"),
        _transfers("table_6", sides, cast, STUDY_2, "backward"),
        _figure_11(sides, cast),
        _further(sides, others(plan)),
    )
    return {table.name: table for table in found}


def _table_2(sides: Sequence[Side]) -> PaperTable:
    """Return the task pairs: success without memory, and how it splits the test items."""
    rows = [
        Row(side, (task, side.analysis.domains[task]), tuple(_split(side, task)))
        for side in sides
        for task in side.analysis.partitions
    ]
    numbers: tuple[tuple[str, str, Kind], ...] = (
        ("baseline", "without memory, %", "metric"),
        ("n_solved", "solved (n_s)", "count"),
        ("n_failed", "failed (n_f)", "count"),
    )
    return PaperTable("table_2", (("task", "task"), ("domain", "family")), numbers, tuple(rows))


def _split(side: Side, task: str) -> Iterator[Cell]:
    part, printed = side.analysis.partitions[task], side.family(task)
    yield Cell(part.accuracy, None if printed is None else printed.baseline)
    yield Cell(len(part.solved), None if printed is None else printed.solved)
    yield Cell(len(part.failed), None if printed is None else printed.failed)


def _transfers(
    name: str, sides: Sequence[Side], cast: Cast, wanted: Sequence[Role], direction: Direction
) -> PaperTable:
    """Return transfer on all items, on easy ones and on hard ones: Tables 3 to 6."""
    forward = direction == "forward"
    numbers: tuple[tuple[str, str, Kind], ...] = (
        ("before", "∅→T, %" if forward else "∅→X, %", "metric"),
        ("after", "X→T, %" if forward else "X→Y, %", "metric"),
        ("transfer", "FWT, pp" if forward else "BWT, pp", "change"),
        ("delta_rr", "ΔRR, pp", "change"),
        ("delta_nl", "ΔNL, pp", "change"),
    )
    rows = [
        Row(side, (sequence, ROLES[role], cast[role].name), cells)
        for sequence in _sequences(sides)
        for side in sides
        for role in wanted
        if role in cast
        for row in (side.row(direction, sequence, cast[role].name),)
        if row is not None
        for cells in (_forward(side, role, row) if forward else _backward(side, role, row, wanted),)
    ]
    return PaperTable(name, (*_SEQUENCE, *_WHO), numbers, tuple(rows))


def _forward(side: Side, role: Role, row: Transfer) -> tuple[Cell, ...]:
    found, note = side.forward(row.sequence, role), _first(side, row)
    if found is None:
        return _cells(row, (None,) * 5, note=note)
    printed = (found.scratch, found.crossed, found.transfer, found.delta_rr, found.delta_nl)
    return _cells(row, printed, about=found.about, note=note)


def _first(side: Side, row: Transfer) -> str:
    return first_words(side.analysis.first_recall(row))


def _backward(side: Side, role: Role, row: Transfer, study: Sequence[Role]) -> tuple[Cell, ...]:
    """Of backward transfer the paper prints no ΔNL, and success before it with Table 3 alone."""
    found = side.backward(row.sequence, role, 1 if study == STUDY_1 else 2)
    scratch = side.forward(f"{row.sequence[-1]}>{row.sequence[0]}", role)
    before = None if scratch is None else scratch.scratch
    printed = (None, None) if found is None else (found.transfer, found.delta_rr)
    return _cells(row, (before, None, *printed, None))


def _cells(
    row: Transfer, printed: Sequence[float | None], *, about: bool = False, note: str = ""
) -> tuple[Cell, ...]:
    ours = (row.before, row.after, row.transfer, row.delta_rr, row.delta_nl)
    return tuple(
        Cell(metric, value, about and metric is row.delta_rr, note if place == _TRANSFER else "")
        for place, (metric, value) in enumerate(zip(ours, printed, strict=True))
    )


_TRANSFER: Final = 2
"""Place of the transfer among the numbers of its row."""


def _further(sides: Sequence[Side], further: Sequence[tuple[str, str]]) -> PaperTable:
    """Return forward and backward transfer of what plays no role of the paper's."""
    rows = [
        Row(side, (sequence, name, kind), cells)
        for sequence in _sequences(sides)
        for side in sides
        for name, kind in further
        for cells in (_both(side, sequence, name),)
        if any(cell.ours is not None for cell in cells)
    ]
    numbers: tuple[tuple[str, str, Kind], ...] = (
        ("fwt_after", "X→T, %", "metric"),
        ("fwt_transfer", "FWT, pp", "change"),
        ("fwt_delta_nl", "its ΔNL, pp", "change"),
        ("bwt_after", "X→Y on X, %", "metric"),
        ("bwt_transfer", "BWT, pp", "change"),
    )
    heads = (*_SEQUENCE, ("condition", "memory"), ("kind", "what it is"))
    return PaperTable("further_conditions", heads, numbers, tuple(rows))


def _both(side: Side, sequence: str, name: str) -> tuple[Cell, ...]:
    forward, backward = (side.row(way, sequence, name) for way in _WAYS)
    ahead = (None,) * 3 if forward is None else (forward.after, forward.transfer, forward.delta_nl)
    back = (None,) * 2 if backward is None else (backward.after, backward.transfer)
    cells = [Cell(each) for each in (*ahead, *back)]
    if forward is not None:
        cells[1] = Cell(forward.transfer, note=_first(side, forward))
    return tuple(cells)


_WAYS: Final[tuple[Direction, ...]] = ("forward", "backward")


def _figure_11(sides: Sequence[Side], cast: Cast) -> PaperTable:
    """Return how varied keys and retrieved items are within a task, and what came of it."""
    rows = [
        Row(
            side,
            (task, ROLES[role], condition.name),
            tuple(_retrieval(side, task, role, condition)),
        )
        for side in sides
        for task in side.analysis.domains
        for role, condition in cast.items()
    ]
    numbers = (*_RETRIEVAL, ("before", "success within the task, %", "metric"))
    return PaperTable("figure_11", (("task", "task"), *_WHO), numbers, tuple(rows))


_RETRIEVAL: Final[tuple[tuple[str, str, Kind], ...]] = (
    ("key_diversity", "key diversity", "spread"),
    ("context_diversity", "context diversity", "spread"),
    ("coverage_slots", "coverage of the items, %", "share"),
    ("coverage_bank", "coverage of the bank, %", "share"),
    ("top1_share", "top-1, %", "share"),
)


def _retrieval(side: Side, task: str, role: Role, condition: Condition) -> Iterator[Cell]:
    key = CellKey(condition.name, task, task)
    found = next((cell for cell in side.analysis.retrievals if cell.key == key), None)
    printed = _printed_retrieval(side, task, role)
    for name, _, _ in _RETRIEVAL:
        yield Cell(None if found is None else found.spread(name), printed.get(name))
    accuracies = (each.accuracy for each in side.analysis.retentions if each.key == key)
    row = side.forward(f"{'A' if task == 'B' else 'B'}>{task}", role)
    yield Cell(next(accuracies, None), None if row is None else row.scratch)


def _printed_retrieval(side: Side, task: str, role: Role) -> Mapping[str, float]:
    """Return what appendix D tells; of BabyAI alone."""
    if side.world != "BabyAI":
        return {}
    theirs: Task = "A" if side.theirs(task) == "A" else "B"
    told, found = continual_memory().appendix_d, {}
    if (theirs, role) in told.context_diversity:
        found["context_diversity"] = told.context_diversity[theirs, role]
    if (theirs, role) == ("B", "ind"):
        found |= {"coverage_slots": told.collapse.coverage, "top1_share": told.collapse.top1}
    return found


def _sequences(sides: Sequence[Side]) -> list[str]:
    return list(dict.fromkeys(each for side in sides for each in side.sequences))


# Settings: who plays which condition, and the plan's hyperparameters ------------------------

MEANINGS: Final[Mapping[Role, str]] = {
    "raw": "whole trajectories, one recalled at the start",
    "agg": "the lessons of an episode in one entry, one recalled at the start",
    "ind": "an entry for each lesson, three recalled at the start",
    "step": "as Cond-Ind, asked for again every four steps",
}
"""Table 7, in our words."""


def table_7(plan: ContinualPlan) -> Table:
    """Return who plays what; a role that nobody plays has no condition."""
    columns = ("role", "condition", "provider", "differs", "meaning")
    cast = roles(plan)
    rows = ((ROLES[role], *_played(cast.get(role), role), MEANINGS[role]) for role in ROLES)
    return Table.of("table_7", columns, rows)


def _played(condition: Condition | None, role: Role) -> tuple[str, str, str]:
    """Name condition and provider, and the settings that are not the paper's."""
    if condition is None:
        return "", "", ""
    found = departures(condition, paper_condition(role))
    told = "; ".join(f"{name}: {ours} for {wanted}" for name, (wanted, ours) in found.items())
    return condition.name, condition.provider, told


def table_8(plan: ContinualPlan) -> Table:
    """Return the hyperparameters, in the paper's order; those it does not have come last."""
    return Table.of("table_8", ("setting", "published", "ours"), _settings(plan))


_SAME_NAMES: Final = {
    "model": "model",
    "training instances a phase": "train_items",
    "test instances a task": "test_items",
    "runs": "runs",
    "seed": "seed",
    "evaluation workers": "workers",
    "milestones": "milestones",
    "most tokens a reply": "max_tokens",
    "temperature": "temperature",
}
"""Settings of Table 8 by their titles; the plan's have the same names."""


def _settings(plan: ContinualPlan) -> Iterator[tuple[str, str, str]]:
    theirs, cast = continual_memory().table_8, roles(plan)
    for title, name in _SAME_NAMES.items():
        ours = getattr(plan, name, "any number: results do not depend on it")
        yield title, _plain(getattr(theirs, name)), _plain(ours)
    for role in ROLES:
        top_k = str(paper_condition(role).settings["top_k"])
        yield f"top-k, {ROLES[role]}", top_k, _of(cast, role, "top_k")
    every = str(theirs.requery_interval)
    yield "steps between retrievals, Cond-Step", every, _of(cast, "step", "requery_interval")
    for role in ROLES:
        only = str(theirs.success_only).lower()
        ours = _of(cast, role, "success_only").lower()
        yield f"successful episodes only, {ROLES[role]}", only, ours
    yield "retrieval, Raw", theirs.retrieval, _of(cast, "raw", "ranker")
    yield "runs without memory", "not printed", str(plan.baseline_runs)
    yield "re-run without memory", "none", "yes" if plan.rerun else "none"
    unlimited = "no limit" if plan.memory_tokens is None else str(plan.memory_tokens)
    yield "tokens of recalled text", "not printed", unlimited
    for part in plan.parts.values():
        yield f"rules of {part.tasks.A}, {part.tasks.B}", "not printed", part.semantics


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _of(cast: Cast, role: Role, name: str) -> str:
    """Return a setting of the condition that plays a role, its defaults included."""
    condition = cast.get(role)
    if condition is None:
        return "not in this plan"
    value = getattr(provider_settings(condition.provider, condition.settings), name)
    return str(value) if isinstance(value, int | str) else type(value).__name__
