"""What `langgraft preview --check` finds out of a plan before anything is paid for.

Not every study needs more than its plan: one that does has a `try_out`, and the others are not asked.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.harness.study import Plan, RunSpec


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a run needs, and whether it is there."""

    what: str
    """In a word or two: `image`, `sample of digits`."""
    told: str
    """What was found, in a line."""
    ok: bool = True


@runtime_checkable
class Checking(Protocol):
    """A study that can try out what its runs need."""

    def try_out(
        self, plan: Plan, runs: Sequence[RunSpec], *, workers: int | None = None
    ) -> Iterator[Finding]:
        """Try out what the runs of a plan need; nothing of it calls a model.

        Args:
            plan: The plan.
            runs: Its runs, as they would be executed.
            workers: Runs under way at the same time; `None`: as the study has it.
        """
        ...


def tried(what: str, find: Callable[[], str]) -> Finding:
    """Return what was found, or in a line why it was not."""
    try:
        return Finding(what, find())
    except LanggraftError as error:
        return Finding(what, " ".join(str(error).split()), ok=False)
