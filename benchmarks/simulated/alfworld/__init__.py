"""A rule-based learner for ALFWorld. It is no language model, and no result of it is one."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.simulated.alfworld.model import SimulatedALFWorld

__all__ = ["SimulatedALFWorld"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"SimulatedALFWorld": "langgraft.benchmarks.simulated.alfworld.model"}
)
