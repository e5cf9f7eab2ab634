"""What a sandbox is given: folders, which programs can read and nothing more, and GPUs."""

import os
from pathlib import Path
from typing import Any

import pytest

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.docker.controls import (
    check_gpus,
    check_inputs,
    device_requests,
    inputs_digest,
)


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


@pytest.mark.parametrize(
    ("gpus", "count", "ids"),
    [("all", -1, []), (2, 2, []), (["0", "GPU-3faa8c219"], 0, ["0", "GPU-3faa8c219"])],
)
def test_gpus_when_named_then_the_engine_is_asked_for_them(
    gpus: Any, count: int, ids: list[str]
) -> None:
    """All, a number, or some: each becomes the request that Docker's own command makes."""
    checked = check_gpus(gpus)
    assert checked is not None
    (request,) = device_requests(checked)
    assert (request["Count"] or 0, request["DeviceIDs"] or []) == (count, ids)
    assert request["Capabilities"] == [["gpu"]]


@pytest.mark.parametrize("gpus", [0, -1, True, "0", "", [], [""], [0]])
def test_gpus_when_named_otherwise_then_they_are_refused(gpus: Any) -> None:
    """A slip is told before a container is asked for."""
    with pytest.raises(InputError, match="gpus is"):
        check_gpus(gpus)
