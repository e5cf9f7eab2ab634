"""Whether two answers are the same: numbers within 1e-4, else by symbolic equality (memory-transplants §4.1).

Mathematics may take any time and memory: call `equal` where both are limited (`grading`).
"""

import importlib
import logging
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, Final, Literal, TypeAlias

from langgraft._core.lazy import require
from langgraft.environments.problems.answers import Answer, Expression, Several, readings

Stage: TypeAlias = Literal["text", "number", "symbolic"]
"""What found two answers equal: the same text, numbers within the tolerance, algebra."""

TOLERANCE: Final = 1e-4
"""Largest difference of numbers that are equal (memory-transplants §4.1) …"""
_SHARE: Final = 0.01
"""… unless it is more than this share of the right one: 0.0001 is not 0."""

_STAGES: Final[tuple[Stage, ...]] = ("text", "number", "symbolic")
_NUMBER: Final = re.compile(
    r"([+-]?)\s*(?:(\d+(?:\.\d*)?|\.\d+)(?:\s*/\s*(\d+))?|\\frac\{([+-]?\d+)\}\{([+-]?\d+)\})"
)
_SUM: Final = re.compile(r"(-?)\((\d+)\+\\frac\{(\d+)\}\{(\d+)\}\)")
_BASED: Final = re.compile(r"([0-9A-Z]+)_\{?(\d+)\}?")


def equal(given: str, right: str) -> Stage | None:
    """Compare two answers.

    Args:
        given: LaTeX or plain text, as `answers.final_answer` returns it.
        right: The right answer.

    Returns:
        The last stage that was needed, or `None` where they are not equal or one cannot be read.
    """
    for ours, theirs in product(readings(given), readings(right)):
        if stage := _same(_with_sides(ours), _with_sides(theirs)):
            return stage
    return None


def _same(given: Answer, right: Answer) -> Stage | None:
    if given == right:
        return "text"
    if isinstance(given, Several) and isinstance(right, Several):
        if given.kind != right.kind or len(given.parts) != len(right.parts):
            return None
        if given.kind in {"set", "union"}:
            return _matched(given.parts, right.parts)
        return _last(_same(*each) for each in zip(given.parts, right.parts, strict=True))
    if isinstance(given, Expression) and isinstance(right, Expression):
        return _same_value(given, right)
    if isinstance(given, Several) or isinstance(right, Several):
        return None
    texts = [each.text.replace(" ", "").casefold() for each in (given, right)]
    return "text" if texts[0] == texts[1] else None


def _matched(given: tuple[Answer, ...], right: tuple[Answer, ...]) -> Stage | None:
    """Pair the members of two sets; equal ones are interchangeable, so the first that fits will do."""
    rest = list(right)
    stages: list[Stage | None] = []
    for one in given:
        found = next(
            ((at, stage) for at, each in enumerate(rest) if (stage := _same(one, each))), None
        )
        if found is None:
            return None
        del rest[found[0]]
        stages.append(found[1])
    return _last(stages)


def _last(stages: Iterable[Stage | None]) -> Stage | None:
    last: Stage = "text"
    for stage in stages:
        if stage is None:
            return None
        last = max(last, stage, key=_STAGES.index)
    return last


def _with_sides(answer: Answer) -> Answer:
    r"""Return an answer with each `\pm` as the two that it stands for; all of one expression go together."""
    if isinstance(answer, Several):
        parts: list[Answer] = []
        for each in map(_with_sides, answer.parts):
            inner = isinstance(each, Several) and each.kind == "set" == answer.kind
            parts += each.parts if inner and isinstance(each, Several) else (each,)
        return Several(answer.kind, tuple(parts))
    if not isinstance(answer, Expression) or not any(
        sign in answer.text for sign in (r"\pm", r"\mp")
    ):
        return answer
    sides = []
    for plus, minus in (("+", "-"), ("-", "+")):
        text = answer.text.replace(r"\pm", plus).replace(r"\mp", minus).strip()
        sides.append(
            Expression(text.removeprefix("+").strip(), answer.unit, answer.percent, answer.names)
        )
    return Several("set", tuple(sides))


