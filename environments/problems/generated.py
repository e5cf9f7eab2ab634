r"""Small problems of mathematics in two domains, made by seed: a study to try without any download.

    generate("counting")   # choices, orders, paths, remainders, sums
    generate("algebra")    # equations, systems, inequalities, remainders, sums

Both have `remainders` and `sums`: content can transfer there, and nowhere else. Levels 1 to 5 have
growing numbers. Answers are exact; what they are is computed once more, another way, by the tests.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random
from typing import Final

from langgraft._core.errors import InputError
from langgraft.environments.problems.domain import Problem

_Made = tuple[str, str]
"""A statement, and its answer as LaTeX."""

EACH: Final = 20
"""Problems of a kind and level."""


def generate(domain: str, *, seed: int = 0, each: int = EACH) -> tuple[Problem, ...]:
    """Make the problems of a domain; the same seed makes the same.

    Args:
        domain: `counting` or `algebra`.
        seed: Decides the numbers.
        each: Problems of each kind and level.

    Raises:
        InputError: There is no such domain.
    """
    kinds = DOMAINS.get(domain)
    if kinds is None:
        msg = f"no generated problems {domain!r}; there are {', '.join(DOMAINS)}"
        raise InputError(msg)
    made: list[Problem] = []
    texts: set[str] = set()
    for kind, make in kinds.items():
        for level in range(1, 6):
            random = Random(f"{domain}/{kind}/{level}/{seed}")  # noqa: S311  (no secret)
            for number in range(each):
                text, answer = make(random, level)
                while text in texts:
                    text, answer = make(random, level)
                texts.add(text)
                name = f"{domain}/{kind.replace(' ', '-')}/{level}/{number}"
                made.append(Problem(name, text, kind, f"Level {level}", answer))
    return tuple(made)


def _choices(random: Random, level: int) -> _Made:
    size = random.randint(4 + 2 * level, 30 + 10 * level)
    chosen = random.randint(2, min(size - 1, 2 + level))
    text = f"A club has {size} members. In how many ways can it choose {chosen} of them for a trip?"
    return text, str(math.comb(size, chosen))


def _orders(random: Random, level: int) -> _Made:
    size = random.randint(4 + level, 9 + 2 * level)
    together = random.randint(2, min(size - 1, 3 + level))
    thing = random.choice(("books", "flags", "cups", "lamps"))
    text = (
        f"In how many orders can {size} different {thing} stand in a row if {together} given ones of"
        " them stand side by side?"
    )
    return text, str(math.factorial(size - together + 1) * math.factorial(together))


def _paths(random: Random, level: int) -> _Made:
    right, up = random.randint(2, 4 + 2 * level), random.randint(2, 4 + 2 * level)
    start = random.randint(0, 9), random.randint(0, 9)
    end = start[0] + right, start[1] + up
    text = (
        f"In how many ways can one walk from ${start}$ to ${end}$ on a grid, each step one to the right"
        " or one up?"
    )
    return text, str(math.comb(right + up, up))


def _remainders(wording: str) -> Callable[[Random, int], _Made]:
    def make(random: Random, level: int) -> _Made:
        base, power = random.randint(2, 9 + 4 * level), random.randint(3, 10 * level + 5)
        divisor = random.randint(3, 6 + 5 * level)
        text = wording.format(base=base, power=power, divisor=divisor)
        return text, str(pow(base, power, divisor))

    return make


def _sums(wording: str) -> Callable[[Random, int], _Made]:
    def make(random: Random, level: int) -> _Made:
        step, last = random.randint(2, 4 + 3 * level), random.randint(20, 60 * level)
        text = wording.format(step=step, last=last)
        return text, str(sum(range(step, last + 1, step)))

    return make


def _equations(random: Random, level: int) -> _Made:
    a, c = random.sample(range(2, 6 + 4 * level), 2)
    b, d = (random.randint(-10 * level, 10 * level) for _ in range(2))
    text = f"Solve ${_linear(a, b)} = {_linear(c, d)}$ for $x$."
    return text, _latex(Fraction(d - b, a - c))


def _quadratics(random: Random, level: int) -> _Made:
    middle, root = random.randint(-3 * level, 3 * level), random.choice((2, 3, 5, 6, 7, 10, 11))
    factor = random.randint(1, level)
    constant = middle**2 - factor**2 * root
    text = (
        f"What are the two solutions of $x^2 {_signed(-2 * middle)}x {_signed(constant)} = 0$?"
        " Give both, with a comma between."
    )
    surd = f"{'' if factor == 1 else factor}\\sqrt{{{root}}}"
    return text, f"{middle}+{surd}, {middle}-{surd}"


def _systems(random: Random, level: int) -> _Made:
    x, y = (random.randint(-4 * level, 4 * level) for _ in range(2))
    while True:
        a, b, c, d = (random.randint(1, 3 + 2 * level) for _ in range(4))
        if a * d != b * c:
            break
    text = (
        f"Which pair $(x, y)$ solves both ${a}x + {b}y = {a * x + b * y}$ and"
        f" ${c}x + {d}y = {c * x + d * y}$?"
    )
    return text, f"({x},{y})"


def _inequalities(random: Random, level: int) -> _Made:
    factor, shift = random.randint(2, 4 + 2 * level), random.randint(-9 * level, 9 * level)
    bound = random.randint(-9 * level, 9 * level)
    text = f"For which real $x$ is ${_linear(factor, shift)} < {bound}$? Answer with an interval."
    return text, f"(-\\infty,{_latex(Fraction(bound - shift, factor))})"


def _linear(factor: int, shift: int) -> str:
    return f"{factor}x {_signed(shift)}"


def _signed(number: int) -> str:
    return f"- {-number}" if number < 0 else f"+ {number}"


def _latex(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


DOMAINS: Final[Mapping[str, Mapping[str, Callable[[Random, int], _Made]]]] = {
    "counting": {
        "choices": _choices,
        "orders": _orders,
        "paths": _paths,
        "remainders": _remainders(
            "{base} boxes hold {base} boxes each, and so on, {power} times over. How many boxes of the"
            " smallest size are left when they are packed in crates of {divisor}, as many crates as"
            " can be filled? There are ${base}^{{{power}}}$ of them."
        ),
        "sums": _sums(
            "Every {step}th of {last} houses gets as many letters as its number says. How many letters"
            " is that in all?"
        ),
    },
    "algebra": {
        "equations": _equations,
        "quadratics": _quadratics,
        "systems": _systems,
        "inequalities": _inequalities,
        "remainders": _remainders(
            "What is the remainder when ${base}^{{{power}}}$ is divided by ${divisor}$?"
        ),
        "sums": _sums("What is the sum of all multiples of ${step}$ from $1$ to ${last}$?"),
    },
}
"""Domain → kind → what makes a problem of it at a level."""
