"""Data is prepared wholly or not at all."""

import dataclasses
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from toy_competition import CHECKSUMS, ID, PREPARE, write_competition

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.competition import Checksums, Competition
from langgraft.environments.competitions.layout import read_competition
from langgraft.environments.competitions.preparing import (
    file_checksum,
    prepare_competition,
    verify_competition,
)
from langgraft.environments.competitions.registry import lite_competition, lite_competitions


def competition(place: Path, *, code: str = PREPARE, checksums: Any = CHECKSUMS) -> Competition:
    """Write the toy competition with its checksums, and read it."""
    folder = write_competition(place)
    (folder / "prepare.py").write_text(code)
    if checksums is not None:
        (folder / "checksums.yaml").write_text(yaml.safe_dump(checksums))
    return read_competition(folder, place / "data")


def left_in(place: Path) -> list[str]:
    """Return what lies in the competition's data, apart from the lock and the source."""
    found = (place / "data" / ID).iterdir()
    return sorted(each.name for each in found if each.name not in {".prepare.lock", "raw"})


def test_data_when_prepared_is_there_and_verified(tmp_path: Path) -> None:
    """With the description, as MLE-bench leaves it."""
    found = competition(tmp_path)
    done = prepare_competition(found)
    assert (done.made, done.verified) == (True, True)
    assert found.prepared
    assert (found.public_dir / "description.md").read_text() == found.description
    assert left_in(tmp_path) == ["prepared"]
    assert verify_competition(found) == []


def test_data_when_there_already_is_not_made_again(tmp_path: Path) -> None:
    """Unless it is asked for."""
    found = competition(tmp_path)
    prepare_competition(found)
    made = found.answers.stat().st_ino
    assert not prepare_competition(found).made
    assert found.answers.stat().st_ino == made
    assert prepare_competition(found, force=True).made
    assert found.answers.stat().st_ino != made
    assert left_in(tmp_path) == ["prepared"]


def test_data_when_prepared_can_be_read_by_whom_it_may(tmp_path: Path) -> None:
    """Public by the user of a sandbox, private by nobody else."""
    code = PREPARE.replace("    rows =", "    (public / 'images').mkdir(mode=0o700)\n    rows =")
    found = competition(tmp_path, code=code)
    prepare_competition(found)

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert mode(found.public_dir) == mode(found.public_dir / "images") == 0o755
    assert mode(found.sample_submission) == 0o644
    assert mode(found.private_dir) == 0o700
    assert mode(found.answers) == 0o600


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (PREPARE.replace("rows =", "raise OSError('no\\ndisk')\n    rows ="), "OSError: no disk"),
        (PREPARE.replace("rows =", "raise SystemExit(0)\n    rows ="), "SystemExit: 0"),
        (PREPARE.replace("10 * (n % 7)", "11 * (n % 7)"), r"public/train\.csv differs"),
        (
            PREPARE.replace("train.csv", "training.csv"),
            r"train\.csv is missing; public/training\.csv is not listed",
        ),
        (PREPARE.replace("answers.csv", "truth.csv"), r"left no private/answers\.csv"),
        (
            PREPARE.replace("raw: Path, public: Path", "public: Path, raw: Path"),
            "raw, public, priv",
        ),
    ],
)
def test_preparing_when_it_fails_leaves_nothing(tmp_path: Path, code: str, said: str) -> None:
    """Neither a part of the data nor a folder to clean up."""
    with pytest.raises(CompetitionError, match=said):
        prepare_competition(competition(tmp_path, code=code))
    assert left_in(tmp_path) == []


def test_preparing_when_forced_and_failing_keeps_what_was_there(tmp_path: Path) -> None:
    """The new data takes the place of the old only when it is all right."""
    found = competition(tmp_path)
    prepare_competition(found)
    (tmp_path / ID / "checksums.yaml").write_text(yaml.safe_dump(CHECKSUMS | {"private": {}}))
    with pytest.raises(CompetitionError, match=r"private/answers\.csv is not listed"):
        prepare_competition(found, force=True)
    assert found.prepared
    assert left_in(tmp_path) == ["prepared"]


def test_preparing_when_it_was_killed_is_cleaned_up_by_the_next(tmp_path: Path) -> None:
    """What it left is not the data of anybody."""
    found = competition(tmp_path)
    (found.raw_dir.parent / ".preparing-x1" / "private").mkdir(parents=True)
    prepare_competition(found)
    assert left_in(tmp_path) == ["prepared"]


