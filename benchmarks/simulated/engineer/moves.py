"""Work by calls of tools: the conversation read, and what is done next.

Read are the task, what was done, what came of it, what is left. Done is one of: look, write, run,
repair, check, better, finish.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraft._core.canonical import JSON
from langgraft.benchmarks.simulated.chat import Reply, ToolUse
from langgraft.benchmarks.simulated.data_scientist.model import reported, went_wrong
from langgraft.benchmarks.simulated.data_scientist.notes import Habit, Repair
from langgraft.benchmarks.simulated.data_scientist.programs import sections_of, titles_in
from langgraft.benchmarks.simulated.data_scientist.tasks import FilledPrompt, Metric, read_prompt
from langgraft.benchmarks.simulated.data_scientist.writer import Program, Writer

Way: TypeAlias = Literal["cell", "script"]
"""How a program is run: as a cell of the interpreter, or as a script from a shell."""

SCRIPT: Final = "solution.py"
"""The script that it keeps its program in."""
LEFT_OUT: Final = "left out"
"""Stands where something is no longer shown."""
HIGHER: Final[frozenset[Metric]] = frozenset({"auc", "accuracy", "kappa", "f1", "r2"})
"""Metrics of which more is better."""
_UNKNOWN_LEFT: Final = 99
"""Steps that are taken to be left where nothing says how many."""
_WRITTEN: Final = re.compile(r"^cat > (\S+) <<'PROGRAM'\n(.*?)^PROGRAM$", re.MULTILINE | re.DOTALL)
_RUN: Final = re.compile(r"^(?:time )?python3? (\S+\.py)$", re.MULTILINE)
_INVALID: Final = re.compile(
    r"\bnot valid\b|\binvalid\b|\babsent\b|^not done\b", re.IGNORECASE | re.MULTILINE
)
_REFUSED: Final = re.compile(r"\bnot (?:found|done|there)\b|\bno such\b|\boccurs\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool, what was said beside it, and what it showed."""

    said: str
    tool: str
    arguments: Mapping[str, str]
    """Those that are texts."""
    shown: str
    """What it showed; empty where that is not shown."""


@dataclass(frozen=True, slots=True)
class Execution:
    """A program that was run."""

    code: str
    way: Way
    output: str
    failed: bool
    metric: float | None


