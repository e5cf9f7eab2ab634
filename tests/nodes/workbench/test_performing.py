"""From an action to its observation: what ran, what it printed, and how it ended."""

from collections.abc import Iterator

import pytest
from workbench_cases import HandRun, output, performer, workspaces

from langgraft.environments.sandboxes.sandbox import MIB, Limits
from langgraft.environments.sandboxes.subprocess import SubprocessSandbox
from langgraft.memory.recall import render_block
from langgraft.nodes.workbench.performing import LONGEST_TEXT, here_program, script_of


@pytest.fixture(scope="module")
def run() -> Iterator[HandRun]:
    """Return a run that goes on from test to test, in a sandbox that stops floods early."""
    with SubprocessSandbox(Limits(flood=8 * MIB)) as place:
        begun = HandRun(workspaces(place, perform=performer()))
        yield begun
        begun.spaces.close()


def test_cell_when_it_raises_then_its_exception_is_told_without_the_cells_number(
    run: HandRun,
) -> None:
    """How many cells ran in this very kernel differs after a replay."""
    seen = run.cell("def fit():\n    raise ValueError('no such eta')\nfit()")
    assert (seen.exception, seen.message) == ("ValueError", "no such eta")
    assert seen.failed
    assert seen.executed
    assert seen.exit_code is None
    assert 'File "<cell>", line 2, in fit' in seen.text


def test_cell_when_long_output_is_cut_then_it_is_cut_alike_whatever_the_cells_number(
    run: HandRun,
) -> None:
    """In the ninth cell of a kernel as in the tenth, the first one after a replay."""
    code = """
import inspect, sys
name = inspect.currentframe().f_code.co_filename
for stream in (sys.stdout, sys.stderr):
    print(name * 5_000, file=stream)
"""
    seen = {run.cell(code).text for _ in range(10)}
    assert len(seen) == 1


def test_command_when_a_signal_ends_a_part_of_it_then_the_shells_word_has_no_process_number(
    run: HandRun,
) -> None:
    """How many processes the workspace had before differs after a replay."""
    seen = run.bash("sh -c 'kill -9 $$'; true")
    assert "bash: line 1: Killed" in seen.text


def test_cell_when_it_reports_a_metric_then_the_observation_has_it(run: HandRun) -> None:
    """By the rule of all programs."""
    assert run.cell("print('Validation metric: 0.75')").metric == 0.75


def test_cell_when_it_prints_bytes_that_are_no_text_then_they_are_replaced(run: HandRun) -> None:
    """Binary output neither fails nor reaches the log."""
    code = "import os; n = os.write(1, bytes(range(256)) * 4)"
    seen = run.cell(code)
    assert not seen.failed
    assert "\ufffd" in seen.text
    assert seen.text.encode()


def test_command_when_a_script_has_a_name_like_a_pattern_then_its_own_text_is_the_program(
    run: HandRun,
) -> None:
    """And a pattern, which the shell fills in, is no script."""
    run.bash("echo 'print(1)' > fit[1].py; echo 'print(2)' > fit1.py")
    assert run.bash("python3 'fit[1].py'").program == "print(1)\n"
    assert run.bash("python3 fit?.py").program == ""


def test_command_when_it_prints_without_end_then_it_is_stopped_and_cut(run: HandRun) -> None:
    """As a gigabyte is: head and tail are kept, and the run goes on."""
    seen = run.bash("yes a line that comes again and again")
    assert seen.failed
    assert "TOO MUCH OUTPUT" in seen.text
    assert 1000 < len(seen.text) <= LONGEST_TEXT + 200
    assert output(run.bash("echo on")) == "on"


def test_command_when_it_runs_a_script_then_the_program_is_its_text_as_it_ran(
    run: HandRun,
) -> None:
    """Written before, written by the command itself, removed afterwards, or too long."""
    run.bash("mkdir -p src; echo 'print(1)' > src/a.py")
    assert run.bash("python3 -u ./src/a.py --x 1").program == "print(1)\n"
    assert run.bash("echo 'print(2)' > src/a.py && python src/a.py").program == "print(2)\n"
    assert run.bash("python3 src/a.py; rm src/a.py").program == "print(2)\n"
    assert run.bash("(echo 1; yes '#' | head -c 500000) > b.py; python3 b.py").program == ""
    failed = run.bash("python3 - <<'EOF'\nimport sys\nsys.exit(1 / 0)\nEOF")
    assert failed.program == "import sys\nsys.exit(1 / 0)"
    assert (failed.exception, failed.exit_code) == ("ZeroDivisionError", 1)


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("python train.py", "train.py"),
        ("cd x && python3 -u ./train.py > log.txt", "train.py"),
        ("python 'my train.py' a", "my train.py"),
        ("python a.py; python b.py", "b.py"),
        ("python ../train.py", ""),
        ("python /tmp/train.py", ""),
        ("python -m train.py", ""),
        ("python -c 'import a.py'", ""),
        ("cat train.py", ""),
        ("mypython train.pyc", ""),
    ],
)
def test_script_of_when_a_line_is_read_then_the_script_it_runs_is_found(
    line: str, script: str
) -> None:
    """The last one in the workspace, or none."""
    assert script_of(line) == script


def test_here_program_when_the_end_mark_is_missing_then_there_is_none() -> None:
    """Only a whole text is a program."""
    assert here_program("python <<EOF\nx\nEOF\n") == "x"
    assert here_program("python <<EOF\nx") == ""


def test_output_when_it_quotes_memory_then_that_is_not_kept(run: HandRun) -> None:
    """What was recalled must not be learned from."""
    block = render_block(["pass eta only"])
    seen = run.cell(f"print({block!r}); print('after')\nraise ValueError({block!r} + 'rate')")
    assert "eta only" not in seen.text + seen.message
    assert "after" in seen.text
    assert seen.message.endswith("rate")
