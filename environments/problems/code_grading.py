r"""Grade replies that hold a program: find it, run it on the tests of its problem, compare.

    with CodeDomain("code", read_livecodebench("test6.jsonl")) as domain:
        domain.grade("```python\nprint(input()[::-1])\n```", domain.problems["abc301_a"]).reason

A program runs in a sandbox, which is given inputs and never what is expected: outputs are compared
out here. So whatever else a program prints, writes or kills in there, it passes by right outputs only.
"""

import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError, SandboxFailureError, SettingsError
from langgraft._core.untrusted import load_json, parse_program, unreadable_as
from langgraft.environments.problems.code_harness import WALL
from langgraft.environments.problems.code_problems import CodeTests, defines
from langgraft.environments.problems.domain import (
    NO_ANSWER,
    RIGHT,
    WRONG,
    GradedReply,
    Problem,
    ProblemDomain,
)

if TYPE_CHECKING:
    from langgraft.environments.sandboxes import ExecutionResult, Sandbox

SECONDS: Final = 6
"""Processor time of a program on one test (LiveCodeBench)."""
MOST_OUTPUT: Final = 1 << 22
"""Bytes that a program may print or return on one test."""
_STARTING: Final = 60.0
"""Seconds of a job beside its tests: a machine may be busy."""
_MIB: Final = 1 << 20
_FENCE: Final = re.compile(r"( *)(`{3,}|~{3,})\s*([\w+#.-]*)")
_PYTHON: Final = {"python", "python3", "py"}
_TYPE: Final = re.compile(r"[A-Za-z_]\w{0,79}")

