"""Recalled notes, taken apart: lines of advice, and attempts written out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_STARTS_ATTEMPT = re.compile(r"(Task|Thought|Action|Observation):")
_FIELD = re.compile(r"^(Task|Thought|Action|Observation|Result):[ \t]*", re.MULTILINE)
_SITUATION = re.compile(r"^\W*(?:when to use|situation|condition)\W+(.+)$", re.IGNORECASE)
_LABEL = re.compile(r"^\W*(?:lesson|content|insight|advice|experience)\W*:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Note:
    """A part of recalled notes that stands on its own."""

    text: str
    attempt: bool
    """Whether it tells of an attempt, `Task: … Result: …`, rather than giving advice."""


def split_notes(notes: str) -> Iterator[Note]:
    """Take notes apart into lines of advice and written-out attempts, in order.

    A situation on a line of its own is put before the advice that follows it.
    """
    attempt: list[str] = []
    situation = ""
    for line in notes.splitlines():
        if attempt and line.startswith("Task:"):
            yield Note("\n".join(attempt), attempt=True)
            attempt = []
        if attempt or _STARTS_ATTEMPT.match(line):
            attempt.append(line)
            if line.startswith("Result:"):
                yield Note("\n".join(attempt), attempt=True)
                attempt = []
        elif named := _SITUATION.match(line):
            situation = named.group(1).rstrip(".: ")
        elif text := _LABEL.sub("", line).strip():
            yield Note(f"When {situation}: {text}" if situation else text, attempt=False)
            situation = ""
    if attempt:
        yield Note("\n".join(attempt), attempt=True)


def fields_of(attempt: str) -> Iterator[tuple[str, str]]:
    """Yield `Task`, `Thought`, `Action`, `Observation` and `Result` of an attempt, as they come."""
    fields = list(_FIELD.finditer(attempt))
    ends = [field.start() for field in fields[1:]] + [len(attempt)]
    for field, end in zip(fields, ends, strict=True):
        yield field.group(1), attempt[field.end() : end].strip()
