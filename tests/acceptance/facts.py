"""Facts that change: histories that contradict themselves, and what memories answer of now and of then."""

from typing import Final

from fact_answers import FACTS, PROFILED, shares

from acceptance.figure import Figure, Setting

LEAST: Final = 0.95
HISTORIES, FEW = 60, 6


def measure(setting: Setting) -> list[Figure]:
    """Tell histories to memories, and ask them."""
    histories = setting.size(HISTORIES, FEW)
    setting.say(f"{histories} histories of facts that change")
    found = shares(range(histories))
    how = (
        f"{histories} histories of 40 turns about three people, by seed: moves, jobs, corrections, what holds"
        " for a day, several values, talk that is like them; notes and verdicts of a scripted model, not of a"
        " language model"
    )
    judged = [
        Figure(
            f"Facts that change are answered right, now and as of a day ({name})",
            how,
            str(found[name]),
            f"both ≥ {LEAST:.0%}",
            found[name].least() >= LEAST,
        )
        for name in (FACTS, PROFILED)
    ]
    reported = [
        Figure(
            f"The same of notes of the same facts, found by likeness alone: the {name}",
            "`SimpleRAG`, ten notes a question; the one named is the answer where one value is asked for",
            str(share),
            "",
            None,
        )
        for name, share in found.items()
        if name not in (FACTS, PROFILED)
    ]
    return [*judged, *reported]
