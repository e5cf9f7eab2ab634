"""What an engineer does next: look, write, run, repair, validate, better, finish."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.simulated.chat import Reply, ToolUse
from langgraft.benchmarks.simulated.data_scientist.desk import Desk
from langgraft.benchmarks.simulated.engineer.bench import Bench, Tried, Way
from langgraft.benchmarks.simulated.engineer.conversation import Conversation
from langgraft.benchmarks.simulated.engineer.editing import edit
from langgraft.benchmarks.simulated.engineer.experience import experienced, remembering
from langgraft.benchmarks.simulated.engineer.looking import look
from langgraft.benchmarks.simulated.engineer.shell import SCRIPT, running, writing_and_running
from langgraft.benchmarks.simulated.engineer.writing import Written, drafted, improved, repaired

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
CHECKS: Final = 0.3
"""Chance to have a submission checked that is no first one."""
THINKS: Final = 0.05
"""Chance to write down a thought after a program that ran."""
EDITS: Final = 0.5
"""Chance that a script is repaired by `edit_file`, and not written again with the command that runs it."""
MISNAMES: Final = 0.04
"""Rate of a script run by another name than it has."""
MUSES: Final = 0.015
"""Rate of a reply without a call."""
GARBLES: Final = 0.015
"""Rate of arguments that are no JSON."""


def next_move(conversation: Conversation, desk: Desk, bench: Bench) -> Reply:
    """Do the next thing, now and then in a form that cannot be done."""
    move = _Engineer(conversation, desk, bench).move()
    if move.calls[0].name == "finish":
        return move
    if desk.dice.lucky("muses", MUSES * desk.ignorance):
        return Reply(f"{move.text} I go on with that.")
    if desk.dice.lucky("garbles", GARBLES * desk.ignorance):
        call = move.calls[0]
        return Reply(move.text, (ToolUse(call.name, f'{{"{"".join(call.arguments)[:20]}": '),))
    return move


@dataclass(frozen=True, slots=True)
class _Engineer:
    now: Conversation
    desk: Desk
    bench: Bench

    def move(self) -> Reply:
        bench = self.bench
        if not bench.tried and not bench.waiting:
            return self._begin()
        if self.now.left <= CLOSING:
            return self._close()
        if bench.misnamed:
            return _call(
                f"The script is called `{SCRIPT}`. Run that.", "run_bash", command=running()
            )
        if bench.waiting:
            return self._run_script()
        return self._go_on()

    def _begin(self) -> Reply:
        """Look at the data, from a shell and perhaps in Python, then write a first program."""
        return look(self.desk, self.bench) or self._written(self._draft())

    def _go_on(self) -> Reply:
        bench = self.bench
        if not bench.tried or self.now.recovered or bench.failures() > PATIENCE:
            return self._written(self._draft())
        last = bench.tried[-1]
        if last.failed:
            return self._mended(last, last.output)
        if bench.validated is False:
            return self._mended(last, bench.complaint)
        return self._bettered()

    def _bettered(self) -> Reply:
        """Check what a program that ran has left, think, or take the next one up."""
        ran = sum(not each.failed for each in self.bench.tried)
        dice = self.desk.dice
        if self.bench.validated is None and (ran == 1 or dice.lucky("checks", CHECKS)):
            return _check()
        if ran >= PLANNED:
            return self._close()
        if self.now.turns[-1].tool != "think" and dice.lucky("thinks", THINKS):
            thought = f"{ran} programs ran so far. What differs most from them may add most."
            return _call("Before the next program, a thought.", "think", thought=thought)
        best = self.bench.best(self.desk.task.metric)
        if best is None or dice.pick("next", NEXT) == "draft":
            return self._written(self._draft())
        desk = experienced(self.desk, self.bench.tried)
        return self._written(improved(desk, best.code, self.bench.titles()))

    def _draft(self) -> Written:
        desk = experienced(self.desk, self.bench.tried)
        return drafted(desk, self.bench.titles())

    def _written(self, program: Written) -> Reply:
        """Have a new program run, in one of the ways there are."""
        way = self.desk.dice.pick("way", WAYS)
        if way == "file":
            made = {"command": "create", "path": SCRIPT, "file_text": program.code}
            return Reply(program.plan, (ToolUse("edit_file", made),))
        return _run("cell" if way == "cell" else "script", program)

    def _mended(self, last: Tried, output: str) -> Reply:
        """Have a program run again that failed, repaired in the way that it was run."""
        desk = remembering(experienced(self.desk, self.bench.tried), self.bench.tried)
        program = repaired(desk, last.code, output)
        old = self.bench.files.get(SCRIPT, "")
        edits = self.desk.dice.lucky("edits", EDITS) and not self.bench.uneditable
        if last.way == "script" and edits and old:
            return Reply(program.plan, (edit(SCRIPT, old, program.code),))
        return _run(last.way, program)

    def _run_script(self) -> Reply:
        """Run the script that was just written, at times by another name."""
        name = SCRIPT
        if self.desk.dice.lucky("misnames", MISNAMES * self.desk.ignorance):
            name = SCRIPT.replace(".", "s.")
        return _call(
            f"{self.bench.waiting} Now the script is run.", "run_bash", command=running(name)
        )

    def _close(self) -> Reply:
        """See that the best submission lies there and is valid, and finish."""
        best = self.bench.best(self.desk.task.metric)
        placed = self.bench.in_place()
        if best is None:
            return self._go_on_failing()
        if placed is not None and placed.code != best.code and self.now.left > 1:
            plan = (
                f"The best program so far reached {best.metric:g}. Run it again for its submission."
            )
            return _run("cell", Written(plan, best.code))
        if self.bench.validated is None and self.now.left > 1:
            return _check()
        done = (
            f"The best program reached {best.metric:g} in validation. Its submission is in place."
        )
        return _call("This is what I hand in.", "finish", message=done)

    def _go_on_failing(self) -> Reply:
        if self.now.left > 1 and self.bench.waiting:
            return self._run_script()
        if self.now.left > 1:
            return self._go_on()
        return _call("There is no time left.", "finish", message="No program has run.")


def _run(way: Way, program: Written) -> Reply:
    if way == "cell":
        return _call(program.plan, "run_python", code=program.code)
    return _call(program.plan, "run_bash", command=writing_and_running(program.code))


def _check() -> Reply:
    said = "Check whether the submission has the form that is asked for."
    return Reply(said, (ToolUse("validate_submission"),))


def _call(said: str, tool: str, **arguments: str) -> Reply:
    told: Mapping[str, str] = arguments
    return Reply(said, (ToolUse(tool, dict(told)),))
