r"""A domain of problems: what they say, and who grades replies to them.

domain = AnswerDomain("math", (Problem.of_math(each) for each in read_math("MATH/train")))
domain.grade(r"It is $\boxed{5}$.", domain.problems["algebra/24"]).correct
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Self

from typing_extensions import override

from langgraft._core.errors import InputError
from langgraft.environments.problems.answers import final_answer, last_token
from langgraft.environments.problems.grading import AnswerGrader, Grade
from langgraft.environments.problems.math_problems import MathProblem

RIGHT: Final = "goal reached"
"""Why an attempt at a problem ended, where it is solved."""
WRONG: Final = "wrong answer"
NO_ANSWER: Final = "no answer"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem as a solver sees it, and what only its grader sees."""

    id: str
    text: str
    """The task, whole."""
    kind: str
    """What it is about, as its source says: a subject, a platform."""
    level: str
    """How hard it is, as its source says."""
    answer: str = field(repr=False)
    """What it is graded by; no solver and no memory sees it. Empty: it cannot be."""
    known: tuple[str, str] | None = field(default=None, repr=False)
    """Of a problem of code: a program that solves it and one that does not; empty: none is known.
    For the simulated solver; no other solver, no memory and no grader sees them."""

    @classmethod
    def of_math(cls, given: MathProblem) -> Self:
        """Return a problem of MATH."""
        level = "?" if given.level is None else str(given.level)
        return cls(given.id, given.text, given.subject, f"Level {level}", given.answer)


@dataclass(frozen=True, slots=True)
class GradedReply:
    """What came of grading a reply."""

    correct: bool
    work: str
    """The reply as far as it is no result: what a memory keeps as the thought."""
    answer: str
    """The result it gives; empty: none."""
    reason: str
    """Why it counts as it does: `goal reached`, `wrong answer`, `no answer`, or what failed."""
    feedback: str
    """The same as a solver may be told, without anything of the right answer."""
    stage: str = ""
    """What found it equal to the right one."""
    by_last_token: bool | None = None
    """What the last token alone would count as (memory-transplants §4.1); `None`: it says nothing."""


class ProblemDomain(ABC):
    """Problems of one domain, and their grader.

    Args:
        name: The domain's, as items of memory will say it (`source_domain`).
        problems: What it holds.

    Raises:
        InputError: It holds none, or two of one id.
    """

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.name = name
        found: dict[str, Problem] = {}
        for each in problems:
            if each.id in found:
                msg = f"domain {name!r}: two problems have the id {each.id!r}"
                raise InputError(msg)
            found[each.id] = each
        if not found:
            msg = f"domain {name!r} holds no problems"
            raise InputError(msg)
        self.problems: Mapping[str, Problem] = found

    @abstractmethod
    def grade(self, reply: str, problem: Problem) -> GradedReply:
        """Grade a reply, from any thread; equal replies get equal grades."""

    def make_ready(self) -> None:  # noqa: B027  (not every grader needs anything)
        """Check that replies can be graded here, before anything is run.

        Raises:
            LanggraftError: They cannot; it says what is missing.
        """

    def close(self) -> None:  # noqa: B027  (not every grader holds anything)
        """Free what grading holds."""


class AnswerDomain(ProblemDomain):
    """Problems with an answer that mathematics compares, such as MATH."""

    def __init__(
        self, name: str, problems: Iterable[Problem], *, grader: AnswerGrader | None = None
    ) -> None:
        super().__init__(name, problems)
        self._grader = grader or AnswerGrader()
        self._compared: dict[tuple[str, str], Grade] = {}
        self._lock = Lock()

    @override
    def grade(self, reply: str, problem: Problem) -> GradedReply:
        answer = final_answer(reply)
        grade = self._compare(answer, problem.answer)
        token = self._compare(last_token(reply), problem.answer)
        reason = RIGHT if grade.correct else grade.failure or (WRONG if answer else NO_ANSWER)
        return GradedReply(
            correct=grade.correct,
            work=reply,
            answer=answer,
            reason=reason,
            feedback=_FEEDBACK.get(reason, "The answer is wrong."),
            stage=grade.stage or "",
            by_last_token=token.correct,
        )

    def _compare(self, answer: str, right: str) -> Grade:
        if not answer:
            return Grade(correct=False, answer="")
        with self._lock:
            known = self._compared.get((answer, right))
        if known is None:
            known = self._grader.compare(answer, right)
            with self._lock:
                self._compared[answer, right] = known
        return known

    @override
    def close(self) -> None:
        self._grader.close()


_FEEDBACK: Final = {
    RIGHT: "The answer is right.",
    NO_ANSWER: "The reply gives no answer.",
}
