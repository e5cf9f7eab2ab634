"""What simulated learners share in reflecting: prompts for lessons, and for their validation, read.

    shown = parse_reflection(prompt)   # one attempt, or two side by side; None: another prompt
    validation_reply(prompt, opinion)  # the scores a prompt of `validate` asks for; None as above

What a learner makes of it is its own: `babyai/reflect.py`, `babyai/validating.py`, and the like in
the packages of other learners.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from langgraft.nodes.prompts import prompt as shipped

DEFAULT_LIMIT = 3
"""Lessons written where a prompt sets no limit."""

_OUTCOME = r"Outcome:[ \t]*(?P<outcome>[^\n]*)\n+"
_STEPS = r"(?P<steps>.*?)(?=\n\n[^\n]*\blessons?\b|\Z)"
_ATTEMPT = re.compile(
    rf"Task:[ \t]*(?P<task>[^\n]*)\n+{_OUTCOME}Trajectory:[ \t]*\n{_STEPS}", re.DOTALL
)
_OTHER = re.compile(
    r"Task of the other attempt:[ \t]*(?P<task>[^\n]*)\n+"
    r"Outcome of the other attempt:[ \t]*(?P<outcome>[^\n]*)\n+"
    rf"Trajectory of the other attempt:[ \t]*\n{_STEPS}",
    re.DOTALL,
)
_LESSONS = re.compile(
    rf"Task:[ \t]*(?P<task>[^\n]*)\n+{_OUTCOME}Lessons[^\n]*:\n(?P<lessons>(?:[^\n]+\n)*)\n+"
    r"Trajectory:[ \t]*\n(?P<steps>.*?)(?=\n\nScore every lesson|\Z)",
    re.DOTALL,
)
_LIMIT = re.compile(r"at most (\d+) lessons?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReportedAttempt:
    """One attempt, as a prompt tells of it."""

    task: str
    outcome: str
    trajectory: str

    @property
    def success(self) -> bool:
        """Whether it is told to have reached its goal."""
        return self.outcome.strip().lower().startswith("success")


@dataclass(frozen=True, slots=True)
class Reflection:
    """What a prompt for lessons shows."""

    attempt: ReportedAttempt
    other: ReportedAttempt | None
    """The attempt it is to be compared with, where there is one."""
    limit: int
    """Most lessons asked for."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A lesson to be validated."""

    text: str
    when_to_use: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a learner thinks of a lesson."""

    valid: bool
    score: float
    reason: str


SEES_VAGUE = 0.7
"""Chance to notice that a lesson advises nothing that could be done."""
SEES_WRONG = 0.6
"""Chance to notice that the attempt speaks against a lesson."""
DOUBTS = 0.1
"""Chance to think too little of any other lesson."""

BORNE_OUT = Opinion(valid=True, score=0.8, reason="the attempt bears it out")
DOUBTED = Opinion(valid=True, score=0.4, reason="hardly more than is known without it")
VAGUE = Opinion(valid=True, score=0.3, reason="advises nothing that could be done")
CONTRADICTED = Opinion(valid=False, score=0.2, reason="the attempt speaks against it")

Judge: TypeAlias = Callable[[ReportedAttempt, Shown], Opinion]
"""Says what a lesson is worth, by the attempt it was drawn from."""


def parse_reflection(prompt: str) -> Reflection | None:
    """Read a prompt that shows a finished attempt and asks for lessons; else `None`."""
    found = _ATTEMPT.search(prompt)
    if found is None:
        return None
    other = _OTHER.search(prompt, found.end())
    limit = _LIMIT.search(prompt)
    return Reflection(
        _told(found),
        None if other is None else _told(other),
        int(limit.group(1)) if limit else DEFAULT_LIMIT,
    )


def parse_validation(prompt: str) -> ReportedAttempt | None:
    """Return the attempt that a prompt of `validate` shows; `None` where it is something else."""
    found = _validation(prompt)
    return None if found is None else _told(found)


def validation_reply(prompt: str, judge: Judge) -> str | None:
    """Return the reply to a prompt of `validate`, lesson by lesson; `None` to anything else."""
    found = _validation(prompt)
    if found is None:
        return None
    scores = []
    for number, lesson in _numbered(found.group("lessons")):
        said = judge(_told(found), lesson)
        told = {"valid": said.valid, "score": said.score, "reason": said.reason}
        scores.append({"lesson": number, **told})
    return json.dumps(scores)


def _validation(prompt: str) -> re.Match[str] | None:
    return _LESSONS.search(prompt) if prompt.partition("\n")[0] == _first_line() else None


def _numbered(lines: str) -> Iterator[tuple[int, Shown]]:
    """Read the lessons that `validate` wrote, one a line."""
    for line in lines.splitlines():
        shown = json.loads(line)
        yield shown["lesson"], Shown(str(shown["text"]), str(shown["when_to_use"]))


@lru_cache(maxsize=1)
def _first_line() -> str:
    return shipped("validate").text.partition("\n")[0]


def _told(found: re.Match[str]) -> ReportedAttempt:
    return ReportedAttempt(found.group("task"), found.group("outcome"), found.group("steps"))
