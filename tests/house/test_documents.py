"""What the documents show works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from langgraft.benchmarks.cli.plan_choice import shipped_plans
from langgraft.memory import item_schema

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
]
BLOCKS = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    )
]
EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))


def run(arguments: list[str], folder: Path) -> str:
    """Run Python in an empty folder; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:__main__", *arguments],
        cwd=folder,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", BLOCKS)
def test_code_of_a_page_when_pasted_runs(code: str, tmp_path: Path) -> None:
    """Every Python block stands on its own."""
    run(["-c", code.replace("/tmp/", f"{tmp_path}/")], tmp_path)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_when_run_ends_well(path: Path, tmp_path: Path) -> None:
    """Examples run as they are."""
    run([str(path)], tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_when_followed_lead_somewhere(page: Path) -> None:
    """Links to files of the repository are not broken."""
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_a_page_names_when_looked_for_are_there(page: Path) -> None:
    """Paths in backticks that begin with a folder of the repository exist."""
    folders = {path.name for path in REPOSITORY.iterdir() if path.is_dir()}
    for name in re.findall(r"`([\w./-]+/[\w./-]*)`", page.read_text()):
        if name.split("/")[0] in folders - {"runs"}:
            assert (REPOSITORY / name).exists(), name


def test_readme_when_it_names_plans_names_those_that_ship() -> None:
    """Plan names in the commands exist."""
    text = (REPOSITORY / "README.md").read_text()
    named = set(re.findall(r"langgraft (?:run|preview) (\S+)", text))
    assert named <= set(shipped_plans())


def test_schema_of_a_memory_item_when_published_is_the_one_in_force() -> None:
    """`docs/memory-item.schema.json` is what `item_schema()` returns."""
    published = json.loads((REPOSITORY / "docs" / "memory-item.schema.json").read_text())
    assert published == item_schema()
