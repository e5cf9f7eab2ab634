"""What the learner makes of the notes in front of its first observation."""

from functools import lru_cache

from langgraft.benchmarks.simulated.babyai.advice import habits_advised, parse_advice
from langgraft.benchmarks.simulated.babyai.attempts import (
    Attempt,
    form_of,
    habits_of,
    parse_attempt,
    search_of,
)
from langgraft.benchmarks.simulated.babyai.habits import Counsel, Door, Habits, Search, Spelling
from langgraft.benchmarks.simulated.babyai.sight import (
    DOOR_KINDS,
    Kind,
    parse_goal,
)
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS
from langgraft.benchmarks.simulated.notes import split_notes

_Avoided = frozenset[Spelling | Door | Search]


@lru_cache(maxsize=CACHED_TEXTS)
def counsel_for(kind: Kind, notes: str) -> Counsel:
    """Read notes for one kind of goal; what stands first wins where notes disagree."""
    advised, avoided = Habits(), frozenset[Spelling | Door | Search]()
    for note in split_notes(notes):
        read = _imitate(parse_attempt(note.text), kind) if note.attempt else _heed(note.text, kind)
        habits, poor = read
        advised = advised.or_else(habits)
        avoided |= poor
    return Counsel(advised, avoided)


def _heed(line: str, kind: Kind) -> tuple[Habits, _Avoided]:
    return habits_advised(parse_advice(line), kind)


def _imitate(attempt: Attempt, kind: Kind) -> tuple[Habits, _Avoided]:
    """Do as a successful attempt did, whatever it was for; learn from failure of the same kind."""
    if attempt.success:
        return habits_of(attempt), frozenset()
    goal = parse_goal(attempt.task)
    if attempt.success is None or goal is None or goal.kind is not kind:
        return Habits(), frozenset()
    return Habits(), frozenset(first_failure(attempt, kind))


def first_failure(attempt: Attempt, kind: Kind) -> tuple[Spelling | Door | Search, ...]:
    """Return what went wrong first in a failed attempt, as far as it shows."""
    for turn in attempt.turns:
        form = form_of(turn.action)
        if turn.failed and isinstance(form, Spelling):
            return (form,)
        if kind in DOOR_KINDS and isinstance(form, Door):
            return (form,)
    search = search_of(attempt)
    leaving = (Search.SURVEY, Search.LEAVE)
    return leaving if search in leaving else (search,) if search else ()
