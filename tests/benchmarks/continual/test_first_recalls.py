"""Transfer by recalled key: which key comes first most often, and which one a transfer hangs on."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from synthetic_log import SyntheticLog, World

from langgraft._core.canonical import JSON, seeded_fraction
from langgraft.benchmarks.continual.analysis import Analysis, analyze
from langgraft.benchmarks.continual.columns import MEANINGS
from langgraft.benchmarks.continual.mechanisms import first_words, hanging, key_words
from langgraft.benchmarks.continual.page_one import extremes, transfer_sentences
from langgraft.benchmarks.continual.report import write_report
from langgraft.benchmarks.continual.retrieval import FirstRecall
from langgraft.benchmarks.continual.tables import tables
from langgraft.benchmarks.harness.study import Plan

WORLD = World(
    conditions=("raw", "ind"),
    controls=("raw+placebo",),
    train_items=6,
    test_items=30,
    retrieved=1,
)
HARM = "A>B"


class Harmed(SyntheticLog):
    """Every test succeeds, but two in five of raw's after A>B: they recall one item first, and fail."""

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the results of a run."""
        return [self._told(name, each) for each in super().results(name)]

    def _told(self, name: str, result: Mapping[str, JSON]) -> Mapping[str, JSON]:
        harmed = name.startswith("raw/") and name.endswith(f"test B after {HARM}")
        if not harmed or not self.harms(name, str(result["task_id"])):
            return {**result, "success": True}
        return {**result, "success": False, "recalls": self.recalled(result)}

    def harms(self, name: str, item: str) -> bool:
        """Say whether a test is harmed."""
        return seeded_fraction("harm", name, item) < 0.4

    def recalled(self, result: Mapping[str, JSON]) -> JSON:
        """Return what a test that is harmed recalls."""
        recalls = cast("list[dict[str, Any]]", result["recalls"])
        return [{**recalls[0], "item_ids": [f"{self.worst()}/lesson"]}]

    def worst(self) -> str:
        """Return the episode whose item does the harm, one of A."""
        return min(next(run for run in self.runs if run.name == "raw/0/train A").item_ids)


def first_of(result: Mapping[str, JSON]) -> str:
    """Return what a test recalls first."""
    recalls = cast("list[dict[str, Any]]", result["recalls"])
    return str(recalls[0]["item_ids"][0])


@pytest.fixture(scope="module")
def log() -> Harmed:
    """Return the log of a study in which one item does all the harm."""
    return Harmed(WORLD)


@pytest.fixture(scope="module")
def analysis(log: Harmed) -> Analysis:
    """Analyze it."""
    return analyze(log)


def row_of(analysis: Analysis, condition: str, sequence: str = HARM) -> FirstRecall:
    """Return a row."""
    (found,) = [
        each
        for each in analysis.first_recalls
        if (each.transfer.condition, each.transfer.sequence) == (condition, sequence)
    ]
    return found


def test_first_recalls_when_counted_by_hand_are_those_of_the_log(
    log: Harmed, analysis: Analysis
) -> None:
    """The key that is first most often, in how many tests, and what they add to FWT."""
    row = row_of(analysis, "raw")
    domain, _, number = log.worst().rpartition("/")
    runs = [f"raw/{replicate}/test B after {HARM}" for replicate in range(WORLD.replicates)]
    first = [first_of(result) for name in runs for result in log.results(name)]
    mine = first.count(f"{log.worst()}/lesson")
    failed = sum(not each["success"] for name in runs for each in log.results(name))
    for key in (row.top, row.largest):
        assert (key.key, key.domain, key.items) == (f"situation {number}", domain, 1)
        assert key.episodes == mine
        assert key.share.mean == pytest.approx(mine / len(first))
    assert row.largest.part == pytest.approx(-failed / len(first))
    assert row.other_first is not None
    others = sum("action_obj_door" in each for each in first)
    assert row.other_first.mean == pytest.approx(others / len(first))


def test_transfer_when_one_item_does_all_the_harm_hangs_on_it(analysis: Analysis) -> None:
    """Without its tests nothing is left, and the page's words say so."""
    row = row_of(analysis, "raw")
    assert row.transfer.transfer.estimate is not None
    assert row.without.estimate is not None
    assert row.transfer.transfer.estimate.high < 0
    assert row.without.estimate.value == 0
    assert row.hangs
    assert hanging(row).startswith(f"hangs on one item, {key_words(row.largest)} of babyai/")
    assert f"recalled first in {row.largest.episodes} of 90 tests" in hanging(row)
    assert "; hangs on “situation" in first_words(row)
    told = " ".join(analysis.explanations.keys)
    assert "1 can be told from 0; 1 of them hangs on one key." in told
    assert f"raw, A→B: {' '.join(told.split(': ')[1].split()[:2])}" in told
    worst = next(each for each in extremes(analysis) if each.label == "worst FWT")
    assert "; it hangs on one item" in " ".join(transfer_sentences([worst]))


