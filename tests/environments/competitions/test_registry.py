"""Where competitions are found: folders, what ships, an installed `mlebench`, the lite ones."""

import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy_competition import GRADE, ID, config, write_competition

from langgraft._core.errors import CompetitionError, InputError
from langgraft.environments.competitions import registry as registries
from langgraft.environments.competitions.grading import grade_submission
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.registry import (
    Registry,
    lite_competition,
    lite_competitions,
)
from langgraft.environments.competitions.submissions import check_submission

LITE = "spooky-author-identification"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:d5f3\nsize 84693\n"


@pytest.fixture(autouse=True)
def _no_mlebench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither MLE-bench nor its data is on this machine, as far as a test is concerned."""
    monkeypatch.setattr(
        "langgraft.environments.competitions.registry.mlebench_folder", lambda: None
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def install_mlebench(place: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Path:
    """Put a package `mlebench` with toy competitions on the path; return its competitions."""
    folder = place / "site" / "mlebench" / "competitions"
    folder.mkdir(parents=True)
    (place / "site" / "mlebench" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    for name in names:
        write_competition(folder).rename(folder / name)
        held = yaml.safe_dump(config(id=name)).replace(f"{ID}/", f"{name}/")
        (folder / name / "config.yaml").write_text(held)
        (folder / name / "leaderboard.csv").write_text(POINTER)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    monkeypatch.delitem(sys.modules, "mlebench", raising=False)
    monkeypatch.syspath_prepend(place / "site")
    importlib.invalidate_caches()
    return folder


def test_registry_when_asked_lists_what_ships_and_the_lite_ones(tmp_path: Path) -> None:
    """In order, without MLE-bench and without data."""
    registry = Registry(tmp_path)
    ids = registry.list_competition_ids()
    assert ids == sorted(ids)
    assert set(registry.get_lite_competition_ids()) < set(ids)
    assert len(registry.get_lite_competition_ids()) == 22
    assert set(registry.get_shipped_competition_ids()) < set(ids)
    assert len(registry.get_shipped_competition_ids()) >= 6
    assert {registry.get_source(each) for each in ids} == {"shipped", "lite"}


def test_registry_when_told_of_folders_finds_them_first(tmp_path: Path) -> None:
    """A competition of one's own; even one that corrects a competition we know."""
    write_competition(tmp_path / "mine")
    other = write_competition(tmp_path / "other")
    other.rename(other.with_name(LITE))
    held = yaml.safe_dump(config(id=LITE)).replace(f"{ID}/", f"{LITE}/")
    (other.with_name(LITE) / "config.yaml").write_text(held)
    registry = Registry(tmp_path / "data", folders=[tmp_path / "mine", tmp_path / "other"])
    assert ID in registry.list_competition_ids()
    assert registry.get_competition(ID).name == "House prices"
    assert registry.get_source(LITE) == "own"
    assert registry.get_competition(LITE).board.thresholds.teams == 20


def test_registry_when_data_is_elsewhere_is_another_one(tmp_path: Path) -> None:
    """As with MLE-bench's `set_data_dir`; the folders stay."""
    write_competition(tmp_path / "mine")
    registry = Registry(tmp_path / "a", folders=[tmp_path / "mine"])
    moved = registry.set_data_dir(tmp_path / "b")
    assert registry.get_data_dir() == tmp_path / "a"
    assert moved.get_data_dir() == tmp_path / "b"
    assert moved.get_competition(ID).raw_dir == tmp_path / "b" / ID / "raw"


@pytest.mark.parametrize("name", ["spooky-author", "../../etc", "", "a/b", "nothing\0"])
def test_id_when_unknown_is_refused(tmp_path: Path, name: str) -> None:
    """It never becomes a path; one that is near is proposed."""
    with pytest.raises(CompetitionError, match="there is no competition") as caught:
        Registry(tmp_path).get_competition(name)
    assert (LITE in str(caught.value)) == (name == "spooky-author")


def test_folder_when_no_place_of_competitions_is_refused(tmp_path: Path) -> None:
    """It is not there, or is a competition itself."""
    with pytest.raises(CompetitionError, match="no such folder"):
        Registry(tmp_path, folders=[tmp_path / "absent"])
    with pytest.raises(CompetitionError, match="give the folder that holds it"):
        Registry(tmp_path, folders=[write_competition(tmp_path)])


def test_data_of_mle_bench_when_in_its_own_place_is_found(tmp_path: Path) -> None:
    """Unless there is data in ours."""
    elsewhere = registries.mlebench_data_dir()
    (elsewhere / LITE / "prepared" / "public").mkdir(parents=True)
    (elsewhere / LITE / "prepared" / "public" / "description.md").write_text("# As on Kaggle\n")
    registry = Registry(tmp_path / "data")
    found = registry.get_competition(LITE)
    assert found.public_dir == elsewhere / LITE / "prepared" / "public"
    assert found.description == "# As on Kaggle\n"
    (tmp_path / "data" / LITE).mkdir(parents=True)
    assert registry.get_competition(LITE).public_dir.is_relative_to(tmp_path / "data")


