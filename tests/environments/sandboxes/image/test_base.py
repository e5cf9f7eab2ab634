"""A base image of this machine's Python."""

import sys
import tarfile
import tempfile
from pathlib import Path

import base_image
import pytest

from langgraft._core.errors import SandboxUnavailableError

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="made on Linux only")


@pytest.fixture(scope="module")
def contents() -> base_image.Contents:
    """Return what the image would hold."""
    return base_image.gather()


@LINUX
def test_base_when_gathered_has_python_pip_a_shell_and_their_libraries(
    contents: base_image.Contents,
) -> None:
    """What the Dockerfile runs is there, where the official images have it."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    names = {*contents.copied, *contents.written}
    assert f"usr/local/bin/{version}" in names
    assert contents.links["usr/local/bin/python3"] == version
    assert "usr/bin/sh" in names | contents.links.keys()
    assert any(name.endswith("/pip/__main__.py") for name in names)
    assert any(name.endswith("/libc.so.6") for name in names)
    assert any("/ld-linux" in name for name in names)


@LINUX
def test_base_when_gathered_takes_no_installed_package_over(
    contents: base_image.Contents,
) -> None:
    """What is installed beside this Python stays here, langgraft included."""
    packages = {
        name.partition("-packages/")[2].partition("/")[0].partition("-")[0]
        for name in {*contents.copied, *contents.written}
        if "-packages/" in name
    }
    assert packages == {"pip"}


@LINUX
def test_base_when_packed_keeps_no_bit_of_setuid_and_can_be_read_by_all(
    contents: base_image.Contents,
) -> None:
    """Whoever packs it, programs of another user can run it and gain nothing."""
    with tempfile.TemporaryFile() as archive:
        base_image._pack(contents, archive)
        archive.seek(0)
        with tarfile.open(fileobj=archive) as packed:
            modes = {each.name: each.mode for each in packed if each.isfile()}
    assert set(modes.values()) == {0o644, 0o755}


def test_fingerprint_when_a_file_changes_is_another_one(tmp_path: Path) -> None:
    """An unchanged Python is not packed again, a changed one is."""
    file = tmp_path / "library.so"
    file.write_bytes(b"one")
    contents = base_image.Contents({"usr/lib/library.so": file}, {"a": "b"}, {"c": b"d"})
    before = base_image._fingerprint(contents)
    assert before == base_image._fingerprint(contents)
    file.write_bytes(b"other")
    assert before != base_image._fingerprint(contents)


def test_base_when_the_machine_is_no_linux_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Programs of another system would not run in a container."""
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(SandboxUnavailableError, match=r"--base python:3\.11-slim"):
        base_image.gather()
