"""Work in six fields: the prompt read, and what is done next by who sees only the last steps.

The Research Plan and Status is all that a researcher knows of its work beyond the last steps: which
scripts there are, what they are made of and what they reached, and no word of what went wrong.

Scripts are edited by whoever is told to: the instruction is all that passes from one to the other, with the
parts that are wanted, the facts of the task, what notes tell of these parts, or one repair.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from langgraft._core.canonical import JSON
from langgraft.benchmarks.simulated.conversation import Dice
from langgraft.benchmarks.simulated.data_scientist.model import reported, went_wrong
from langgraft.benchmarks.simulated.data_scientist.notes import (
    Habit,
    Repair,
    habits_for,
    read_notes,
)
from langgraft.benchmarks.simulated.data_scientist.programs import (
    MEAN_OF,
    SLOTS,
    carried_on,
    reassembled,
    sections_of,
    title_of,
)
from langgraft.benchmarks.simulated.data_scientist.tasks import FilledPrompt, Task, read_prompt
from langgraft.benchmarks.simulated.data_scientist.writer import QUIET, Writer, listed_packages
from langgraft.benchmarks.simulated.engineer.moves import (
    ASTRAY,
    CHECKS,
    CLOSING,
    GARBLES,
    IN_PYTHON,
    MISNAMES,
    NEXT,
    PLANNED,
    best_of,
    says_invalid,
    steps_left,
)
from langgraft.nodes.mlab import tools
from langgraft.nodes.mlab.tools import (
    ACTION,
    ACTION_INPUT,
    FACT_CHECK,
    FIELDS,
    PLAN,
    REFLECTION,
    THOUGHT,
)

_STEP: Final = re.compile(r"^## Step \d+$", re.MULTILINE)
_FIELD: Final = re.compile(rf"^({'|'.join(map(re.escape, FIELDS))}): ?", re.MULTILINE)
_SEEN: Final = re.compile(r"^Observation:\n```\n(.*?)\n```\s*\Z", re.MULTILINE | re.DOTALL)
_SCRIPT: Final = re.compile(
    r"(train_\d+\.py) \(([^|)]*) \| ([^|)]*) \| ([^|)]*)\)"
    r" (?:reached (\S+?)|failed (\d+) times|is new)(?=; |\. )"
)
_NAMED: Final = re.compile(r"(At work|In place|Checked|Looks): ([\w.]+?)\.(?=\s|$)")
_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Step:
    """A step as the window shows it."""

    plan: str
    """Its Research Plan and Status."""
    thought: str
    action: str
    shown: str
    input: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """What a researcher has before it."""

    asked: FilledPrompt
    steps: tuple[Step, ...]
    left: int
    """Steps that are left, the next one included."""

    @property
    def last(self) -> Step:
        """The last step; an empty one where none was done."""
        return self.steps[-1] if self.steps else Step("", "", "", "")


def read_window(text: str) -> Window | None:
    """Read a prompt; `None` where it is another one."""
    asked, turn = read_prompt(text, ("mlab_task",)), read_prompt(text, ("mlab_turn",))
    if asked is None or turn is None:
        return None
    shown = _STEP.split(turn.part("steps"))[1:]
    return Window(asked, tuple(map(_step, shown)), steps_left(turn.part("bounds")))


def _step(text: str) -> Step:
    seen = _SEEN.search(text)
    said = text[: seen.start()] if seen else text
    pieces = _FIELD.split(said)
    fields = dict(zip(pieces[1::2], (each.strip() for each in pieces[2::2]), strict=False))
    return Step(
        plan=fields.get(PLAN, ""),
        thought=fields.get(THOUGHT, ""),
        action=fields.get(ACTION, ""),
        shown=seen.group(1) if seen else "",
        input=_object(fields.get(ACTION_INPUT, "")),
    )


def _object(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


@dataclass(frozen=True, slots=True)
class Script:
    """A script, as the plan keeps it."""

    name: str
    titles: tuple[str, str, str]
    """Of its features, model and validation."""
    metric: float | None = None
    failures: int = 0

    def written(self) -> str:
        """Write it as the plan has it."""
        state = "is new"
        if self.metric is not None:
            state = f"reached {self.metric:g}"
        elif self.failures:
            state = f"failed {self.failures} times"
        return f"{self.name} ({' | '.join(self.titles)}) {state}"


@dataclass(frozen=True, slots=True)
class Status:
    """How far the work is."""

    scripts: dict[str, Script] = field(default_factory=dict)
    at_work: str = ""
    """The script that is written, run or repaired."""
    in_place: str = ""
    """The script whose submission lies there."""
    checked: bool = False
    """Whether that was found to be valid."""
    looks: int = 0
    """How often the data was looked at."""

    def written(self) -> str:
        """Write the plan."""
        listed = "; ".join(each.written() for each in self.scripts.values()) or _NONE
        return (
            "Look at the data, get a script to run, try other features and models, and hand in the"
            f" best. Scripts: {listed}. At work: {self.at_work or _NONE}. In place:"
            f" {self.in_place or _NONE}. Checked: {'yes' if self.checked else 'no'}. Looks:"
            f" {self.looks}."
        )

    def with_script(self, script: Script) -> "Status":
        """Return the status with a script as it is now."""
        return replace(self, scripts={**self.scripts, script.name: script})

    def current(self) -> Script | None:
        """Return the script at work."""
        return self.scripts.get(self.at_work)

    def attempts(self) -> str:
        """Name what was tried, for choices to differ from it."""
        return "\n".join(title for each in self.scripts.values() for title in each.titles)

    def new_name(self) -> str:
        """Return a name that no script has."""
        return f"train_{len(self.scripts) + 1}.py"


def read_status(plan: str) -> Status:
    """Read a plan that `Status.written` wrote."""
    scripts = {}
    for name, features, model, validation, metric, failures in _SCRIPT.findall(plan):
        titles = (features, model, validation)
        reached = float(metric) if metric else None
        scripts[name] = Script(name, titles, reached, int(failures or 0))
    named = {key: "" if value == _NONE else value for key, value in _NAMED.findall(plan)}
    looks = named.get("Looks", "")
    return Status(
        scripts=scripts,
        at_work=named.get("At work", ""),
        in_place=named.get("In place", ""),
        checked=named.get("Checked") == "yes",
        looks=int(looks) if looks.isdecimal() else 0,
    )


PATIENCE: Final = 3
"""Failures of a script after which another one is written."""
INSPECTS: Final = 0.08
"""Chance to look at a script's lines before it is repaired."""
UNDOES: Final = 0.1
"""Chance to take a repair back that was no good, and to look at the lines then."""
_TAKEN_OUT: Final = re.compile(r"^-.*$", re.MULTILINE)
_TITLED: Final[tuple[str, ...]] = ("Features", "Model", "Validation")


