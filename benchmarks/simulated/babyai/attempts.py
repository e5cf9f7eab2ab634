"""Attempts written out as text, and the ways of acting they show."""

import re
from dataclasses import dataclass
from functools import lru_cache

from langgraft.benchmarks.simulated.babyai.habits import (
    Door,
    Habits,
    Search,
    Spelling,
    View,
    parse_view,
)
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS
from langgraft.benchmarks.simulated.notes import read_attempt

_JOINED = re.compile(r"pickup\b")
_SPACED = re.compile(r"(?:pick|take|grab|get|collect) ")
_KNOWN = re.compile(
    r"(?:go (?:to|through)|turn|move|pickup|pick|take|grab|get|collect|toggle|drop|check)\b"
)
LOOK_AROUND = 3
"""Turns that, with the first view, show all four sides."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One action and what came of it."""

    action: str
    view: View

    @property
    def failed(self) -> bool:
        """Whether the world refused it."""
        return self.view.refused

    @property
    def unread(self) -> bool:
        """Whether something was done that is not understood."""
        return not (self.failed or _KNOWN.match(self.action))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a task, as far as its text tells."""

    task: str
    first: View
    turns: tuple[Turn, ...]
    success: bool | None
    """`None` where the text does not say."""


def form_of(action: str) -> Spelling | Door | None:
    """Say which way of acting an action shows."""
    if _JOINED.match(action):
        return Spelling.JOINED
    if _SPACED.match(action):
        return Spelling.SPACED
    if action.startswith(("toggle and go through ", "go through ")):
        return Door.PASS
    if action.startswith("toggle"):
        return Door.TOGGLE
    return Door.FACE if action.startswith("go to ") else None


@lru_cache(maxsize=CACHED_TEXTS)
def parse_attempt(text: str) -> Attempt:
    """Read an attempt that is written out."""
    written = read_attempt(text)
    first = parse_view(written.openings[-1] if written.openings else "")
    turns = tuple(Turn(action, parse_view(seen)) for action, seen in written.steps)
    return Attempt(written.task, first, turns, written.success)


def habits_of(attempt: Attempt) -> Habits:
    """Return the ways of acting that a successful attempt shows."""
    forms = [form for turn in attempt.turns if not turn.failed and (form := form_of(turn.action))]
    spellings = [form for form in forms if isinstance(form, Spelling)]
    doors = [form for form in forms if isinstance(form, Door)]
    return Habits(
        spelling=spellings[-1] if spellings else None,
        door=doors[-1] if doors else None,
        search=search_of(attempt),
    )


def search_of(attempt: Attempt) -> Search | None:
    """Return how an attempt looked for its goal; `None` where too little of it is understood."""
    actions = [turn.action for turn in attempt.turns]
    passes = [i for i, action in enumerate(actions) if form_of(action) is Door.PASS]
    turned = [i for i, action in enumerate(actions) if action.startswith("turn ")]
    if passes:
        before = sum(1 for i in turned if i < passes[0])
        return Search.SURVEY if before >= LOOK_AROUND else Search.LEAVE
    if not actions or any(turn.unread for turn in attempt.turns):
        return None
    moved = actions.count("move forward")
    if moved > len(turned):
        return Search.WANDER
    return Search.STAY if turned else Search.GUESS
