"""`submit`: the end of a run. What lies in the workspace is its submission."""

import asyncio
from pathlib import Path
from typing import Final

from langgraft._core.arguments import checked
from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.files import write_whole
from langgraft.nodes.artifacts import reference_of
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.workbench.desk import Desk
from langgraft.nodes.workbench.events import SUBMIT, Action, Observation
from langgraft.nodes.workbench.log import EventLog, append_events, log_lines, read_log
from langgraft.nodes.workbench.performing import kept_text
from langgraft.nodes.workbench.solution import solution_of
from langgraft.nodes.workbench.state import RunState
from langgraft.nodes.workbench.validation import Submitted, look_at_submission, state_of

EVENTS: Final = "events.jsonl"
SUBMISSION: Final = "submission.csv"
SOLUTION: Final = "solution.py"


@checked
def submit_node(desk: Desk, *, folder: Path | None = None) -> GraphNode[RunState]:
    """Make the node that collects the submission, notes it in the log, and ends the workspace.

    Args:
        desk: What all nodes share.
        folder: Where `events.jsonl`, `submission.csv` and `solution.py` are written; `None` writes
            none.
    """
    competition, workspaces = desk.competition, desk.workspaces

    def submit(state: RunState) -> Update:
        log, name = desk.log(state), state["episode_id"]
        found = workspaces.look(name, log, lambda: look_at_submission(competition))
        update = _update(desk, state, log, found, folder)
        workspaces.end(name)
        return update

    async def asubmit(state: RunState) -> Update:
        log, name = await asyncio.to_thread(desk.log, state), state["episode_id"]
        found = await workspaces.alook(name, log, lambda: look_at_submission(competition))
        update = await asyncio.to_thread(_update, desk, state, log, found, folder)
        await asyncio.to_thread(workspaces.end, name)
        return update

    return GraphNode("submit", submit, asubmit)


def last_metric(log: EventLog) -> float | None:
    """Return the validation metric that was reported last, by what ran to its end if any did."""
    told = [
        event for event in log.events if isinstance(event, Observation) and event.metric is not None
    ]
    ran = [seen for seen in told if not seen.failed] or told
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
    desk: Desk, state: RunState, log: EventLog, found: Submitted, folder: Path | None
) -> Update:
    content = found.content
    kept = "" if content is None else desk.artifacts.keep(content)
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
        text=kept_text(found.told),
        failed=not found.valid,
        submission=state_of(found),
    )
    reference = append_events(desk.artifacts, log.reference, [action, seen])
    ended = read_log(desk.artifacts, reference)
    if folder is not None:
        write_run(folder, ended, content)
    return {"log": reference, "submission": kept, "metric": last_metric(ended), "done": True}
