"""A bank in a folder, or on a file system, that may only be read."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from langgraft._core import sqlite_file
from langgraft._core.errors import InfrastructureError
from langgraft.memory.embedders import cached
from langgraft.memory.stores.sqlite import SQLiteFileStore

WRITING = """
import os, sys
from langgraft import open_memory
from memory_cases import make_episode

memory = open_memory(sys.argv[1])
for number in range(8):
    memory.file(make_episode(f"e{number}"))
if sys.argv[2] == "close":
    memory.close()
os._exit(0)
"""

READING = """
import os, sys
from langgraft import open_memory
from memory_cases import asking, make_episode

def use(path):
    said = []
    try:
        with open_memory(path) as memory:
            said.append(f"{len(memory.provide('red door', asking()).items)} recalled")
            said.append(f"{len(memory.content().items)} kept")
            memory.file(make_episode("new"))
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
    return said

use(sys.argv[2])  # imports what there is to import
if os.getuid() == 0:
    os.setuid(65534)
print(*use(sys.argv[1]), sep="\\n")
"""


def run(code: str, *arguments: str) -> list[str]:
    """Run a program and return the lines it prints; there are no warnings."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2] / "support",
    )
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder that users without rights can read."""
    made = Path(tempfile.mkdtemp())
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


def read(folder: Path, scratch: Path) -> list[str]:
    """Use the bank in a folder as somebody who may only read it."""
    folder.chmod(0o555)
    for file in folder.iterdir():
        file.chmod(0o444)
    return run(READING, str(folder / "memory.sqlite"), str(scratch / "other.sqlite"))


@pytest.mark.parametrize("ended", ["close", "kill"])
def test_bank_when_its_folder_is_read_only_then_it_is_recalled_and_a_write_is_one_error(
    ended: str, folder: Path, tmp_path: Path
) -> None:
    """A reader needs no lock file, whether the last writer closed the bank or was killed."""
    path = folder / "memory.sqlite"
    run(WRITING, str(path), ended)
    recalled, kept, error = read(folder, tmp_path)
    assert recalled != "0 recalled"
    assert kept == "8 kept"
    assert error.startswith(f"InfrastructureError: {path}: ")
    assert "can only be read here" in error


def test_bank_when_its_log_cannot_be_read_then_nothing_old_is_shown(
    folder: Path, tmp_path: Path
) -> None:
    """Without SQLite's index of the log, what was written last would be missing: that is said."""
    path = folder / "memory.sqlite"
    run(WRITING, str(path), "kill")
    (folder / "memory.sqlite-shm").unlink()
    (error,) = read(folder, tmp_path)
    assert error.startswith("InputError: ")
    assert "memory.sqlite-wal" in error


def test_bank_when_its_folder_becomes_writable_then_the_same_object_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a file can be written to is asked again at the next write."""
    path = tmp_path / "memory.sqlite"
    with SQLiteFileStore(path) as store:
        store.put(("a",), "k", {"text": "x"})
    sealed = True
    monkeypatch.setattr(sqlite_file, "is_sealed", lambda _: sealed)
    with SQLiteFileStore(path) as store:
        assert store.get(("a",), "k")
        with pytest.raises(InfrastructureError, match="can only be read here"):
            store.put(("a",), "k2", {"text": "y"})
        sealed = False
        store.put(("a",), "k2", {"text": "y"})
        assert store.get(("a",), "k2")


def test_vectors_when_their_file_is_read_only_then_new_ones_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recall embeds its question, and must not fail because the vector cannot be kept."""
    vectors = cached.SQLiteVectors(tmp_path / "vectors.sqlite")
    monkeypatch.setattr(cached, "is_sealed", lambda _: True)
    key: cached.VectorKey = ("embedder", "query", "text")
    vectors.put({key: np.ones(2, np.float32)})
    assert vectors.get([key]) == {}
