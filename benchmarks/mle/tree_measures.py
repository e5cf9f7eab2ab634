"""What is measured of a tree agent (mle-agent-memory Table 2)."""

from typing import Final

from langgraft.benchmarks.mle import measure as of_all
from langgraft.benchmarks.mle.behaviour.summary import Behavior
from langgraft.benchmarks.mle.measure import Measure, all_operators, all_packages, share
from langgraft.benchmarks.mle.run_record import Search


def _tree(search: Search) -> Behavior:
    assert isinstance(search.behavior, Behavior)
    return search.behavior


TREE_MEASURES: Final = (
    of_all.BUG_RATE,
    of_all.first_valid("first valid node"),
    of_all.OPERATORS,
    of_all.PACKAGES,
    share("code_distance", "valid code distance", lambda s: _tree(s).token_distance),
    of_all.LATE_ERRORS,
    of_all.BEST_METRIC,
    of_all.ANY_MEDAL,
    of_all.ABOVE_MEDIAN,
    of_all.VALID_SUBMISSION,
    of_all.ERROR_RECURRENCE,
    Measure(
        "operators_per_program",
        "N_eff of operators, per program",
        "operators",
        lambda s: _tree(s).operators_per_program,
        all_operators,
        confirmatory=False,
    ),
    Measure(
        "packages_per_program",
        "N_eff of packages, per program",
        "packages",
        lambda s: _tree(s).package_imports_per_program,
        all_packages,
        confirmatory=False,
    ),
    Measure(
        "package_sets",
        "N_eff of packages, once a program",
        "packages",
        lambda s: _tree(s).packages_pooled,
        all_packages,
        confirmatory=False,
    ),
    share(
        "name_distance",
        "valid code distance, names",
        lambda s: _tree(s).name_distance,
        confirmatory=False,
    ),
)
"""The declared family comes first."""
