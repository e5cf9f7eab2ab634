"""What each prompt of MLAB says: the task, the last steps, and what is left."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from langgraft.environments.sandboxes.telling import span, trimmed
from langgraft.nodes.mlab.prompting import MLABPrompts
from langgraft.nodes.mlab.tools import described_tools
from langgraft.nodes.mlab.window import LONGEST_SHOWN, window_text
from langgraft.nodes.replies import encodable
from langgraft.nodes.workbench.desk import Desk
from langgraft.nodes.workbench.limits import left
from langgraft.nodes.workbench.log import EventLog
from langgraft.nodes.workbench.recall import recalled_in
from langgraft.nodes.workbench.state import RunState

_MINUTE: Final = 60
_HOUR: Final = 3600
_CLIPPED: Final = (2500, 1000, 300)
"""Characters of an observation that stay where a prompt is too long, one after the other."""
_TASK: Final = (8000, 4000, 2000, 1000, 300)
"""Characters of the task, and of the data's preview, that stay after that."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How much of a run a prompt shows."""

    window: int
    """Most steps."""
    room: int = LONGEST_SHOWN
    """Most characters of one observation, and of one field."""
    task: int | None = None
    """Most characters of the task and of the data's preview; `None` sets no limit."""


def cuts(window: int) -> Iterator[Cut]:
    """Yield how a prompt is made shorter and shorter, beginning with all it is to show.

    First older steps go, then the middles of what is left of them, and at last those of the task.
    """
    for steps in range(window, 0, -1):
        yield Cut(steps)
    for room in _CLIPPED:
        yield Cut(1, room)
    for task in _TASK:
        yield Cut(1, _CLIPPED[-1], task)


@dataclass(frozen=True, slots=True)
class Briefing:
    """What the prompts of a run are filled in with."""

    desk: Desk
    prompts: MLABPrompts
    packages: Sequence[str]
    window: int

    @property
    def form(self) -> str:
        """What a reply has to look like."""
        return self.prompts.format.render().strip()

    def prompt(self, state: RunState, cut: Cut) -> str:
        """Return the prompt for the next step."""
        log = self.desk.log(state)
        task = self._task(state, log, cut)
        return encodable(f"{task.strip()}\n\n{self._turn(state, log, cut).strip()}\n")

    def _task(self, state: RunState, log: EventLog, cut: Cut) -> str:
        preview = self.desk.artifacts.read(state["begun"]["preview"]).decode()
        task = self.desk.competition.description.strip()
        recalled = recalled_in(log) or ""
        if cut.task is not None:
            task, preview = trimmed(task, cut.task), trimmed(preview, cut.task)
        return self.prompts.task.render(
            task=task,
            tools=described_tools(),
            data=preview.strip(),
            memory=f"{recalled}\n" if recalled else "",
            packages=", ".join(self.packages),
            limit=span(self.desk.seconds),
            window=str(self.window),
            format=self.form,
        )

    def _turn(self, state: RunState, log: EventLog, cut: Cut) -> str:
        steps, seconds = left(self.desk.limits, state)
        return self.prompts.turn.render(
            steps=window_text(log, cut.window, room=cut.room),
            left=str(steps),
            all=str(self.desk.limits.steps),
            time=roughly(seconds),
            number=str(state.get("steps", 0)),
        )


def roughly(seconds: float) -> str:
    """Write a time that is left so roughly that a repetition seldom reads otherwise."""
    if seconds > _HOUR:
        return f"about {math.ceil(seconds / _HOUR)} hours"
    tens = math.ceil(seconds / (10 * _MINUTE))
    return f"about {10 * tens} minutes" if tens else "no time"
