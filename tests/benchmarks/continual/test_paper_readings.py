"""Readings of retrieval, side by side: what depends on the reading is told by a rule."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from synthetic_log import SyntheticLog, World

from langgraft.benchmarks.continual.analysis import Analysis, analyze
from langgraft.benchmarks.continual.columns import MEANINGS
from langgraft.benchmarks.continual.paper.counterparts import reading_words, readings, side_of
from langgraft.benchmarks.continual.paper.report import (
    reading_rows,
    reading_sentences,
    write_paper_report,
)
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.reporting.words import TIMES
from langgraft.benchmarks.studies import read_plan, shipped_plans

SEEN = {"query_fields": ["task", "observation"]}
FIRST = {**SEEN, "key_fields": ["task", "observation"]}
ONCE = {"ranker": {"ranker": "bm25", "ties": "newest", "query_counts": False}}
OKAPI = {"ranker": {"ranker": "bm25", "ties": "newest", "idf": "okapi"}}
CONDITIONS: list[dict[str, Any]] = [
    {"name": "raw-seen", "provider": "trajectory", "settings": SEEN},
    {"name": "raw", "provider": "trajectory"},
    {"name": "raw-first", "provider": "trajectory", "settings": {**FIRST, **ONCE}},
    {"name": "agg", "provider": "insight", "settings": {"granularity": "aggregate"}},
    {"name": "raw-two", "provider": "trajectory", "settings": {"top_k": 2}},
]
PLAN = ContinualPlan.model_validate(
    {
        "model": "simulated",
        "pairs": [{"name": "grid", "A": "babyai/action_obj_door", "B": "babyai/find_obj"}],
        "conditions": CONDITIONS,
    }
)
WORLD = World(
    conditions=[each["name"] for each in CONDITIONS],
    controls=(),
    effects={("raw-seen", "A>B", "B"): -0.8},
    replicates=3,
    train_items=4,
    test_items=30,
)


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """Analyze a study in which one reading harms in one sequence."""
    return analyze(SyntheticLog(WORLD))


def test_readings_when_found_differ_in_retrieval_alone() -> None:
    """The condition with the paper's settings comes first; one that recalls two is no reading."""
    (found,) = readings(PLAN)
    assert found.role == "raw"
    assert [each.name for each in found.all] == ["raw", "raw-seen", "raw-first"]
    assert [reading_words(each) for each in found.all] == [
        "instruction against instruction",
        "instruction and observation against instruction",
        "instruction and observation against instruction and observation; each word of the query once",
    ]


def test_readings_when_the_paper_has_none_are_none() -> None:
    """A plan of the paper's four conditions has one reading of each."""
    assert readings(ContinualPlan()) == ()
    assert reading_sentences(reading_rows(ContinualPlan(), [])) == ()


def test_reading_when_it_changes_transfer_is_said_to(analysis: Analysis) -> None:
    """Holm-corrected over all comparisons, against the first reading, paired by item and run."""
    rows = reading_rows(PLAN, [side_of("grid", analysis)])
    assert len(rows) == 6
    apart = {(row.condition.name, row.row.sequence) for row in rows if row.depends}
    assert apart == {("raw-seen", "A>B")}
    (row,) = [row for row in rows if row.depends]
    (first,) = [e for e in rows if e.condition.name == "raw" and e.row.sequence == "A>B"]
    assert row.against is not None
    assert row.row.transfer.estimate is not None
    assert first.row.transfer.estimate is not None
    assert first.against is None
    difference = row.row.transfer.estimate.value - first.row.transfer.estimate.value
    assert row.against.value == pytest.approx(difference)
    assert row.against.low < row.against.value < row.against.high < 0
    told, keys = reading_sentences(rows)
    assert told.startswith(
        "Forward transfer is seen to depend on how the paper's retrieval is read for Raw on"
    )
    assert re.search(
        r"grid A→B, \S+ as raw but \S+ as raw-seen\. It is not seen to for Raw on", told
    )
    assert "Holm-corrected over 4 comparisons" in told
    assert f"30 items {TIMES} 3 runs" in told
    assert keys.startswith("Of 6 forward transfers, ")


def test_readings_when_none_differs_are_said_not_to() -> None:
    """Nothing is found where there is nothing."""
    same = analyze(SyntheticLog(World(**{**WORLD.__dict__, "effects": {}})))
    told, _ = reading_sentences(reading_rows(PLAN, [side_of("grid", same)]))
    assert told.startswith(
        "Forward transfer is seen to depend nowhere on how the paper's retrieval is read: "
    )


def test_page_when_it_has_readings_begins_with_them(
    analysis: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First what depends on the reading, then all else; each reading has its row, documented."""
    monkeypatch.setattr("langgraft.benchmarks.continual.paper.figures.draw", lambda *_: {})
    report = write_paper_report(PLAN, {"grid": analysis}, tmp_path, simulated=True)
    page = report.page.read_text(encoding="utf-8")
    assert re.search(r'</div>\s*<p class="findings">Forward transfer is seen to depend', page)
    assert page.count("% of the tests</span>") == 6
    assert report.lines[1].startswith("Forward transfer is seen to depend")
    with (tmp_path / "tables" / "readings.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["condition"] for row in rows] == ["raw", "raw-seen", "raw-first"] * 2
    assert [name for name in rows[0] if not MEANINGS.of(name)] == []
    assert [bool(row["p_holm"]) for row in rows] == [False, True, True] * 2
    with (tmp_path / "tables" / "columns.csv").open(encoding="utf-8") as file:
        assert {row["column"] for row in csv.DictReader(file)} == set(rows[0])


def test_plan_of_the_readings_when_it_ships_has_all_of_them() -> None:
    """Raw and Insight, by either key of the paper, by words once, and by Okapi's idf."""
    _, plan = read_plan(shipped_plans()["readings"])
    assert isinstance(plan, ContinualPlan)
    found = {each.role: [reading_words(c) for c in each.all] for each in readings(plan)}
    assert found.keys() == {"raw", "agg"}
    assert found["raw"] == found["agg"]
    assert len(set(found["raw"])) == 7
    assert plan.runs == 5
    assert {pair.name for pair in plan.pairs} == {"alfworld", "babyai"}
    assert sum("Okapi's idf" in words for words in found["raw"]) == 2
