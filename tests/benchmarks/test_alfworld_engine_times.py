"""What the figures of ALFWorld's engine are made of works at any size."""

import pytest
from alfworld_cases import game_of, needs_alfworld

from langgraft.benchmarks.performance.environments import CALLS, engine_times


@needs_alfworld
@pytest.mark.matrix
def test_engine_times_when_measured_tell_of_every_kind_of_call() -> None:
    """Both engines took time for each, and were asked the same."""
    times = engine_times((game_of(),), rounds=1)
    assert tuple(times) == CALLS
    assert all(found.ratio > 0 and found.ours > 0 and found.plain > 0 for found in times.values())
