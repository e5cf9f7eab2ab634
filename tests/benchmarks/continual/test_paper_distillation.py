"""What became of the lessons: drawn, dropped and why, kept."""

from collections.abc import Mapping
from typing import Any

import pytest
from synthetic_log import SyntheticLog, World
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft.benchmarks.continual.analysis import analyze
from langgraft.benchmarks.continual.tables import tables

WORLD = World(conditions=("agg",), controls=(), train_items=6, test_items=12, replicates=2)


class Dropping(SyntheticLog):
    """A log of training in which each episode draws four lessons and keeps one."""

    @override
    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the results of a run, with lessons that were dropped."""
        dropped: list[Any] = [
            {"text": "x", "node": "validate", "reason": "scored below 0.5: a: b", "score": 0.1},
            {"text": "y", "node": "validate", "reason": "scored below 0.5: <b>", "score": 0.2},
            {"text": "z", "node": "deduplicate", "reason": "says what is known", "score": 0.9},
        ]
        found = super().results(name)
        return [{**each, "dropped": dropped} for each in found] if "/train " in name else found


def test_lessons_when_dropped_are_counted_by_node_and_reason() -> None:
    """Drawn are kept and dropped ones; what follows a colon is no reason of its own."""
    found = analyze(Dropping(WORLD)).distillations
    assert [row.sequence for row in found] == ["A", "B", "A>B", "B>A"]
    for row in found:
        assert row.episodes == 6 * 2
        counts = (row.drawn, row.invalid, row.repeated, row.kept)
        assert [each.mean for each in counts] == [24, 12, 6, 6]
        assert row.reasons == {
            ("validate", "scored below 0.5"): 24,
            ("deduplicate", "says what is known"): 12,
        }
        assert row.bank is not None
        assert row.bank.mean == 6 * len(row.sequence.replace(">", ""))


def test_lessons_when_nothing_is_dropped_are_all_kept() -> None:
    """A plan without validation has the same table, with zeros."""
    (row, *_) = analyze(SyntheticLog(WORLD)).distillations
    assert (row.drawn.mean, row.kept.mean, row.reasons) == (6, 6, {})


@pytest.mark.parametrize("name", ["distillation", "dropped"])
def test_tables_of_lessons_when_written_have_a_row_for_each(name: str) -> None:
    """A row for each condition and sequence; of reasons, one for each of them."""
    found = {table.name: table for table in tables(analyze(Dropping(WORLD)))}
    assert len(found[name].rows) == (4 if name == "distillation" else 8)
