"""`langgraft tree`, and journals as memory, as a user meets them."""

import contextlib
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from langgraft.cli.app import run_command_line
from langgraft.memory.bank_format import read_items

NODES: list[dict[str, Any]] = [
    {"step": 0, "id": "a", "plan": "Boost.", "code": "import lightgbm", "is_buggy": True,
     "exc_type": "TypeError", "exc_value": "fit() got an unexpected keyword argument 'verbose'"},
    {"step": 1, "id": "b", "parent_id": "a", "plan": "Drop verbose.", "code": "x = 1",
     "is_buggy": False, "metric": {"value": 0.5, "maximize": True}},
    {"step": 2, "id": "c", "parent_id": "b", "plan": "Scale.", "code": "x = 2",
     "is_buggy": False, "metric": {"value": 0.25, "maximize": True}},
]  # fmt: skip


def run(*arguments: object) -> tuple[int, str, str]:
    """Run a command in this process, as the console script does."""
    out, err, code = io.StringIO(), io.StringIO(), None
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["langgraft", *map(str, arguments)])
        try:
            run_command_line()
        except SystemExit as ended:
            code = ended.code
    return int(code or 0), out.getvalue(), err.getvalue()


def told(*arguments: object) -> Any:
    """Run a command that succeeds and return its JSON."""
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Write a journal."""
    path = tmp_path / "leaf-0123abcd.json.gz"
    path.write_bytes(gzip.compress(json.dumps(NODES).encode()))
    return path


def test_tree_when_given_a_journal_writes_its_page_beside_it(journal: Path) -> None:
    """The direction is what AIDE's metrics tell, as nobody knows the competition."""
    code, out, _ = run("tree", journal)
    page = journal.with_name("leaf-0123abcd.html")
    assert code == 0
    assert out == f"{page}: 3 programs, 1 failed; metric: higher is better\n"
    assert 'Best metric: 0.5, <a href="#n1"' in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "lower"),
    [
        (("--lower",), True),
        (("--task", "leaf-classification"), True),
        (("--task", "random-acts-of-pizza"), False),
        (("--task", "leaf-classification", "--higher"), False),
    ],
)
def test_tree_when_the_competition_or_direction_is_given_goes_by_it(
    journal: Path, tmp_path: Path, arguments: tuple[str, ...], lower: object
) -> None:
    """A board knows better than a journal, and the user than both."""
    out = tmp_path / "pages" / "tree.html"
    assert told("tree", journal, "--out", out, *arguments)["lower_is_better"] is lower
    assert out.is_file()


def test_tree_when_there_is_a_report_shows_what_was_chosen_and_how_it_did(
    journal: Path, tmp_path: Path
) -> None:
    """With a title of one's own."""
    (tmp_path / "report.json").write_text('{"score": 0.5, "gold_medal": true}')
    options = ("--chosen", "c", "--report", tmp_path / "report.json", "--title", "Mine")
    page = Path(told("tree", journal, *options)["page"]).read_text()
    assert "<h1>Mine</h1>" in page
    assert "Graded: 0.5, gold medal." in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--chosen", "z"), "no program 'z'; its ids are like a, b, c"),
        (("--out", "page.json"), "a page ends in .html"),
        (("--report", "none.json"), "none.json: cannot be read"),
    ],
)
def test_tree_when_something_is_wrong_says_it_in_a_line_and_writes_nothing(
    journal: Path, tmp_path: Path, arguments: tuple[str, ...], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Exit code 2; the journal itself is never overwritten."""
    monkeypatch.chdir(tmp_path)
    before = journal.read_bytes()
    code, out, err = run("tree", journal, *arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err
    assert [path.name for path in tmp_path.iterdir()] == [journal.name]
    assert journal.read_bytes() == before


def test_journal_when_converted_is_a_bank_with_its_errors_and_proven_fixes(
    journal: Path, tmp_path: Path
) -> None:
    """Diagnosed by rules; a file that is no journal leaves nothing."""
    target = tmp_path / "bank.jsonl"
    assert told("memory", "convert", journal, target, "--from", "journal")["items"] == 1
    (item,) = read_items(target)
    assert (item.task_id, item.metadata["package"]) == ("leaf", "general")
    assert (item.metadata["fix"], item.metadata["verified"]) == ("Drop verbose.", True)
    named = ("--from", "journal", "--task", "leaf-classification")
    told("memory", "convert", journal, target, *named, "--force")
    assert read_items(target)[0].task_id == "leaf-classification"
    code, _, err = run("memory", "convert", target, tmp_path / "x", "--task", "leaf")
    assert (code, "it goes with --from journal" in err) == (2, True)
    code, _, err = run("memory", "convert", target, tmp_path / "x", "--from", "journal")
    assert code == 2
    assert "not JSON" in err or "a journal is a list" in err
    assert not (tmp_path / "x").exists()
