"""The memory exam: its references, every provider in one table, the same bytes each time, and how long it takes."""

import time

from acceptance.figure import Figure, Setting
from langgraft.benchmarks.comparison import proportion
from langgraft.benchmarks.exam.histories import HISTORIES, KINDS, make_histories
from langgraft.benchmarks.exam.results import markdown
from langgraft.benchmarks.exam.sitting import REFERENCES, everybody, take_exam

MOST_SECONDS = 600
SEEDS = range(1, 21)
"""Further exams of the references."""


def measure(setting: Setting) -> list[Figure]:
    """Have all memories take the exam twice; reduced, over a third of the histories."""
    number = setting.size(HISTORIES, HISTORIES // 3)
    setting.say(f"{len(everybody())} memories take an exam over {number} histories, twice")
    how = f"`langgraft exam`, {number} histories of 28 questions"
    started = time.process_time()
    marks = [take_exam(name, make_histories(number)) for name in everybody()]
    seconds = time.process_time() - started
    again = [take_exam(name, make_histories(number)) for name in everybody()]
    by_name = {each.name: each for each in marks}
    right, asked = by_name["oracle"].of(None)
    shares = ", ".join(
        f"{each.name} {100 * each.of(None)[0] / asked:.0f}" for each in marks[len(REFERENCES) :]
    )
    none = by_name["none"]
    silent = [kind for kind in KINDS if none.of(kind)[0]]
    return [
        Figure(
            "Exam: an oracle memory scores 100 %",
            how,
            f"{right:,} of {asked:,}",
            "all",
            right == asked,
        ),
        *_over_seeds(setting.size(number, 2)),
        Figure(
            "Exam: without memory only abstention is right",
            how,
            ", ".join(silent),
            "abstention",
            silent == ["abstention"],
        ),
        Figure(
            "Exam: every provider in minutes",
            how,
            f"{seconds:.0f} s of CPU for {len(marks)}",
            f"< {MOST_SECONDS} s",
            seconds < MOST_SECONDS,
        ),
        Figure(
            "Exam: the same bytes each time",
            how,
            "the same" if markdown(marks) == markdown(again) else "they differ",
            "the same",
            markdown(marks) == markdown(again),
        ),
        Figure("Exam: shares of questions answered right, in %", how, shares, "", passed=None),
    ]


def _over_seeds(number: int) -> list[Figure]:
    """Hold the references to what they must score, over other histories."""
    oracle, shuffled, within, kinds = 0, 0.0, 0, 0
    asked = 0
    expected = 0.0
    for seed in SEEDS:
        histories = make_histories(number, seed=seed)
        right, of = take_exam("oracle", histories).of(None)
        oracle, asked = oracle + right, asked + of
        marks = take_exam("shuffled", histories)
        shuffled += marks.of(None)[0]
        for kind, chance in marks.chance:
            expected += chance * marks.of(kind)[1]
            found = proportion(*marks.of(kind))
            within += round(found.low, 9) <= chance <= found.high
            kinds += 1
    how = f"{len(SEEDS)} exams by other seeds, {number} histories each"
    found = proportion(int(shuffled), asked)
    return [
        Figure(
            "Exam: the oracle scores 100 % whatever is drawn",
            how,
            f"{oracle:,} of {asked:,}",
            "all",
            oracle == asked,
        ),
        Figure(
            "Exam: shuffled memory scores chance",
            how,
            f"{100 * found.value:.2f} % [{100 * found.low:.2f}, {100 * found.high:.2f}];"
            f" by kind within the interval {within} of {kinds}",
            f"chance, {100 * expected / asked:.2f} %, in the interval",
            found.low <= expected / asked <= found.high,
        ),
    ]
