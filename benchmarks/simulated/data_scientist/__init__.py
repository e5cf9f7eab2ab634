"""A rule-based writer of machine-learning programs. It is no language model, nor is any result of it.

What it can do, what it gets wrong, and what memory does to it is written down in
`docs/simulated-models.md`, and fixed. It reads messages only, and knows no competition.

tasks       the prompts that it knows, and the competition that they tell of
programs    programs in six sections, put together from `parts.md`
notes       its declared ignorance, what it writes wrongly, as `habits.md` has it; and what recalled notes
            say for or against a fragment
writer      a draft, an improvement, a repair, by all of these
model       what it is asked, and what it says of a program that ran

A draw is a hash of the seed, the conversation without notes, the sample's name in the call's
metadata, and the question. At temperature 0 the most likely option is taken.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.simulated.data_scientist.model import SimulatedDataScientist

__all__ = ["SimulatedDataScientist"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {"SimulatedDataScientist": "langgraft.benchmarks.simulated.data_scientist.model"},
)
