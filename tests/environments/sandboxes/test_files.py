"""Names on their way in and out, and files written into a folder of this machine."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes import Command, Limits, write_files
from langgraft.environments.sandboxes.inside.files import remove_tree
from langgraft.environments.sandboxes.requests import (
    check_files,
    check_name,
    check_patterns,
    prepare_command,
)

PARTS = st.one_of(
    st.sampled_from(["", ".", "..", "a", "b", "..a", " ", "\0", "é", "\udc80", "a\\b", "~", "*"]),
    st.text(max_size=5),
)
NAMES = st.lists(PARTS, max_size=5).map("/".join)


@given(NAMES)
def test_check_name_when_it_passes_then_it_stays_inside(name: str) -> None:
    """A name that is let through leads to one place beneath any folder, whatever it holds."""
    try:
        check_name(name)
    except InputError:
        return
    joined = f"/folder/{name}"
    assert os.path.normpath(joined) == joined
    assert joined.startswith("/folder/")
    assert name.encode("utf-8").decode("utf-8") == name


@given(st.lists(st.sampled_from(["a", "b.csv", "..x", "é"]), min_size=1, max_size=4))
def test_check_name_when_all_parts_are_plain_then_it_passes(parts: list[str]) -> None:
    """Plain relative names are let through."""
    assert check_name("/".join(parts)) == "/".join(parts)


@given(files=st.dictionaries(NAMES, st.binary(max_size=20), max_size=5))
def test_write_files_when_names_are_hostile_then_nothing_outside_changes(
    files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the names, only the folder is written to, or it is refused."""
    outer = tmp_path_factory.mktemp("outer")
    (outer / "a").write_bytes(b"outside")
    inner = outer / "inner"
    try:
        written = write_files(files, inner)
    except InputError:
        pass
    else:
        assert {str(path.relative_to(inner)): path.read_bytes() for path in written} == files
    assert sorted(path.name for path in outer.iterdir()) == ["a", "inner"]
    assert (outer / "a").read_bytes() == b"outside"


def test_write_files_when_links_are_in_the_way_then_they_are_not_followed(tmp_path: Path) -> None:
    """A link under a file's name is replaced; one in place of a folder is refused."""
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    (outside / "file").write_text("safe")
    (folder / "link.csv").symlink_to(outside / "file")
    (folder / "linked").symlink_to(outside)
    assert write_files({"link.csv": b"new"}, folder) == [folder / "link.csv"]
    assert (folder / "link.csv").read_bytes() == b"new"
    assert not (folder / "link.csv").is_symlink()
    with pytest.raises(InputError, match="linked/file"):
        write_files({"linked/file": b"new"}, folder)
    assert (outside / "file").read_text() == "safe"
    assert [path.name for path in outside.iterdir()] == ["file"]


def test_write_files_when_a_file_is_there_then_it_is_replaced_whole(tmp_path: Path) -> None:
    """A longer file of the same name leaves no rest, and no partial file stays."""
    write_files({"a/b": b"long content"}, tmp_path)
    write_files({"a/b": b"short"}, tmp_path)
    assert (tmp_path / "a" / "b").read_bytes() == b"short"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_check_files_when_one_is_anothers_folder_then_it_is_refused() -> None:
    """A file cannot be a folder as well."""
    with pytest.raises(InputError, match="'a' is to be a file and the folder of 'a/b'"):
        check_files({"a": b"", "a/b": b""}, Limits())


def test_check_files_when_they_are_too_large_then_it_says_what_to_do() -> None:
    """Files that no workspace would hold are refused at once."""
    limits = Limits(workspace=1 << 20)
    with pytest.raises(InputError, match=r"Limits\.workspace"):
        check_files({"a": bytes(600_000), "b": bytes(600_000)}, limits)


def test_check_patterns_when_they_are_one_text_then_it_is_refused() -> None:
    """A text is not taken for a sequence of letters."""
    with pytest.raises(InputError, match="give a sequence"):
        check_patterns("*.csv")
    with pytest.raises(InputError, match="one text"):
        prepare_command(Command("true"), Limits(), seconds=None, collect="*.csv")


def test_remove_tree_when_it_is_deep_and_closed_then_it_is_removed(tmp_path: Path) -> None:
    """Depth, permissions and links hold nothing back, and what links lead to stays."""
    kept, root = tmp_path / "kept", tmp_path / "root"
    kept.mkdir()
    (kept / "file").touch()
    root.mkdir()
    (root / "link").symlink_to(kept)
    current = os.open(root, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=current)
        inner = os.open("d", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = inner
    os.close(os.open("file", os.O_CREAT, dir_fd=current))
    os.close(current)
    (root / "closed").mkdir(mode=0)
    remove_tree(str(root))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").exists()
