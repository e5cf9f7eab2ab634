"""Commands that go on as jobs, in a live workspace."""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chain_cases import LogMaker, call, ran, scripted
from tree_cases import sandbox, toy

from langgraft.nodes.chain.step import CHANGING, performer, repeater
from langgraft.nodes.chain.stuck import find_stuck
from langgraft.nodes.workbench.log import Action, EventLog, Observation
from langgraft.nodes.workbench.sessions import Workspaces

pytestmark = pytest.mark.matrix  # commands that take their time

SOFT = 1.0
SLOW = "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo done"
"""A command that goes on until there is a file `go`."""
Does = Callable[..., Observation]


class Run:
    """A live workspace, and what was done in it."""

    def __init__(self, spaces: Workspaces) -> None:
        self.spaces = spaces
        self.log = LogMaker()

    def __call__(self, name: str, **given: Any) -> Observation:
        """Do something, and note it."""
        action = Action(id=len(self.log.events), source="agent", name=name, arguments=given)
        seen = self.spaces.run("e", EventLog("", tuple(self.log.events)), action)
        self.log.events += [action, seen]
        return seen

    def bash(self, command: str) -> Observation:
        """Run a command, and tell what is seen of it until it goes on as a job."""
        return self("run_bash", command=command)

    def ended(self, seen: Observation) -> Observation:
        """Look at a job until it has ended; tell its end, with all that was told of it since."""
        text = seen.text
        while seen.running:
            number = int(re.findall(r"Job (\d+) goes on", seen.text)[0])
            seen = self("job", job=number)
            text += seen.text
        return seen.model_copy(update={"text": text})

    def told(self, seen: Observation, said: str) -> Observation:
        """Look at a job until it has said something; tell what is seen then."""
        while said not in seen.text:
            assert seen.running
            number = int(re.findall(r"Job (\d+) goes on", seen.text)[0])
            seen = self("job", job=number, wait=0)
        return seen


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    """Open a live workspace in which a command goes on after a second, or what a test says."""
    competition, soft = toy(tmp_path), getattr(request, "param", SOFT)
    with sandbox(competition) as place:
        spaces = Workspaces(
            place,
            performer(competition, soft),
            repeat=repeater(competition, soft),
            changing=CHANGING,
            metric=competition.grader.name,
            seconds=600,
        )
        yield Run(spaces)
        spaces.close()


@pytest.mark.parametrize("run", [120.0], indirect=True)
def test_command_when_it_is_quick_is_observed_as_ever(run: Run) -> None:
    """Output, exit code and exception are there at once, and no job is left."""
    seen = run.bash("echo out; python3 -c 'raise KeyError(1)'")
    assert (seen.executed, seen.failed, seen.exit_code, seen.exception) == (
        True,
        True,
        1,
        "KeyError",
    )
    assert seen.text.startswith("out\n")
    assert "Running: none" in run("job", job=1).text


def test_job_when_it_goes_on_lets_other_things_be_done_meanwhile(run: Run) -> None:
    """It is no failure and no execution yet; each look tells what is new, and the last how it ended."""
    begun = run.bash(SLOW)
    assert (begun.running, begun.executed, begun.failed) == (True, False, False)
    assert "Job 1 goes on" in begun.text
    assert run.told(begun, "begun").text.startswith("begun")
    assert run("job", job=1, wait=0).running
    run("run_python", code="open('go', 'w').close()")
    ended = run.ended(run("job", job=1))
    assert (ended.running, ended.executed, ended.failed) == (False, True, False)
    assert "done" in ended.text
    assert "begun" not in ended.text
    assert "no such job" in run("job", job=1).text


def test_job_when_it_waits_for_input_gets_a_line(run: Run) -> None:
    """What it reads is what was sent."""
    assert run.bash("read line; echo got $line").running
    assert "got this" in run.ended(run("job", job=1, input="this")).text


def test_job_when_it_is_interrupted_ends_and_tells_nothing_of_a_program(run: Run) -> None:
    """It was the agent's own wish, so that memory is not taught of it; deaf ones are killed."""
    own = f"sleep 61{os.getpid()}"  # no other test's
    for number, line in enumerate([own, "trap '' INT; while true; do sleep 1; done"], 1):
        assert run.bash(line).running
        ended = run("job", job=number, interrupt=True)
        assert (ended.executed, ended.running) == (False, False)
        assert "was interrupted" in ended.text
    assert run.ended(run.bash(f"pgrep -f '[s]{own[1:]}'")).failed


def test_job_when_its_interpreter_is_lost_is_gone(run: Run) -> None:
    """It ends with the interpreter, and the next one gets another number."""
    run.bash(SLOW)
    run("run_python", code="import os; os._exit(1)")
    assert "Running: none" in run("job", job=1).text
    assert "Job 2 goes on" in run.bash(SLOW).text


def test_job_when_the_workspace_is_built_anew_is_as_far_as_it_was(run: Run) -> None:
    """One that had ended is waited for, so that what came after finds its files; others go on."""
    run.bash("while [ ! -e make ]; do sleep 0.02; done; sleep 1; echo 1 > made")
    run("run_python", code="open('make', 'w').close()")
    while run("job", job=1, wait=0).running:
        time.sleep(0.5)  # as a model's calls take: no part of what is done again
    run.bash(SLOW)
    run.ended(run.bash("cat made; echo 2 > after"))
    run.spaces.end("e")
    assert "1\n2\n" in run.ended(run.bash("cat made after")).text
    assert run("job", job=2, wait=0).running


def test_agent_when_it_waits_for_a_job_does_not_go_in_circles(tmp_path: Path) -> None:
    """Looking at a silent job over and over is patience, and the same without a job is not."""
    looks = [call("job", job=1, wait=0) for _ in range(6)]
    replies = [call("run_bash", command=SLOW), *looks, call("finish")]

    out, log = ran(toy(tmp_path), scripted(*replies), soft_seconds=SOFT)
    assert out["ended"] == "finished"
    assert find_stuck(log.events) is None


def test_agent_when_commands_are_waited_for_is_offered_no_jobs(tmp_path: Path) -> None:
    """Neither the tool nor a word of it, unless the setting is there."""
    for soft, there in ((None, False), (SOFT, True)):
        model = scripted(call("finish"))
        ran(toy(tmp_path / str(soft)), model, soft_seconds=soft)
        said = model.asked[0][0].text
        assert ("goes on as a job" in said) == there
