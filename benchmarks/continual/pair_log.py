"""One pair of a study with several, as if it were the whole study."""

from collections.abc import Mapping
from functools import cached_property

from langgraft._core.canonical import JSON
from langgraft.benchmarks.continual.runs import PAIR, alone
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.memory.deltas import MemoryDelta


class PairLog:
    """The runs of one pair under the names they have in a plan of that pair alone.

    Args:
        log: The log of a plan with several pairs.
        pair: Name of the pair.
    """

    def __init__(self, log: PlanLogReader, pair: str) -> None:
        self._log = log
        self._pair = pair

    @cached_property
    def runs(self) -> tuple[RunSpec, ...]:
        """The runs of the pair."""
        return tuple(alone(run) for run in self._log.runs if run.factors[PAIR] == self._pair)

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the committed results of a run, in order."""
        return self._log.results(self._whole(name))

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return the deltas each committed item of a run caused, in order."""
        return self._log.deltas(self._whole(name))

    @property
    def manifest(self) -> Mapping[str, JSON]:
        """The manifest of the whole plan."""
        return self._log.manifest

    def _whole(self, name: str) -> str:
        return f"{self._pair}/{name}"
