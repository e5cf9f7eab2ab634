"""Programs found in replies, run on tests and compared; what they try in a container."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from code_attempts import ATTEMPTS, TWICE
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from langgraft._core.errors import (
    InputError,
    SandboxFailureError,
    SandboxUnavailableError,
    SettingsError,
)
from langgraft.environments.problems import CodeDomain, read_humaneval
from langgraft.environments.problems.code_grading import (
    Verdict,
    find_program,
    same_output,
    same_value,
)
from langgraft.environments.problems.code_problems import CodeTests
from langgraft.environments.problems.domain import Problem
from langgraft.environments.sandboxes import (
    DockerSandbox,
    ExecutionResult,
    Job,
    Limits,
    SubprocessSandbox,
)

PAIR = Problem(
    "pair",
    "Return the pair, sorted.",
    "leetcode",
    "easy",
    CodeTests("call", "pair", (([[2, 1]], [1, 2]), ([[3, 3]], [3, 3]))).text,
)
HALF = read_humaneval(
    [
        {
            "task_id": "HumanEval/half",
            "prompt": 'import math\n\n\ndef half(n: float) -> float:\n    """Return a half."""\n',
            "entry_point": "half",
            "canonical_solution": "    return n / 2\n",
            "test": "import random\n\ndef check(candidate):\n"
            "    assert abs(candidate(3) - 1.5) < 1e-6\n"
            "    n = random.random()\n    assert abs(candidate(n) - n / 2) < 1e-6\n",
        }
    ]
)[0]
PROBLEMS = (TWICE, PAIR, HALF)


class Counting(SubprocessSandbox):
    """Counts the jobs that run, and keeps what they were given."""

    def __init__(self) -> None:
        super().__init__(Limits())
        self.jobs: list[Job] = []
        self.fails = False

    @override
    def run(self, job: Job) -> ExecutionResult:
        self.jobs.append(job)
        if self.fails:
            msg = "the engine died"
            raise SandboxFailureError(msg)
        return super().run(job)


@pytest.fixture
def sandbox() -> Iterator[Counting]:
    """Open a sandbox for programs that stand in this file."""
    with Counting() as opened:
        yield opened


def fenced(code: str) -> str:
    """Write a reply with a program."""
    return f"I do it so:\n```python\n{code}\n```"


# Finding the program ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "program", "rest"),
    [
        ("So:\n```python\nprint(1)\n```\nDone.", "print(1)", "So:\nDone."),
        ("```python\na\n```\nor\n```py\nb\n```", "b", "```python\na\n```\nor"),
        ("```\nprint(1)\n```", "print(1)", ""),
        ("```python\nb\n```\nprints\n```text\n3\n```", "b", "prints\n```text\n3\n```"),
        ("```text\n3\n```\n```\nprint(3)\n```", "", "```text\n3\n```\n```\nprint(3)\n```"),
        ("~~~~Python\nprint('''\n```\n''')\n~~~~", "print('''\n```\n''')", ""),
        ("```python\nprint(1)", "print(1)", ""),
        ("1. It:\n   ```python\n   if x:\n       y\n   ```", "if x:\n    y", "1. It:"),
        ("print(int(input()) * 2)", "print(int(input()) * 2)", ""),
        ("I do not know.", "", "I do not know."),
        ("```python\n```", "", ""),
        ("", "", ""),
        ("\0", "", "\0"),
        ("(" * 10_000, "", "(" * 10_000),
    ],
)
def test_program_when_looked_for_is_the_last_of_python_or_the_only_block(
    reply: str, program: str, rest: str
) -> None:
    """A reply without a block counts where it is Python; a block that is cut off goes to the end."""
    assert find_program(reply) == (program, rest)


@given(st.text(alphabet="`~ \npython1=(", max_size=200))
def test_reply_when_it_is_anything_gives_a_program_of_its_own_lines(reply: str) -> None:
    """Nothing is made up."""
    program, _ = find_program(reply)
    assert all(line.strip() in reply for line in program.split("\n"))


# Comparing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("2\n", "2", True),
        (" 2 \n\n", "2\n", True),
        ("1 2\n3", "1 2 \n 3\n", True),
        ("1\n2", "1 2", False),
        ("1  2", "1 2", True),
        ("1.0", "1", True),
        ("1.10", "1.1", True),
        ("0.1", "0.10000000000000000001", False),
        ("Yes", "yes", False),
        ("a  b", "a b", False),
        ("NaN", "1", False),
        ("sNaN", "sNaN 1", False),
        ("1e999999999", "1", False),
        ("", "", True),
        ("", "0", False),
    ],
)
def test_output_when_compared_goes_line_by_line_and_number_by_number(
    printed: str, expected: str, *, same: bool
) -> None:
    """As LiveCodeBench compares."""
    assert same_output(printed.encode(), expected) is same


@pytest.mark.parametrize(
    ("returned", "expected", "same"),
    [
        ("[1, 2]", [1, 2], True),
        ("[[1, [2]]]", [[1, [2]]], True),
        ("2.0", 2, True),
        ("true", True, True),
        ('"2"', 2, False),
        ("[2, 1]", [1, 2], False),
        ("NaN", 1, False),
        ("null", 0, False),
        ("[1", [1], False),
        ("[" * 100_000, [1], False),
        ("", "", False),
    ],
)
def test_value_when_compared_is_json_of_the_same_value(
    returned: str, expected: Any, *, same: bool
) -> None:
    """What is no JSON equals nothing."""
    assert same_value(returned.encode(), expected) is same


# Grading ------------------------------------------------------------------------------------

RIGHT_PAIR = (
    "class Solution:\n    def pair(self, both: List[int]):\n        return tuple(sorted(both))"
)


@pytest.mark.parametrize(
    ("problem", "program", "reason"),
    [
        (TWICE, "print(2 * int(input()))", "goal reached"),
        (TWICE, "import sys\nprint(2 * int(sys.stdin.read()))\nsys.exit(1)", "goal reached"),
        (TWICE, "if __name__ == '__main__':\n    print(2 * int(input()))", "goal reached"),
        (TWICE, "print(2)", "wrong answer on test 2"),
        (TWICE, "pass", "wrong answer on test 1"),
        (TWICE, "raise KeyError('2 42')", "KeyError on test 1"),
        (TWICE, "print(2) if input() == '1' else {}[0]", "KeyError on test 2"),
        (TWICE, "def f(:", "SyntaxError on test 1"),
        (TWICE, "class E(Exception): ...\nE.__name__ = 'say yes'\nraise E", "an error on test 1"),
        (TWICE, "import os\nos._exit(3)", "ended early on test 1"),
        (TWICE, "import os\nos.abort()", "SIGABRT on test 1"),
        (TWICE, "raise MemoryError", "memory on test 1"),
        (PAIR, RIGHT_PAIR, "goal reached"),
        (PAIR, f"print('noise')\n{RIGHT_PAIR}", "goal reached"),
        (PAIR, "def pair(both):\n    return sorted(both)", "goal reached"),
        (PAIR, "def pair(both):\n    return set(both)", "AttributeError on test 1"),
        (PAIR, "def pair(both):\n    return [1, 2]", "wrong answer on test 2"),
        (PAIR, "def other():\n    return 0", "KeyError on test 1"),
        (PAIR, "import sys\nsys.exit()", "SystemExit on test 1"),
        (HALF, "def half(n):\n    return math.fsum([n]) / 2", "goal reached"),
        (HALF, "    return n / 2", "goal reached"),
        (HALF, "def half(n):\n    return 1.5", "wrong answer on test 2"),
        (HALF, "def half(n):\n    return 'a'", "wrong answer on test 1"),
        (HALF, "def half(n):\n    return object()", "wrong answer on test 1"),
        (HALF, "def half(n):\n    raise OSError", "OSError on test 1"),
        (HALF, "def half(n):\n    global check\n    check = print", "wrong answer on test 1"),
    ],
)
def test_program_when_graded_passes_all_tests_or_the_failure_is_named(
    sandbox: Counting, problem: Problem, program: str, reason: str
) -> None:
    """By its first test that fails; a solver is told of the kind, and of no test's contents."""
    grade = CodeDomain("code", PROBLEMS, sandbox=sandbox).grade(fenced(program), problem)
    assert (grade.reason, grade.correct) == (reason, reason == "goal reached")
    assert (grade.work, grade.answer) == ("I do it so:", program)
    assert not set("0123456789") & set(grade.feedback)


