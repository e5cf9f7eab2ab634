"""A rule-based writer of machine-learning programs. It is no language model, nor is any result of it.

What it can do, and what it gets wrong, is written down here and in `docs/simulated-models.md`,
and fixed. It reads messages only, and knows no competition.

Competence. It answers the tree's prompts (draft, improve, debug, review) and those of diagnose and
judge. It writes complete programs for four forms of competition: a table with a target, a column of
text, pictures with labels, and pictures that are to become others. The form, the columns and the
metric it reads from the description and the preview of the data (`tasks`). A program has six sections
(data, features, model, metric, validation, submission); for features and models there are several
parts (`parts.md`), of which a draft takes one each. An improvement exchanges one part, or joins two
models, and carries on the rest to the letter. A repair changes a fragment (`writer`).

Declared ignorance. Habits (`habits.md`): fragments as they were written for libraries of years ago,
names that it guesses, settings without end. Where a program may have one, it has it with the habit's
rate, times `ignorance`, unless an earlier program has the fragment right. All of them fail in the
sandbox. A try at a repair is the right one with probability 0.65, or 0.8 where the error itself says
what to write; else a wrong one, which fails too.

Memory (`notes`). What stands between the marks of recalled notes is read entry by entry, and what an
entry says for or against a fragment is told by the words around it:

* An entry that holds the words of a habit and advises one of its repairs: that repair is what it
  writes, right or wrong, or the mistake itself; of several entries the first counts.
* A repair that one advises against is not tried.
* One that tells of the habit's failure, and no way out: it is made a tenth as often.
* One that tells of a limit on time or memory: models of the package, or of the class, it names are
  chosen a twentieth as often, other heavy ones a third.
* Parts whose use an entry explains are liked twice as well, those it merely warns of half.
* Each entry that tells something sharpens all preferences: weights are taken to the power
  1 + 0.06 times their number, at most 10. More notes, fewer different programs.
* Any other text changes nothing, to the letter: notes are no part of what draws are made from.

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