def test_data_when_changed_is_told_and_made_again_by_force(tmp_path: Path) -> None:
    """A file that differs, one that is missing."""
    found = competition(tmp_path)
    prepare_competition(found)
    found.answers.write_text("id,price\n")
    (found.public_dir / "train.csv").unlink()
    assert verify_competition(found) == [
        "public/train.csv is missing",
        "private/answers.csv differs",
    ]
    with pytest.raises(CompetitionError, match="--force"):
        prepare_competition(found)
    prepare_competition(found, force=True)
    assert verify_competition(found) == []


def test_competition_when_without_checksums_is_prepared_unverified(tmp_path: Path) -> None:
    """Which is said."""
    done = prepare_competition(competition(tmp_path, checksums=None))
    assert (done.made, done.verified) == (True, False)


def test_data_of_a_lite_competition_cannot_be_prepared_here(tmp_path: Path) -> None:
    """It is said what prepares it, and nothing is made."""
    name = "leaf-classification"
    found = lite_competition(name, lite_competitions()[name], tmp_path)
    with pytest.raises(CompetitionError, match=f"mlebench prepare -c {name} --data-dir {tmp_path}"):
        prepare_competition(found)
    assert not found.public_dir.exists()


def test_archive_when_it_has_its_checksum_is_unpacked(tmp_path: Path) -> None:
    """And left alone when it has another one."""
    code = PREPARE.replace("rows = [", "assert (raw / 'source.csv').is_file()\n    rows = [")
    found = competition(tmp_path, code=code)
    archive = found.raw_dir.parent / f"{ID}.zip"
    asked = dataclasses.replace(found, checksums=Checksums(zip="0" * 32, **CHECKSUMS))
    with pytest.raises(CompetitionError, match=f"put the archive .* at {archive}"):
        prepare_competition(asked)
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("source.csv", "a\n1\n")
    with pytest.raises(CompetitionError, match="another archive"):
        prepare_competition(asked)
    assert not any(found.raw_dir.iterdir())
    right = Checksums(zip=file_checksum(archive), **CHECKSUMS)
    assert prepare_competition(dataclasses.replace(found, checksums=right)).made


@pytest.mark.parametrize(
    ("checksums", "said"),
    [
        ({"public": {"../../etc/passwd": "0" * 32}}, "not a file of the folder"),
        ({"public": ["train.csv"]}, "`public`"),
        ({"publik": {}}, "`publik`"),
        ({"zip": 5}, "`zip`"),
    ],
)
def test_checksums_when_malformed_are_refused(tmp_path: Path, checksums: Any, said: str) -> None:
    """Before anything is prepared."""
    with pytest.raises(CompetitionError, match=rf"checksums\.yaml: .*{said}"):
        prepare_competition(competition(tmp_path, checksums=checksums))


def test_data_when_its_place_cannot_be_written_is_refused_in_a_line(tmp_path: Path) -> None:
    """A file where a folder is to be, no permission, no space: none is a traceback."""
    found = competition(tmp_path)
    (tmp_path / "data").write_text("")
    with pytest.raises(CompetitionError, match="cannot be prepared there: Not a directory"):
        prepare_competition(found)


def test_data_of_mle_bench_when_it_differs_is_not_ours_to_make_again(tmp_path: Path) -> None:
    """What to do is named by who made it."""
    found = competition(tmp_path)
    prepare_competition(found)
    (found.public_dir / "description.md").write_text("changed")
    found.answers.write_text("id,price\n")
    for function, remedy in ((found.prepare_fn, "--force"), (None, "with MLE-bench")):
        with pytest.raises(CompetitionError, match=remedy):
            prepare_competition(dataclasses.replace(found, prepare_fn=function))


def test_data_when_the_disk_is_full_blames_the_place_not_the_competition(tmp_path: Path) -> None:
    """And leaves nothing there."""
    code = "import errno\n\ndef prepare(raw, public, private):\n    raise OSError(errno.ENOSPC, 'full')\n"
    found = competition(tmp_path, code=code)
    place = found.public_dir.parent
    with pytest.raises(CompetitionError, match=f"^{place}: {ID} cannot be prepared there: full$"):
        prepare_competition(found)
    assert left_in(tmp_path) == []
