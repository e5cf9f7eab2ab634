"""The end of a run: what lies in the workspace is its submission, and its folder tells of it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tree_cases import SUBMISSION, toy
from workbench_cases import HandRun, desk_of, performer, workspaces

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.sandbox import MIB, Limits
from langgraft.environments.sandboxes.subprocess import SubprocessSandbox
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.log import (
    SUBMIT,
    Action,
    Observation,
    RunState,
    append_events,
    log_lines,
)
from langgraft.nodes.workbench.start import solution_of, submit_node

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

WRITE = f'open("submission.csv", "w").write("{SUBMISSION}"); print("Validation metric: 0.75")'
CONTENT = SUBMISSION.replace("\\n", "\n").encode()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[HandRun, RunDeps]]:
    """Return a run that has not begun, whose sandbox may hold large files."""
    competition = toy(tmp_path)
    gigabytes = Limits(file=2048 * MIB, workspace=2048 * MIB)
    with SubprocessSandbox(gigabytes, inputs={"input": competition.public_dir}) as place:
        begun = HandRun(workspaces(place, competition, perform=performer(competition)))
        yield begun, desk_of(competition, begun)
        begun.spaces.close()


def test_submit_when_a_submission_is_there_then_it_is_collected_and_written(
    run: tuple[HandRun, RunDeps], tmp_path: Path
) -> None:
    """Also where the workspace has to be built anew for it; then the kernel is gone."""
    hand, deps = run
    assert hand.do("validate").submission == "absent"
    hand.cell(WRITE)
    checked = hand.do("validate")
    assert (checked.submission, checked.failed) == ("valid", False)
    hand.spaces.close()
    folder = tmp_path / "run"
    state: RunState = {"episode_id": hand.name, "log": hand.reference, "ended": "finished"}
    done = submit_node(deps, folder=folder).invoke(state)
    assert deps.artifacts.read(done["submission"]) == CONTENT
    assert (done["metric"], done["done"]) == (0.75, True)
    assert len(hand.spaces._live) == 0
    hand.reference = done["log"]
    submitted, seen = hand.log.events[-2:]
    assert isinstance(submitted, Action)
    assert submitted.name == SUBMIT
    assert submitted.arguments["sha256"] == done["submission"]
    assert isinstance(seen, Observation)
    assert (seen.submission, seen.text) == ("valid", "Submission: present and valid.")
    assert (folder / "submission.csv").read_bytes() == CONTENT
    assert WRITE in (folder / "solution.py").read_text()
    assert (folder / "events.jsonl").read_text() == log_lines(hand.log)
    assert sorted(path.name for path in folder.iterdir()) == [
        "events.jsonl",
        "solution.py",
        "submission.csv",
    ]


def test_submit_when_a_submission_has_a_gigabyte_then_it_is_told_and_not_collected(
    run: tuple[HandRun, RunDeps], tmp_path: Path
) -> None:
    """The run ends well, without what an earlier end wrote."""
    hand, deps = run
    hand.bash("truncate -s 1G submission.csv")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "submission.csv").write_bytes(b"old")
    state: RunState = {"episode_id": hand.name, "log": hand.reference}
    done = asyncio.run(submit_node(deps, folder=folder).ainvoke(state))
    assert (done["submission"], done["metric"]) == ("", None)
    assert not (folder / "submission.csv").exists()
    last = json.loads((folder / "events.jsonl").read_text().split("\n")[-2])
    assert last["submission"] == "absent"
    assert "submission.csv was not taken out" in last["text"]
    assert "large" in last["text"]


def test_submit_when_the_file_is_no_submission_then_it_is_kept_and_told_why(
    run: tuple[HandRun, RunDeps],
) -> None:
    """Bytes that are no table; and a folder that is a file is refused."""
    hand, deps = run
    hand.bash("mkdir working; head -c 1000 /dev/urandom > working/submission.csv")
    state: RunState = {"episode_id": hand.name, "log": hand.reference}
    done = submit_node(deps).invoke(state)
    assert len(deps.artifacts.read(done["submission"])) == 1000
    hand.reference = done["log"]
    seen = hand.log.events[-1]
    assert isinstance(seen, Observation)
    assert seen.submission == "invalid"
    blocked = deps.competition.public_dir / "train.csv"
    with pytest.raises(InputError, match="in the way of a run's folder"):
        submit_node(deps, folder=blocked).invoke(state)


def ran(hand: HandRun, program: str, *, script: bool = False, failed: bool = False) -> None:
    """Note that a program ran."""
    action = hand.action("run_bash" if script else "run_python", program, thought="I try this.")
    hand.note(
        action,
        Observation(
            id=action.id + 1, cause=action.id, text="", executed=True, program=program,
            failed=failed, exit_code=0 if script else None,
        ),
    )  # fmt: skip


def test_solution_when_a_script_left_the_submission_then_it_is_that_script(
    run: tuple[HandRun, RunDeps],
) -> None:
    """A cell stands on the cells before it; what failed is left out."""
    hand, _ = run
    assert solution_of(hand.log) == ""
    ran(hand, "x = 1")
    ran(hand, "y = 1 / 0", failed=True)
    assert solution_of(hand.log) == "# Step 0: I try this.\nx = 1\n"
    ran(hand, "save(x, 'submission.csv')")
    ran(hand, "print('done')")
    assert solution_of(hand.log) == (
        "# Step 0: I try this.\nx = 1\n\n# Step 2: I try this.\nsave(x, 'submission.csv')\n"
    )
    ran(hand, "train()  # writes submission.csv", script=True)
    ran(hand, "print('looked at submission')")
    assert solution_of(hand.log) == "train()  # writes submission.csv"


def test_log_when_a_run_has_ended_then_it_can_go_on(run: tuple[HandRun, RunDeps]) -> None:
    """As with more steps: the workspace is built anew from the log, ends included."""
    hand, deps = run
    hand.cell("x = 1")
    state: RunState = {"episode_id": hand.name, "log": hand.reference}
    hand.reference = submit_node(deps).invoke(state)["log"]
    assert "1" in hand.cell("x").text
    hand.reference = append_events(hand.artifacts, hand.reference, [hand.action("finish")])
    assert len(hand.log.events) == 7
