"""Which rows are for training and which for the test, and in which order they are shown."""

from collections.abc import Sequence
from dataclasses import dataclass

from langgraft.environments.competitions.shipped.making.draws import Integers, order


@dataclass(frozen=True, slots=True)
class Split:
    """Positions in the source, in the order in which rows are written and numbered."""

    train: Integers
    test: Integers


def split(key: str, labels: Sequence[object], test: float) -> Split:
    """Part rows at random, with equal shares of every label.

    Args:
        key: Names the split.
        labels: One for each row.
        test: Share of the rows that is for the test.
    """
    taken: list[int] = []
    for label in sorted(set(labels), key=str):
        rows = [row for row, other in enumerate(labels) if other == label]
        shuffled = order(f"{key} share of {label}", len(rows))
        taken += [rows[place] for place in shuffled[: round(test * len(rows))]]
    held = set(taken)
    shown = order(f"{key} order", len(labels))  # says nothing of labels
    return Split(
        train=shown[[row not in held for row in shown.tolist()]],
        test=shown[[row in held for row in shown.tolist()]],
    )
