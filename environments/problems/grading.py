r"""Grade replies to problems of mathematics: extract, compare numbers, compare by algebra.

    with AnswerGrader() as grader:
        grader.grade(r"So it is $\boxed{\frac{2}{4}}$.", "0.5")  # Grade(correct=True, …, stage="number")

Algebra may hang or take all memory, so it is done in a process of the grader's own, which is ended
and replaced when an answer takes more than it may. As a program this module is that process.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import Final, Self

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft._core.lazy import require
from langgraft.environments.problems.answers import final_answer
from langgraft.environments.problems.equality import Stage, equal

_START_SECONDS: Final = 120.0
"""How long the process may take to begin; sympy is loaded then."""


@dataclass(frozen=True, slots=True)
class Grade:
    """What came of grading a reply."""

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
