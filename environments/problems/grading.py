r"""Grade replies to problems of mathematics: extract, compare numbers, compare by algebra.

    with AnswerGrader() as grader:
        grader.grade(r"So it is $\boxed{\frac{2}{4}}$.", "0.5")  # Grade(correct=True, …, stage="number")

Two answers are the same if they are numbers within 1e-4, or else symbolically equal
(memory-transplants §4.1). Algebra may hang or take all memory, so it is done in a process of the
grader's own, which is ended and replaced when an answer takes more than it may. As a program this
module is that process.
"""

import importlib
import json
import logging
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product
from threading import Lock
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft._core.lazy import require
from langgraft.environments.problems.answers import (
    Answer,
    Expression,
    Several,
    final_answer,
    readings,
)

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
    parsed = [parse(f"${text}$") for text in (right, given)]
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
    # As LaTeX only: it would take the first number of what it cannot read for all of it.
    latex = [found.LatexExtractionConfig()]
    return partial(found.parse, extraction_config=latex, parsing_timeout=None), found.verify


_START_SECONDS: Final = 120.0
"""How long the process may take to begin; sympy is loaded then."""


@dataclass(frozen=True, slots=True)
class Grade:
    """What came of grading a reply. `correct`: the answers are the same."""

    correct: bool
    answer: str
    """What the reply gives as its answer; empty where it gives none."""
    stage: Stage | None = None
    """What found it equal to the right one; `None` where it is not."""
    failure: str = ""
    """Why the two could not be compared: `time`, `memory`, or what algebra raised. It counts as wrong."""


class AnswerGrader:
    """Grades answers within bounds of time and memory, from any thread.

    Args:
        seconds: Wall clock of one comparison.
        megabytes: Memory of the process that compares.

    Raises:
        SettingsError: A bound is not positive.
    """

    def __init__(self, *, seconds: float = 10.0, megabytes: int = 2048) -> None:
        for name, value in (("seconds", seconds), ("megabytes", megabytes)):
            if not value > 0:
                msg = f"{name} must be positive, got {value!r}"
                raise SettingsError(msg)
        self._seconds = seconds
        self._megabytes = megabytes
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; another call starts a new one."""
        with self._lock:
            self._end()

    def grade(self, reply: str, right: str) -> Grade:
        """Grade what a reply gives as its answer.

        Args:
            reply: All that a solver said.
            right: The right answer; of a whole solution, what its last box holds.

        Raises:
            MissingExtraError: The extra `math` is not installed.
            InfrastructureError: The process that compares does not start.
        """
        answer = final_answer(reply)
        if r"\boxed" in right:
            right = final_answer(right)
        return self.compare(answer, right) if answer else Grade(correct=False, answer="")

    def compare(self, answer: str, right: str) -> Grade:
        """Grade an answer that was extracted already."""
        with self._lock:
            stage, failure = self._ask(answer, right)
        return Grade(stage is not None, answer, stage, failure)

    def _ask(self, answer: str, right: str) -> tuple[Stage | None, str]:
        process = self._process or self._start()
        try:
            _send(process, [answer, right])
            stage, failure = json.loads(_received(process, self._seconds))
        except (OSError, ValueError):  # nothing came in time, or the process died
            dead = process.poll() is not None
            self._end()
            return None, "memory" if dead else "time"
        return stage, failure

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", __name__, str(self._megabytes)]
        process = subprocess.Popen(  # noqa: S603  (this module)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._process = process
        try:
            _received(process, _START_SECONDS)
        except OSError as error:
            self._end()
            require("math_verify", extra="math", purpose="Grading by algebra")
            msg = "the process that compares answers did not start"
            raise InfrastructureError(msg) from error
        return process

    def _end(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        process.communicate()


KNOWN: Final = (
    (r"\frac{1}{2}", "0.5", True),
    (r"\dfrac{3}{4}", r"\frac{6}{8}", True),
    (r"\frac{1}{2}", r"\frac{1}{3}", False),
    ("1.50", r"\frac{3}{2}", True),
    ("0.33", r"\frac{1}{3}", False),
    (r"2\sqrt{3}", r"\sqrt{12}", True),
    (r"\sqrt{3}", r"\sqrt{2}", False),
    (r"x^2+2x+1", r"(x+1)^2", True),
    (r"x^2+2x-1", r"(x+1)^2", False),
    ("(1,2)", "(1, 2)", True),
    ("(1,2)", "(2,1)", False),
    (r"\{1,2,3\}", r"\{3,2,1\}", True),
    ("[0,1)", "[0,1)", True),
    ("[0,1)", "[0,1]", False),
    (r"(-\infty,3)", "x<3", True),
    (r"1 \pm \sqrt{3}", r"1+\sqrt{3}, 1-\sqrt{3}", True),
    (r"50\%", "50", True),
    (r"5\text{ cm}", "5", True),
    (r"30^\circ", "30", True),
    (r"2\frac{1}{2}", "2.5", True),
    (r"\text{(C)}", "C", True),
    (r"\text{(C)}", "D", False),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix}1\\2\end{bmatrix}", True),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}", False),
    ("1,000", "1000", True),
    ("1000", "100", False),
)
"""A given answer, a right one, and whether the first counts: what a grader is checked on before a study
(memory-transplants App. C, gate G3)."""


def wrongly_judged(
    compare: Callable[[str, str], bool] | None = None,
) -> tuple[tuple[str, str, bool], ...]:
    """Return the known pairs that a grader judges otherwise; none, if it can be trusted.

    Args:
        compare: Says whether an answer counts, given the right one; `None`: `AnswerGrader`.
    """
    if compare is not None:
        return tuple(each for each in KNOWN if compare(each[0], each[1]) is not each[2])
    with AnswerGrader() as grader:
        return wrongly_judged(lambda given, right: grader.compare(given, right).correct)


def _send(process: subprocess.Popen[bytes], value: object) -> None:
    if process.stdin is None:
        raise OSError
    process.stdin.write(json.dumps(value).encode() + b"\n")
    process.stdin.flush()


def _received(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """Return a line of the process.

    Raises:
        OSError: None came in time, or the process ended.
    """
    if process.stdout is None:
        raise OSError
    line, until = b"", time.monotonic() + seconds
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not ready.select(max(until - time.monotonic(), 0)):
                raise TimeoutError
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                process.wait()
                raise OSError
            line += part
    return line


def _serve(megabytes: int) -> None:
    """Compare what comes in, a line each."""
    import resource  # noqa: PLC0415  (there is none on Windows)

    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print is no answer
    equal("x+x", "2x")
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    answers.write(b"ready\n")
    for line in sys.stdin.buffer:
        answers.write(json.dumps(_compared(*json.loads(line))).encode() + b"\n")


def _compared(answer: str, right: str) -> tuple[Stage | None, str]:
    try:
        return equal(answer, right), ""
    except MemoryError:
        return None, "memory"
    except Exception as error:  # noqa: BLE001  (whatever algebra raises on what models write)
        return None, type(error).__name__


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
