"""The competitions that ship prepare to the same bytes wherever they are made."""

import csv
import dataclasses
import importlib.metadata
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from langgraft._core.errors import CompetitionError, MissingExtraError
from langgraft.environments.competitions.preparing import (
    prepare_competition,
    read_checksums,
    verify_competition,
)
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.competitions.shipped import making
from langgraft.environments.competitions.shipped.phrases import prepare as phrases
from langgraft.environments.competitions.shipped.textures import prepare as textures
from langgraft.environments.competitions.shipped.weather import prepare as weather

pytestmark = pytest.mark.matrix  # every competition that ships

IDS = ("visits", "weather", "digits", "textures", "denoising", "phrases")

UNIFORMS = [7, 78, 55, 17, 32]
ORDER = [5, 2, 0, 1, 3, 4]
NOISE = [62, 63, 169, 64, -238]


@pytest.mark.parametrize("name", IDS)
def test_competition_when_prepared_has_the_bytes_of_its_checksums(
    name: str, tmp_path: Path
) -> None:
    """Every file, pictures among them, is the one that the leaderboard was made on."""
    competition = Registry(tmp_path).get_competition(name)
    assert prepare_competition(competition).verified
    assert isinstance(competition.checksums, Path)
    known = read_checksums(competition.checksums)
    home = competition.public_dir.parent
    made = {path.relative_to(home).as_posix() for path in home.glob("*/*")}
    listed = {f"public/{name}" for name in known.public} | {
        f"private/{name}" for name in known.private
    }
    assert listed | set(known.folders) | {"public/description.md"} == made


def test_picture_when_changed_since_is_noticed(tmp_path: Path) -> None:
    """One checksum stands for a folder of pictures: other bytes, names or numbers of them differ."""
    competition = Registry(tmp_path).get_competition("denoising")
    prepare_competition(competition)
    pictures = competition.public_dir / "test"
    first, second, *_ = sorted(pictures.iterdir())
    right = first.read_bytes()
    assert verify_competition(competition) == []
    first.write_bytes(second.read_bytes())
    assert verify_competition(competition) == ["public/test differs: its files, or their names"]
    first.write_bytes(right)
    assert verify_competition(competition) == []
    first.rename(pictures / "another.png")
    assert verify_competition(competition) == ["public/test differs: its files, or their names"]
    pictures.rename(tmp_path / "elsewhere")
    assert verify_competition(competition) == ["public/test is missing"]


def test_split_when_prepared_under_another_name_has_other_rows(tmp_path: Path) -> None:
    """Another name is another split and other noise, of the same number of rows."""
    for name in ("shipped", "other", "again"):
        split = "other" if name == "again" else name
        weather.prepare_split(tmp_path / name / "public", tmp_path / name / "private", split)
    first, other, again = (
        (tmp_path / name / "public" / "test.csv").read_text()
        for name in ("shipped", "other", "again")
    )
    assert other == again
    assert first != other
    assert first.count("\n") == other.count("\n")


@pytest.mark.parametrize("module", [weather, textures, phrases], ids=lambda it: it.__name__)
def test_answers_when_the_sources_are_unknown_do_not_follow_from_the_code(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of labels is drawn with a key that only somebody with the sources has."""
    module.prepare_split(tmp_path / "public", tmp_path / "private", "shipped")
    monkeypatch.setattr(module, "secret", lambda *_: "guessed")
    module.prepare_split(tmp_path / "guessed", tmp_path / "guesses", "shipped")
    answers, guesses = (
        (tmp_path / folder / "answers.csv").read_text().splitlines()
        for folder in ("private", "guesses")
    )
    assert len(answers) == len(guesses)
    right = sum(answer == guess for answer, guess in zip(answers, guesses, strict=True))
    assert right < len(answers) / 2


def test_secret_when_sources_are_parted_otherwise_is_another() -> None:
    """Where one source ends and the next begins counts, and so does their order."""
    keys = {making.secret(*parts) for parts in ((b"ab", b"c"), (b"a", b"bc"), (b"c", b"ab"))}
    assert len(keys) == 3


def test_source_when_its_data_differ_names_package_and_version() -> None:
    """Other data than the checksums were made with is refused, with what to install."""
    other = dataclasses.replace(weather.SOURCE, sha256="0" * 64)
    older = dataclasses.replace(other, version="0.8.0")
    with pytest.raises(CompetitionError, match=r"vega_datasets 0\.8\.0.*pip install"):
        making.read_bytes(older)
    installed = dataclasses.replace(other, version=importlib.metadata.version("vega_datasets"))
    with pytest.raises(CompetitionError, match="was changed: pip install --force-reinstall"):
        making.read_bytes(installed)
    with pytest.raises(CompetitionError, match="is not there"):
        making.read_bytes(dataclasses.replace(weather.SOURCE, path="no.csv"))
    with pytest.raises(MissingExtraError, match=r"langgraft\[mle\]"):
        making.read_bytes(dataclasses.replace(weather.SOURCE, module="not_there_at_all"))


def test_draws_when_keys_are_equal_are_the_known_numbers() -> None:
    """Chance comes from the key alone: these numbers hold on every machine."""
    assert making.uniforms("key", 5, 100).tolist() == UNIFORMS
    assert making.order("key", 6).tolist() == ORDER
    assert making.noise("key", 5, 100).tolist() == NOISE
    many = making.normals("many", 50_000) / making.ONE
    assert abs(many.mean()) < 0.02
    assert abs(many.std() - 1) < 0.02


def test_picture_when_written_reads_back_and_is_as_long_as_any_other(tmp_path: Path) -> None:
    """Files open in Pillow, pixel by pixel, and their length tells nothing of the picture."""
    image = pytest.importorskip("PIL.Image")
    dark = np.zeros((300, 300), dtype=np.uint8)  # more than a block of 65,535 bytes
    mixed = (np.arange(90_000) % 251).astype(np.uint8).reshape(300, 300)
    for picture in (dark, mixed):
        file = tmp_path / "picture.png"
        file.write_bytes(making.encode_png(picture))
        with image.open(file) as opened:
            assert np.array_equal(np.asarray(opened), picture)
    assert len(making.encode_png(dark)) == len(making.encode_png(mixed))


def test_window_when_turned_by_right_angles_is_the_picture_turned() -> None:
    """Turning in integers by quarters of a turn loses nothing."""
    picture = np.arange(25, dtype=np.int64).reshape(5, 5)
    for quarters in range(4):
        view = making.View(2 * making.UNIT, 2 * making.UNIT, 18 * quarters)
        turned = making.look(picture, view, 5)
        assert any(np.array_equal(turned, np.rot90(picture, k)) for k in range(4))
    sines = [round(1024 * float(np.sin(np.radians(5 * step)))) for step in range(-80, 80)]
    assert [making.sine(step) for step in range(-80, 80)] == sines


def test_sample_when_prepared_asks_for_every_row_of_the_answers_and_tells_none(
    tmp_path: Path,
) -> None:
    """The sample names the rows of the answers and gives all the same values."""
    competition = Registry(tmp_path).get_competition("phrases")
    prepare_competition(competition)
    with competition.sample_submission.open(newline="") as lines:
        header, *rows = csv.reader(lines)
    with competition.answers.open(newline="") as lines:
        _, *answers = csv.reader(lines)
    assert [row[0] for row in rows] == [row[0] for row in answers]
    assert len({tuple(row[1:]) for row in rows}) == 1
    assert "language" not in header
