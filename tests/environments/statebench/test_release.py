"""Where a copy of STATE-Bench is found, how an archive is unpacked, and what is refused."""

import io
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InputError, SettingsError
from langgraft.environments.statebench import StateBench, release
from langgraft.environments.statebench.release import find, import_code

WHOLE = {"top/state_bench/__init__.py": b"", "top/state_bench/domain.py": b"def f(): ..."}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Unpack into a folder of the test's own; nothing is installed and no data is named."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LANGGRAFT_DATA", raising=False)
    return tmp_path / "cache" / "langgraft" / "statebench"


def write_archive(path: Path, files: Mapping[str, bytes], link: str = "") -> Path:
    """Write an archive of files, and perhaps of a link to the root."""
    with tarfile.open(path, "w:xz", preset=0) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        if link:
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, "/"
            archive.addfile(member)
    return path


def test_find_when_an_archive_is_given_then_unpacks_it_once(tmp_path: Path) -> None:
    """The second time nothing is written; what is no part of the benchmark stays packed."""
    path = write_archive(tmp_path / "it.tar.xz", {**WHOLE, "top/docs/big.md": b"x"})
    root = find(path)
    kept = root / "state_bench" / "domain.py"
    assert kept.read_bytes() == b"def f(): ..."
    assert not (root / "docs").exists()
    written = kept.stat().st_mtime_ns
    assert find(path) == root
    assert kept.stat().st_mtime_ns == written
    assert [each.name for each in root.parent.iterdir()] == [root.name]


def test_find_when_a_folder_is_given_then_takes_it_its_package_or_what_is_in_it(
    tmp_path: Path,
) -> None:
    """A checkout, its package, or a folder with one of them or an archive."""
    package = tmp_path / "checkout" / "state_bench"
    package.mkdir(parents=True)
    (package / "domain.py").touch()
    for given_path in (package, package.parent, tmp_path):
        assert find(given_path) == package.parent


def test_find_when_only_the_data_folder_is_named_then_looks_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`LANGGRAFT_DATA` is the default, as for other data."""
    monkeypatch.setitem(sys.modules, "state_bench", None)  # whatever is installed or was imported
    with pytest.raises(SettingsError, match=r"not installed.*git clone"):
        find()
    (tmp_path / "statebench").mkdir()
    write_archive(tmp_path / "statebench" / "a.tar.xz", WHOLE)
    monkeypatch.setenv("LANGGRAFT_DATA", str(tmp_path))
    assert (find() / "state_bench" / "domain.py").is_file()


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({**WHOLE, "../out.py": b""}, "leads out"),
        ({**WHOLE, "top/state_bench/../../out.py": b""}, "leads out"),
        ({**WHOLE, "/out.py": b""}, "leads out"),
        ({"top/readme.md": b""}, "without the package"),
        ({**WHOLE, "top/state_bench/big": b"12345678901"}, "more than"),
    ],
)
def test_find_when_an_archive_is_not_to_be_trusted_then_leaves_nothing(
    tmp_path: Path,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: Mapping[str, bytes],
    told: str,
) -> None:
    """Neither outside of the cache nor in it."""
    monkeypatch.setattr(release, "MOST_BYTES", 22)
    path = write_archive(tmp_path / "it.tar.xz", files)
    with pytest.raises(InputError, match=told) as caught:
        find(path)
    assert str(path) in str(caught.value)
    assert [*own_cache.iterdir()] == []
    assert [*tmp_path.glob("**/out.py")] == []


def test_find_when_an_archive_holds_links_then_follows_none(tmp_path: Path) -> None:
    """A link is no file of the benchmark."""
    path = write_archive(tmp_path / "it.tar.xz", WHOLE, link="top/state_bench/link")
    assert not (find(path) / "state_bench" / "link").exists()


@given(data=st.binary(max_size=200))
def test_find_when_a_file_is_no_archive_then_says_so(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """One clear error, whatever the file holds."""
    path = tmp_path_factory.mktemp("any") / "it.tar.xz"
    path.write_bytes(data)
    with pytest.raises(InputError, match="git clone"):
        find(path)


def test_find_when_an_archive_is_cut_off_then_says_so(tmp_path: Path, own_cache: Path) -> None:
    """A download that was broken off."""
    path = write_archive(tmp_path / "it.tar.xz", WHOLE)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="cannot be unpacked"):
        find(path)
    assert [*own_cache.iterdir()] == []


def test_import_when_another_copy_is_in_use_then_is_refused(
    tmp_path: Path, statebench: StateBench
) -> None:
    """Two copies of one package cannot be told apart in a process."""
    (tmp_path / "state_bench").mkdir()
    with pytest.raises(SettingsError, match="another copy") as caught:
        import_code(tmp_path)
    assert str(statebench.root) in str(caught.value)
    assert import_code(statebench.root).root == statebench.root


@pytest.mark.parametrize(
    ("source", "told"), [("1 / 0", "division by zero"), ("", "get_domain_config")]
)
def test_load_when_the_code_is_another_then_says_which_version_is_known(
    tmp_path: Path, source: str, told: str
) -> None:
    """And the half-imported package does not stay."""
    package = tmp_path / "state_bench"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "domain.py").write_text(source)
    code = (
        "import sys\n"
        "from langgraft._core.errors import InputError\n"
        "from langgraft.environments.statebench import load\n"
        f"try: load({str(tmp_path)!r})\n"
        "except InputError as error: print(error)\n"
        "print([name for name in sys.modules if name.startswith('state_bench')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said, left = done.stdout.splitlines()
    assert told in said
    assert "version 0.8.1 can be" in said
    assert left == "[]"
