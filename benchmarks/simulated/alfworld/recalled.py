"""What the learner makes of the notes in front of its first observation."""

from functools import lru_cache

from langgraft.benchmarks.simulated.alfworld.advice import habits_advised, parse_advice
from langgraft.benchmarks.simulated.alfworld.attempts import lacks_step, parse_attempt, shown_by
from langgraft.benchmarks.simulated.alfworld.goals import Kind
from langgraft.benchmarks.simulated.alfworld.habits import Counsel, Habits
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS
from langgraft.benchmarks.simulated.notes import split_notes


@lru_cache(maxsize=CACHED_TEXTS)
def counsel_for(kind: Kind, thing: str, notes: str) -> Counsel:
    """Read notes for one kind of goal and thing; what stands first wins where notes disagree."""
    advised, shown, opens, lacking = Habits(), Habits(), False, False
    for note in split_notes(notes):
        if note.attempt:
            attempt = parse_attempt(note.text)
            shown = shown.or_else(shown_by(attempt, kind))
            lacking = lacking or lacks_step(attempt, kind)
            continue
        advice = parse_advice(note.text)
        fitting = [part for part in advice if part.is_for(kind, thing)]
        advised = advised.or_else(habits_advised(fitting, kind))
        opens = opens or any(part.opens for part in fitting)
    return Counsel(advised, shown, lacking, opens)
