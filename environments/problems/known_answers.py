r"""Pairs of answers whose judgment is known: what a grader is checked on before a study (App. C, gate G3).

The suite of tests has hundreds more, by kind (`tests/environments/problems/answer_pairs.yaml`).
"""

from collections.abc import Callable
from typing import Final

from langgraft.environments.problems.grading import AnswerGrader

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
"""A given answer, a right one, and whether the first counts."""


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
