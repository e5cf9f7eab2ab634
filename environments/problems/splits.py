r"""Draws of problems for the study of transplants: seeded, named, and apart from one another (memory-transplants §4.1).

    evaluation = draw("math-eval", problems, MATH_EVALUATION, seed=0, stratum=by_level)
    builds = [
        draw("math-build", problems, {True: 30}, seed=seed, stratum=is_whole, apart_from=evaluation)
        for seed in range(3)
    ]

Problems have places in a ranking by a digest of the draw's name, its seed and their ids, and the first are
drawn: a problem that is added somewhere displaces one at most.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final, Protocol, TypeVar

from langgraft._core.canonical import seeded_fraction
from langgraft._core.errors import InputError, SettingsError
from langgraft.environments.problems.math_problems import MathProblem

CODE_BUILD: Final = 60
"""Problems of code that a memory is built on (memory-transplants §4.1)."""
MATH_BUILD: Final = 30
"""Problems of MATH that a memory is built on (memory-transplants §4.1)."""
MATH_EVALUATION: Final[Mapping[int, int]] = {3: 25, 4: 35, 5: 40}
"""Problems of MATH of each level that memories are tried on (memory-transplants App. E)."""

_BLANK: Final = re.compile(r"\\[,;:! ]|\\q?quad(?![a-zA-Z])|\\(?:left|right)(?![a-zA-Z])|[\s~$]+")


class Problem(Protocol):
    """What can be drawn."""

    @property
    def id(self) -> str:
        """Its name, the same wherever it is read."""

    @property
    def text(self) -> str:
        """Its statement."""


P = TypeVar("P", bound=Problem)
S = TypeVar("S", bound=Hashable)


def statement(problem: Problem) -> str:
    r"""Return a statement as it is compared: without case, white space, `$`, `~`, `\,` and its like, `\left` and `\right`."""
    return _BLANK.sub("", problem.text).casefold()


def is_whole(problem: MathProblem) -> bool | None:
    """Return the one stratum of all problems of MATH with a level and an answer, and `None` for others."""
    return True if problem.level and problem.answer else None


def by_level(problem: MathProblem) -> int | None:
    """Return the level of a problem of MATH that has an answer, and `None` for others."""
    return problem.level if problem.answer else None


def shared_out(size: int, shares: Mapping[S, int]) -> dict[S, int]:
    """Return how many of `size` problems each stratum has; what is left over goes to the largest remainders.

    Raises:
        SettingsError: `size` or a share is not positive.
    """
    if size < 1 or not shares or min(shares.values()) < 1:
        msg = f"size and shares must be positive, got {size} and {dict(shares)}"
        raise SettingsError(msg)
    whole = sum(shares.values())
    counts = {each: size * share // whole for each, share in shares.items()}
    remainders = sorted(shares, key=lambda each: -(size * shares[each] % whole))
    for each in remainders[: size - sum(counts.values())]:
        counts[each] += 1
    return counts


def draw(
    name: str,
    problems: Iterable[P],
    counts: Mapping[S, int],
    *,
    seed: int,
    stratum: Callable[[P], S | None],
    apart_from: Iterable[Problem] = (),
) -> tuple[P, ...]:
    """Draw problems, so many of each stratum; they come by stratum, each in the order of the ranking.

    Args:
        name: Of the draw; draws of other names are independent.
        problems: To draw from. Of those with one id or one statement only the first is ever drawn.
        counts: How many of each stratum.
        seed: Of the draw.
        stratum: That a problem belongs to; `None` for one that is never drawn.
        apart_from: Problems that are not drawn, nor others with their id or their statement.

    Raises:
        InputError: A stratum holds too few problems; it says how many.
    """
    taken = {mark for each in apart_from for mark in _marks(each)}
    found: dict[S, list[P]] = {each: [] for each in counts}
    for each in problems:
        marks = _marks(each)
        place = stratum(each)
        if taken.isdisjoint(marks) and place is not None and place in found:
            found[place].append(each)
        taken |= marks
    short = [
        f"{len(found[each])} of {count} in stratum {each!r}"
        for each, count in counts.items()
        if len(found[each]) < count
    ]
    if short:
        msg = f"{name}: too few problems to draw from: {', '.join(short)}"
        raise InputError(msg)
    return tuple(
        problem
        for each, count in counts.items()
        for problem in _ranked(name, found[each], seed)[:count]
    )


def require_apart(draws: Mapping[str, Sequence[Problem]]) -> None:
    """Raise where draws, by their names, share an id or a statement (gate G1, memory-transplants App. C).

    Raises:
        InputError: It names the first two draws that do, and says how many problems they share.
    """
    for (one, first), (other, second) in combinations(draws.items(), 2):
        taken = {mark for each in first for mark in _marks(each)}
        if shared := [each.id for each in second if taken & _marks(each)]:
            msg = f"{one} ({len(first)}) and {other} ({len(second)}) share {len(shared)}: {shared[:5]}"
            raise InputError(msg)


def stream_order(problems: Iterable[P], seed: int) -> tuple[P, ...]:
    """Return problems in the order that an agent of this seed meets them (gate G4, memory-transplants App. C)."""
    return tuple(_ranked("stream", problems, seed))


def _marks(problem: Problem) -> set[tuple[str, str]]:
    """Return what no two draws may share."""
    return {("id", problem.id), ("statement", statement(problem))}


def _ranked(name: str, problems: Iterable[P], seed: int) -> list[P]:
    return sorted(problems, key=lambda each: (seeded_fraction(name, seed, each.id), each.id))
