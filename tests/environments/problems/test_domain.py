"""Domains of problems: grading as a solver is told of it, draws, and the generated ones."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sympy  # type: ignore[import-untyped]

from langgraft._core.errors import InputError
from langgraft.environments.problems.domain import AnswerDomain, Problem
from langgraft.environments.problems.generated import DOMAINS, generate
from langgraft.environments.problems.grading import KNOWN, wrongly_judged
from langgraft.environments.problems.splits import statement

HALF = Problem("half", "What is half of one?", "Fractions", "Level 1", r"\frac12")


@pytest.fixture(scope="module")
def domain() -> Iterator[AnswerDomain]:
    """Open a domain with one problem."""
    opened = AnswerDomain("math", [HALF])
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("reply", "correct", "answer", "reason"),
    [
        (r"So it is $\boxed{0.5}$.", True, "0.5", "goal reached"),
        (r"So it is $\boxed{\frac{1}{3}}$.", False, r"\frac{1}{3}", "wrong answer"),
        ("I do not know.", False, "", "no answer"),
    ],
)
def test_reply_when_graded_says_what_a_solver_may_be_told(
    domain: AnswerDomain, reply: str, correct: bool, answer: str, reason: str
) -> None:
    """Right or wrong, and never the right answer."""
    grade = domain.grade(reply, HALF)
    assert (grade.correct, grade.answer, grade.reason) == (correct, answer, reason)
    assert "frac12" not in grade.feedback
    assert "0.5" not in grade.feedback


def test_reply_when_its_last_token_is_another_is_graded_by_both(domain: AnswerDomain) -> None:
    """The paper takes the last token; we take the box."""
    grade = domain.grade(r"It is $\boxed{0.5}$, as step 7 says: 7", HALF)
    assert (grade.correct, grade.by_last_token) == (True, False)


def test_domain_when_it_holds_nothing_or_an_id_twice_refuses() -> None:
    """One line that names what is wrong."""
    with pytest.raises(InputError, match="holds no problems"):
        AnswerDomain("math", [])
    with pytest.raises(InputError, match="two problems have the id 'half'"):
        AnswerDomain("math", [HALF, HALF])


def test_grader_when_checked_on_known_pairs_judges_all_of_them_rightly() -> None:
    """And one that takes everything for right does not."""
    assert wrongly_judged() == ()
    assert len(wrongly_judged(lambda given, right: True)) == sum(not each[2] for each in KNOWN)


# Generated ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DOMAINS)
def test_problems_when_generated_are_the_same_each_time_and_never_twice(name: str) -> None:
    """20 of each kind and level, all statements distinct."""
    made = generate(name)
    assert made == generate(name)
    assert made != generate(name, seed=1)
    assert len(made) == len(DOMAINS[name]) * 5 * 20 == len({statement(each) for each in made})
    assert {each.level for each in made} == {f"Level {n}" for n in range(1, 6)}


def test_problems_when_there_is_no_such_domain_says_which_there_are() -> None:
    """One line."""
    with pytest.raises(InputError, match="'geometry'; there are counting, algebra"):
        generate("geometry")


def test_answers_when_computed_another_way_are_the_same() -> None:
    """By enumeration, repeated multiplication or sympy's solver, from the statement alone."""
    for name in DOMAINS:
        for each in generate(name, each=4):
            assert _again(each) == each.answer, each.text


def _again(problem: Problem) -> str:
    numbers = [int(each) for each in re.findall(r"-?\d+", problem.text)]
    if problem.kind in _COUNTED:
        return str(_COUNTED[problem.kind](numbers))
    return _SOLVED[problem.kind](_formulas(problem.text))


def _ways(size: int, chosen: int) -> int:
    ways = [1] + [0] * chosen
    for _ in range(size):
        ways = [1, *(ways[k] + ways[k - 1] for k in range(1, chosen + 1))]
    return ways[chosen]


def _paths(x0: int, y0: int, x1: int, y1: int) -> int:
    row = [1] * (y1 - y0 + 1)
    for _ in range(x1 - x0):
        for at in range(1, len(row)):
            row[at] += row[at - 1]
    return row[-1]


def _rest(numbers: list[int]) -> int:
    # The story of the boxes says the base twice, and all of it again at its end.
    base, power, divisor = numbers if len(numbers) == 3 else (numbers[0], *numbers[2:4])
    rest = 1
    for _ in range(power):
        rest = rest * base % divisor
    return rest


def _multiples(numbers: list[int]) -> int:
    step, last = numbers[0], numbers[-1]
    return sum(n for n in range(1, last + 1) if n % step == 0)


_COUNTED: dict[str, Callable[[list[int]], int]] = {
    "choices": lambda numbers: _ways(*numbers),
    "orders": lambda numbers: (
        math.prod(range(1, numbers[0] - numbers[1] + 2)) * math.prod(range(1, numbers[1] + 1))
    ),
    "paths": lambda numbers: _paths(*numbers),
    "remainders": _rest,
    "sums": _multiples,
}
X, Y = sympy.symbols("x y", real=True)


def _formulas(text: str) -> list[Any]:
    """Return what stands on both sides of each equation or inequality."""
    found = []
    for part in re.findall(r"\$([^$]*[=<][^$]*)\$", text):
        written = re.sub(r"(\d)([xy])", r"\1*\2", part.replace("^", "**"))
        left, right = re.split("[=<]", written)
        found.append(sympy.sympify(left, {"x": X, "y": Y}) - sympy.sympify(right, {"x": X, "y": Y}))
    return found


def _roots(formulas: list[Any]) -> str:
    low, high = sorted(sympy.solve(formulas[0], X))
    surd = sympy.latex(sympy.simplify((high - low) / 2)).replace(" ", "")
    middle = sympy.simplify((low + high) / 2)
    return f"{middle}+{surd}, {middle}-{surd}"


def _pair(formulas: list[Any]) -> str:
    found = sympy.solve(formulas, [X, Y])
    return f"({found[X]},{found[Y]})"


def _fraction(value: Any) -> str:
    if value.q == 1:
        return str(value.p)
    return f"{'-' if value < 0 else ''}\\frac{{{abs(value.p)}}}{{{value.q}}}"


_SOLVED: dict[str, Callable[[list[Any]], str]] = {
    "equations": lambda formulas: _fraction(sympy.solve(formulas[0], X)[0]),
    "quadratics": _roots,
    "systems": _pair,
    "inequalities": lambda formulas: f"(-\\infty,{_fraction(sympy.solve(formulas[0], X)[0])})",
}
