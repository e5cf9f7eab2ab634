"""`start` and `submit`, the two ends of a run.

`start` checks what a run needs before a model is paid, and looks at the data; `submit` takes what lies there as
its submission, and names the program that made it. Also how a process that goes on with a run gets memory back as the run has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.files import write_whole
from langgraft.environments.competitions.attempts import SUBMISSIONS, judged
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import ExecutionResult
from langgraft.memory.model import BankContent
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts, reference_of
from langgraft.nodes.competition_run import bank_after, beginning, restoring
from langgraft.nodes.dialogue import Node, Update
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.limits import NOTHING_SPENT
from langgraft.nodes.workbench.log import (
    SUBMIT,
    Action,
    EventLog,
    Observation,
    RunState,
    append_events,
    log_lines,
    read_log,
)
from langgraft.nodes.workbench.performing import KernelProgram, Performed, kept_text, take_out

_LEFT: Final[Update] = {
    "said": "",
    "diagnosed": "",
    "judged": "",
    "ended": "",
    "metric": None,
    "submission": "",
    "done": False,
}
"""What the end of a run, or a crash in it, leaves in a thread."""
_AFRESH: Final[Update] = {"log": "", "steps": 0, "attempt": 0, "spent": NOTHING_SPENT}


@checked
def start_run_node(deps: RunDeps, *, memory: MemoryProvider[Any] | None) -> Node[RunState]:
    """Make the node that begins a run, or goes on with one.

    An input with the `episode_id` of the run that the thread has goes on with it, up to the limits
    that the agent was built with: what is in the log stays, and what was spent.

    Args:
        deps: What all nodes share.
        memory: The provider that the run teaches, if it does: what it holds is noted, so that it
            can be restored.
    """

    def start(state: RunState) -> Program[Call, Update]:
        begun, log = yield from beginning(
            deps, deps.sandbox, memory, state, what="run", chain="log"
        )
        read_log(deps.artifacts, log)  # what goes on must be there
        return {
            **_LEFT,
            **({} if log else _AFRESH),
            "episode_id": begun["episode_id"],
            "seed": state.get("seed", 0),
            "begun": begun,
        }

    return Node.running("start", start, in_threads=True)


def run_bank(artifacts: Artifacts, state: Mapping[str, Any]) -> BankContent:
    """Return what memory holds as a run has it: what it began with, and all it learned.

    Args:
        artifacts: Where the run is kept.
        state: The run's state: what `get_state(config).values` of its graph gives.

    Raises:
        InputError: A record or the bank is missing or damaged.
    """
    return bank_after(artifacts, state, read_log(artifacts, state.get("log", "")).deltas)


def restore_run_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Make a bank what it is to be where a run goes on after a crash.

    Called before `invoke(None, config)`, this makes the bank hold exactly what the run began with
    and what its log says it learned. The bank has to be the run's own: what others wrote to it
    meanwhile goes. Nothing is changed where the run has not begun or teaches nothing.

        state = agent.get_state(config).values
        restore_run_memory(memory, artifacts, state)
        agent.invoke(None, config, durability="sync")

    Raises:
        InputError: A record or the bank is missing or damaged.
        ReadOnlyStoreError: The bank is another one, and frozen.
    """
    run(restoring(memory, artifacts, state, run_bank), do)


async def arestore_run_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Do what `restore_run_memory` does, asynchronously."""
    await arun(restoring(memory, artifacts, state, run_bank), ado, in_threads=True)


@dataclass(frozen=True, slots=True)
class Submitted:
    """What lies where a submission is looked for."""

    content: bytes | None
    """The file as it is; `None` where there is none, or it is too large to be taken out."""
    valid: bool
    reasons: tuple[str, ...]
    """Why it is absent or not valid."""

    @property
    def report(self) -> str:
        """What an agent may know of it: nothing comes from the answers."""
        if self.valid:
            return "Submission: present and valid."
        state = "absent" if self.content is None else "present, but not valid"
        return "\n".join([f"Submission: {state}.", *(f"- {reason}" for reason in self.reasons)])


def look_at_submission(competition: Competition) -> KernelProgram[Submitted]:
    """Take the submission out of a workspace and check it."""
    files, left_out = yield from take_out(*SUBMISSIONS)
    left = ExecutionResult(0, "", "", 0.0, files=files, left_out=left_out)
    made = judged(left, competition)
    return Submitted(made.submission, made.submission_valid is True, made.reasons)


def perform_validation(competition: Competition) -> KernelProgram[Performed]:
    """Do what the tool `validate_submission` says."""
    found = yield from look_at_submission(competition)
    return Performed(found.report, failed=not found.valid, submission=state_of(found))


def state_of(found: Submitted) -> Literal["valid", "invalid", "absent"]:
    """Return a submission's state as an observation has it."""
    if found.valid:
        return "valid"
    return "absent" if found.content is None else "invalid"


