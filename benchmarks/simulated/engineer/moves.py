"""What an engineer does next by calls of tools: look, write, run, repair, check, better, finish."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Final

from langgraft._core.canonical import JSON
from langgraft.benchmarks.simulated.chat import Reply, ToolUse
from langgraft.benchmarks.simulated.data_scientist.habits import Habit, Repair
from langgraft.benchmarks.simulated.data_scientist.writer import Program, Writer
from langgraft.benchmarks.simulated.engineer.conversation import (
    SCRIPT,
    Conversation,
    Execution,
    Progress,
    Way,
)

PLANNED: Final = 16
"""Programs that are to run before it finishes."""
PATIENCE: Final = 5
"""Failures in a row after which it writes another program."""
CLOSING: Final = 3
"""Steps that it keeps for the end: the best program again, a check, and to say that it is done."""
WAYS: Final = {"cell": 5.0, "command": 3.0, "file": 2.0}
"""How a new program is run: as a cell; written and run in one command; by a call for each."""
NEXT: Final = {"draft": 6.0, "improve": 4.0}
"""What follows a program that ran: another one from scratch, or a change to the best."""
IN_PYTHON: Final = 0.5
"""Chance of a second look at the data, in Python."""
CHECKS: Final = 0.3
"""Chance to have a submission checked that is no first one."""
THINKS: Final = 0.05
"""Chance to write down a thought after a program that ran."""
EDITS: Final = 0.5
"""Chance that a script is repaired by `edit_file`, and not written again with the command that runs it."""
RELAPSE: Final = 0.75
"""What is left of the rate of a habit in new code, once its failure was seen in the conversation."""
REMEMBERED: Final = 0.9
"""Chance that a repair which worked earlier in the conversation is made again at once."""
ASTRAY: Final = 0.1
"""Rate of a first look into a folder that is not there."""
MISNAMES: Final = 0.04
"""Rate of a script run by another name than it has."""
MUSES: Final = 0.015
"""Rate of a reply without a call."""
GARBLES: Final = 0.015
"""Rate of arguments that are no JSON."""

_MEASURED: Final = """\
import pandas as pd