def next_reply(window: Window, writer: Writer) -> str:
    """Reply with the six fields of the next step."""
    status = _updated(read_status(window.last.plan), window.last)
    move = _Researcher(window, writer, status).move()
    written = json.dumps(move.input, ensure_ascii=False)
    garbled = writer.dice.coin("garbles", GARBLES * writer.ignorance)
    if move.action != tools.FINAL_ANSWER and garbled:
        written = written[: len(written) // 2]
    fields = {
        REFLECTION: _reflection(window.last) if window.steps else "Nothing was done yet.",
        PLAN: move.status.written(),
        FACT_CHECK: "Metrics are as the scripts printed them. What is said of causes is a guess.",
        THOUGHT: move.thought,
        ACTION: move.action,
        ACTION_INPUT: written,
    }
    return "\n".join(f"{name}: {text}" for name, text in fields.items())


def _updated(status: Status, last: Step) -> Status:
    """Return the status after the last step was observed."""
    name = str(last.input.get("script_name", ""))
    script = status.scripts.get(name)
    if last.action in (tools.LIST_FILES, tools.UNDERSTAND) and not _refused(last):
        return replace(status, looks=status.looks + 1)
    if last.action == tools.VALIDATE:
        return replace(status, checked=not says_invalid(last.shown))
    if last.action != tools.EXECUTE or script is None:
        return status
    metric = reported(last.shown)
    if went_wrong(last.shown) or metric is None:
        return status.with_script(replace(script, failures=script.failures + 1))
    ran = status.with_script(replace(script, metric=metric, failures=0))
    return replace(ran, in_place=name, checked=False)


def _refused(step: Step) -> bool:
    return step.shown.startswith("Not done")


def _reflection(last: Step) -> str:
    if went_wrong(last.shown) or _refused(last):
        shown = next((line for line in reversed(last.shown.splitlines()) if "Error" in line), "")
        return f"It failed. {shown}".strip()
    metric = reported(last.shown)
    return "It was done." if metric is None else f"It ran, and reached {metric:g} in validation."


@dataclass(frozen=True, slots=True)
class _Move:
    thought: str
    action: str
    input: dict[str, JSON]
    status: Status


@dataclass(frozen=True, slots=True)
class _Researcher:
    window: Window
    writer: Writer
    status: Status

    @property
    def last(self) -> Step:
        return self.window.last

    def move(self) -> _Move:
        current = self.status.current()
        if self.window.left <= 1:
            return self._finish()
        if current is None:
            return self._look() or self._draft()
        if self.window.left <= CLOSING and self.best():
            return self._close()
        if self._failed(current):
            return self._repair(current)
        if current.metric is None or self._just_written():
            return self._execute(current)
        if self.last.action == tools.VALIDATE and says_invalid(self.last.shown):
            return self._repair(current)
        return self._better()

    def _just_written(self) -> bool:
        return self.last.action == tools.EDIT and not _refused(self.last)

    def _failed(self, current: Script) -> bool:
        """Say whether the script at work failed and was not changed since."""
        for step in reversed(self.window.steps):
            if step.action == tools.EDIT and not _refused(step):
                return False
            if step.action == tools.EXECUTE and step.input.get("script_name") == current.name:
                return current.metric is None and current.failures > 0
        return False

    def _look(self) -> _Move | None:
        dice, train = self.writer.dice, f"input/{self.writer.task.train}"
        if self.status.looks == 0:
            first = not self.window.steps
            astray = first and dice.coin("astray", ASTRAY * self.writer.ignorance)
            folder = "data" if astray else "input"
            return self._do("See which files there are.", tools.LIST_FILES, dir_path=folder)
        if self.status.looks == 1 and dice.coin("measure", IN_PYTHON):
            return self._do(
                "See what the training table holds.",
                tools.UNDERSTAND,
                file_name=train,
                things_to_look_for="columns, and what their values are",
            )
        return None

    def _execute(self, current: Script) -> _Move:
        name = current.name
        misnamed = self.writer.dice.coin("misnames", MISNAMES * self.writer.ignorance)
        if misnamed and self._just_written():
            name = name.replace("train_", "train")
        before = f"{self.last.thought} " if self._just_written() else ""
        thought = f"{before}Now {current.name} is run."
        return self._do(thought, tools.EXECUTE, script_name=name)

    def _better(self) -> _Move:
        """Check what ran, or take the next script up."""
        ran = [each for each in self.status.scripts.values() if each.metric is not None]
        first = len(ran) == 1
        if not self.status.checked and (first or self.writer.dice.coin("checks", CHECKS)):
            return self._check()
        if len(ran) >= PLANNED:
            return self._close()
        best = self.best()
        if best is None or self.writer.dice.pick("next", NEXT) == "draft":
            return self._draft()
        return self._improve(best)

    def _draft(self) -> _Move:
        program = replace(self.writer, ignorance=0.0).draft(self.status.attempts())
        titles = _titles(program.code)
        return self._written(program.plan, "", titles, titles, program.code)

    def _improve(self, best: Script) -> _Move:
        before = sketched(self.writer, dict(zip(_TITLED, best.titles, strict=True)))
        clean = replace(self.writer, ignorance=0.0)
        program = clean.improve(before, self.status.attempts())
        old, new = sections_of(before), sections_of(program.code)
        changed = [slot for slot in SLOTS if old.get(slot) != new.get(slot)] or ("Model",)
        titles = _titles(program.code)
        parts = {slot: titles[slot] for slot in titles if slot in changed}
        return self._written(program.plan, best.name, titles, parts, program.code)

    def _written(
        self, plan: str, source: str, titles: Mapping[str, str], parts: Mapping[str, str], code: str
    ) -> _Move:
        """Have a new script written, from nothing or from the best one."""
        name = self.status.new_name()
        features, model, validation = (titles.get(slot, "") for slot in _TITLED)
        script = Script(name, (features, model, validation))
        order = writing_order(self.writer, parts, code)
        move = self._edit(source or name, name, order, plan)
        return replace(move, status=replace(self.status.with_script(script), at_work=name))

    def _repair(self, current: Script) -> _Move:
        if current.failures > PATIENCE:
            return self._draft()
        dice, ran = self.writer.dice, self.last.action == tools.EXECUTE
        retried = any(habit.retried_in(self._in_sight()) for habit in self.writer.habits)
        if ran and retried and dice.coin("undoes", UNDOES):
            thought = "That was no good. Take it back."
            return self._do(thought, tools.UNDO_EDIT, script_name=current.name)
        undone = self.last.action == tools.UNDO_EDIT
        if undone or (ran and dice.coin("inspects", INSPECTS)):
            return self._do(
                f"See what stands in {current.name}.",
                tools.INSPECT,
                start_line_number=1,
                end_line_number=tools.LINES_SHOWN,
                script_name=current.name,
            )
        return self._mended(current)

    def _mended(self, current: Script) -> _Move:
        output = self._output(current)
        habit = self._culprit(output)
        repair = None if habit is None else self._tried(habit, output)
        if habit is not None and repair is not None:
            order = repairing_order(habit, repair)
            return self._edit(current.name, current.name, order, repair.plan)
        if any(NO_WARNINGS in str(step.input) for step in self.window.steps):
            return self._draft()
        plan = f"{NO_WARNINGS} They hide what goes wrong."
        return self._edit(current.name, current.name, NO_WARNINGS, plan)

    def _output(self, current: Script) -> str:
        for step in reversed(self.window.steps):
            if step.action == tools.VALIDATE:
                return step.shown
            if step.action == tools.EXECUTE and step.input.get("script_name") == current.name:
                return step.shown
        return ""

    def _culprit(self, output: str) -> Habit | None:
        """Return what an output tells of, if possible what is in the lines that are in sight."""
        seen = self._in_sight()
        shown = [habit for habit in self.writer.habits if habit.shown_by(output)]
        plain = [habit for habit in shown if habit.occurs_in(seen)]
        retried = [habit for habit in self.writer.habits if habit.retried_in(seen)]
        lines = self.last.shown if self.last.action == tools.INSPECT else ""
        present = [habit for habit in self.writer.habits if habit.occurs_in(lines)]
        return next(iter((*plain, *retried, *present, *shown)), None)

    def _in_sight(self) -> str:
        """Return what the window shows of scripts: not the lines that an edit took out."""
        return "\n".join(_TAKEN_OUT.sub("", step.shown) for step in self.window.steps)

    def _tried(self, habit: Habit, output: str) -> Repair | None:
        said = self.writer.notes.known.get(habit.name)
        asked = " ".join(str(step.input.get("edit_instruction")) for step in self.window.steps)
        if said is not None and said.plan not in asked:
            return said
        known = replace(self.writer.notes, known={})
        return replace(self.writer, notes=known).try_at(habit, output)

    def _close(self) -> _Move:
        best = self.best()
        if best is not None and self.status.in_place != best.name:
            thought = f"{best.name} is the best so far. Run it again for its submission."
            move = self._do(thought, tools.EXECUTE, script_name=best.name)
            return replace(move, status=replace(self.status, at_work=best.name))
        return self._finish() if self.status.checked else self._check()

    def _check(self) -> _Move:
        return self._do("See whether the submission has the right form.", tools.VALIDATE)

    def _finish(self) -> _Move:
        best = self.best()
        done = "No script has run." if best is None else f"{best.name} reached {best.metric:g}."
        return self._do("This is what I hand in.", tools.FINAL_ANSWER, final_answer=done)

    def _edit(self, source: str, target: str, order: str, thought: str) -> _Move:
        return self._do(
            thought,
            tools.EDIT,
            script_name=source,
            edit_instruction=order,
            save_name=target,
        )

    def _do(self, thought: str, action: str, **given: JSON) -> _Move:
        return _Move(thought, action, given, self.status)

    def best(self) -> Script | None:
        """Return the script with the best metric, the first of them."""
        return best_of(self.status.scripts.values(), self.writer.task.metric)


def _titles(code: str) -> dict[str, str]:
    sections = sections_of(code)
    return {slot: title_of(sections[slot]) for slot in _TITLED if slot in sections}


# Edits of scripts --------------------------------------------------------------------------

NO_WARNINGS: Final = "Switch off the warnings."
"""What is ordered where nothing else comes to mind."""
AUXILIARY: Final = ("mlab_edit", "mlab_understand", "mlab_understand_all", "mlab_summarize")
"""Prompts of a researcher's tools, by the names they ship under."""
_PART: Final = re.compile(r"^(Features|Model|Validation): ([^\n]+)$", re.MULTILINE)
_FACTS: Final = re.compile(r"^Facts of the task: (\{[^\n]*\})$", re.MULTILINE)
_PACKAGES: Final = re.compile(r"^Packages: ([^\n]*)$", re.MULTILINE)
_MEAN: Final = re.compile(rf"{MEAN_OF} (.+?) and (.+)")
_MATTERS: Final = re.compile(
    r"Error\b|Exception\b|^TIMEOUT|^OUT OF MEMORY|metric|exit code|\bsaid\b|unexpected",
    re.MULTILINE,
)
_LONGEST_ANSWER: Final = 600
_HEAD: Final = 5


def auxiliary_reply(asked: FilledPrompt, dice: Dice, ignorance: float) -> str:
    """Answer what a researcher's tools ask: an edit, what a file holds, an output in short."""
    if asked.kind == "mlab_edit":
        code = _edited(asked.part("code"), asked.part("instruction"), dice, ignorance)
        return f"```python\n{code.rstrip()}\n```\n"
    if asked.kind == "mlab_summarize":
        return _shortened(asked.part("text"), asked.part("limit"))
    if asked.kind == "mlab_understand":
        lines = asked.part("text").splitlines()
        return "\n".join(["It begins with these lines.", *lines[:_HEAD]])[:_LONGEST_ANSWER]
    return asked.part("found")[:_LONGEST_ANSWER] or "Nothing was found."


def writing_order(writer: Writer, parts: Mapping[str, str], code: str) -> str:
    """Write the instruction for a script, or for sections of one.

    Args:
        writer: The task, and what memory said.
        parts: The sections that are to be written.
        code: A text that has in it what the script is going to hold, for choosing from what
            memory said.
    """
    lines = ["Write these parts of the script, and those that it has not yet."]
    lines += [f"{slot}: {title}" for slot, title in parts.items()]
    lines.append(f"Facts of the task: {json.dumps(asdict(writer.task), ensure_ascii=False)}")
    if writer.packages:
        lines.append(f"Packages: {', '.join(sorted(writer.packages))}")
    return "\n\n".join(["\n".join(lines), *_entries(writer, code)])


def repairing_order(habit: Habit, repair: Repair) -> str:
    """Write the instruction for a repair."""
    return f"{_error(habit)}\nFix: {repair.plan}"


def sketched(writer: Writer, titles: Mapping[str, str]) -> str:
    """Write a program with sections of these titles, without a mistake."""
    return _with_parts(replace(writer, habits=(), ignorance=0.0), titles, "")


def _entries(writer: Writer, code: str) -> Iterator[str]:
    """Yield what memory said of the habits that code may have, an entry for each."""
    for habit in writer.habits:
        if not habit.may_occur_in(code):
            continue
        if (known := writer.notes.known.get(habit.name)) is not None:
            yield repairing_order(habit, known)
        elif habit.name in writer.notes.warned:
            yield _error(habit)


def _error(habit: Habit) -> str:
    return f"Error: {' '.join(word.rstrip('*') for word in habit.about)}"


def _facts(text: str) -> Task:
    try:
        facts: dict[str, Any] = json.loads("".join(_FACTS.findall(text)[:1]))
        return Task(**facts | {"outputs": tuple(facts["outputs"])})
    except (ValueError, TypeError, KeyError):
        return Task()


def _edited(code: str, instruction: str, dice: Dice, ignorance: float) -> str:
    """Return a script after an edit."""
    if NO_WARNINGS in instruction and QUIET not in code:
        return f"{QUIET}{code}"
    task, parts = carried_on(_facts(instruction), code), dict(_PART.findall(instruction))
    habits = habits_for(task, endless=False)
    # The first paragraph of an order for parts names them, and tells nothing of mistakes.
    advice = instruction.partition("\n\n")[2] if parts else instruction
    packages = listed_packages("".join(_PACKAGES.findall(instruction)[:1]))
    writer = Writer(task, read_notes(advice, habits), habits, dice, ignorance, packages)
    for habit in habits:
        fix = writer.notes.known.get(habit.name)
        if fix is not None and habit.occurs_in(code):
            code = habit.repaired(code, fix)
    return _with_parts(writer, parts, code) if parts else reassembled(code)


def _with_parts(writer: Writer, wanted: Mapping[str, str], code: str) -> str:
    """Write some sections of a script, and those that it has not, with the habits that there are."""
    parts, old = writer.parts(), sections_of(code)

    def plain(slot: str, title: str) -> str:
        fitting = [each for each in parts[slot] if each.title == title]
        return (*fitting, parts[slot][-1])[0].written(writer.dice, "edit")

    def section(slot: str) -> str:
        title = wanted.get(slot, "")
        mean = _MEAN.fullmatch(title) if slot == "Model" else None
        if mean is None:
            return plain(slot, title)
        there = old.get(slot, "")
        first = there if there and title_of(there) == mean[1] else plain(slot, mean[1])
        return writer.blend(first, plain(slot, mean[2]))

    earlier = "\n\n".join(old.values())
    made = {
        slot: writer.spoiled(section(slot), earlier)
        if slot in wanted or slot not in old
        else old[slot]
        for slot in SLOTS
    }
    return reassembled(code, made)


def _shortened(text: str, limit: str) -> str:
    """Keep the lines that matter, the last of them first where there is no room for all."""
    room = int(limit) if limit.isdecimal() else _LONGEST_ANSWER
    kept: list[str] = []
    for line in reversed([each for each in text.splitlines() if _MATTERS.search(each)]):
        room -= len(line) + 1
        if room < 0:
            break
        kept.insert(0, line)
    return "\n".join(kept) or "Nothing in it needs to be known."
