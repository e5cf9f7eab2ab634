"""A rule-based engineer that works at a competition step by step. It is no language model.

What it can do, what it gets wrong, and what memory does to it is written down in
`docs/simulated-models.md`, and fixed. It reads messages only, and knows no competition. Programs,
their parts, habits, repairs and what notes do are the data scientist's (`data_scientist`); this
package decides what is done next, and with which tool.

moves         by calls of tools: all that was done is in sight
researching   in six fields: three steps are in sight, and its own Research Plan and Status; the
              instructions by which scripts are edited there, and who follows them
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.simulated.engineer.model import SimulatedEngineer

__all__ = ["SimulatedEngineer"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {"SimulatedEngineer": "langgraft.benchmarks.simulated.engineer.model"},
)