seen = pd.read_csv("input/{train}")
print(seen.shape)
print(seen.isna().mean().round(3).to_dict())
print(seen.nunique().to_dict())
"""


def next_move(now: Conversation, writer: Writer) -> Reply:
    """Do the next thing, now and then in a form that cannot be done."""
    move = _Engineer(now, writer, now.progress()).move()
    call = move.calls[0]
    if call.name == "finish":
        return move
    if writer.dice.coin("muses", MUSES * writer.ignorance):
        return Reply(f"{move.text} I go on with that.")
    if writer.dice.coin("garbles", GARBLES * writer.ignorance):
        return Reply(move.text, (ToolUse(call.name, f'{{"{"".join(call.arguments)[:20]}": '),))
    return move


@dataclass(frozen=True, slots=True)
class _Engineer:
    now: Conversation
    writer: Writer
    progress: Progress

    def move(self) -> Reply:
        progress = self.progress
        if not progress.executions and not progress.waiting:
            return self._look() or self._run_new(self._draft())
        if self.now.left <= CLOSING:
            return self._close()
        if progress.misnamed:
            return _run_script(f"The script is called `{SCRIPT}`. Run that.")
        if progress.waiting:
            return self._run_written()
        return self._go_on()

    def _look(self) -> Reply | None:
        """Look at the data from a shell, then perhaps in Python; `None` where that was done."""
        dice, train = self.writer.dice, self.writer.task.train
        if self.progress.looked == 0 or self.progress.astray:
            astray = not self.progress.astray and self._slips("astray", ASTRAY)
            folder = "data" if astray else "input"
            said = f"Look at the files in `{folder}`, and at how the training table begins."
            return _call(said, "run_bash", command=f"ls {folder}/ && head -n 3 {folder}/{train}")
        if self.progress.looked == 1 and dice.coin("measure", IN_PYTHON):
            said = "Measure the training table: rows, what is missing, how many values there are."
            return _call(said, "run_python", code=_MEASURED.format(train=train))
        return None

    def _go_on(self) -> Reply:
        progress = self.progress
        if not progress.executions or self.now.recovered or progress.failures() > PATIENCE:
            return self._run_new(self._draft())
        last = progress.executions[-1]
        if last.failed:
            return self._mended(last, last.output)
        if progress.validated is False:
            return self._mended(last, progress.complaint)
        return self._better()

    def _better(self) -> Reply:
        """Check what a program that ran has left, think, or take the next one up."""
        ran, dice = len(self.progress.ran), self.writer.dice
        if self.progress.validated is None and (ran == 1 or dice.coin("checks", CHECKS)):
            return _check()
        if ran >= PLANNED:
            return self._close()
        if self.now.calls[-1].tool != "think" and dice.coin("thinks", THINKS):
            thought = f"{ran} programs ran so far. What differs most from them may add most."
            return _call("Before the next program, a thought.", "think", thought=thought)
        best = self.progress.best(self.writer.task.metric)
        if best is None or dice.pick("next", NEXT) == "draft":
            return self._run_new(self._draft())
        writer = experienced(self.writer, self.progress.executions)
        return self._run_new(writer.improve(best.code, self.progress.titles()))

    def _draft(self) -> Program:
        writer = experienced(self.writer, self.progress.executions)
        return writer.draft(self.progress.titles())

    def _run_new(self, program: Program) -> Reply:
        """Have a new program run, in one of the ways there are."""
        way = self.writer.dice.pick("way", WAYS)
        if way == "file":
            return _call(
                program.plan, "edit_file", command="create", path=SCRIPT, file_text=program.code
            )
        return _run("cell" if way == "cell" else "script", program)

    def _mended(self, last: Execution, output: str) -> Reply:
        """Have a program run again that failed, repaired in the way that it was run."""
        done = self.progress.executions
        program = remembering(experienced(self.writer, done), done).repair(last.code, output)
        old = self.progress.files.get(SCRIPT, "")
        edits = self.writer.dice.coin("edits", EDITS) and not self.progress.uneditable
        if last.way == "script" and edits and old:
            return Reply(program.plan, (_edit(old, program.code),))
        return _run(last.way, program)

    def _run_written(self) -> Reply:
        """Run the script that was just written, at times by another name."""
        misnamed = self._slips("misnames", MISNAMES)
        said = f"{self.progress.waiting} Now the script is run."
        return _run_script(said, SCRIPT.replace(".", "s.") if misnamed else SCRIPT)

    def _close(self) -> Reply:
        """See that the best submission lies there and is valid, and finish."""
        best = self.progress.best(self.writer.task.metric)
        if best is None:
            if self.now.left <= 1:
                return _call("There is no time left.", "finish", message="No program has run.")
            return self._run_written() if self.progress.waiting else self._go_on()
        reached = f"{best.metric:g}"
        if self.progress.ran[-1].code != best.code and self.now.left > 1:
            plan = f"The best program so far reached {reached}. Run it again for its submission."
            return _run("cell", Program(plan, best.code))
        if self.progress.validated is None and self.now.left > 1:
            return _check()
        done = f"The best program reached {reached} in validation. Its submission is in place."
        return _call("This is what I hand in.", "finish", message=done)

    def _slips(self, name: str, rate: float) -> bool:
        return self.writer.dice.coin(name, rate * self.writer.ignorance)


def experienced(writer: Writer, done: Sequence[Execution]) -> Writer:
    """Return a writer whose habits are rarer where their failure was seen."""
    habits = tuple(
        replace(habit, rate=habit.rate * RELAPSE)
        if any(_failed_of(habit, each) for each in done)
        else habit
        for habit in writer.habits
    )
    return replace(writer, habits=habits)


def remembering(writer: Writer, done: Sequence[Execution]) -> Writer:
    """Return a writer that mostly knows repairs that worked before; notes go first, as everywhere."""
    worked = {
        habit.name: repair
        for habit, repair in _worked(writer.habits, done)
        if writer.dice.coin(f"remembered/{habit.name}", REMEMBERED)
    }
    known = {**worked, **writer.notes.known}
    return replace(writer, notes=replace(writer.notes, known=known))


def _worked(habits: Iterable[Habit], done: Sequence[Execution]) -> Iterable[tuple[Habit, Repair]]:
    """Yield the habits that a program failed of and a later one that ran has right."""
    for habit in habits:
        at = next((at for at, each in enumerate(done) if _failed_of(habit, each)), len(done))
        if any(not each.failed and habit.may_occur_in(each.code) for each in done[at:]):
            yield habit, habit.repair


def _failed_of(habit: Habit, done: Execution) -> bool:
    return done.failed and habit.occurs_in(done.code) and habit.shown_by(done.output)


def _run(way: Way, program: Program) -> Reply:
    if way == "cell":
        return _call(program.plan, "run_python", code=program.code)
    command = f"cat > {SCRIPT} <<'PROGRAM'\n{program.code.rstrip()}\nPROGRAM\npython {SCRIPT}"
    return _call(program.plan, "run_bash", command=command)


def _run_script(said: str, name: str = SCRIPT) -> Reply:
    return _call(said, "run_bash", command=f"python {name}")


def _check() -> Reply:
    return _call(
        "Check whether the submission has the form that is asked for.", "validate_submission"
    )


def _call(said: str, tool: str, **arguments: JSON) -> Reply:
    return Reply(said, (ToolUse(tool, arguments),))


def _edit(old: str, new: str) -> ToolUse:
    """Replace the one run of lines that changes, or write the script whole where there are several."""
    ours, theirs = old.splitlines(keepends=True), new.splitlines(keepends=True)
    codes = SequenceMatcher(a=ours, b=theirs, autojunk=False).get_opcodes()
    changes = [each for each in codes if each[0] != "equal"]
    _, begin, end, first, last = changes[0] if len(changes) == 1 else ("", 0, 0, 0, 0)
    before = "".join(ours[begin:end])
    passage: dict[str, JSON] = {"old_str": before, "new_str": "".join(theirs[first:last])}
    if before and old.count(before) == 1:
        return ToolUse("edit_file", {"command": "str_replace", "path": SCRIPT, **passage})
    return ToolUse("edit_file", {"command": "create", "path": SCRIPT, "file_text": new})