def test_reply_when_it_holds_no_program_has_no_answer_and_runs_nothing(sandbox: Counting) -> None:
    """It is work without a result."""
    grade = CodeDomain("code", PROBLEMS, sandbox=sandbox).grade("I do not know.", TWICE)
    assert (grade.reason, grade.answer, grade.work) == ("no answer", "", "I do not know.")
    assert grade.feedback == "The reply holds no program."
    assert not sandbox.jobs


def test_program_when_its_problem_has_no_tests_cannot_be_graded(sandbox: Counting) -> None:
    """Such a problem is never drawn."""
    domain = CodeDomain("code", [Problem("none", "?", "?", "?", "")], sandbox=sandbox)
    with pytest.raises(InputError, match="problem 'none' has no tests"):
        domain.grade(fenced("pass"), domain.problems["none"])


def test_job_when_it_runs_a_program_holds_nothing_that_is_expected(sandbox: Counting) -> None:
    """Expected outputs never enter the sandbox of a program; HumanEval's check neither."""
    domain = CodeDomain("code", PROBLEMS, sandbox=sandbox)
    for problem, program in ((TWICE, "print(2)"), (PAIR, RIGHT_PAIR), (HALF, "    return n / 2")):
        domain.grade(fenced(program), problem)
    running = [job for job in sandbox.jobs if job.program.arguments == ("run",)]  # type: ignore[union-attr]
    assert len(running) == 3
    for job in running:
        content = job.files["job.json"]
        assert isinstance(content, bytes)
        assert set(json.loads(content)) == {"mode", "name", "given", "seconds", "output"}
    assert json.loads(running[0].files["job.json"])["given"] == ["1\n", "21\n"]  # type: ignore[arg-type]
    for job in sandbox.jobs:
        assert bool(job.files["solution.py"]) == (job in running)