@dataclass(slots=True)
class Progress:
    """What was done so far, summed up call by call."""

    looked: int = 0
    """How often the data was looked at."""
    astray: bool = False
    """Whether the last look failed."""
    files: dict[str, str] = field(default_factory=dict)
    """Scripts as they were last written."""
    executions: list[Execution] = field(default_factory=list)
    waiting: str = ""
    """A plan whose script was written, and not run yet."""
    misnamed: bool = False
    """Whether a script was just run by a name that no file has."""
    uneditable: bool = False
    """Whether the last change of a file was refused."""
    validated: bool | None = None
    """What the submission of the last program that ran was found to be; `None`: not looked at."""
    complaint: str = ""
    """What was found wrong with it."""

    @property
    def ran(self) -> list[Execution]:
        """The programs that ran; the last one wrote the submission that lies there."""
        return [each for each in self.executions if not each.failed]

    def failures(self) -> int:
        """Return how many programs failed since one ran."""
        outcomes = [each.failed for each in reversed(self.executions)]
        return outcomes.index(False) if False in outcomes else len(outcomes)

    def titles(self) -> str:
        """Name what was tried, for choices to differ from it."""
        return "\n".join(dict.fromkeys(titles_in(each.code for each in self.executions)))

    def add(self, call: Call) -> None:
        """Take in one more call."""
        self.misnamed = self.uneditable = self.astray = False
        match call.tool:
            case "run_python":
                self._ran(call, call.arguments.get("code", ""), "cell")
            case "run_bash":
                self._commanded(call, call.arguments.get("command", ""))
            case "edit_file":
                self._edited(call)
            case "validate_submission":
                self.validated = not says_invalid(call.shown)
                self.complaint = "" if self.validated else call.shown
            case _:
                pass

    def _commanded(self, call: Call, command: str) -> None:
        self.files.update(_WRITTEN.findall(command))
        run = _RUN.findall(_WRITTEN.sub("", command))
        if not run:
            self._looked(call)
        elif run[-1] in self.files:
            self._ran(call, self.files[run[-1]], "script")
        else:
            self.misnamed = went_wrong(call.shown)
            self.waiting = self.waiting or call.said

    def _edited(self, call: Call) -> None:
        path, how = call.arguments.get("path", SCRIPT), call.arguments.get("command")
        old, text = call.arguments.get("old_str", ""), self.files.get(path, "")
        if how == "create":
            self.files[path] = call.arguments.get("file_text", "")
        elif how != "str_replace":
            return
        elif not old or text.count(old) != 1 or _REFUSED.search(call.shown):
            self.uneditable = True
            return
        else:
            self.files[path] = text.replace(old, call.arguments.get("new_str", ""))
        self.waiting = call.said

    def _ran(self, call: Call, code: str, way: Way) -> None:
        self.waiting = ""
        if not sections_of(code):
            self._looked(call)
            return
        metric, wrong = reported(call.shown), went_wrong(call.shown)
        if LEFT_OUT in code or (metric is None and not wrong and LEFT_OUT in call.shown):
            return  # what it was, or what came of it, is no longer shown
        failed = wrong or metric is None
        self.executions.append(Execution(code, way, call.shown, failed, metric))
        self.validated, self.complaint = None, ""

    def _looked(self, call: Call) -> None:
        self.looked += 1
        self.astray = went_wrong(call.shown)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What an engineer has before it."""

    asked: FilledPrompt
    calls: tuple[Call, ...]
    left: int
    """Steps that are left, the next one included."""
    recovered: bool
    """Whether the last message says that it went in circles."""
    texts: tuple[str, ...]
    """All that was said and called."""

    def progress(self) -> Progress:
        """Sum up what was done."""
        progress = Progress()
        for call in self.calls:
            progress.add(call)
        return progress


class Measured(Protocol):
    """What may have reached a validation metric."""

    @property
    def metric(self) -> float | None:
        """The metric; `None` where there is none."""


M = TypeVar("M", bound=Measured)


def best_of(tried: Iterable[M], metric: Metric) -> M | None:
    """Return what has the best metric, the first of them."""
    sign = -1 if metric in HIGHER else 1
    ran = [each for each in tried if each.metric is not None]
    return min(ran, key=lambda each: sign * (each.metric or 0.0), default=None)


def says_invalid(shown: str) -> bool:
    """Say whether a check found something wrong with a submission."""
    return _INVALID.search(shown) is not None


def read_conversation(messages: Sequence[BaseMessage]) -> Conversation | None:
    """Read a conversation; `None` where none of its messages is the task of an engineer."""
    humans = (each.text for each in messages if isinstance(each, HumanMessage))
    asked = next(filter(None, (read_prompt(text, ("chain_task",)) for text in humans)), None)
    if asked is None:
        return None
    last = messages[-1].text if isinstance(messages[-1], HumanMessage) else ""
    recovered = read_prompt(last, ("chain_recovery",)) is not None
    # Blanks of a call's arguments are no part of what draws are made from, nor are names of calls.
    called = [
        json.dumps([call["name"], call["args"]])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    ]
    texts = (*(message.text for message in messages), *called)
    calls = tuple(_calls(messages))
    return Conversation(asked, calls, steps_left(messages[-1].text), recovered, texts)


def _calls(messages: Sequence[BaseMessage]) -> list[Call]:
    """Pair calls with what they showed; replies that are no call, or none that was read, are left out."""
    shown = {each.tool_call_id: each.text for each in messages if isinstance(each, ToolMessage)}
    calls = []
    for message in messages:
        for call in message.tool_calls[:1] if isinstance(message, AIMessage) else ():
            texts = {key: value for key, value in call["args"].items() if isinstance(value, str)}
            calls.append(Call(message.text, call["name"], texts, shown.get(str(call["id"]), "")))
    return calls


def steps_left(text: str) -> int:
    """Return the steps that a prompt says are left; many where it does not say."""
    bounds = read_prompt(text, ("bounds",))
    left = "" if bounds is None else bounds.part("left")
    return int(left) if left.isdecimal() else _UNKNOWN_LEFT


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
        best = best_of(self.progress.ran, self.writer.task.metric)
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
        best = best_of(self.progress.ran, self.writer.task.metric)
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