_TIME: Final = "time"
_MEMORY: Final = "memory"
_OUTPUT: Final = "output"
_UNFINISHED: Final = "ended early"
_FEEDBACK: Final[Mapping[str, str]] = {
    RIGHT: "The program passes all tests.",
    WRONG: "The program gives a wrong answer on a test.",
    NO_ANSWER: "The reply holds no program.",
    _TIME: "The program takes too much time on a test.",
    _MEMORY: "The program runs out of memory on a test.",
    _OUTPUT: "The program prints too much on a test.",
    _UNFINISHED: "The program ends itself before its test is done.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a program on the tests of its problem."""

    failure: str = ""
    """`wrong answer`, `time`, `memory`, `output`, `ended early`, or the type of an error; empty: it passes."""
    test: int = 0
    """Number of the test that it fails, from 1; 0: none."""

    @property
    def passed(self) -> bool:
        """Whether it passes all tests."""
        return not self.failure


class CodeDomain(ProblemDomain):
    """Problems whose replies are programs, graded by tests.

    Equal programs for equal problems run once. A program that fails is told what kind of failure it
    was, and nothing of the tests.

    Args:
        name: The domain's, as items of memory will say it.
        problems: As `read_livecodebench` and `read_humaneval` give them.
        sandbox: Where programs run; stays open. `None`: a `DockerSandbox`, made when the first one runs.
        seconds: Processor time of a program on one test; ten times as much wall clock.

    Raises:
        InputError: It holds none, or two of one id.
        SettingsError: `seconds` is no whole number above 0.
    """

    def __init__(
        self,
        name: str,
        problems: Iterable[Problem],
        *,
        sandbox: "Sandbox | None" = None,
        seconds: int = SECONDS,
    ) -> None:
        super().__init__(name, problems)
        if not isinstance(seconds, int) or seconds < 1:
            msg = f"seconds must be a whole number above 0, got {seconds!r}"
            raise SettingsError(msg)
        self._seconds = seconds
        self._given = sandbox
        self._own: Sandbox | None = None
        self._verdicts: dict[tuple[str, str], Future[Verdict]] = {}
        self._calls: dict[str, list[str]] = {}
        self._lock = Lock()

    @override
    def make_ready(self) -> None:
        """Run a program that is right, and one that is not.

        Raises:
            SandboxUnavailableError: There is no engine or image, or it cannot hold a limit.
            SandboxFailureError: The sandbox judges one otherwise.
        """
        tests = CodeTests("stdin", cases=(("1\n", "2"),)).text
        found = [self.judge(f"print(int(input()) + {n})", tests).passed for n in (1, 2)]
        if found != [True, False]:
            msg = f"the sandbox grades a right and a wrong program as {found}: nothing is run"
            raise SandboxFailureError(msg)

    @override
    def grade(self, reply: str, problem: Problem) -> GradedReply:
        """Grade the program of a reply.

        Raises:
            InputError: The problem has no tests.
            SandboxUnavailableError: There is no engine or image.
            SandboxFailureError: The engine or container died, and again when retried.
        """
        if not problem.answer:
            msg = f"problem {problem.id!r} has no tests to grade by"
            raise InputError(msg)
        program, work = find_program(reply)
        verdict = self.judge(program, problem.answer) if program else Verdict(NO_ANSWER)
        failure = verdict.failure or RIGHT
        return GradedReply(
            correct=verdict.passed,
            work=work,
            answer=program,
            reason=f"{failure} on test {verdict.test}" if verdict.test else failure,
            feedback=_FEEDBACK.get(failure, f"The program ends with {failure} on a test."),
            stage="tests" if verdict.passed else "",
        )

    def judge(self, program: str, answer: str) -> Verdict:
        """Run a program on tests (`Problem.answer`), once however often and by whom it is asked.

        Raises:
            SandboxUnavailableError: There is no engine or image.
            SandboxFailureError: The engine or container died, and again when retried.
        """
        key = (program, answer)
        with self._lock:
            ahead = self._verdicts.get(key)
            if ahead is None:
                mine = self._verdicts[key] = Future[Verdict]()
        if ahead is not None:
            return ahead.result()
        try:
            mine.set_result(self._judged(program, CodeTests.of(answer)))
        except BaseException as error:
            with self._lock:  # what failed around it is no verdict: the next one tries again
                del self._verdicts[key]
            mine.set_exception(error)
            raise
        return mine.result()

    def _judged(self, program: str, tests: CodeTests) -> Verdict:
        if tests.mode == "check":
            return self._checked(program, tests)
        outputs, failure = self._outputs(program, tests, [given for given, _ in tests.cases])
        same = same_output if tests.mode == "stdin" else same_value
        for number, (output, (_, expected)) in enumerate(
            zip(outputs, tests.cases, strict=False), 1
        ):
            if not same(output, expected):
                return Verdict(WRONG, number)
        return Verdict(failure, len(outputs) + 1) if failure else Verdict()

    def _checked(self, program: str, tests: CodeTests) -> Verdict:
        """Let HumanEval's `check` see what a program returns for the calls it makes."""
        job: dict[str, JSON] = {"name": tests.name, "prompt": tests.prompt, "check": tests.check}
        job["solution"] = tests.solution
        calls = self._calls.get(tests.text)
        if calls is None:
            result = self._run("record", job, collect="calls.json")
            if "calls.json" not in result.files:
                msg = f"HumanEval's {tests.name!r} does not pass its own check: {result.stderr[-500:]}"
                raise InputError(msg)
            calls = self._calls[tests.text] = load_json(result.files["calls.json"])
        whole = defines(program, tests.name)
        values, failure = self._outputs(
            f"{tests.prompt}\n{program}" if whole else f"{tests.prompt}{program}", tests, calls
        )
        if failure:
            return Verdict(failure, len(values) + 1)
        texts: list[JSON] = [value.decode("utf-8", "replace") for value in values]
        asked = {**job, "calls": list[JSON](calls), "values": texts}
        result = self._run("replay", asked, collect="verdict.json")
        verdict = json.loads(result.files.get("verdict.json", b'{"passed": false, "made": 1}'))
        return Verdict() if verdict["passed"] else Verdict(WRONG, verdict["made"])

    def _outputs(self, program: str, tests: CodeTests, given: list[Any]) -> tuple[list[bytes], str]:
        """Run a program on inputs: its outputs up to the first that it does not end well on, and why."""
        result = self._run(
            "run",
            {
                "mode": tests.mode,
                "name": tests.name,
                "given": given,
                "seconds": self._seconds,
                "output": MOST_OUTPUT,
            },
            program=program,
            seconds=len(given) * self._seconds * WALL,
            collect="result-*",
        )
        outputs: list[bytes] = []
        for number in range(len(given)):
            name = f"result-{number:04}"
            header, _, output = result.files.get(name, b"").partition(b"\n")
            ended = _OUTPUT if name in result.left_out else _ended(header)
            if ended == "well":
                outputs.append(output)
                continue
            return outputs, _failure(ended, result)
        return outputs, ""

    def _run(
        self,
        what: str,
        job: Mapping[str, JSON],
        *,
        collect: str,
        program: str = "",
        seconds: float = 0.0,
    ) -> "ExecutionResult":
        from langgraft.environments.sandboxes import Job, PythonProgram  # noqa: PLC0415

        return self._sandbox().run(
            Job(
                PythonProgram(_harness(), "code_harness.py", (what,)),
                files={
                    "job.json": json.dumps(job).encode(),
                    "solution.py": program.encode("utf-8", "replace"),
                },
                collect=(collect,),
                seconds=_STARTING + seconds,
            )
        )

    def _sandbox(self) -> "Sandbox":
        if self._given is not None:
            return self._given
        from langgraft.environments.sandboxes import DockerSandbox, Limits  # noqa: PLC0415

        with self._lock:
            if self._own is None:
                limits = Limits(collected=256 * _MIB, collected_files=10_000)
                self._own = DockerSandbox(limits=limits)
            return self._own

    @override
    def close(self) -> None:
        with self._lock:
            own, self._own = self._own, None
        if own is not None:
            own.close()


@unreadable_as(lambda reply: ("", reply))
def find_program(reply: str) -> tuple[str, str]:
    """Return the program of a reply, and the rest of it.

    It is the last block fenced as Python, or the only block there is; without any, the reply itself
    if it is Python. A block that is not closed goes to the end. Both texts may be empty.
    """
    blocks: list[tuple[str, int, int]] = []
    lines = reply.split("\n")
    opened: tuple[str, str, int] | None = None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened = fence[2], fence[3].lower(), number
        elif opened is not None and fence and fence[2].startswith(opened[0]) and not fence[3]:
            blocks.append((opened[1], opened[2], number))
            opened = None
    if opened is not None:
        blocks.append((opened[1], opened[2], len(lines)))
    if not blocks:
        return (reply, "") if reply.strip() and _is_python(reply) else ("", reply)
    python = [each for each in blocks if each[0] in _PYTHON]
    if not python and len(blocks) > 1:
        return "", reply
    _, start, end = python[-1] if python else blocks[0]
    indent = len(lines[start]) - len(lines[start].lstrip(" "))
    program = "\n".join(
        line[indent:] if not line[:indent].strip() else line for line in lines[start + 1 : end]
    )
    return (program if program.strip() else ""), "\n".join(lines[:start] + lines[end + 1 :]).strip()


def _is_python(text: str) -> bool:
    try:
        parse_program(text)
    except SyntaxError:
        return False
    return True


def same_output(printed: bytes, expected: JSON) -> bool:
    """Compare as LiveCodeBench does: line by line without blanks around, else number by number."""
    ours, theirs = _stripped(printed.decode("utf-8", "replace")), _stripped(str(expected))
    if len(ours) != len(theirs):
        return False
    return all(
        one == other or _same_numbers(one, other) for one, other in zip(ours, theirs, strict=True)
    )


def _stripped(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_numbers(one: str, other: str) -> bool:
    try:
        return [Decimal(each) for each in one.split()] == [Decimal(each) for each in other.split()]
    except ArithmeticError:  # a word, or what is not comparable
        return False


def same_value(returned: bytes, expected: JSON) -> bool:
    """Compare JSON that a program returned with the value that is expected; tuples are lists."""
    try:
        return bool(load_json(returned) == expected)
    except ValueError:
        return False


def _ended(header: bytes) -> str:
    """Return how a process ended, as its own container says; empty: nothing usable."""
    try:
        told = load_json(header, most=1000)["ended"]
    except (ValueError, TypeError, LookupError):
        return ""
    return told if isinstance(told, str) else ""


def _failure(ended: str, result: "ExecutionResult") -> str:
    """Name what a program failed by: from its own process, or from what watches all of them."""
    if result.oom and ended in {"", "SIGKILL"}:
        return _MEMORY
    if not ended and result.stopped:
        return _TIME if result.timed_out else _OUTPUT
    names = {"MemoryError": _MEMORY, "exit": _UNFINISHED, "": _UNFINISHED}
    if ended in {_TIME, _OUTPUT}:
        return ended
    return names.get(ended) or (ended if _TYPE.fullmatch(ended) else "an error")


@cache
def _harness() -> str:
    package = resources.files("langgraft.environments.problems")
    return package.joinpath("code_harness.py").read_text("utf-8")
