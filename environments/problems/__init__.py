r"""Problems with a right answer, and whether a reply gives it.

    from langgraft.environments.problems import AnswerGrader, read_math

    problems = read_math("MATH/train")
    with AnswerGrader() as grader:
        grader.grade(r"It is $\boxed{\frac12}$.", problems[0].answer).correct

math_problems  MATH, from folders, files or rows
answers        what a reply gives as its answer, and how answers are written
grading        whether two answers are the same, within bounds of time and memory
code_problems  LiveCodeBench and HumanEval, with their tests
code_grading   `CodeDomain`: runs what a reply programs in a sandbox, and compares outputs
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.problems.answers import final_answer, last_token
    from langgraft.environments.problems.code_grading import CodeDomain
    from langgraft.environments.problems.code_problems import read_humaneval, read_livecodebench
    from langgraft.environments.problems.grading import AnswerGrader, Grade
    from langgraft.environments.problems.math_problems import MathProblem, read_math

__all__ = [
    "AnswerGrader",
    "CodeDomain",
    "Grade",
    "MathProblem",
    "final_answer",
    "last_token",
    "read_humaneval",
    "read_livecodebench",
    "read_math",
]

_MODULES = {
    "answers": ("final_answer", "last_token"),
    "code_grading": ("CodeDomain",),
    "code_problems": ("read_humaneval", "read_livecodebench"),
    "grading": ("AnswerGrader", "Grade"),
    "math_problems": ("MathProblem", "read_math"),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
)
