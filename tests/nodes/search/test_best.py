"""The best solution's files: always there together, whoever looks and whatever is killed."""

from pathlib import Path

import pytest
from warm_python import started_code

from langgraft._core.errors import InputError
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.memory import Best, keep_best, read_best

WRITER = """
import sys
from pathlib import Path
from langgraft.nodes.search.memory import keep_best
from langgraft.nodes.search.journal import JournalNode
for step in range(int(sys.argv[2]), 1_000_000):
    node = JournalNode(step=step, id=str(step), plan="", code=f"{step}", metric=1.0, is_buggy=False)
    keep_best(Path(sys.argv[1]), node, None if step % 3 == 0 else str(step).encode() * 1000)
    print(step, flush=True)
"""


def node(step: int) -> JournalNode:
    """Make a program that worked."""
    return JournalNode(
        step=step, id=str(step), plan="\ud800", code=f"print({step})", metric=0.5, is_buggy=False
    )


def names(folder: Path) -> set[str]:
    """Return what a folder holds."""
    return {path.name for path in folder.iterdir()}


def agree(best: Best) -> bool:
    """Whether the three files are of one program of `WRITER`'s."""
    step = best.node.step
    submission = None if step % 3 == 0 else str(step).encode() * 1000
    return best.solution == str(step) and best.submission == submission


def test_best_when_a_better_one_comes_is_replaced_whole(tmp_path: Path) -> None:
    """Also where the new one left no submission; nothing of the old one remains."""
    folder = tmp_path / "run"
    assert read_best(tmp_path) is None
    for step, submission in ((0, b"id\n1\n"), (1, None), (2, b"id\n2\n"), (2, b"id\n2\n")):
        best = keep_best(folder, node(step), submission)
        files = {"solution.py", "node.json"} | ({"submission.csv"} if submission else set())
        assert names(best) == files
        assert (best / "solution.py").read_text() == f"print({step})"
        found = read_best(folder)
        assert found is not None
        assert (found.node.id, found.node.plan, found.submission) == (str(step), "?", submission)
        assert len(names(folder)) == 2


def test_best_when_something_else_has_its_name_is_refused(tmp_path: Path) -> None:
    """A user's own folder is not overwritten."""
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "solution.py").write_text("mine")
    with pytest.raises(InputError, match="move it away"):
        keep_best(tmp_path, node(0), None)
    assert names(tmp_path) == {"best"}
    with pytest.raises(InputError, match="cannot be read as a best solution"):
        read_best(tmp_path)


def test_best_when_a_file_of_it_is_missing_is_refused(tmp_path: Path) -> None:
    """The message names the file."""
    (keep_best(tmp_path, node(0), b"x") / "node.json").unlink()
    with pytest.raises(InputError, match=r"node\.json is missing"):
        read_best(tmp_path)


@pytest.mark.kill
def test_best_when_its_writer_is_killed_is_of_one_program_and_goes_on(tmp_path: Path) -> None:
    """Read all the time meanwhile, and after each of several deaths."""
    step = 0
    for death in range(4):
        with started_code(WRITER, tmp_path, step) as writer:
            writer.stdout.readline()
            for _ in range(30 + 7 * death):
                found = read_best(tmp_path)
                assert found is not None
                assert agree(found)
            writer.kill()
        found = read_best(tmp_path)
        assert found is not None
        assert agree(found)
        assert found.node.step >= step
        step = found.node.step
    keep_best(tmp_path, node(0), None)
    assert len(names(tmp_path)) == 2, "what a killed process left is cleared away"
