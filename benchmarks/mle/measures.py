"""What is compared between conditions, for each kind of agent: the declared family comes first."""

from collections.abc import Mapping
from typing import Final

from langgraft.benchmarks.mle.measure import Measure
from langgraft.benchmarks.mle.run_set import Kind, Searches
from langgraft.benchmarks.mle.step_measures import CHAIN_MEASURES, MLAB_MEASURES
from langgraft.benchmarks.mle.tree_measures import TREE_MEASURES

MEASURES: Final[Mapping[Kind, tuple[Measure, ...]]] = {
    "tree": TREE_MEASURES,
    "chain": CHAIN_MEASURES,
    "mlab": MLAB_MEASURES,
}
"""A measure that means nothing for an agent is in neither its list nor its family."""


def measures_of(searches: Searches) -> tuple[Measure, ...]:
    """Return what is measured of an agent."""
    return MEASURES[searches.kind]


def measure_named(searches: Searches, name: str) -> Measure:
    """Return a measure of an agent."""
    return next(each for each in measures_of(searches) if each.name == name)
