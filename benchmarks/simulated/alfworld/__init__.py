"""A rule-based learner for ALFWorld. It is no language model, and no result of it is one.

What it can do, what it does not know, and what memory does to it is written down in
`docs/simulated-models.md`, and was fixed before a study was run. It reads messages only.

habits   what it reads of goals and of what it sees; its declared ignorance: weights by which it acts
         where nothing is said
play     an episode as it knows it, also of attempts written out, and what it does next
advice   what notes say to do, or not to do
model    the chat model; what it makes of finished attempts, and in which words
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.simulated.alfworld.model import SimulatedALFWorld

__all__ = ["SimulatedALFWorld"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"SimulatedALFWorld": "langgraft.benchmarks.simulated.alfworld.model"}
)
