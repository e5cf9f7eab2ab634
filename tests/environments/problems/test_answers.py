"""Which answers are the same, by kind; what a reply gives as its answer; nothing breaks on what models write."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from langgraft.environments.problems.answers import LONGEST, final_answer, readings
from langgraft.environments.problems.grading import equal

PAIRS = yaml.safe_load(Path(__file__).with_name("answer_pairs.yaml").read_text("utf-8"))


@pytest.mark.parametrize("kind", PAIRS)
def test_pairs_of_a_kind_are_told_apart(kind: str) -> None:
    """Answers written otherwise are accepted, other answers are not."""
    assert min(map(len, PAIRS[kind].values())) >= 20
    wrong = [
        (given, right)
        for expected, pairs in PAIRS[kind].items()
        for given, right in pairs
        if bool(equal(final_answer(given) if kind == "several" else given, right))
        is not (expected == "equal")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (r"$[0,1)$", "[0,1)"),
        (r"\[ \begin{pmatrix} 1 \\ 2 \end{pmatrix} \]", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
        (r"(1, 4.5)", "(1, 4.5)"),
        (r"-\frac{10}{9}", r"-\frac{10}{9}"),
        (r"$\text{odd}$", r"\text{odd}"),
        (r"Therefore $x \geq 5$ is the solution.", r"x \geq 5"),
        (
            r"It touches $y$ at 3. Hence the domain is $(2, 12) \cup (12, 102)$.",
            r"(2, 12) \cup (12, 102)",
        ),
        (r"So the point is \(E\).", "E"),
        (r"We get $2 + 3 = 5$", "5"),
        (r"The line is $34x + 45y = 100$.", "34x + 45y = 100"),
        (r"Hence 12 is the value of $x$.", "12"),
        (r"There are $3$ boys, so 7 in all.", "7"),
        (r"Final Answer: The largest $n$ is 34.", "34"),
        (r"$\boxed{(2, 2)} \quad \text{and} \quad \boxed{(6, 2)}$", "(2, 2), (6, 2)"),
        (r"\(\boxed{1}\) and \(\boxed{-2}\).", "1, -2"),
        ("I do not know.", ""),
    ],
)
def test_reply_when_it_has_no_box_or_several_gives_the_whole_answer_that_it_ends_with(
    reply: str, answer: str
) -> None:
    """A bare answer, the formula that ends a reply, or what a calculation comes to."""
    assert final_answer(reply) == answer


def test_stage_says_what_was_needed() -> None:
    """Text before numbers, numbers before algebra; of a list the last that any part needs."""
    assert equal(r"\dfrac12", r"\frac{1}{2}") == "text"
    assert equal("0.5", r"\frac{1}{2}") == "number"
    assert equal("x+x", "2x") == "symbolic"
    assert equal("0.5, x+x", r"2x, \frac12") == "symbolic"


_PIECES = st.sampled_from(
    [
        r"\frac",
        r"\sqrt",
        r"\pm",
        r"\cup",
        r"\text{",
        r"\boxed{",
        r"\left(",
        r"\right)",
        r"\begin{pmatrix}",
        r"\end{pmatrix}",
        r"\\",
        r"&",
        r"{",
        r"}",
        r"(",
        r")",
        r"[",
        r"]",
        r"^",
        r"_",
        r",",
        r";",
        r":",
        r".",
        r"=",
        r"<",
        r">",
        r"\le",
        r"\circ",
        r"\%",
        r"\$",
        r"$",
        r"1",
        r"23",
        r"0.5",
        r"x",
        r"i",
        r"\pi",
        r"\infty",
        r"and",
        r"or",
        r"answer",
        r"is",
        r"####",
        r"-",
        r"+",
        r"/",
        r"!",
        r"\overline",
        r"\{",
        r"\}",
        r"cm",
    ]
)


@given(st.lists(_PIECES | st.text(max_size=4), max_size=30).map("".join))
def test_answers_of_any_form_are_read_or_not_and_nothing_is_raised(text: str) -> None:
    """What models write may be anything."""
    readings(final_answer(text))
    readings(text)


def test_answer_when_too_long_is_none() -> None:
    """Nobody means an answer of thousands of characters."""
    assert readings("1" * (LONGEST + 1)) == ()
    assert equal("1" * (LONGEST + 1), "1" * (LONGEST + 1)) is None
