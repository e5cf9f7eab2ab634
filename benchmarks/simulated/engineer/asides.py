"""What a researcher's tools ask aside: an edit of a script, what a file holds, an output in short."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.asked import Asked
from langgraft.benchmarks.simulated.data_scientist.desk import Desk
from langgraft.benchmarks.simulated.data_scientist.dice import Dice
from langgraft.benchmarks.simulated.data_scientist.forms import carried_on, parts_for, slot_parts
from langgraft.benchmarks.simulated.data_scientist.models import blended
from langgraft.benchmarks.simulated.data_scientist.notes import read_notes
from langgraft.benchmarks.simulated.data_scientist.parts import SLOTS, Part
from langgraft.benchmarks.simulated.data_scientist.programs import (
    assembled,
    body_of,
    imports_of,
    sections_of,
    title_of,
)
from langgraft.benchmarks.simulated.data_scientist.repairing import imported
from langgraft.benchmarks.simulated.engineer.orders import Order, read_order
from langgraft.benchmarks.simulated.engineer.writing import habits_of

ASIDES: Final = ("mlab_edit", "mlab_understand", "mlab_understand_all", "mlab_summarize")
"""Prompts that are answered here, by the names they ship under."""
_MEAN: Final = re.compile(r"the mean of (.+?) and (.+)")
_QUIET: Final = 'import warnings\n\nwarnings.filterwarnings("ignore")\n\n'
_MATTERS: Final = re.compile(
    r"Error\b|Exception\b|^TIMEOUT|^OUT OF MEMORY|metric|exit code|\bsaid\b|unexpected",
    re.MULTILINE,
)
_LONGEST_ANSWER: Final = 600
_HEAD: Final = 5


def aside(asked: Asked, dice: Dice, ignorance: float) -> str:
    """Answer what is asked aside."""
    if asked.kind == "mlab_edit":
        return f"```python\n{_edited(asked, dice, ignorance).rstrip()}\n```\n"
    if asked.kind == "mlab_summarize":
        return _shortened(asked.part("text"), asked.part("limit"))
    if asked.kind == "mlab_understand":
        lines = asked.part("text").splitlines()
        return "\n".join(["It begins with these lines.", *lines[:_HEAD]])[:_LONGEST_ANSWER]
    return asked.part("found")[:_LONGEST_ANSWER] or "Nothing was found."


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


def _edited(asked: Asked, dice: Dice, ignorance: float) -> str:
    """Return a script after an edit."""
    code, instruction = asked.part("code"), asked.part("instruction")
    order = read_order(instruction)
    desk = _desk(order, instruction, code, dice, ignorance)
    if order.quiet and _QUIET not in code:
        return f"{_QUIET}{code}"
    if order.parts:
        return _with_parts(desk, order.parts, code)
    return imported(_with_fixes(desk, code))


def _desk(order: Order, instruction: str, code: str, dice: Dice, ignorance: float) -> Desk:
    task = carried_on(order.task, code)
    habits = habits_of(task)
    # The first paragraph of an order for parts names them, and tells nothing of mistakes.
    told = instruction.partition("\n\n")[2] if order.parts else instruction
    packages = frozenset(re.findall(r"[\w-]+", order.packages.lower()))
    return Desk(task, read_notes(told, habits), habits, dice, ignorance, packages)


def _with_fixes(desk: Desk, code: str) -> str:
    for habit in desk.habits:
        fix = desk.notes.known.get(habit.name)
        if fix is not None and habit.occurs_in(code):
            code = habit.repaired(code, fix)
    return code


def _with_parts(desk: Desk, wanted: Mapping[str, str], code: str) -> str:
    """Write some sections of a script, and those that it has not."""
    code = _with_fixes(desk, code)
    old = sections_of(code)
    writer = _Writer(desk, wanted, old)
    sections = [
        old[slot] if slot in old and slot not in wanted else writer.section(slot) for slot in SLOTS
    ]
    return assembled(sections, imports_of(code))


class _Writer:
    """Writes sections by their titles."""

    def __init__(self, desk: Desk, wanted: Mapping[str, str], old: Mapping[str, str]) -> None:
        self._desk = desk
        self._wanted = wanted
        self._old = old
        self._parts = desk.available(parts_for(desk.task))

    def section(self, slot: str) -> str:
        """Write a section, with the habits that there are."""
        title = self._wanted.get(slot, "")
        mean = _MEAN.fullmatch(title) if slot == "Model" else None
        text = self._mean(title, mean) if mean else self._plain(slot, title)
        return self._desk.spoiled(text, "\n\n".join(self._old.values()))

    def _plain(self, slot: str, title: str) -> str:
        fitting = slot_parts(self._parts, slot)
        part: Part = next((each for each in fitting if each.title == title), fitting[-1])
        return part.written(self._desk.dice, "edit")

    def _mean(self, title: str, mean: re.Match[str]) -> str:
        first, second = mean.groups()
        old = self._old.get("Model", "")
        before = old if old and title_of(old) == first else self._plain("Model", first)
        text = blended(body_of(before), body_of(self._plain("Model", second)))
        return f"# Model: {title}\n{text}"


def sketched(desk: Desk, titles: Mapping[str, str]) -> str:
    """Write a program with sections of these titles, without a mistake."""
    clean = replace(desk, habits=(), ignorance=0.0)
    return _with_parts(clean, titles, "")