def test_program_when_graded_again_is_not_run_again(sandbox: Counting) -> None:
    """Also where threads ask for it at once."""
    domain = CodeDomain("code", PROBLEMS, sandbox=sandbox)
    with ThreadPoolExecutor(4) as pool:
        grades = list(pool.map(lambda _: domain.grade(fenced("print(2)"), TWICE), range(8)))
    assert len({each.reason for each in grades}) == 1
    assert len(sandbox.jobs) == 1


def test_sandbox_when_it_fails_is_no_wrong_answer_and_is_tried_again(sandbox: Counting) -> None:
    """What died under a program says nothing of it."""
    domain = CodeDomain("code", PROBLEMS, sandbox=sandbox)
    sandbox.fails = True
    with pytest.raises(SandboxFailureError):
        domain.grade(fenced("print(2 * int(input()))"), TWICE)
    sandbox.fails = False
    assert domain.grade(fenced("print(2 * int(input()))"), TWICE).correct


def test_domain_when_there_is_no_engine_says_so_before_anything_is_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the words of every sandbox."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    domain = CodeDomain("code", PROBLEMS)
    with pytest.raises(SandboxUnavailableError):
        domain.make_ready()
    with pytest.raises(SandboxUnavailableError):
        domain.grade(fenced("print(2)"), TWICE)
    domain.close()


def test_output_when_it_is_more_than_the_sandbox_hands_out_is_too_much() -> None:
    """The name of the failure is that of one limit as of the other."""
    with SubprocessSandbox(Limits(collected=1000)) as small:
        domain = CodeDomain("code", PROBLEMS, sandbox=small)
        assert domain.judge("print('2' * 5000)", TWICE.answer) == Verdict("output", 1)


def test_seconds_when_they_are_no_whole_number_are_refused() -> None:
    """They bound processor time, which is counted in whole seconds."""
    seconds: Any
    for seconds in (0, -1, 0.5, "6"):
        with pytest.raises(SettingsError, match="seconds must be a whole number above 0"):
            CodeDomain("code", PROBLEMS, seconds=seconds)


def test_humaneval_when_its_own_solution_fails_its_check_is_refused(sandbox: Counting) -> None:
    """Nothing can be graded by it."""
    wrong = CodeTests.of(HALF.answer)
    answer = CodeTests("check", "half", (), wrong.prompt, "    return n\n", wrong.check).text
    domain = CodeDomain("code", PROBLEMS, sandbox=sandbox)
    with pytest.raises(InputError, match="'half' does not pass its own check"):
        domain.judge("    return n / 2", answer)


# In a container -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def containers(docker_image: str) -> Iterator[DockerSandbox]:
    """Open a sandbox of containers with little memory."""
    limits = Limits(memory=512 << 20, tmp=64 << 20, pids=64)
    with DockerSandbox(docker_image, limits=limits) as opened:
        yield opened


@pytest.mark.parametrize("name", ATTEMPTS)
def test_program_when_it_does_harm_is_contained_and_named(
    containers: DockerSandbox, name: str
) -> None:
    """And the next program is graded as ever."""
    code, reason = ATTEMPTS[name]
    seconds = 1 if str(reason).startswith("time") else 6
    contained = CodeDomain("code", PROBLEMS, sandbox=containers, seconds=seconds)
    grade = contained.grade(fenced(code), TWICE)
    assert not grade.correct
    assert grade.reason == reason or (reason is None and grade.reason != "goal reached")
    assert contained.judge("print(2 * int(input()))", TWICE.answer) == Verdict()


def test_domain_when_made_without_a_sandbox_runs_programs_in_containers(docker_image: str) -> None:
    """Also HumanEval's."""
    domain = CodeDomain("code", PROBLEMS)
    domain.make_ready()
    assert domain.grade(fenced(RIGHT_PAIR), PAIR).correct
    assert domain.grade(fenced("def half(n):\n    return n / 2"), HALF).correct
    domain.close()
