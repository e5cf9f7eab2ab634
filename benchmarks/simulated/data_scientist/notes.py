"""What recalled notes tell, of that which can be understood."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.habits import Habit, Repair, holds

_ENTRY: Final = re.compile(r"\n\s*\n|\n(?=Package: )")
_FIX: Final = re.compile(r"^Fix:[ \t]*(.*)\Z", re.MULTILINE | re.DOTALL)
_LIMIT: Final = re.compile(
    r"time[\s-]?out|timed out|time limit|out of memory|memoryerror|memory limit", re.IGNORECASE
)
_CLASS: Final = re.compile(
    r"\b(?:[A-Z]\w*(?:Classifier|Regressor|Regression|Ridge|SVC|SVR|NB)|SVC|SVR|Ridge)\b"
)
LIBRARIES: Final = ("lightgbm", "xgboost", "sklearn")


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes, understood."""

    known: Mapping[str, Repair] = field(default_factory=dict)
    """Name of a habit → what a note says to write; it may be wrong."""
    warned: frozenset[str] = frozenset()
    """Habits that a note names without a fix that is understood."""
    limited: frozenset[str] = frozenset()
    """Packages and classes that ran into a limit."""
    told: int = 0
    """How many notes told anything."""


def read_notes(text: str, habits: Sequence[Habit]) -> Notes:
    """Read recalled notes; of notes that disagree, the first counts."""
    known: dict[str, Repair] = {}
    warned: set[str] = set()
    limited: set[str] = set()
    told = 0
    for entry in filter(str.strip, _ENTRY.split(text)):
        about = [habit for habit in habits if holds(entry, habit.about)]
        for habit in about:
            repair = _repair(habit, entry)
            if repair is None:
                warned.add(habit.name)
            else:
                known.setdefault(habit.name, repair)
        limits = _limited(entry)
        limited.update(limits)
        told += bool(about or limits)
    return Notes(known, frozenset(warned.difference(known)), frozenset(limited), told)


def _repair(habit: Habit, entry: str) -> Repair | None:
    found = _FIX.search(entry)
    fix = found.group(1) if found else entry
    for repair in (habit.repair, *habit.others):
        if holds(fix, repair.words):
            return repair
    # Some errors say themselves what would have worked.
    return habit.repair if holds(entry, habit.repair.words) else None


def _limited(entry: str) -> Iterable[str]:
    if not _LIMIT.search(entry):
        return ()
    classes = _CLASS.findall(entry)
    named = [name for name in LIBRARIES if re.search(rf"\b{name}\b", entry, re.IGNORECASE)]
    of = [name for name in named if name != "sklearn" or not classes]
    return {*classes, *of}
