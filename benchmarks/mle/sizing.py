"""How large a plan is, said before it is run: programs, time, and the steps that would fit."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.nodes.search.choose import FRESH_SPLITS

SECONDS_A_PROGRAM: Final = 2.5
"""Of a program of the simulated data scientist at a competition that ships: 1.2 to 2.0 s of one
processor, as measured, and its container. A language model's may take all the time they are given."""

SLOT_MINUTES: Final = 20

CALLS_A_STEP: Final[Mapping[str, int]] = {"write": 3, "review": 2, "diagnose": 2, "judge": 2}
"""Model calls that a program takes at most: a reply, and its corrections."""


def most_programs(plan: MlePlan, runs: Sequence[RunSpec]) -> int:
    """Return how many programs the runs execute at the most."""
    return sum(run.length for run in runs) * (plan.steps + rescored_programs(plan))


def rescored_programs(plan: MlePlan) -> int:
    """Return how many programs a search runs at the most after its last step."""
    return len(FRESH_SPLITS) * plan.candidates if plan.candidates > 1 else 0


def size_lines(plan: MlePlan, runs: Sequence[RunSpec], *, workers: int) -> Iterator[str]:
    """Say how many programs there are at most, about how long they take, and what would fit.

    Args:
        plan: The plan.
        runs: Its runs as they would be executed.
        workers: Runs that go on at the same time.
    """
    programs = most_programs(plan, runs)
    searches = sum(run.length for run in runs)
    at_once = min(workers * plan.width, os.cpu_count() or 1)
    minutes = programs * SECONDS_A_PROGRAM / at_once / 60
    yield (
        f"programs: at most {programs:,} in {searches:,} searches of {plan.steps} steps; what is the"
        " same in several conditions runs once"
    )
    yield (
        f"time: at most about {_minutes(minutes)} if a program takes {SECONDS_A_PROGRAM:g} s and"
        f" {at_once} run at once (a program may take {plan.seconds:g} s)"
    )
    fitting = math.floor(SLOT_MINUTES * 60 * at_once / SECONDS_A_PROGRAM / max(searches, 1))
    fitting -= rescored_programs(plan)
    if fitting < 1:
        yield f"steps: not even one fits into {SLOT_MINUTES} minutes; take fewer searches"
    else:
        yield f"steps: {fitting} would fit into {SLOT_MINUTES} minutes at that pace"


def _minutes(minutes: float) -> str:
    if minutes < 1:
        return "a minute"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"  # noqa: PLR2004
