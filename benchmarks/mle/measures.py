"""What is compared between conditions: one number of a search each, with its bounds."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langgraft.benchmarks.mle.behaviour.diversity import MOST_OPERATORS
from langgraft.benchmarks.mle.outcomes import earned
from langgraft.benchmarks.mle.searches import Search, Searches

Better: TypeAlias = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a search."""

    name: str
    label: str
    unit: str
    value: Callable[[Search], float | None]
    """`None` where a search has no such number; its pair is then left out."""
    most: Callable[[Searches], float]
    """The largest value there can be in a study; the least is 0, or there is none of either."""
    better: Better | None = None
    """`None`: neither more nor less is good in itself."""
    confirmatory: bool = True
    """Whether it is in the declared family, whose p values are corrected together."""
    scale: float = 1.0
    """What values are multiplied by when they are written: 100 for percent."""
    digits: int = 2


def _one(_: Searches) -> float:
    return 1.0


def _longest(searches: Searches) -> float:
    return float(searches.longest)


def _late_steps(searches: Searches) -> float:
    return float(max(searches.longest - searches.split, 0))


def _operators(_: Searches) -> float:
    return float(MOST_OPERATORS)


def _all_packages(searches: Searches) -> float:
    """Count the packages that any valid program of the study imports."""
    return float(len({name for search in searches.done for name in search.behavior.package_steps}))


def _best(searches: Searches) -> float:
    """Return 1 where all final scores are fractions; other scores have no bound."""
    found = [search.behavior.final for search in searches.done]
    inside = all(0 <= value <= 1 for value in found if value is not None)
    return 1.0 if inside else math.inf


def _recurrence(search: Search) -> float | None:
    found = search.behavior.errors_recur
    return None if found is None else float(found)


MEASURES: Final = (
    Measure(
        "bug_rate",
        "bug rate",
        "%",
        lambda s: s.behavior.bug_rate,
        _one,
        "lower",
        scale=100,
        digits=1,
    ),
    Measure(
        "first_valid",
        "first valid node",
        "steps",
        lambda s: s.behavior.first_valid.step,
        _longest,
        "lower",
    ),
    Measure(
        "operators",
        "N_eff of operators",
        "operators",
        lambda s: s.behavior.operators_pooled,
        _operators,
    ),
    Measure(
        "packages",
        "N_eff of packages",
        "packages",
        lambda s: s.behavior.package_imports_pooled,
        _all_packages,
    ),
    Measure(
        "code_distance",
        "valid code distance",
        "%",
        lambda s: s.behavior.token_distance,
        _one,
        scale=100,
        digits=1,
    ),
    Measure(
        "late_errors",
        "late-phase errors",
        "steps",
        lambda s: s.behavior.late_errors,
        _late_steps,
        "lower",
    ),
    Measure(
        "best_metric",
        "best validation metric",
        "",
        lambda s: s.behavior.final,
        _best,
        "higher",
        digits=4,
    ),
    Measure(
        "any_medal",
        "any medal",
        "%",
        lambda s: earned(s, "any_medal"),
        _one,
        "higher",
        scale=100,
        digits=1,
    ),
    Measure(
        "above_median",
        "above median",
        "%",
        lambda s: earned(s, "above_median"),
        _one,
        "higher",
        confirmatory=False,
        scale=100,
        digits=1,
    ),
    Measure(
        "valid_submission",
        "valid submission",
        "%",
        lambda s: earned(s, "valid_submission"),
        _one,
        "higher",
        confirmatory=False,
        scale=100,
        digits=1,
    ),
    Measure(
        "error_recurrence",
        "error recurrence",
        "% of runs",
        _recurrence,
        _one,
        "lower",
        confirmatory=False,
        scale=100,
        digits=1,
    ),
    Measure(
        "operators_per_program",
        "N_eff of operators, per program",
        "operators",
        lambda s: s.behavior.operators_per_program,
        _operators,
        confirmatory=False,
    ),
    Measure(
        "packages_per_program",
        "N_eff of packages, per program",
        "packages",
        lambda s: s.behavior.package_imports_per_program,
        _all_packages,
        confirmatory=False,
    ),
    Measure(
        "package_sets",
        "N_eff of packages, once a program",
        "packages",
        lambda s: s.behavior.packages_pooled,
        _all_packages,
        confirmatory=False,
    ),
    Measure(
        "name_distance",
        "valid code distance, names",
        "%",
        lambda s: s.behavior.name_distance,
        _one,
        confirmatory=False,
        scale=100,
        digits=1,
    ),
)
"""All measures; the declared family comes first."""
