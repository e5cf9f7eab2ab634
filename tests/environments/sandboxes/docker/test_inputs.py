"""Folders that programs read: checked before a program meets them."""

import os
from pathlib import Path

import pytest

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.docker.inputs import check_inputs, inputs_digest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that anybody can read."""
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.csv").write_text("id\n1\n")
    for path in (folder, folder / "deep"):
        path.chmod(0o755)
    (folder / "deep" / "a.csv").chmod(0o644)
    return folder


def test_check_when_anybody_can_read_then_the_folder_is_taken(folder: Path) -> None:
    """A readable folder is mounted from where it really lies."""
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert check_inputs({"input": link}) == {"input": folder.resolve()}


@pytest.mark.parametrize("part", [".", "deep", "deep/a.csv"])
def test_check_when_programs_cannot_read_then_the_path_and_the_remedy_are_named(
    folder: Path, part: str
) -> None:
    """What a program would fail on is told before, with the command that mends it."""
    path = folder / part
    path.chmod(0o700)
    with pytest.raises(InputError) as caught:
        check_inputs({"input": folder})
    assert f"chmod o+{'r' if path.is_file() else 'rx'} {path}" in str(caught.value)
    os.system(f"chmod -R o+rX {folder}")
    assert check_inputs({"input": folder})


def test_check_when_there_is_a_way_out_in_the_folder_then_it_is_refused(folder: Path) -> None:
    """A socket or pipe can be talked through though it is mounted read-only."""
    pipe = folder / "deep" / "pipe"
    os.mkfifo(pipe, 0o666)
    with pytest.raises(InputError, match=f"{pipe} is a socket, pipe or device"):
        check_inputs({"input": folder})


@pytest.mark.parametrize("name", ["", ".", "..", "a/../..", "/input", "a//b", "a/", "a:b", "a,b"])
def test_check_when_a_name_is_no_plain_one_then_it_is_refused(folder: Path, name: str) -> None:
    """No name leaves the workspace, hides it, or is read as syntax by an engine."""
    with pytest.raises(InputError, match="inputs: "):
        check_inputs({name: folder})


def test_check_when_one_name_lies_in_another_then_it_is_refused(folder: Path) -> None:
    """Nothing is mounted into what is read-only, whatever else sorts between them."""
    with pytest.raises(InputError, match="read-only"):
        check_inputs({"a": folder, "a-b": folder, "a/c": folder})


def test_check_when_there_is_no_folder_then_it_says_what_is_there(tmp_path: Path) -> None:
    """A missing path and a file are told apart."""
    with pytest.raises(InputError, match="not there"):
        check_inputs({"input": tmp_path / "absent"})
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="no folder"):
        check_inputs({"input": tmp_path / "file"})


def test_digest_when_a_byte_or_name_changes_then_it_changes(folder: Path) -> None:
    """What programs read decides what they do."""
    before = inputs_digest({"input": folder})
    assert inputs_digest({"input": folder}) == before
    assert inputs_digest({"other": folder}) != before
    (folder / "deep" / "a.csv").write_text("id\n2\n")
    changed = inputs_digest({"input": folder})
    assert changed != before
    (folder / "deep" / "a.csv").rename(folder / "deep" / "b.csv")
    renamed = inputs_digest({"input": folder})
    (folder / "link").symlink_to("/etc/shadow")
    linked = inputs_digest({"input": folder})
    assert len({before, changed, renamed, linked}) == 4
