"""The program that made a run's submission, as far as that can be told."""

from collections.abc import Mapping
from typing import Final

from langgraft.nodes.workbench.events import Action, Observation
from langgraft.nodes.workbench.log import EventLog

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
