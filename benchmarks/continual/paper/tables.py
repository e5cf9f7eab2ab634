"""Tables 2 to 6 and Figure 11 of the paper with our numbers, and what the paper does not have."""

from collections.abc import Iterator, Mapping, Sequence

from langgraft.benchmarks.continual.cells import CellKey
from langgraft.benchmarks.continual.conditions import Condition
from langgraft.benchmarks.continual.metrics import Direction, Metric, Transfer
from langgraft.benchmarks.continual.paper.rows import Cell, PaperTable, Row
from langgraft.benchmarks.continual.paper.sides import Side
from langgraft.benchmarks.published import ROLES, Role, Task, continual_memory

Cast = Mapping[Role, Condition]
"""Which condition plays each role."""

_SEQUENCE = (("sequence", "sequence"),)
_WHO = (("role", "the paper's"), ("condition", "memory"))


def table_2(sides: Sequence[Side]) -> PaperTable:
    """Return the task pairs: success without memory, and how it splits the test items."""
    rows = [
        Row(side, (task, side.analysis.domains[task]), tuple(_split(side, task)))
        for side in sides
        for task in side.analysis.partitions
    ]
    numbers = (
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


def forward_table(
    name: str, sides: Sequence[Side], cast: Cast, wanted: Sequence[Role]
) -> PaperTable:
    """Return Table 3 or 5: forward transfer, on easy items and on hard ones."""
    rows = [
        Row(
            side,
            (sequence, ROLES[role], cast[role].name),
            tuple(_forward(side, sequence, role, row)),
        )
        for sequence in _sequences(sides)
        for side in sides
        for role in wanted
        if role in cast
        for row in (side.row("forward", sequence, cast[role].name),)
        if row is not None
    ]
    numbers = (
        ("before", "∅→T, %", "metric"),
        ("after", "X→T, %", "metric"),
        ("transfer", "FWT, pp", "metric"),
        ("delta_rr", "ΔRR, pp", "metric"),
        ("delta_nl", "ΔNL, pp", "metric"),
    )
    return PaperTable(name, (*_SEQUENCE, *_WHO), numbers, tuple(rows))


def _forward(side: Side, sequence: str, role: Role, row: Transfer) -> Iterator[Cell]:
    printed = side.forward(sequence, role)
    about = printed is not None and printed.about
    yield Cell(row.before, None if printed is None else printed.scratch)
    yield Cell(row.after, None if printed is None else printed.crossed)
    yield _change(row.transfer, None if printed is None else printed.transfer)
    yield _change(row.delta_rr, None if printed is None else printed.delta_rr, about=about)
    yield _change(row.delta_nl, None if printed is None else printed.delta_nl)


def _change(metric: Metric, published: float | None, *, about: bool = False) -> Cell:
    return Cell(metric, published, difference=True, approximate=about)


def backward_table(
    name: str, sides: Sequence[Side], cast: Cast, wanted: Sequence[Role]
) -> PaperTable:
    """Return Table 4 or 6: backward transfer; ΔNL stands in ours only."""
    study = 1 if name == "table_4" else 2
    rows = []
    for sequence in _sequences(sides):
        for side in sides:
            for role in wanted:
                row = side.row("backward", sequence, cast[role].name) if role in cast else None
                if row is not None:
                    heads = (sequence, ROLES[role], cast[role].name)
                    rows.append(Row(side, heads, tuple(_backward(side, role, row, study))))
    numbers = (
        ("before", "∅→X, %", "metric"),
        ("after", "X→Y, %", "metric"),
        ("transfer", "BWT, pp", "metric"),
        ("delta_rr", "ΔRR, pp", "metric"),
        ("delta_nl", "ΔNL, pp", "metric"),
    )
    return PaperTable(name, (*_SEQUENCE, *_WHO), numbers, tuple(rows))


def _backward(side: Side, role: Role, row: Transfer, study: int) -> Iterator[Cell]:
    printed = side.backward(row.sequence, role, study)
    scratch = side.forward(f"{row.sequence[-1]}>{row.sequence[0]}", role)
    yield Cell(row.before, None if scratch is None else scratch.scratch)
    yield Cell(row.after)
    yield _change(row.transfer, None if printed is None else printed.transfer)
    yield _change(row.delta_rr, None if printed is None else printed.delta_rr)
    yield _change(row.delta_nl, None)


def further_table(sides: Sequence[Side], further: Sequence[tuple[str, str]]) -> PaperTable:
    """Return forward and backward transfer of what plays no role of the paper's."""
    rows = [
        Row(side, (sequence, name, kind), _further(forward, backward))
        for sequence in _sequences(sides)
        for side in sides
        for name, kind in further
        for forward, backward in (_both(side, sequence, name),)
        if forward is not None or backward is not None
    ]
    numbers = (
        ("fwt_after", "X→T, %", "metric"),
        ("fwt_transfer", "FWT, pp", "metric"),
        ("fwt_delta_nl", "its ΔNL, pp", "metric"),
        ("bwt_after", "X→Y on X, %", "metric"),
        ("bwt_transfer", "BWT, pp", "metric"),
    )
    heads = (*_SEQUENCE, ("condition", "memory"), ("kind", "what it is"))
    return PaperTable("further_conditions", heads, numbers, tuple(rows))


def _both(side: Side, sequence: str, name: str) -> tuple[Transfer | None, Transfer | None]:
    directions: tuple[Direction, Direction] = ("forward", "backward")
    found = [side.row(direction, sequence, name) for direction in directions]
    return found[0], found[1]


def _further(forward: Transfer | None, backward: Transfer | None) -> tuple[Cell, ...]:
    none = Cell(None)
    ahead = (
        (none, none, none)
        if forward is None
        else (Cell(forward.after), _change(forward.transfer, None), _change(forward.delta_nl, None))
    )
    if backward is None:
        return (*ahead, none, none)
    return (*ahead, Cell(backward.after), _change(backward.transfer, None))


def figure_11(sides: Sequence[Side], cast: Cast) -> PaperTable:
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
    numbers = (
        ("key_diversity", "key diversity", "spread"),
        ("context_diversity", "context diversity", "spread"),
        ("coverage_slots", "coverage of the items, %", "spread"),
        ("coverage_bank", "coverage of the bank, %", "spread"),
        ("top1_share", "top-1, %", "spread"),
        ("before", "success within the task, %", "metric"),
    )
    return PaperTable("figure_11", (("task", "task"), *_WHO), numbers, tuple(rows))


_UNIT = frozenset({"key_diversity", "context_diversity"})
"""Measures from 0 to 1 that are no shares."""


def _retrieval(side: Side, task: str, role: Role, condition: Condition) -> Iterator[Cell]:
    key = CellKey(condition.name, task, task)
    found = next((cell for cell in side.analysis.retrievals if cell.key == key), None)
    printed = _printed_retrieval(side, task, role)
    for name in (
        "key_diversity",
        "context_diversity",
        "coverage_slots",
        "coverage_bank",
        "top1_share",
    ):
        spread = None if found is None else found.spread(name)
        yield Cell(spread, printed.get(name), scale=1 if name in _UNIT else 100)
    accuracies = (each.accuracy for each in side.analysis.retentions if each.key == key)
    other = "B" if task == "A" else "A"
    row = side.forward(f"{other}>{task}", role)
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
    return list(dict.fromkeys(each for side in sides for each in side.analysis.study.sequences))
