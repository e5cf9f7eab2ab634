"""A rule-based learner for ALFWorld. It is no language model, and no result of it is one.

What it can do, and what it does not know, is written down here and in
`docs/simulated-models.md`, and is fixed before a study is run. It reads messages only.

Competence. It reads the goal (six kinds, both wordings of each), what stands around, and its own
earlier turns. It looks for the thing place by place, takes it, brings it to its place and puts
it down, in the words of either dialect. It is not good at seeing that something is wrong: where
a task does not end, it takes the thing up and puts it down again.

Declared ignorance. How well a task is understood belongs to the task, by a hash of its text; the
rest is drawn for an episode by a hash of the seed and that text. At temperature 0 the most
likely option is taken.

=======================  =============================================================
The step that a goal     grasp firm 0.5, unsure 0.15, lost 0.35 of the tasks; thought
asks for besides         of unaided with 0.97, 0.5, 0.05
A treatment left out     with 0.2 the thing is put where it should be treated, and
                         taken up again
Where to look            likely places first 0.7 · in the order of the list 0.2 · in
                         that order, what is closed last 0.1
=======================  =============================================================

Memory. Lines of advice that fit goal and thing come first, read with their polarity (`stances`); then
what the learner said before in the episode. The first successful attempt in the notes is followed with
probability `mimicry`: with its step or without it, and with where it found things, also where it was
for another kind of goal; a step counts as left out only where all that was done is understood. A firm
grasp gives way to an example without the step with probability 0.1 only. Of a followed failure at the
same kind of goal the missing step is seen with 0.5. Notes that say nothing to the point change nothing:
the reply is the same to the letter.

Reflection. It names the step after a success with 0.7; after a failure it sees that the step was
missing with 0.5, beside a success with 0.9; how to search with 0.5. It adds a commonplace with 0.3.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.simulated.alfworld.model import SimulatedALFWorld

__all__ = ["SimulatedALFWorld"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"SimulatedALFWorld": "langgraft.benchmarks.simulated.alfworld.model"}
)
