"""Edits of scripts: the instruction for one, and what whoever does it makes of it.

The instruction is all that passes from one to the other: the parts that are wanted, the facts of the
task, what notes tell of these parts, or one repair.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from langgraft.benchmarks.simulated.conversation import Dice
from langgraft.benchmarks.simulated.data_scientist.habits import Habit, Repair, habits_for
from langgraft.benchmarks.simulated.data_scientist.notes import read_notes
from langgraft.benchmarks.simulated.data_scientist.programs import (
    MEAN_OF,
    SLOTS,
    carried_on,
    reassembled,
    sections_of,
    title_of,
)
from langgraft.benchmarks.simulated.data_scientist.tasks import FilledPrompt, Task
from langgraft.benchmarks.simulated.data_scientist.writer import QUIET, Writer, listed_packages

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
