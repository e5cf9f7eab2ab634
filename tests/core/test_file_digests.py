"""Digests of files that outlive a process: large data is read once, and a changed file again."""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core import file_digests
from langgraft._core.file_digests import FileDigests

LARGE = 200_000


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the files that are read, as they are."""
    read: list[Path] = []
    whole = file_digests.file_digest

    def noting(path: Path, algorithm: file_digests.Algorithm = "sha256") -> str:
        read.append(path)
        return whole(path, algorithm)

    monkeypatch.setattr(file_digests, "file_digest", noting)
    return read


def settled(path: Path, content: bytes) -> Path:
    """Write a file whose last change lies a while back, as far as it can be set."""
    path.write_bytes(content)
    return path


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock be far beyond the last change of every file."""
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 10**12)


@pytest.mark.usefixtures("later")
def test_digest_when_a_file_was_read_before_is_not_read_again(
    tmp_path: Path, reads: list[Path]
) -> None:
    """Also by another process, that is, by another object on the same file."""
    data = settled(tmp_path / "data", b"1" * LARGE)
    kept = tmp_path / "digests.sqlite"
    with FileDigests(kept) as digests:
        first = digests.digest(data)
    assert first == hashlib.sha256(b"1" * LARGE).hexdigest()
    with FileDigests(kept) as digests:
        assert digests.digest(data) == first
        assert digests.digest(data) == first
    assert reads == [data]
    md5 = FileDigests(kept).digest(data, "md5")
    assert md5 == hashlib.md5(b"1" * LARGE, usedforsecurity=False).hexdigest()


def _rewritten(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"2" * LARGE)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # in one tick, which is not settled
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replaced(path: Path) -> None:
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(b"3" * LARGE)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def _longer(path: Path) -> None:
    path.write_bytes(b"4" * (LARGE + 1))


@pytest.mark.parametrize("change", [_rewritten, _replaced, _longer])
@pytest.mark.usefixtures("later")
def test_digest_when_a_file_was_changed_is_that_of_the_new_content(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """Also where size and time of modification are set back to what they were."""
    data = settled(tmp_path / "data", b"1" * LARGE)
    with FileDigests(tmp_path / "digests.sqlite") as digests:
        digests.digest(data)
    change(data)
    with FileDigests(tmp_path / "digests.sqlite") as digests:
        assert digests.digest(data) == hashlib.sha256(data.read_bytes()).hexdigest()


@pytest.mark.usefixtures("later")
def test_digest_when_there_are_many_files_then_all_are_known_afterwards(
    tmp_path: Path, reads: list[Path]
) -> None:
    """Those written together in the middle, and the rest at the end."""
    files = [settled(tmp_path / f"{number}.png", b"%d" % number * 5000) for number in range(1003)]
    for _ in range(2):
        with FileDigests(tmp_path / "digests.sqlite") as digests:
            found = [digests.digest(file) for file in files]
        assert found == [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    assert len(reads) == len(files)


def test_digest_when_a_file_was_just_written_is_not_kept(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a tick of the clock a second change would look like none."""
    data = settled(tmp_path / "data", b"1" * LARGE)
    now = data.stat().st_ctime_ns
    monkeypatch.setattr(time, "time_ns", lambda: now)
    digests = FileDigests(tmp_path / "digests.sqlite")
    digests.digest(data)
    digests.digest(data)
    assert reads == [data, data]


@given(junk=st.binary(min_size=1, max_size=300))
def test_digest_when_the_cache_is_damaged_is_still_right(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    """A cache costs time where it cannot be used, and nothing else."""
    folder = tmp_path_factory.mktemp("cache")
    data = settled(folder / "data", b"1" * LARGE)
    (folder / "digests.sqlite").write_bytes(junk)
    with FileDigests(folder / "digests.sqlite") as digests:
        found = digests.digest(data)
    assert found == hashlib.sha256(b"1" * LARGE).hexdigest()


def test_digest_when_there_is_no_place_for_a_cache_is_still_right(tmp_path: Path) -> None:
    """Of a home that is a file, say."""
    data = settled(tmp_path / "data", b"1" * LARGE)
    (tmp_path / "home").touch()
    with FileDigests(tmp_path / "home" / "digests.sqlite") as digests:
        found = digests.digest(data)
    assert found == hashlib.sha256(b"1" * LARGE).hexdigest()
