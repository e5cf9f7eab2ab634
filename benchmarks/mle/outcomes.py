"""What the runs of each condition came to: what they earned, how they went, why they ended.

Earned is what MLE-bench counts: submissions made and valid, ranks and medals. Each such number is a share of tasks per seed, then a mean over seeds with its standard error. The
paper's Table 1 does not say how its errors are made; its OpenHands rows come out of one form
only, the standard deviation of the seeds with ddof = 1, over the root of their number (see
`published`). That form is used here.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langgraft.benchmarks.comparison.outcomes import Spread, spread_of
from langgraft.benchmarks.mle.searches import Search, Searches

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
    pairs = searches.planned_pairs(condition)
    planned = Counter(seed for _, seed in pairs)
    found = searches.of(condition)
    done = Counter(search.seed for search in found)
    complete = sorted(seed for seed in planned if done[seed] == planned[seed])
    return Outcomes(
        condition=condition,
        tasks=len({competition for competition, _ in pairs}),
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


What: TypeAlias = Literal["bugs", "best"]


@dataclass(frozen=True, slots=True)
class Curve:
    """A mean over searches at each step."""

    what: What
    metric_group: str
    condition: str
    points: tuple[Spread | None, ...]
    """By step; `n` is the number of searches in it, `None` where no search has a number yet."""
    searches: int


def curves(searches: Searches) -> tuple[Curve, ...]:
    """Return bugs so far and the best metric so far, by metric group and condition (Figure 3).

    Bugs of a search that ended early stay as they were, and so does its best metric. A search
    without a valid program so far has no best metric and is left out of that step's mean, so that
    early means are over fewer searches; `n` says over how many.
    """
    found = []
    for group in searches.metric_groups:
        for condition in searches.conditions:
            runs = [each for each in searches.of(condition) if each.metric_group == group]
            if runs:
                bugs = [_bugs(run, searches.longest) for run in runs]
                best = [_best(run, searches.longest) for run in runs]
                found.append(Curve("bugs", group, condition, _points(bugs), len(runs)))
                found.append(Curve("best", group, condition, _points(best), len(runs)))
    return tuple(found)


def _bugs(search: Search, steps: int) -> tuple[float, ...]:
    return _carried(tuple(map(float, search.behavior.cumulative_bugs)), steps, before=0.0)


def _best(search: Search, steps: int) -> tuple[float, ...]:
    return _carried(search.behavior.best_so_far, steps, before=math.nan)


def _carried(values: tuple[float, ...], steps: int, *, before: float) -> tuple[float, ...]:
    """Go on with the last value of a run that ended; one without steps stays as it began."""
    last = values[-1] if values else before
    return values + (last,) * (steps - len(values))


def _points(rows: Sequence[Sequence[float]]) -> tuple[Spread | None, ...]:
    columns = (
        [value for value in step if not math.isnan(value)] for step in zip(*rows, strict=True)
    )
    return tuple(spread_of(values) for values in columns)


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
