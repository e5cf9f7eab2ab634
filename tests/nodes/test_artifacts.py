"""Contents by reference: the same content once, whole or not at all, never a damaged one."""

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from langgraft._core.errors import InputError
from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts

SHA = hashlib.sha256(b"code\0\xff").hexdigest()


def stored(folder: Path) -> list[str]:
    """List the files of a folder, as paths from it."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.fixture(params=["memory", "folder"])
def artifacts(request: pytest.FixtureRequest, tmp_path: Path) -> Artifacts:
    """Return a keeper of each kind."""
    return MemoryArtifacts() if request.param == "memory" else FolderArtifacts(tmp_path / "kept")


def test_content_when_kept_is_read_back_by_its_digest(artifacts: Artifacts) -> None:
    """Any bytes, none included; keeping the same again gives the same reference."""
    assert artifacts.keep(b"code\0\xff") == artifacts.keep(b"code\0\xff") == SHA
    assert artifacts.read(SHA) == b"code\0\xff"
    assert artifacts.read(artifacts.keep(b"")) == b""


@pytest.mark.parametrize("reference", ["", "../" * 21 + "x", SHA.upper(), SHA[:-1], SHA + "\n"])
def test_reference_when_it_is_none_is_refused(artifacts: Artifacts, reference: str) -> None:
    """It becomes part of a path, so its form is held to."""
    with pytest.raises(InputError, match="is no reference to a content"):
        artifacts.read(reference)


def test_content_when_nothing_is_kept_as_it_is_named_as_missing(artifacts: Artifacts) -> None:
    """The message says what to do."""
    with pytest.raises(InputError, match=f"nothing is kept as {SHA[:12]}"):
        artifacts.read(SHA)


def test_folder_when_a_file_is_damaged_refuses_it_and_keeping_again_mends_it(
    tmp_path: Path,
) -> None:
    """Cut off by a full disk, or changed by hand."""
    kept = FolderArtifacts(tmp_path)
    path = tmp_path / SHA[:2] / SHA[2:]
    kept.keep(b"code\0\xff")
    for damage in (b"", b"code\0", b"CODE\0\xff"):
        path.write_bytes(damage)
        with pytest.raises(InputError, match=r"is damaged"):
            kept.read(SHA)
        assert kept.keep(b"code\0\xff") == SHA
        assert kept.read(SHA) == b"code\0\xff"


def test_folder_when_a_content_is_large_keeps_it_compressed(tmp_path: Path) -> None:
    """Submissions have millions of rows; damage is found, and mended, as with others."""
    kept = FolderArtifacts(tmp_path)
    content = b"".join(b"%d,0.5\n" % number for number in range(200_000))
    reference = kept.keep(content)
    assert FolderArtifacts(tmp_path).read(reference) == content
    (path,) = (tmp_path / name for name in stored(tmp_path))
    assert path.stat().st_size < len(content) / 2
    for damage in (path.read_bytes()[:-9], b"no zlib"):
        path.write_bytes(damage)
        with pytest.raises(InputError, match=r"is damaged"):
            kept.read(reference)
        assert kept.keep(content) == reference
        assert kept.read(reference) == content


def test_folder_when_it_holds_other_files_leaves_them_alone(tmp_path: Path) -> None:
    """Nothing but the name of a digest is ever looked at."""
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / SHA[:2]).mkdir()
    (tmp_path / SHA[:2] / ".0123.tmp").write_bytes(b"half")
    kept = FolderArtifacts(tmp_path)
    kept.keep(b"code\0\xff")
    assert stored(tmp_path) == [f"{SHA[:2]}/.0123.tmp", f"{SHA[:2]}/{SHA[2:]}", "README.md"]


def test_folder_when_a_file_is_in_its_place_is_refused(tmp_path: Path) -> None:
    """One line, and the file stays as it was."""
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(InputError, match="not a folder"):
        FolderArtifacts(tmp_path / "kept").keep(b"x")
    assert (tmp_path / "kept").read_text() == "mine"


def test_folder_when_threads_keep_the_same_at_once_holds_each_content_once(tmp_path: Path) -> None:
    """Branches of a search share their parents' outputs."""
    kept = FolderArtifacts(tmp_path)
    contents = [bytes([number % 5]) * 50_000 for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        references = list(pool.map(kept.keep, contents))
    assert [kept.read(each) for each in references] == contents
    assert len(stored(tmp_path)) == 5


@pytest.mark.kill
def test_folder_when_its_writer_is_killed_holds_only_whole_contents(tmp_path: Path) -> None:
    """Whatever has a name is what the name says; another process goes on with it."""
    program = (
        "import sys\nfrom langgraft.nodes.artifacts import FolderArtifacts\n"
        "kept = FolderArtifacts(sys.argv[1])\nprint('begun', flush=True)\nnumber = 0\n"
        "while True:\n    kept.keep(str(number).encode() * 200_000)\n    number += 1\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        while len(stored(tmp_path)) < 5:
            pass
        writer.kill()
    kept = FolderArtifacts(tmp_path)
    names = [name.replace("/", "") for name in stored(tmp_path) if not name.endswith(".tmp")]
    assert len(names) >= 4
    assert all(kept.read(name) for name in names)
    kept.keep(b"0" * 200_000)
