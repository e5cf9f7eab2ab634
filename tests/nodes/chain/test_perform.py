"""`edit_file` in a live workspace."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chain_cases import LogMaker
from tree_cases import sandbox, toy

from langgraft.nodes.chain.step import CHANGING, performer
from langgraft.nodes.workbench.log import Action, EventLog, Observation
from langgraft.nodes.workbench.sessions import Workspaces


class RunDeps:
    """A live workspace, in which one thing is done after the other."""

    def __init__(self, workspaces: Workspaces) -> None:
        self.workspaces = workspaces
        self.log = LogMaker()

    def edit(self, command: str, path: str = "a.txt", **given: Any) -> Observation:
        """Call `edit_file`."""
        return self.do("edit_file", command=command, path=path, **given)

    def do(self, name: str, **given: Any) -> Observation:
        """Do something, and note it."""
        action = Action(id=len(self.log.events), source="agent", name=name, arguments=given)
        seen = self.workspaces.run("e", EventLog("", tuple(self.log.events)), action)
        self.log.events += [action, seen]
        return seen

    def text(self, path: str = "a.txt") -> str:
        """Return what a file holds."""
        seen = self.do("run_python", code=f"print(open({path!r}, newline='').read(), end='|')")
        return seen.text.partition("|")[0]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDeps]:
    """Open a live workspace, with a file of a GiB among the data."""
    competition = toy(tmp_path)
    with (competition.public_dir / "huge.csv").open("wb") as file:
        file.truncate(1 << 30)
    with sandbox(competition) as place:
        workspaces = Workspaces(place, performer(competition), changing=CHANGING, seconds=60)
        yield RunDeps(workspaces)
        workspaces.close()


def test_edit_when_it_fits_changes_the_file_and_shows_where(run: RunDeps) -> None:
    """Each command does what it says, also in a folder that is not there yet, and also anew in
    another kernel.
    """  # noqa: D205
    assert not run.edit("create", "./new/b.py", file_text="one\ntwo\n").failed
    assert run.text("new/b.py") == "one\ntwo\n"
    run.edit("create", file_text="é\r\ntwo\r\nthree")
    told = run.edit("str_replace", old_str="two", new_str="2\n2.5")
    assert "     2  2\n     3  2.5" in told.text
    assert run.text() == "é\r\n2\n2.5\r\nthree"
    assert not run.edit("insert", insert_line=4, new_str="four").failed
    assert not run.edit("insert", insert_line=0, new_str="zero").failed
    assert run.text() == "zero\né\r\n2\n2.5\r\nthree\nfour"
    assert "(nothing" not in run.edit("view", view_range=[2, 3]).text
    run.workspaces.end("e")
    assert run.text() == "zero\né\r\n2\n2.5\r\nthree\nfour"
    for _ in range(3):
        assert not run.edit("undo_edit").failed
    assert run.text() == "é\r\ntwo\r\nthree"
    assert not run.edit("undo_edit").failed
    assert "no edit of a.txt is left" in run.edit("undo_edit").text
    assert "there is no file" in run.edit("view").text


def test_edit_when_it_does_not_fit_says_why_and_changes_nothing(run: RunDeps) -> None:
    """Passages that are absent or not unique, lines out of range, what is missing, other places."""
    run.edit("create", file_text="x\nx\n")
    run.do("run_python", code="open('b.bin', 'wb').write(bytes(range(256)))")
    run.do("run_bash", command="truncate -s 200M big; ln -s /etc/passwd link; mkdir folder")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"command": "str_replace", "old_str": "y"}, "is not in a.txt"),
        ({"command": "str_replace", "old_str": "x"}, "is 2 times in"),
        ({"command": "str_replace", "old_str": ""}, "is not in"),
        ({"command": "str_replace", "old_str": "x\nx", "new_str": "x\nx"}, "the same"),
        ({"command": "str_replace"}, "needs `old_str`"),
        ({"command": "create"}, "needs `file_text`"),
        ({"command": "insert", "new_str": "y"}, "needs `insert_line`"),
        ({"command": "insert", "new_str": "y", "insert_line": 9}, "from 0 to 2"),
        ({"command": "view", "view_range": [2, 1]}, "lie within"),
        ({"command": "view", "view_range": [1]}, "first and the last"),
        ({"command": "view", "path": "b.bin"}, "no text"),
        ({"command": "view", "path": "big"}, "big"),
        ({"command": "view", "path": "input/huge.csv"}, "too large"),
        ({"command": "view", "path": "link"}, "link"),
        ({"command": "view", "path": "folder"}, "folder"),
        ({"command": "view", "path": "a*"}, "no file"),
        ({"command": "view", "path": "/etc/passwd"}, "not inside"),
        ({"command": "create", "path": "x/../../y", "file_text": ""}, "not inside"),
        ({"command": "create", "path": "input/train.csv", "file_text": ""}, "read-only"),
        ({"command": "create", "path": "a.txt/b", "file_text": ""}, "directory"),
        ({"command": "create", "path": "\0", "file_text": ""}, "no path"),
    ]
    for given, why in wrong:
        seen = run.do("edit_file", **{"path": "a.txt", **given})
        assert seen.failed, given
        assert why in seen.text, (given, seen.text)
    assert run.text() == "x\nx\n"
    assert run.edit("str_replace", old_str="x\nx\n").text == "a.txt was changed. It is empty now."
