"""What searches earned, as MLE-bench counts it: submissions made and valid, ranks and medals.

Each number is a share of tasks per seed, then a mean over seeds with its standard error. The
paper's Table 1 does not say how its errors are made; its OpenHands rows come out of one form
only, the standard deviation of the seeds with ddof = 1, over the root of their number (see
`published`). That form is used here.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.comparison.outcomes import Spread, spread_of
from langgraft.benchmarks.mle.run_record import Search
from langgraft.benchmarks.mle.run_set import Searches
from langgraft.benchmarks.mle.runs import competition_of, condition_of, seed_of

OUTCOMES: Final = {
    "submission_exists": "made submission",
    "valid_submission": "valid submission",
    "above_median": "above median",
    "bronze_medal": "bronze",
    "silver_medal": "silver",
    "gold_medal": "gold",
    "any_medal": "any medal",
}
"""Field of a grading report → what the paper's Table 1 calls it, in its order."""


def earned(search: Search, outcome: str) -> float:
    """Return 1 where a search earned something, else 0."""
    return float(bool(search.report.get(outcome)))


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of a condition."""

    condition: str
    tasks: int
    """Competitions of each seed."""
    seeds: int
    """Seeds that are complete: all their tasks have a result. Others are left out."""
    seeds_planned: int
    shares: tuple[tuple[str, Spread | None], ...]
    """By outcome: mean over seeds; `None` while no seed is complete."""


def outcomes(searches: Searches) -> tuple[Outcomes, ...]:
    """Return what each condition earned."""
    return tuple(_outcomes(searches, condition) for condition in searches.conditions)


def _outcomes(searches: Searches, condition: str) -> Outcomes:
    specs = [spec for spec in searches.planned if condition_of(spec) == condition]
    planned = Counter(map(seed_of, specs))
    found = searches.of(condition)
    done = Counter(search.seed for search in found)
    complete = sorted(seed for seed in planned if done[seed] == planned[seed])
    return Outcomes(
        condition=condition,
        tasks=len(set(map(competition_of, specs))),
        seeds=len(complete),
        seeds_planned=len(planned),
        shares=tuple((name, _share(found, complete, name)) for name in OUTCOMES),
    )


def _share(found: Sequence[Search], seeds: Sequence[int], outcome: str) -> Spread | None:
    if not seeds:
        return None
    return spread_of([_of_seed(found, seed, outcome) for seed in seeds])


def _of_seed(found: Sequence[Search], seed: int, outcome: str) -> float:
    values = [earned(search, outcome) for search in found if search.seed == seed]
    return math.fsum(values) / len(values)
