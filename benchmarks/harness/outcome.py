"""How a run and a plan ended."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

RunStatus: TypeAlias = Literal["done", "failed", "capped", "interrupted", "blocked", "waiting"]
"""`done`; `failed` by infrastructure; `capped` by a budget; `interrupted` on request;
`blocked` by a source that did not get far enough; `waiting`, never started."""

EXIT_COMPLETE = 0
EXIT_INCOMPLETE = 1
EXIT_INTERRUPTED = 130
"""What shells report for a process ended by SIGINT."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How one run ended."""

    name: str
    status: RunStatus
    done: int
    """Committed items."""
    planned: int
    message: str = ""
    """What stopped the run; names the item."""


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """How a plan ended; what is not done is done by running the plan again."""

    runs: tuple[RunOutcome, ...]
    interrupted: bool = False
    """Whether someone asked to stop before the end."""

    @property
    def complete(self) -> bool:
        """Whether every run is done."""
        return all(run.status == "done" for run in self.runs)

    @property
    def exit_code(self) -> int:
        """0 complete, 1 incomplete, 130 interrupted."""
        if self.complete:
            return EXIT_COMPLETE
        return EXIT_INTERRUPTED if self.interrupted else EXIT_INCOMPLETE

    @property
    def problems(self) -> tuple[RunOutcome, ...]:
        """The runs that something stopped."""
        return tuple(run for run in self.runs if run.status in {"failed", "capped"})

    def summary(self) -> str:
        """Return the outcome in one line."""
        counts = Counter(run.status for run in self.runs)
        states = ", ".join(f"{count} {status}" for status, count in counts.items())
        done, planned = sum(run.done for run in self.runs), sum(run.planned for run in self.runs)
        return f"{done} of {planned} items committed; runs: {states or 'none'}"
