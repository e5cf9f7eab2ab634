"""Digests of source code."""

from pathlib import Path

import pytest

from langgraft.benchmarks.harness.plans import source_digests, source_files


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an importable package; `a` uses `b`, and whoever uses `b` uses `c`."""
    folder = tmp_path / "sourced"
    files = {
        "__init__.py": "if TYPE_CHECKING:\n    from sourced.c import lazy\n",
        "a.py": "import numpy\n\ndef f() -> None:\n    from sourced.b import g\n",
        "b.py": "try:\n    from sourced import lazy\nexcept ImportError:\n    pass\n",
        "c.py": 'if TYPE_CHECKING:\n    import sourced.other\nFOLDER = "sourced.inner"\n',
        "other.py": "import sourced.a\n",
        "inner/__init__.py": "",
        "inner/code.py": "answer = 42\n",
        "inner/text.md": "Think.",
        "report/__init__.py": "from sourced.a import f\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


@pytest.mark.parametrize("name", ["a.py", "b.py", "c.py", "inner/code.py", "inner/text.md"])
def test_digest_when_what_is_used_changes_then_changes(name: str, package: Path) -> None:
    """Imports in functions and branches, lazy exports, and files of a package that is named."""
    before = source_digests(["sourced.a"])
    with (package / name).open("a") as file:
        file.write("\n# Other.\n")
    after = source_digests(["sourced.a"])
    assert {key for key in after if after[key] != before[key]} == {
        "sourced.inner" if "/" in name else "sourced"
    }


def test_digest_when_a_module_is_added_then_changes(package: Path) -> None:
    """There is no list that somebody has to think of."""
    before = source_digests(["sourced.b"])
    (package / "new.py").write_text("")
    assert source_digests(["sourced.b"]) == before
    (package / "b.py").write_text((package / "b.py").read_text() + "import sourced.new\n")
    assert ("sourced", "new.py") in source_files(["sourced.b"])


@pytest.mark.parametrize("name", ["other.py", "report/__init__.py"])
def test_digest_when_something_else_changes_then_stays(name: str, package: Path) -> None:
    """What is imported for annotations, and what nobody here imports."""
    before = source_digests(["sourced.a"])
    (package / name).write_text("other")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "b.pyc").write_bytes(b"x")
    assert source_digests(["sourced.a"]) == before


def test_files_when_a_part_decides_nothing_then_leave_it_out(package: Path) -> None:
    """With all that only that part uses."""
    assert set(source_files(["sourced.a"], apart_from=["sourced.b"])) == {("sourced", "a.py")}


def test_files_when_there_is_no_module_name_it() -> None:
    """A wrong name is no empty digest."""
    for name in ("no_such_module", "langgraft.no_such_module"):
        with pytest.raises(ModuleNotFoundError, match="no_such_module"):
            source_digests([name])


@pytest.mark.parametrize(
    ("agent", "rooms"),
    [
        ("react", set()),
        ("tree", {"search"}),
        ("chain", {"chain", "workbench"}),
        ("mlab", {"mlab", "workbench"}),
    ],
)
def test_files_when_of_an_agent_then_are_those_that_it_uses(agent: str, rooms: set[str]) -> None:
    """An edit of another agent's nodes or of a world refuses nothing."""
    used = source_files([f"langgraft.graphs.{agent}"])
    for package, name in (
        ("graphs", f"{agent}.py"),
        ("memory", "provider.py"),
        ("_core", "errors.py"),
    ):
        assert (f"langgraft.{package}", name) in used
    packages = {package.removeprefix("langgraft.") for package, _ in used}
    families = ("search", "chain", "mlab", "workbench")
    assert {each for each in families if f"nodes.{each}" in packages} == rooms
    assert not [each for each in packages if "babyai" in each or "alfworld" in each]
