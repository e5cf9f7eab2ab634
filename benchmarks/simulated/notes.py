"""Recalled notes, taken apart: lines of advice, and attempts written out.

Attempts are read in whatever form they are written: `Action: …`, `**Act 3:** …`, `> …`, numbered
lines, or sentences that tell of them. Of what cannot be read nothing is concluded.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_FIELDS: Final[Mapping[str, str]] = {
    "Task": "task",
    "Thought": r"thought|think(?:ing)?|reasoning",
    "Action": r"action|act|command",
    "Observation": r"observation|obs|env(?:ironment)?|response",
    "Result": r"result|outcome|status",
}
_NAMED: Final = "|".join(f"(?P<{name}>{words})" for name, words in _FIELDS.items())
_FIELD: Final = re.compile(
    rf"^[^\w\n]*(?:(?:step|turn"
    rf"|round)?[ \t]*\d+[^\w\n]+)?(?:{_NAMED})[ \t]*\d*[^\w\n]*?[:=>\]]+[*_\"' \t]*"
    r"|^[ \t]*(?P<step>>|(?:step[ \t]+)?\d+[.):])[*_`\"' \t]*(?=\w)",
    re.IGNORECASE | re.MULTILINE,
)
_ADVICE: Final = re.compile(r"- When ")
_SITUATION: Final = re.compile(r"^\W*(?:when to use|situation|condition)\W+(.+)$", re.IGNORECASE)
_LABEL: Final = re.compile(
    r"^\W*(?:lesson|content|insight|advice|experience)\W*:\s*", re.IGNORECASE
)

_CLAUSE: Final = re.compile(r"[.;!\n]+(?:\s|$)|,? (?:and|then|before|after) |, ")
_LEAD: Final = re.compile(
    r"^(?:(?:i|we|you|the agent|then|next|first|finally|and|afterwards|also|it) )+"
)
_PAST: Final[Mapping[str, str]] = {
    "went": "go",
    "walked": "go",
    "took": "take",
    "placed": "put",
    "toggled": "toggle",
    "moved": "move",
    "used": "use",
    "examined": "examine",
    "closed": "close",
}
_REGULAR: Final = frozenset({"opened", "cleaned", "heated", "cooled", "turned", "looked", "washed"})
_VERB: Final = re.compile(r"\w+")
_FAILED: Final = re.compile(r"fail|unsuccess|not |unsolved|incomplete|false")
_SUCCEEDED: Final = re.compile(r"succe|solved|complete|won\b|done|true")


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
        field = _FIELD.match(line)
        name = field.lastgroup if field else None
        if attempt and (name == "Task" or _ADVICE.match(line)):
            yield Note("\n".join(attempt), attempt=True)
            attempt = []
        if attempt or name in {"Task", "Thought", "Action", "Observation"}:
            attempt.append(line)
            if name == "Result":
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
    """Yield `Task`, `Thought`, `Action`, `Observation` and `Result` of an attempt, as they come.

    Lines that follow an action are what came of it, where no observation is named as such; lines
    that follow the task tell of actions, clause by clause.
    """
    fields = list(_FIELD.finditer(attempt))
    ends = [field.start() for field in fields[1:]] + [len(attempt)]
    for number, (field, end) in enumerate(zip(fields, ends, strict=True)):
        name = "Action" if field.lastgroup == "step" else str(field.lastgroup)
        value = attempt[field.end() : end].strip()
        first, _, rest = value.partition("\n")
        observed = number + 1 < len(fields) and fields[number + 1].lastgroup == "Observation"
        if name == "Action":
            yield name, _plain_action(first)
            if rest.strip() and not observed:
                yield "Observation", rest.strip()
        elif name == "Task":
            yield name, first.strip("*_ ")
            for clause in filter(None, map(_plain_action, _CLAUSE.split(rest))):
                yield "Action", clause
        else:
            yield name, value


@dataclass(frozen=True, slots=True)
class WrittenAttempt:
    """An attempt, as far as its text tells."""

    task: str
    openings: tuple[str, ...]
    """What was seen before anything was done."""
    steps: tuple[tuple[str, str], ...]
    """Actions, each with what came of it; empty where the text does not say."""
    success: bool | None
    """`None` where the text does not say."""


def read_attempt(text: str) -> WrittenAttempt:
    """Read `Task: … Thought: … Action: … Observation: … Result: …`; any part may be missing."""
    task, action, success = "", "", None
    openings: list[str] = []
    steps: list[tuple[str, str]] = []
    for field, value in fields_of(text):
        match field:
            case "Task":
                task = value
            case "Action":
                steps += [(action, "")] if action else []
                action = value
            case "Observation" if action:
                steps.append((action, value))
                action = ""
            case "Observation" if not steps:
                openings.append(value)
            case "Result":
                success = _succeeded(value)
    steps += [(action, "")] if action else []
    return WrittenAttempt(task, tuple(openings), tuple(steps), success)


def _succeeded(result: str) -> bool | None:
    """Say whether a result tells of success; `None` where it does not say."""
    words = result.lower()
    if _FAILED.search(words):
        return False
    return True if _SUCCEEDED.search(words) else None


def _plain_action(text: str) -> str:
    """Take marks off an action and put what is told of one as a command: `I went to` → `go to`."""
    words = _LEAD.sub("", text.lower().strip(" \t*_`'\"[](){}<>.,!"))
    verb = _VERB.match(words)
    if verb is None:
        return words
    word = verb[0].removesuffix("ed") if verb[0] in _REGULAR else verb[0]
    return _PAST.get(word, word) + words[verb.end() :]
