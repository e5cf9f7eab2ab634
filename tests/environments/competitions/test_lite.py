"""The 22 lite competitions as data."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from langgraft.environments.competitions.mlebench import lite_competition, lite_competitions

LITE = lite_competitions()


def test_lite_competitions_when_counted_are_those_of_mle_bench(data_dir: Path) -> None:
    """All of `low.txt`, and nothing else."""
    assert sorted(LITE) == sorted((data_dir / "mlebench" / "lite.txt").read_text().split())


def test_thresholds_when_compared_are_those_of_the_leaderboards(data_dir: Path) -> None:
    """Made by the rule from files whose checksums were those of MLE-bench's repository."""
    expected = json.loads((data_dir / "mlebench" / "lite-thresholds.json").read_text())
    for name, known in LITE.items():
        held = asdict(known.thresholds)
        assert held == {key: expected[name][key] for key in held}, name


def test_modalities_and_groups_when_counted_are_those_of_the_paper() -> None:
    """Table 8 of mle-agent-memory."""
    assert Counter(each.modality for each in LITE.values()) == {
        "image": 10,
        "text": 6,
        "tabular": 4,
        "audio": 2,
    }
    assert Counter(each.metric_group for each in LITE.values()) == {
        "classification": 11,
        "probabilistic classification": 4,
        "regression": 3,
        "prediction accuracy": 2,
        "ranking": 1,
        "generation": 1,
    }


def test_conflict_of_the_paper_with_a_grader_is_told() -> None:
    """Its one regression that is an area under a curve keeps its direction."""
    known = LITE["tabular-playground-series-may-2022"]
    assert (known.metric, known.metric_group) == ("auc-roc", "regression")
    assert not known.thresholds.lower_is_better
    assert "Table 8" in known.note


@pytest.mark.parametrize("name", LITE)
def test_competition_when_made_of_it_has_its_files_where_they_belong(
    name: str, tmp_path: Path
) -> None:
    """Answers in private, the sample submission in public, checksums of what has some."""
    found = lite_competition(name, LITE[name], tmp_path)
    assert found.answers.is_relative_to(found.private_dir)
    assert found.sample_submission.is_relative_to(found.public_dir)
    assert found.answers.name in LITE[name].checksums.private
    listed = LITE[name].checksums.public
    assert found.sample_submission.name in listed or found.sample_submission.suffix == ".zip"
    assert found.prepare_fn is None
    assert not found.prepared
    assert LITE[name].name in found.description
