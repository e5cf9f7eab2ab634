"""Tables 4 and 6: backward transfer, whose accuracies are not printed."""

from collections.abc import Iterator

from langgraft.benchmarks.continual.published.findings import (
    Finding,
    change,
    count_behind,
    counted,
    named,
)
from langgraft.benchmarks.continual.published.printed import (
    RUNS,
    TABLE_4,
    TABLE_6,
    Backward,
    Place,
    scratch,
    tested,
)
from langgraft.benchmarks.continual.published.transfers import EPISODES, subset


def tables_4_and_6() -> Iterator[Finding]:
    """Hold each cell to counts, and cells that stand in both tables to each other."""
    for section, rows in (("Table 4", TABLE_4), ("Table 6", TABLE_6)):
        for place, row in rows.items():
            if section == "Table 4" or place not in TABLE_4:
                yield _counts(section, place, row)
    for place, row in TABLE_6.items():
        if place in TABLE_4:
            other = TABLE_4[place]
            told = f"{_both(other)} and {_both(row)}"
            text = "equal" if row == other else "differ, though the condition is one"
            yield Finding("Table 6", f"{named(place)}, in Tables 4 and 6", told, text, row == other)


def _both(row: Backward) -> str:
    return f"{change(row.transfer)} (ΔRR {change(row.delta_rr)})"


def _counts(section: str, place: Place, row: Backward) -> Finding:
    """Say what success after the sequence is, and which ΔNL is left."""
    task = subset(place, "backward")
    sequence, world, role = place
    after = scratch(world, tested(sequence, "backward"), role) + row.transfer
    easy = count_behind(row.delta_rr, RUNS * task.solved)
    items = RUNS * task.failed
    text = f"success {after:.1f}; "
    if easy is None:
        text += f"ΔRR is no count of {RUNS * task.solved}"
    else:
        hard = round(row.transfer * EPISODES / 100) - easy
        text += (
            f"{counted(easy)} of {RUNS * task.solved}, leaves {counted(hard)} of {items}:"
            f" ΔNL {change(100 * hard / items)}"
        )
    return Finding(section, f"{named(place)}, BWT", _both(row), text, easy is not None)
