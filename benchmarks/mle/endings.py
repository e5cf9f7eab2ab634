"""How many steps runs of step agents took, and why they ended."""

from collections import Counter
from dataclasses import dataclass

from langgraft.benchmarks.comparison.outcomes import Spread, spread_of
from langgraft.benchmarks.mle.run_set import Searches


@dataclass(frozen=True, slots=True)
class Endings:
    """The ends of the runs of a condition."""

    condition: str
    runs: int
    steps: Spread | None
    least: int
    most: int
    attempts: Spread | None
    reasons: Counter[str]
    """Runs by why they ended."""
    tools: Counter[str]
    """Steps by action, pooled over runs."""


def endings(searches: Searches) -> tuple[Endings, ...]:
    """Return how the runs of each condition ended; nothing of a tree, whose length is given."""
    if not searches.step_runs:
        return ()
    return tuple(_endings(searches, condition) for condition in searches.conditions)


def _endings(searches: Searches, condition: str) -> Endings:
    runs = [run for run in searches.step_runs if run.condition == condition]
    steps = [run.behavior.steps for run in runs]
    tools: Counter[str] = Counter()
    for run in runs:
        tools.update(run.behavior.tools)
    return Endings(
        condition=condition,
        runs=len(runs),
        steps=spread_of(steps),
        least=min(steps, default=0),
        most=max(steps, default=0),
        attempts=spread_of(run.attempts for run in runs),
        reasons=Counter(run.ended for run in runs),
        tools=tools,
    )
