"""Archives among a competition's data: unpacked once, within bounds, and never anywhere else."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tree_cases import toy

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.archives import Bounds, unpack_archives
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preview import data_preview


def zipped(competition: Competition, name: str, files: dict[str, bytes]) -> Path:
    """Put a zip among the data."""
    path = competition.public_dir / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in files.items():
            archive.writestr(member, content)
    return path


def tarred(competition: Competition, name: str, *members: tarfile.TarInfo) -> Path:
    """Put a tar among the data; regular members hold zeros."""
    path = competition.public_dir / name
    with tarfile.open(path, "w:gz" if name.endswith("gz") else "w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    """Describe a member of a tar."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, "train.csv"
    return info


def tree(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder by path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def left(competition: Competition) -> list[str]:
    """Return what lies beside the data, but for the lock."""
    beside = competition.public_dir.parent
    return sorted(each.name for each in beside.iterdir() if each.name != ".unpack.lock")


def test_archives_when_mle_bench_zipped_them_lie_unpacked_beside_the_other_files(
    tmp_path: Path,
) -> None:
    """Files side by side get a folder of the archive's name; one folder or file lies as it is."""
    toyed = toy(tmp_path)
    zipped(toyed, "train.zip", {"a.jpg": b"a", "b.jpg": b"b"})
    zipped(toyed, "test2.zip", {"test2/": b"", "test2/c.aif": b"c"})
    zipped(toyed, "en_train.csv.zip", {"en_train.csv": b"id,after\n1,x\n"})
    public = tree(toyed.public_dir)
    made = unpack_archives(toyed)
    unpacked = {
        "train/a.jpg": b"a",
        "train/b.jpg": b"b",
        "test2/c.aif": b"c",
        "en_train.csv": b"id,after\n1,x\n",
    }
    assert made.folder == toyed.input_dir != toyed.public_dir
    assert tree(made.folder) == {**public, **unpacked}
    assert tree(toyed.public_dir) == public
    text = data_preview(made.folder, notes=made.notes)
    assert "bytes), unpacked: test2/" in text
    assert "en_train.csv: 1 row, 2 columns" in text
    assert all(path.stat().st_mode & 0o004 for path in made.folder.rglob("*"))


def test_archives_when_they_were_unpacked_are_not_touched_again(tmp_path: Path) -> None:
    """The same files, of the same times, are a view that is there; another size makes a new one."""
    toyed = toy(tmp_path)
    archive = zipped(toyed, "train.zip", {"a": b"a", "b": b"b"})
    first = unpack_archives(toyed)
    inode = (first.folder / "train" / "a").stat().st_ino
    before = archive.stat()
    archive.write_bytes(bytes(before.st_size))  # never opened again, so that it may hold anything
    os.utime(archive, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert unpack_archives(toyed) == first
    assert (first.folder / "train" / "a").stat().st_ino == inode
    archive.unlink()
    zipped(toyed, "train.zip", {"a": b"new", "b": b"b"})
    assert tree(unpack_archives(toyed).folder)["train/a"] == b"new"
    archive.unlink()
    assert unpack_archives(toyed).folder == toyed.input_dir == toyed.public_dir
    assert "unpacked" not in left(toyed)


def test_archives_when_their_files_lie_beside_them_need_no_view(tmp_path: Path) -> None:
    """As in dogs-vs-cats, where MLE-bench leaves the folders."""
    toyed = toy(tmp_path)
    zipped(toyed, "train.zip", {"a": b"a", "b": b"b"})
    (toyed.public_dir / "train").mkdir()
    for name in "ab":
        (toyed.public_dir / "train" / name).write_text(name)
    made = unpack_archives(toyed)
    assert made.folder == toyed.public_dir
    assert made.notes == {"train.zip": "unpacked: train/"}
    assert unpack_archives(toyed) == made


def test_archive_when_it_would_replace_a_file_or_lies_in_another_stays_packed(
    tmp_path: Path,
) -> None:
    """Nothing is overwritten, and agents are told."""
    toyed = toy(tmp_path)
    zipped(toyed, "old.zip", {"train.csv": b"another one"})
    inner = zipped(toyed, "inner.zip", {"x": b"x"})
    zipped(toyed, "outer.zip", {"outer/inner.zip": inner.read_bytes()})
    inner.unlink()
    made = unpack_archives(toyed)
    assert (made.folder / "train.csv").read_bytes().startswith(b"id,x,target")
    told = "an archive, not unpacked: train.csv is there already, and another one"
    assert made.notes == {"old.zip": told, "outer.zip": "unpacked: outer/"}
    text = data_preview(made.folder, notes=made.notes)
    assert "bytes), an archive, not unpacked\n" in text


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_archive_when_it_holds_a_link_or_device_is_refused(tmp_path: Path, kind: bytes) -> None:
    """One line names the archive and the entry; nothing is left."""
    toyed = toy(tmp_path)
    tarred(toyed, "data.tar.gz", member("data/fine"), member("data/odd", kind))
    with pytest.raises(CompetitionError, match=r"data\.tar\.gz.*'data/odd' is a link or a device"):
        unpack_archives(toyed)
    assert left(toyed) == ["public"]


def test_archive_when_a_zip_holds_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    """As `zip -y` writes one."""
    toyed = toy(tmp_path)
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(toyed.public_dir / "l.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(CompetitionError, match=r"l\.zip.*'link' is a link or a device"):
        unpack_archives(toyed)


def test_archive_when_it_is_a_bomb_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """By ratio, by size and by entries; the line names the archive and the bound."""
    toyed = toy(tmp_path)
    zipped(toyed, "bomb.zip", {"zeros": bytes(50_000_000)})
    cases = (
        (Bounds(harmless=1_000_000), r"bomb\.zip.*is a bomb.* over 200 times"),
        (Bounds(bytes=1_000_000), r"bomb\.zip.*more than the 1\.0 MB"),
        (Bounds(entries=0), r"bomb\.zip.*more than 0 entries"),
    )
    for bounds, message in cases:
        with pytest.raises(CompetitionError, match=message):
            unpack_archives(toyed, bounds=bounds)
        assert left(toyed) == ["public"]
    (toyed.public_dir / "bomb.zip").unlink()
    tarred(toyed, "bomb.tgz", member("zeros", size=50_000_000))
    with pytest.raises(CompetitionError, match=r"bomb\.tgz.*is a bomb"):
        unpack_archives(toyed, bounds=Bounds(harmless=1_000_000))


def test_archive_when_it_is_damaged_or_lies_about_itself_is_refused(tmp_path: Path) -> None:
    """Cut off, no archive at all, and bytes that are others than its checksum says."""
    toyed = toy(tmp_path)
    archive = zipped(toyed, "t.zip", {"a": bytes(range(256)) * 100})
    whole = archive.read_bytes()
    flipped = bytearray(whole)
    flipped[80] ^= 0xFF
    for content in (whole[:-30], b"no zip", bytes(flipped), b""):
        archive.write_bytes(content)
        with pytest.raises(CompetitionError, match=r"t\.zip.*is not unpacked: it is damaged"):
            unpack_archives(toyed)
        assert left(toyed) == ["public"]


NAMES = st.one_of(
    st.sampled_from(
        ["../x", "/x", "a/../../x", "..", "a\\..\\..\\x", "C:/x", "a/b", "a", "a/", "./a", ""]
    ),
    st.text(min_size=1, max_size=20),
    st.lists(st.sampled_from(["a", "b", "..", ".", ""]), max_size=5).map("/".join),
)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(names=st.lists(NAMES, max_size=5), as_tar=st.booleans())
def test_archive_when_its_names_are_anything_writes_only_into_the_view(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], as_tar: bool
) -> None:
    """It is unpacked whole, left packed, or refused; what was there stays as it was."""
    place = tmp_path_factory.mktemp("any")
    toyed = toy(place / "deep" / "deeper")
    try:
        if as_tar:
            tarred(toyed, "t.tar", *(member(name, size=3) for name in names))
        else:
            with zipfile.ZipFile(toyed.public_dir / "t.zip", "w") as archive:
                for name in names:
                    archive.writestr(name, b"new")
    except (ValueError, UnicodeError, IndexError):
        return  # names that these writers do not write
    before = tree(place)
    try:
        made = unpack_archives(toyed)
    except CompetitionError as error:
        told, after = str(error), tree(place)
    else:
        told = "unpacked: t.zip"
        after = {name: data for name, data in tree(place).items() if "/unpacked/" not in name}
        public = tree(toyed.public_dir)
        assert {name: tree(made.folder).get(name) for name in public} == public
    assert "t.zip" in told or "t.tar" in told
    assert "\n" not in told
    after.pop("deep/deeper/.unpack.lock", None)
    assert after == before


_ON_A_FULL_DISK = """
import sys, zipfile
from pathlib import Path
from tree_cases import toy
from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.archives import unpack_archives

for name, files, size in (("many", 100, 1), ("large", 1, 3_000_000)):
    toyed = toy(Path(sys.argv[1]) / name)
    with zipfile.ZipFile(toyed.public_dir / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(files):
            archive.writestr(f"{number}.txt", bytes(size))
    try:
        unpack_archives(toyed)
    except CompetitionError as error:
        print(error)
    left = sorted(path.name for path in toyed.public_dir.parent.rglob("*"))
    assert left == [".unpack.lock", "public", "sample_submission.csv", "t.zip", "train.csv"], left
"""
_SMALL_DISK = """
mount -t tmpfs -o size=2m,nr_inodes=60 none "$1" && exec "$2" -c "$3" "$1"
"""


def test_archive_when_the_disk_is_full_is_told_in_a_line_and_leaves_nothing(tmp_path: Path) -> None:
    """A disk without room for so many files, which shows on the way, and one without the bytes."""
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*namespace, "true"], check=False).returncode
    ):
        pytest.skip("a small disk takes a namespace of one's own")
    given = [str(tmp_path), sys.executable, _ON_A_FULL_DISK]
    done = subprocess.run(
        [*namespace, "sh", "-c", _SMALL_DISK, "sh", *given],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    many, large = done.stdout.splitlines()
    assert many.endswith(
        "cannot be unpacked there: No space left on device; nothing half made is left"
    )
    assert "t.zip cannot be unpacked there: 3.0 MB are needed" in large
