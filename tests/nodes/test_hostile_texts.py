"""Whatever a model, a tool or a foreign file says is read in linear time and within bounds, or refused in our words."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

import pytest
from hostile_texts import LONG, MOST_MIB, READERS, begun, cost_of, repeated

from langgraft import environments, nodes
from langgraft._core import untrusted
from langgraft._core.errors import ActionFormatError, LanggraftError
from langgraft._core.untrusted import bounded, parse_program, unreadable_as
from langgraft.environments.competitions.attempts import find_leaks
from langgraft.environments.problems import AnswerGrader
from langgraft.environments.problems.answers import final_answer
from langgraft.environments.problems.code_grading import find_program
from langgraft.environments.problems.domain import AnswerDomain, Problem
from langgraft.nodes.program_text import read_program


@pytest.mark.parametrize("reader", READERS)
def test_text_when_it_repeats_itself_then_costs_at_most_in_proportion(reader: str) -> None:
    """Ten times the text costs at most 15 times as much, within bounds of memory."""
    found = cost_of(reader, 1_000, repeated(LONG))
    assert not found.problems
    assert found.mib < MOST_MIB


@pytest.mark.matrix
@pytest.mark.parametrize("reader", READERS)
def test_text_when_it_never_ends_what_it_begins_then_costs_at_most_in_proportion(
    reader: str,
) -> None:
    """That holds for each beginning that a reader looks for, and each filling."""
    found = cost_of(reader, 1_000, {**repeated(), **begun()})
    assert not found.problems
    assert found.mib < MOST_MIB


@pytest.mark.matrix
@pytest.mark.parametrize("reader", READERS)
def test_text_when_it_has_a_million_characters_then_costs_at_most_in_proportion(
    reader: str,
) -> None:
    """From 100,000 to 1,000,000 characters the cost grows at most 15 times, within bounds of memory."""
    found = cost_of(reader, 100_000, repeated(LONG))
    assert not found.problems
    assert found.mib < MOST_MIB


def test_reader_when_it_is_guarded_then_is_among_those_tried() -> None:
    """A reader of model text that is added is tried by these tests, or fails this one."""
    for room in (nodes, environments.problems, environments.competitions):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if "shipped" not in module.name and not module.name.endswith(("_program", "_harness")):
                importlib.import_module(module.name)
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for read in READERS.values():
            with suppress(LanggraftError):
                read("a")
    finally:
        sys.setprofile(before)
    guarded: list[Any] = untrusted.READERS
    assert len(guarded) > 10
    assert [each.__qualname__ for each in guarded if each.__wrapped__.__code__ not in called] == []


@pytest.mark.parametrize("error", [RecursionError, ValueError, KeyError, OverflowError])
def test_reader_when_it_cannot_follow_a_text_then_finds_it_unreadable(
    error: type[Exception],
) -> None:
    """The text counts as what the guard says."""
    assert _guarded(error)("a") == "unreadable"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, ActionFormatError])
def test_reader_when_something_else_ends_it_then_raises_that(error: type[BaseException]) -> None:
    """What ends a process passes, and so does what our own exceptions say of a text."""
    with pytest.raises(error):
        _guarded(error)("a")


def _guarded(error: type[BaseException]) -> Any:
    def read(_: str) -> str:
        raise error

    guarded = unreadable_as(lambda _: "unreadable")(read)
    untrusted.READERS.remove(guarded)
    return guarded


REPETITIONS = {
    "answer": "The answer is " * 1400,
    "marks": "#### " * 5000,
    "boxes": r"\boxed{" * 1200,
    "closed boxes": r"\boxed{" * 1200 + "1" + "}" * 1200,
    "lists": "x=" + "[1," * 500,
    "branches": "if x:\n pass\n" + "elif x:\n pass\n" * 6000,
    "calls": "x=" + "f(" * 3000 + ")" * 3000,
}


@pytest.fixture(scope="module")
def grader() -> Iterator[AnswerGrader]:
    """A grader; its process takes seconds to start."""
    with AnswerGrader() as made:
        yield made


@pytest.mark.parametrize("name", REPETITIONS)
def test_reply_when_it_repeats_itself_then_is_a_wrong_answer_and_no_error(
    name: str, grader: AnswerGrader
) -> None:
    """A grader, a search for leaks and the reader of programs end."""
    reply = REPETITIONS[name]
    problem = Problem("p", "What is 6 * 7?", "a", "1", answer="42")
    assert not AnswerDomain("math", [problem], grader=grader).grade(reply, problem).correct
    assert find_leaks(reply, ["sklearn.datasets"]) == ()
    assert not find_program(f"```python\n{reply}\n```")[1]
    assert isinstance(read_program(f"```python\n{reply}\n```").problem, str)


def test_boxes_when_they_are_nested_deeply_then_the_innermost_is_the_answer() -> None:
    """However deep it is."""
    assert final_answer(r"\boxed{" * 2000 + "42" + "}" * 2000) == "42"


@pytest.mark.parametrize("code", ["[" * 300, "x=" + "-" * 100_000 + "1", "\0", "a" * 200_001])
def test_program_when_it_cannot_be_parsed_then_is_no_python(code: str) -> None:
    """Nesting, NUL and length are told as any error of its syntax is."""
    with pytest.raises(SyntaxError):
        parse_program(code)


def test_text_when_it_is_too_long_then_its_head_and_tail_are_read() -> None:
    """It says how much is left out, and is no longer than it may be."""
    text = bounded("a" * 600 + "b" * 600, 400)
    assert len(text) <= 400
    assert (text[0], text[-1]) == ("a", "b")
    assert "[800 characters are left out]" in text
    assert bounded("a" * 400, 400) == "a" * 400