def test_transfer_when_it_is_none_hangs_on_nothing(analysis: Analysis) -> None:
    """What cannot be told from 0 has a largest part of 0 and no words about it."""
    row = row_of(analysis, "ind")
    assert row.largest.part == 0
    assert not row.hangs
    assert not hanging(row)
    assert "hangs" not in first_words(row)


def test_transfer_when_every_key_does_harm_hangs_on_none() -> None:
    """A loss that is everywhere stays when one key is left out."""

    class AllHarm(Harmed):
        def harms(self, name: str, item: str) -> bool:
            return True

        def recalled(self, result: Mapping[str, JSON]) -> JSON:
            return result["recalls"]

    row = row_of(analyze(AllHarm(WORLD)), "raw")
    assert row.transfer.transfer.estimate is not None
    assert row.transfer.transfer.estimate.value == -1
    assert not row.hangs


@pytest.mark.parametrize("seed", range(4))
def test_without_when_outcomes_are_any_is_the_transfer_less_the_part(seed: int) -> None:
    """Leaving a key out takes its part and nothing else; the part goes the way of the transfer."""
    world = replace(WORLD, seed=seed, effects={("ind", "B>A", "A"): -0.3})
    found = analyze(SyntheticLog(world)).first_recalls
    assert len(found) == 4
    for row in found:
        whole, rest = row.transfer.transfer.estimate, row.without.estimate
        assert whole is not None
        assert rest is not None
        assert rest.value == pytest.approx(whole.value - row.largest.part)
        assert row.largest.part * whole.value >= 0
        assert row.top.episodes >= row.largest.episodes


def test_first_recalls_when_controls_are_tested_leave_them_out(analysis: Analysis) -> None:
    """What a control injects is not what was retrieved; backward transfer has no such row."""
    assert {each.transfer.condition for each in analysis.first_recalls} == {"raw", "ind"}
    assert {each.transfer.direction for each in analysis.first_recalls} == {"forward"}


def test_first_recalls_when_written_are_documented_and_on_the_page(
    log: Harmed, analysis: Analysis, tmp_path: Path, no_figures: None
) -> None:
    """Beside every FWT of the page, and in a table all of whose columns have a meaning."""
    (table,) = [each for each in tables(analysis) if each.name == "first_recalls"]
    assert len(table.rows) == len(analysis.first_recalls)
    assert all(MEANINGS.of(name) for name in table.columns)
    report = write_report(Plan(study="continual"), log, tmp_path, analysis=analysis)
    page = report.page.read_text(encoding="utf-8")
    assert page.count("hangs on one key</strong>") == 1
    assert page.count("% of the tests</span>") == len(analysis.first_recalls)
    assert "The worst FWT hangs on one item" in page


def test_key_when_it_is_long_or_hostile_is_cut_and_shown_as_text(analysis: Analysis) -> None:
    """An observation is told by its beginning; what a browser would not show is written out."""
    top = row_of(analysis, "raw").top
    long = key_words(replace(top, key="put a cup\nin\u202e " + "a very long room " * 20))
    assert long.startswith("“put a cup in\\u202e a very")
    assert long.endswith("…”")
    assert len(long) < 70
