"""A rule-based engineer that works at a competition step by step. It is no language model.

What it can do, and what it gets wrong, is written down here and in `docs/simulated-models.md`,
and fixed. It reads messages only, and knows no competition. Programs, their parts, habits, repairs
and what notes do are the data scientist's (`data_scientist`): this package decides what is done
next, and with which tool.

By calls of tools (`moves`). It looks at the data; writes a whole program and runs it as a cell, as
a script that one command writes and runs, or as a file and then a command; repairs what failed, in
the way that it was run; has a first submission checked and later ones now and then; and goes on
with another program from scratch (0.6) or a change to the best one. With three steps left, or
16 programs that ran, it sees that the best submission lies there and finishes. After six failures
in a row, or where it reads that it went in circles, it writes another program. Beside each call it says why;
beside a run, what the program is, or what was replaced by what.

In six fields (`researching`). The same, with scripts that are edited after an instruction. It sees
three steps, and knows more only from its Research Plan and Status (`window`): which scripts there
are, of what parts, and what they reached; no word of what went wrong. An instruction (`edits`)
names the parts to be written, the facts of the task, and what notes tell of these parts; or the
repair. Who does the edit sees the script and the instruction, writes the parts, and has
the habits. Repairs are chosen by the error and the lines in sight.

Declared ignorance. The habits of the data scientist, but for rounds without end, at their rates
times `ignorance`. In a conversation, a habit whose failure is still in sight is made again in new
code at 0.75 of its rate (`moves.RELAPSE`): it learns little from its own mistakes. A repair
that worked before is made again at once with probability 0.9; else a try is right with 0.65, or 0.8
where the error says what to write. In six fields it remembers neither. What a condensation or the
window leaves out it does not know. Slips, times `ignorance`: a script run by another name than it
has, 0.04; a first look into a folder that is not there, 0.1; arguments that are no JSON, 0.015;
a reply without a call, 0.015.

Memory. As for the data scientist: an entry with a habit's words and one of its repairs is written,
right or wrong, in new code and in repairs; a habit that is named alone is a tenth as frequent;
entries that tell something sharpen preferences. Text that tells nothing changes nothing, to the
letter. Slips do not heed notes.

A draw is a hash of the seed, the conversation without notes, the sample's name in the call's
metadata, and the question. At temperature 0 the most likely option is taken.
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
