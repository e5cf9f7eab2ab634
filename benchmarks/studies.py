"""The studies there are."""

from typing import Any

from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.study import Study
from langgraft.benchmarks.mle.study import MleStudy


def studies() -> dict[str, Study[Any]]:
    """Return all studies by name."""
    found: list[Study[Any]] = [ContinualStudy(), MleStudy()]
    return {study.name: study for study in found}
