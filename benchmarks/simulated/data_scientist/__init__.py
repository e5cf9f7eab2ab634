"""A rule-based writer of machine-learning programs. It is no language model."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.simulated.data_scientist.model import SimulatedDataScientist

__all__ = ["SimulatedDataScientist"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {"SimulatedDataScientist": "langgraft.benchmarks.simulated.data_scientist.model"},
)
