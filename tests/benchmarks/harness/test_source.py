"""Digests of source code."""

from pathlib import Path

import pytest

from langgraft.benchmarks.harness.source import source_digests


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an importable package of one module, one prompt and some data."""
    folder = tmp_path / "sourced"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "inner" / "code.py").write_text("answer = 42\n")
    (folder / "prompt.md").write_text("Think.")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


@pytest.mark.parametrize("name", ["inner/code.py", "prompt.md"])
def test_digest_when_a_source_changes_changes(name: str, package: Path) -> None:
    """Code and prompts count, wherever in the package they are."""
    before = source_digests(["sourced"])
    (package / name).write_text("other")
    assert source_digests(["sourced"]) != before


def test_digest_when_something_else_changes_stays(package: Path) -> None:
    """Caches and data do not count."""
    before = source_digests(["sourced"])
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "code.pyc").write_bytes(b"x")
    assert source_digests(["sourced"]) == before


def test_digest_when_of_a_module_is_of_its_file_alone(package: Path) -> None:
    """A module is one file."""
    before = source_digests(["sourced.inner.code"])
    (package / "prompt.md").write_text("other")
    assert source_digests(["sourced.inner.code"]) == before


def test_digest_when_there_is_no_module_names_it() -> None:
    """A wrong name is no empty digest."""
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        source_digests(["no_such_module"])
