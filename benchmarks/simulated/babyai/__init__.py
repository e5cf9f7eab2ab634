"""A rule-based learner for BabyAI in words. It is no language model, and no result of it is one.

What it can do, what it does not know, and what memory does to it is written down in
`docs/simulated-models.md`, and was fixed before a study was run. It reads messages only.

habits    what it reads of goals and of what it sees; its declared ignorance: weights by which it acts
          where nothing is said
advice    what notes and attempts written out say to do, or not to do
model     the chat model, and what it does next
reflect   what it makes of finished attempts, and in which words
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.simulated.babyai.model import SimulatedBabyAI

__all__ = ["SimulatedBabyAI"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"SimulatedBabyAI": "langgraft.benchmarks.simulated.babyai.model"}
)