def test_mlebench_when_installed_is_read_but_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folders, with our modality and thresholds where its leaderboard is a pointer."""
    install_mlebench(tmp_path, monkeypatch, LITE, "other-task")
    registry = Registry(tmp_path / "data")
    found = registry.get_competition(LITE)
    assert registry.get_source(LITE) == "mlebench"
    assert found.modality == "text"
    assert found.board.thresholds.teams == 1242
    assert found.grader.name == "rmse"
    assert "other-task" in registry.list_competition_ids()
    with pytest.raises(CompetitionError, match=r"leaderboard\.csv: is a pointer of Git LFS"):
        registry.get_competition("other-task")
    assert "mlebench" not in sys.modules


def test_leaderboard_of_mlebench_when_there_is_judged_as_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own file goes before our thresholds; equal scores mean that higher is better there."""
    folder = install_mlebench(tmp_path, monkeypatch, LITE)
    (folder / LITE / "leaderboard.csv").write_text("teamId,score\n1,0.5\n2,0.5\n")
    board = Registry(tmp_path / "data").get_competition(LITE).board
    assert board.thresholds.teams == 2
    assert not board.thresholds.lower_is_better


def test_grader_of_mlebench_when_it_lacks_a_package_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing needs none of them."""
    folder = install_mlebench(tmp_path, monkeypatch, LITE)
    (folder / LITE / "grade.py").write_text("import no_such_package_\n" + GRADE)
    found = Registry(tmp_path / "data").get_competition(LITE)
    with pytest.raises(CompetitionError, match="needs `no_such_package_`"):
        found.grader.grade(None, None)  # type: ignore[arg-type]


def refuse(_: Path, **__: object) -> None:
    """Refuse what another user's folder refuses."""
    raise PermissionError(13, "Permission denied")


def test_data_when_its_place_is_another_users_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list is a list, whatever lies behind it."""
    monkeypatch.setattr(Path, "is_dir", refuse)
    found = Registry(tmp_path / "data").get_competition(LITE)
    monkeypatch.setattr(Path, "is_file", refuse)
    assert not found.prepared
    with pytest.raises(CompetitionError, match=r"submission\.csv: cannot be read: Permission"):
        check_submission(b"", found)


def test_folder_when_another_users_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked for by name."""
    registry = Registry(tmp_path / "data", folders=[tmp_path])
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(CompetitionError, match="cannot be read: Permission denied"):
        registry.list_competition_ids()


@pytest.mark.parametrize(
    "use",
    [
        prepare_competition,
        lambda given: check_submission(b"", given),
        lambda given: grade_submission("s.csv", given),
    ],
)
def test_id_when_given_in_place_of_its_competition_is_refused(use: Callable[[Any], object]) -> None:
    """With what would have been right."""
    with pytest.raises(InputError, match=r"'digits' is no competition: give Registry.*\(id\)"):
        use("digits")


KNOWN = lite_competitions()


def test_lite_competitions_when_counted_are_those_of_mle_bench(data_dir: Path) -> None:
    """All of `low.txt`, and nothing else."""
    assert sorted(KNOWN) == sorted((data_dir / "mlebench" / "lite.txt").read_text().split())


def test_thresholds_when_compared_are_those_of_the_leaderboards(data_dir: Path) -> None:
    """Made by the rule from files whose checksums were those of MLE-bench's repository."""
    expected = json.loads((data_dir / "mlebench" / "lite-thresholds.json").read_text())
    for name, known in KNOWN.items():
        held = asdict(known.thresholds)
        assert held == {key: expected[name][key] for key in held}, name


def test_modalities_and_groups_when_counted_are_those_of_the_paper() -> None:
    """Table 8 of mle-agent-memory."""
    assert Counter(each.modality for each in KNOWN.values()) == {
        "image": 10,
        "text": 6,
        "tabular": 4,
        "audio": 2,
    }
    assert Counter(each.metric_group for each in KNOWN.values()) == {
        "classification": 11,
        "probabilistic classification": 4,
        "regression": 3,
        "prediction accuracy": 2,
        "ranking": 1,
        "generation": 1,
    }


def test_conflict_of_the_paper_with_a_grader_is_told() -> None:
    """Its one regression that is an area under a curve keeps its direction."""
    known = KNOWN["tabular-playground-series-may-2022"]
    assert (known.metric, known.metric_group) == ("auc-roc", "regression")
    assert not known.thresholds.lower_is_better
    assert "Table 8" in known.note


@pytest.mark.parametrize("name", KNOWN)
def test_competition_when_made_of_it_has_its_files_where_they_belong(
    name: str, tmp_path: Path
) -> None:
    """Answers in private, the sample submission in public, checksums of what has some."""
    found = lite_competition(name, KNOWN[name], tmp_path)
    assert found.answers.is_relative_to(found.private_dir)
    assert found.sample_submission.is_relative_to(found.public_dir)
    assert found.answers.name in KNOWN[name].checksums.private
    listed = KNOWN[name].checksums.public
    assert found.sample_submission.name in listed or found.sample_submission.suffix == ".zip"
    assert found.prepare_fn is None
    assert not found.prepared
    assert KNOWN[name].name in found.description
