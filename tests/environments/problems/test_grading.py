"""Grading within bounds: what hangs or takes all memory costs one answer, and not the run."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from langgraft._core.errors import InfrastructureError, MissingExtraError, SettingsError
from langgraft.environments.problems import AnswerGrader, Grade


@pytest.fixture(scope="module")
def grader() -> Iterator[AnswerGrader]:
    """A grader with time enough."""
    with AnswerGrader(seconds=60) as made:
        yield made


def test_reply_is_graded_by_its_answer(grader: AnswerGrader) -> None:
    """The grade tells what was extracted, and what found it equal."""
    assert grader.grade(r"So $\boxed{\frac{2}{4}}$.", "0.5") == Grade(
        True, r"\frac{2}{4}", "number"
    )
    assert grader.grade("I give up.", "0.5") == Grade(correct=False, answer="")
    assert not grader.grade(r"\boxed{0.4}", "0.5").correct


@pytest.mark.parametrize("answer", ["9^{9^{9^{9^{9}}}}", "(((((2^{99})!)!)!)!)!"])
def test_answer_when_algebra_has_no_end_then_is_wrong_and_the_next_is_graded(
    grader: AnswerGrader, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails by name, within its time; a process that had to be ended is replaced."""
    with monkeypatch.context() as patch:
        patch.setattr(grader, "_seconds", 4)
        found = grader.compare(answer, "x+1")
    assert not found.correct
    assert found.failure in {"time", "memory", "OverflowError"}
    assert grader.compare("x+x", "2x").stage == "symbolic"


def test_grader_is_shared_by_threads(grader: AnswerGrader) -> None:
    """Each thread gets its own grade."""
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: grader.compare(f"{n}.0", str(n % 7)), range(20)))
    assert [each.correct for each in found] == [n < 7 for n in range(20)]


def test_grader_when_its_process_does_not_start_then_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The missing extra by name, else that it did not start."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with AnswerGrader() as broken, pytest.raises(InfrastructureError, match="did not start"):
        broken.compare("1", "2")
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with AnswerGrader() as lacking, pytest.raises(MissingExtraError, match=r"langgraft\[math\]"):
        lacking.compare("1", "2")


@pytest.mark.parametrize("bounds", [{"seconds": 0}, {"megabytes": -1}])
def test_grader_when_a_bound_is_not_positive_is_refused(bounds: dict[str, int]) -> None:
    """By name."""
    with pytest.raises(SettingsError, match=f"{next(iter(bounds))} must be positive"):
        AnswerGrader(**bounds)