def _same_value(given: Expression, right: Expression) -> Stage | None:
    if given.unit and right.unit and given.unit != right.unit:
        return None
    scales = [(1, 1)]
    if given.percent != right.percent:
        scales.append((100, 1) if right.percent else (1, 100))
    for ours, theirs in scales:
        if stage := _same_expression(given, right, ours, theirs):
            return stage
    return None


def _same_expression(given: Expression, right: Expression, ours: int, theirs: int) -> Stage | None:
    equations = [bool(each.names) or "=" in each.text for each in (given, right)]
    if all(equations) and given.names != right.names:
        texts = _equation(given), _equation(right)
        return "symbolic" if _symbolic(*texts) else None
    if given.text == right.text and ours == theirs:
        return "text"
    based = [_BASED.fullmatch(each.text.replace(" ", "")) for each in (given, right)]
    if any(based):
        same = all(based) and len({(each[1], each[2]) for each in based if each}) == 1
        return "text" if same else None
    numbers = _number(given.text), _number(right.text)
    if numbers[0] is not None and numbers[1] is not None:
        return "number" if near(float(numbers[0] * ours), float(numbers[1] * theirs)) else None
    texts = (_scaled(given.text, ours), _scaled(right.text, theirs))
    return "symbolic" if _symbolic(*texts) else None


def _equation(one: Expression) -> str:
    return f"{one.names}={one.text}" if one.names else one.text


def near(given: float, right: float) -> bool:
    """Say whether a number is within the tolerance of the right one."""
    return abs(given - right) <= min(TOLERANCE, _SHARE * abs(right))


def _scaled(text: str, by: int) -> str:
    return text if by == 1 else rf"{by}\cdot({text})"


def _number(text: str) -> Fraction | None:
    """Return the value of a numeral, a fraction of numerals or a mixed number."""
    text = text.strip()
    if found := _SUM.fullmatch(text):
        sign, whole, above, below = found.groups()
        if not int(below):
            return None
        value = int(whole) + Fraction(int(above), int(below))
        return -value if sign else value
    if text.startswith("(") and text.endswith(")"):
        return _number(text[1:-1])
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, plain, below, above, under = found.groups()
    if int(below or under or 1) == 0:
        return None
    value = Fraction(plain) / int(below or 1) if plain else Fraction(int(above), int(under))
    return -value if sign == "-" else value


def _symbolic(given: str, right: str) -> bool:
    """Say whether two expressions are equal by algebra."""
    parse, verify = _mathematics()
    parsed = [parse(f"${text}$", parsing_timeout=None) for text in (right, given)]
    if not all(parsed):
        return False
    if verify(*parsed, timeout_seconds=None, float_rounding=4):
        return True
    return any(_difference_is_zero(*each) for each in product(*parsed))


def _difference_is_zero(one: Any, other: Any) -> bool:
    sympy: Any = importlib.import_module("sympy")  # half a second, and the process of a grader only
    if not all(isinstance(each, sympy.Expr) and not each.is_Matrix for each in (one, other)):
        return False
    # The parser gives one letter several symbols: real where nothing says otherwise.
    known = {
        each: sympy.I if each.name == "i" else sympy.Symbol(each.name, real=True)
        for each in one.free_symbols | other.free_symbols
    }
    rest = (one - other).subs(known)
    return bool(sympy.simplify(rest) == 0 or sympy.simplify(sympy.factor(rest, deep=True)) == 0)


@cache
def _mathematics() -> tuple[Callable[..., Any], Callable[..., bool]]:
    found: Any = require("math_verify", extra="math", purpose="Grading by algebra")
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    return found.parse, found.verify
