"""What simulated learners share in reflecting: prompts for lessons and their validation, read and answered.

    parse_reflection(prompt)   # one attempt, or two side by side; None: another prompt
    write_lessons(topics, …)   # the lessons that such a prompt asks for
    validation_reply(prompt, …)  # the scores a prompt of `validate` asks for; None as above

What a learner makes of an attempt is its own: `babyai/reflect.py`, and the like in the packages of
other learners.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from typing import TypeAlias, TypeVar

from langgraft.benchmarks.simulated.conversation import Dice
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
_LIMIT = re.compile(r"about (\d+) lessons?", re.IGNORECASE)


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

Coin: TypeAlias = Callable[[str, float], bool]
"""Draws for one lesson: by the question, and the chance."""
Judge: TypeAlias = Callable[[Shown, Coin], Opinion]
"""Says what a lesson is worth."""

_TITLE_CHARACTERS = 60

ADDS_COMMONPLACE = 0.3
"""Chance of one more lesson that says nothing of use."""

Topic = TypeVar("Topic", bound=StrEnum)


def parse_reflection(prompt: str) -> Reflection | None:
    """Read a prompt that shows a finished attempt and asks for lessons; else `None`."""
    found = _ATTEMPT.search(prompt)
    if found is None:
        return None
    other = _OTHER.search(prompt, found.end())
    limit = _LIMIT.search(prompt)
    return Reflection(
        _reported(found),
        None if other is None else _reported(other),
        int(limit.group(1)) if limit else DEFAULT_LIMIT,
    )


def write_lessons(
    topics: Iterable[Topic],
    wordings: Callable[[Topic], tuple[Sequence[str], Sequence[str]]],
    names: Mapping[str, str],
    dice: Dice,
    *,
    commonplace: Topic,
    limit: int,
) -> str:
    """Return lessons as a JSON list.

    Args:
        topics: What they are about, in order.
        wordings: Returns the ways to word the situation and the lesson of a topic.
        names: What the wordings are filled in with.
        dice: Draws one of them, and whether a commonplace is added.
        commonplace: The topic of that.
        limit: Most lessons.
    """
    added = [commonplace] if dice.coin("commonplace", ADDS_COMMONPLACE) else []
    written = []
    for topic in list(dict.fromkeys([*topics, *added]))[:limit]:
        situations, lessons = wordings(topic)
        situation = _variant(situations, dice, f"when {topic}").format(**names)
        lesson = _variant(lessons, dice, f"lesson {topic}").format(**names)
        written.append({"when_to_use": situation, "lesson": lesson})
    return json.dumps(written, indent=1)


def in_form(prompt: str, lessons: str) -> str:
    """Return lessons in the form that a prompt asks for: as strategies with titles, or as they are."""
    if '"title"' not in prompt:
        return lessons
    written = [
        {
            "title": each["lesson"].partition(".")[0][:_TITLE_CHARACTERS],
            "description": f"For when {each['when_to_use']}.",
            "content": each["lesson"],
        }
        for each in json.loads(lessons)
    ]
    return json.dumps(written, indent=1)


def _variant(options: Sequence[str], dice: Dice, name: str) -> str:
    return options[int(dice.fraction(name) * len(options))]


def validation_reply(
    prompt: str, judge_for: Callable[[ReportedAttempt], Judge | None], dice: Dice
) -> str | None:
    """Return the reply to a prompt of `validate`, lesson by lesson; `None` to anything else.

    Args:
        prompt: The prompt.
        judge_for: Returns who judges lessons of an attempt; `None` where it is of another world.
        dice: Draws what is seen.
    """
    if prompt.partition("\n")[0] != _first_line():
        return None
    found = _LESSONS.search(prompt)
    judge = judge_for(_reported(found)) if found else None
    if found is None or judge is None:
        return None
    scores = []
    for number, lesson in _numbered(found.group("lessons")):
        opinion = judge(lesson, partial(_coin, dice, lesson.text))
        score = {"valid": opinion.valid, "score": opinion.score, "reason": opinion.reason}
        scores.append({"lesson": number, **score})
    return json.dumps(scores)


def _coin(dice: Dice, lesson: str, name: str, chance: float) -> bool:
    return dice.coin(f"{name} {lesson}", chance)


def _numbered(lines: str) -> Iterator[tuple[int, Shown]]:
    """Read the lessons that `validate` wrote, one a line."""
    for line in lines.splitlines():
        shown = json.loads(line)
        yield shown["lesson"], Shown(str(shown["text"]), str(shown["when_to_use"]))


@lru_cache(maxsize=1)
def _first_line() -> str:
    return shipped("validate").text.partition("\n")[0]


def _reported(found: re.Match[str]) -> ReportedAttempt:
    return ReportedAttempt(found.group("task"), found.group("outcome"), found.group("steps"))
