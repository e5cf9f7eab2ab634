"""What the page says in words: which published signs are found again, and what Raw and Insight do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langgraft.benchmarks.continual.metrics import Direction, Transfer
from langgraft.benchmarks.continual.paper.counterparts import Cast, Side
from langgraft.benchmarks.published import ROLES, Role
from langgraft.benchmarks.reporting.words import change, listing, points, several

Verdict: TypeAlias = Literal["same sign", "opposite sign", "cannot be told from 0", "no data"]

_DIRECTIONS: Final[tuple[tuple[Direction, str], ...]] = (
    ("forward", "forward transfer"),
    ("backward", "backward transfer"),
)


@dataclass(frozen=True, slots=True)
class Sign:
    """A published transfer, and what ours says of its sign."""

    side: Side
    direction: Direction
    sequence: str
    role: Role
    published: float
    row: Transfer | None
    verdict: Verdict


def signs(sides: Sequence[Side], cast: Cast) -> tuple[Sign, ...]:
    """Hold each published transfer that is not 0 to the interval of ours."""
    return tuple(
        Sign(side, direction, sequence, role, value, row, _verdict(row, value))
        for side in sides
        for direction, _ in _DIRECTIONS
        for sequence in side.analysis.study.sequences
        for role in cast
        for value in (_value(side, direction, sequence, role),)
        if value
        for row in (side.row(direction, sequence, cast[role].name),)
    )


def _value(side: Side, direction: Direction, sequence: str, role: Role) -> float | None:
    if direction == "forward":
        forward = side.forward(sequence, role)
        return None if forward is None else forward.transfer
    backward = side.backward(sequence, role, 1 if role == "raw" else 2)
    return None if backward is None else backward.transfer


def _verdict(row: Transfer | None, published: float) -> Verdict:
    if row is None or row.transfer.estimate is None:
        return "no data"
    estimate = row.transfer.estimate
    if not row.transfer.complete or estimate.low <= 0 <= estimate.high:
        return "cannot be told from 0"
    return "same sign" if (estimate.value > 0) == (published > 0) else "opposite sign"


def sentences(sides: Sequence[Side], cast: Cast) -> tuple[str, ...]:
    """Say what Raw and Insight do from the first task to the second, then whose signs come again."""
    return (*_study_1(sides, cast), *_agreement(sides, signs(sides, cast)))


def _study_1(sides: Sequence[Side], cast: Cast) -> Iterator[str]:
    for role in ("raw", "agg"):
        told = [text for side in sides for text in _one(side, cast, role)]
        if told:
            name = ROLES[role].partition(" ")[0]
            yield f"Forward transfer of {name}: {listing(told)}."


def _one(side: Side, cast: Cast, role: Role) -> Iterator[str]:
    for sequence in side.analysis.study.sequences:
        row = None if role not in cast else side.row("forward", sequence, cast[role].name)
        if row is None or row.transfer.estimate is None:
            continue
        text = f"{points(row.transfer.estimate)} on {side.name} {sequence.replace('>', '→')}"
        printed = side.forward(sequence, role)
        yield text if printed is None else f"{text} (published {change(printed.transfer)})"


def _agreement(sides: Sequence[Side], found: Sequence[Sign]) -> Iterator[str]:
    for side in sides:
        for direction, name in _DIRECTIONS:
            mine = [sign for sign in found if (sign.side, sign.direction) == (side, direction)]
            known = [sign.verdict for sign in mine if sign.verdict != "no data"]
            if known:
                counts = (known.count(v) for v in ("same sign", "opposite sign"))
                same, opposite = counts
                yield (
                    f"{side.name}: of {several(len(known), 'published value')} of {name} other than"
                    f" 0, ours has the same sign in {same} and the opposite one in {opposite}; in"
                    f" {len(known) - same - opposite} it cannot be told from 0."
                )