_FILE: Final = "submission.csv"


def solution_of(log: EventLog) -> str:
    """Return the program whose run left the submission, or what comes closest to it.

    The last script that ran to its end and names the file is the program. Where a cell of the
    kernel did it, it stands on all cells before it: those that ran to their end follow each other.
    Where nothing names the file, all such cells are given, or the last script.
    """
    ran = [
        event
        for event in log.events
        if isinstance(event, Observation) and event.executed and event.program and not event.failed
    ]
    naming = [place for place, seen in enumerate(ran) if _FILE in seen.program]
    last = ran[naming[-1]] if naming else None
    if last is not None and not _is_cell(last):
        return last.program
    cells = [seen for seen in (ran[: naming[-1] + 1] if naming else ran) if _is_cell(seen)]
    if cells:
        agent = [event.id for event in log.events if event.source == "agent"]
        numbers = {action: number for number, action in enumerate(agent)}
        return "\n\n".join(_titled(log, seen, numbers) for seen in cells) + "\n"
    return ran[-1].program if ran else ""


def _is_cell(seen: Observation) -> bool:
    """Only a cell of a kernel that lives on has no exit code."""
    return seen.exit_code is None


def _titled(log: EventLog, seen: Observation, numbers: Mapping[int, int]) -> str:
    """Return a program under the number of its step and what was said beside it."""
    action = log.events[seen.cause or 0]
    said = action.thought if isinstance(action, Action) else ""
    title = " ".join(said.split())[:200]
    number = numbers.get(action.id, 0)
    return f"# Step {number}{f': {title}' if title else ''}\n{seen.program.rstrip()}"


EVENTS: Final = "events.jsonl"
SUBMISSION: Final = "submission.csv"
SOLUTION: Final = "solution.py"


@checked
def submit_node(deps: RunDeps, *, folder: Path | None = None) -> Node[RunState]:
    """Make the node that collects the submission, notes it in the log, and ends the workspace.

    Args:
        deps: What all nodes share.
        folder: Where `events.jsonl`, `submission.csv` and `solution.py` are written; `None` writes
            none.
    """
    competition, workspaces = deps.competition, deps.workspaces

    def submit(state: RunState) -> Program[Call, Update]:
        log, name = deps.log(state), state["episode_id"]
        found: Submitted = yield Call(
            workspaces.look, workspaces.alook, name, log, lambda: look_at_submission(competition)
        )
        update = _update(deps, state, log, found, folder)
        workspaces.end(name)
        return update

    return Node.running("submit", submit, in_threads=True)


def last_metric(log: EventLog) -> float | None:
    """Return the validation metric that was reported last, by what ran to its end if any did."""
    reported = [
        event for event in log.events if isinstance(event, Observation) and event.metric is not None
    ]
    ran = [seen for seen in reported if not seen.failed] or reported
    return ran[-1].metric if ran else None


def write_run(folder: Path, log: EventLog, submission: bytes | None) -> None:
    """Write what is left of a run into its folder, each file whole or not at all.

    Raises:
        InputError: Something else than a folder is in the way.
        InfrastructureError: The disk is full, or it cannot be written to.
    """
    files = {EVENTS: log_lines(log).encode(), SOLUTION: solution_of(log).encode()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(folder / name, content)
        if submission is None:
            (folder / SUBMISSION).unlink(missing_ok=True)
        else:
            write_whole(folder / SUBMISSION, submission)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        msg = f"{error.filename or folder}: is in the way of a run's folder; give another one"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"{folder}: cannot be written: {error.strerror}; free the disk and resume the run"
        raise InfrastructureError(msg) from error


def _update(
    deps: RunDeps, state: RunState, log: EventLog, found: Submitted, folder: Path | None
) -> Update:
    content = found.content
    kept = "" if content is None else deps.artifacts.keep(content)
    action = Action(
        id=len(log.events),
        source="environment",
        name=SUBMIT,
        arguments={
            "ended": state.get("ended", ""),
            "sha256": "" if content is None else reference_of(content),
            "bytes": 0 if content is None else len(content),
        },
    )
    seen = Observation(
        id=action.id + 1,
        cause=action.id,
        text=kept_text(found.report),
        failed=not found.valid,
        submission=state_of(found),
    )
    reference = append_events(deps.artifacts, log.reference, [action, seen])
    ended = read_log(deps.artifacts, reference)
    if folder is not None:
        write_run(folder, ended, content)
    return {"log": reference, "submission": kept, "metric": last_metric(ended), "done": True}
