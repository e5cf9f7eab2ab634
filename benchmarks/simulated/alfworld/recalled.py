"""What the learner makes of the notes in front of its first observation."""

from functools import lru_cache

from langgraft.benchmarks.simulated.alfworld.advice import habits_advised, parse_advice
from langgraft.benchmarks.simulated.alfworld.attempts import parse_attempt, shown_by
from langgraft.benchmarks.simulated.alfworld.goals import Kind
from langgraft.benchmarks.simulated.alfworld.habits import Counsel, Habits
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS
from langgraft.benchmarks.simulated.notes import split_notes


@lru_cache(maxsize=CACHED_TEXTS)
def counsel_for(kind: Kind, thing: str, notes: str) -> Counsel:
    """Read notes for one kind of goal and thing; what stands first wins where notes disagree."""
    advised, shown, opens = Habits(), Habits(), False
    for note in split_notes(notes):
        if note.attempt:
            shown = shown.or_else(shown_by(parse_attempt(note.text), kind))
            continue
        advice = parse_advice(note.text)
        if advice.is_for(kind, thing):
            advised = advised.or_else(habits_advised(advice, kind))
            opens = opens or advice.opens
    return Counsel(advised, shown, opens)
