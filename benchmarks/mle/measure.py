"""A number of a run that conditions are compared by, and the largest value it can have."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from langgraft.benchmarks.mle.behaviour.diversity import MOST_OPERATORS
from langgraft.benchmarks.mle.outcomes import earned
from langgraft.benchmarks.mle.run_record import Search
from langgraft.benchmarks.mle.run_set import Searches

Better: TypeAlias = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a run."""

    name: str
    label: str
    unit: str
    value: Callable[[Search], float | None]
    """`None` where a run has no such number; its pair is then left out."""
    most: Callable[[Searches], float]
    """The largest value there can be in a study; the least is 0, or there is none of either."""
    better: Better | None = None
    """`None`: neither more nor less is good in itself."""
    confirmatory: bool = True
    """Whether it is in the agent's declared family, whose p values are corrected together."""
    scale: float = 1.0
    """What values are multiplied by when they are written: 100 for percent."""
    digits: int = 2


def share(
    name: str,
    label: str,
    value: Callable[[Search], float | None],
    better: Better | None = None,
    *,
    unit: str = "%",
    confirmatory: bool = True,
) -> Measure:
    """Return a measure from 0 to 1 that is written in percent."""
    return Measure(name, label, unit, value, one, better, confirmatory, scale=100, digits=1)


def one(_: Searches) -> float:
    """Return the largest share."""
    return 1.0


def longest(searches: Searches) -> float:
    """Return the steps of the longest run."""
    return float(searches.longest)


def late_steps(searches: Searches) -> float:
    """Return the late steps of the longest run."""
    return float(max(searches.longest - searches.split, 0))


def all_operators(_: Searches) -> float:
    """Return how many operators Python has."""
    return float(MOST_OPERATORS)


def all_packages(searches: Searches) -> float:
    """Count the packages that any valid program of the study imports."""
    return float(len({name for search in searches.done for name in search.behavior.package_steps}))


def best(searches: Searches) -> float:
    """Return 1 where all final scores are fractions; other scores have no bound."""
    found = [search.behavior.final for search in searches.done]
    inside = all(0 <= value <= 1 for value in found if value is not None)
    return 1.0 if inside else math.inf


def _recurrence(search: Search) -> float | None:
    found = search.behavior.errors_recur
    return None if found is None else float(found)


# What all agents have; each agent's list says where it stands.
BUG_RATE = share("bug_rate", "bug rate", lambda s: s.behavior.bug_rate, "lower")
OPERATORS = Measure(
    "operators",
    "N_eff of operators",
    "operators",
    lambda s: s.behavior.operators_pooled,
    all_operators,
)
PACKAGES = Measure(
    "packages",
    "N_eff of packages",
    "packages",
    lambda s: s.behavior.package_imports_pooled,
    all_packages,
)
LATE_ERRORS = Measure(
    "late_errors",
    "late-phase errors",
    "steps",
    lambda s: s.behavior.late_errors,
    late_steps,
    "lower",
)
BEST_METRIC = Measure(
    "best_metric",
    "best validation metric",
    "",
    lambda s: s.behavior.final,
    best,
    "higher",
    digits=4,
)
ANY_MEDAL = share("any_medal", "any medal", lambda s: earned(s, "any_medal"), "higher")
ABOVE_MEDIAN = share(
    "above_median",
    "above median",
    lambda s: earned(s, "above_median"),
    "higher",
    confirmatory=False,
)
VALID_SUBMISSION = share(
    "valid_submission",
    "valid submission",
    lambda s: earned(s, "valid_submission"),
    "higher",
    confirmatory=False,
)
ERROR_RECURRENCE = share(
    "error_recurrence",
    "error recurrence",
    _recurrence,
    "lower",
    unit="% of runs",
    confirmatory=False,
)


def first_valid(label: str) -> Measure:
    """Return when a run first had something that works, under the agent's word for it."""
    return Measure(
        "first_valid", label, "steps", lambda s: s.behavior.first_valid.step, longest, "lower"
    )
