"""LiveCodeBench and HumanEval: verdicts that are known, given again, and programs that do harm.

Graded outputs of LiveCodeBench tell for each problem a model's program, the official verdict and, of
one that failed, the test and what it failed by. HumanEval has a solution of each problem.
"""

import gzip
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from code_attempts import ATTEMPTS, TWICE

from acceptance.figure import Figure, Setting, share
from langgraft._core.errors import InputError
from langgraft.environments.problems import CodeDomain, read_humaneval, read_livecodebench
from langgraft.environments.problems.code_grading import Verdict
from langgraft.environments.problems.code_problems import CodeTests
from langgraft.environments.problems.domain import Problem

WRONG_ANSWER, TIME, ERROR = -2, -3, -4
"""Codes of LiveCodeBench's verdicts."""
AT_ONCE = 4
QUICK: Final = ("a huge output", "a forged verdict", "the verdict's text")

Row = Mapping[str, Any]
P = TypeVar("P")


def measure(setting: Setting) -> list[Figure]:
    """Grade what others have graded, and what does harm."""
    folder = Path(os.environ.get("LANGGRAFT_DATA", setting.checkout.parent / "shared" / "data"))
    folder /= "code"
    with gzip.open(folder / "livecodebench.jsonl.gz") as file:
        rows = [json.loads(line) for line in file]
    domain = CodeDomain("code", [TWICE])
    try:
        domain.make_ready()
        return [
            _right(domain, rows, setting),
            *_failed(domain, rows, setting),
            *([] if setting.reduced else [_left_out(domain, rows)]),
            _solutions(domain, read_humaneval(folder / "humaneval.jsonl.gz"), setting),
            _harm(domain, QUICK if setting.reduced else tuple(ATTEMPTS)),
        ]
    finally:
        domain.close()


def _graded(
    domain: CodeDomain, pairs: Sequence[tuple[P, str, str]]
) -> tuple[list[tuple[P, Verdict]], float]:
    """Judge programs by tests; each with what it is the program of, and all seconds."""
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = pool.map(lambda pair: domain.judge(pair[1], pair[2]), pairs)
        found = [(pair[0], verdict) for pair, verdict in zip(pairs, verdicts, strict=True)]
    return found, time.monotonic() - began


def _problem(row: Row, tests: Iterable[Row]) -> Problem | None:
    """Return a problem with these of its tests; `None` where none of them can be read."""
    try:
        (problem,) = read_livecodebench([{**row, "known_tests": list(tests)}])
    except InputError:
        return None
    return problem if problem.answer else None


def _right(domain: CodeDomain, rows: Sequence[Row], setting: Setting) -> Figure:
    given = [
        (row["question_id"], row["graded_solution"]["code"], problem.answer)
        for row in rows
        if row["graded_solution"]["passed"] and (problem := _problem(row, row["known_tests"]))
    ]
    given = given[: setting.size(len(given), 5)]
    found, seconds = _graded(domain, given)
    wrong = [f"{name}: {each.failure} on test {each.test}" for name, each in found if each.failure]
    tests = sum(len(CodeTests.of(answer).cases) for _, _, answer in given)
    return Figure(
        "Programs that LiveCodeBench has passed pass all known tests",
        f"all that have any, {tests} tests, in {seconds:.0f} s; left out by rule: tests that are cut short, and"
        " lists of arguments told after a program had run, unless they are public",
        share(len(found) - len(wrong), len(found), wrong),
        "all",
        bool(found) and not wrong,
    )


def _failures(rows: Sequence[Row]) -> list[tuple[Row, Row, dict[str, Any]]]:
    """Return programs that failed on a known test: the row, the test, and what is told of it."""
    found = []
    for row in rows:
        told = json.loads(row["graded_solution"]["metadata"])
        for test in row["known_tests"]:
            if not row["graded_solution"]["passed"] and test["input"] == told.get("inputs"):
                found.append((row, test, told))
                break
    return found


def _failed(domain: CodeDomain, rows: Sequence[Row], setting: Setting) -> list[Figure]:
    """Grade programs on the one test that they failed."""
    given = [
        ((row["question_id"], told), row["graded_solution"]["code"], problem.answer)
        for row, test, told in _failures(rows)
        if (problem := _problem(row, [test]))
    ]
    if setting.reduced:
        given = [each for each in given if each[0][1]["error_code"] != TIME][::90]
    found, seconds = _graded(domain, given)
    passed = [name for (name, _), each in found if each.passed]
    other = [
        f"{name}: {each.failure}, not {told['error_message']} {told.get('error', '')}"
        for (name, told), each in found
        if not each.passed and not _same_kind(each.failure, told)
    ]
    codes = [told["error_code"] for (_, told), _ in found]
    parts = ", ".join(
        f"{codes.count(code)} {name}"
        for code, name in ((WRONG_ANSWER, "wrong answers"), (TIME, "timeouts"), (ERROR, "errors"))
    )
    return [
        Figure(
            "Programs that LiveCodeBench has failed on a known test fail it",
            f"all whose test is known and not left out: {parts}; in {seconds:.0f} s",
            share(len(found) - len(passed), len(found), passed),
            "all",
            bool(found) and not passed,
        ),
        Figure(
            "They fail by what they failed by there",
            "wrong answer, time, or the type of the error",
            share(len(found) - len(passed) - len(other), len(found), other),
            "all",
            not other,
        ),
    ]


def _same_kind(failure: str, told: Mapping[str, Any]) -> bool:
    match told["error_code"]:
        case -2:
            return failure == "wrong answer"
        case -3:
            return failure == "time"
        case _:
            named = "MemoryError" if failure == "memory" else failure
            return str(told.get("error", "")).startswith(named)


def _left_out(domain: CodeDomain, rows: Sequence[Row]) -> Figure:
    """Grade on the tests whose arguments a program may have changed, as if they were sure."""
    given = []
    for row in rows:
        graded = row["graded_solution"]
        failed = json.loads(graded["metadata"]).get("inputs")
        for test in row["known_tests"]:
            unsure = test["truncated"] or _problem(row, [test]) is not None
            asked = graded["passed"] or test["input"] == failed
            problem = None if unsure else _problem(row, [{**test, "kind": "public"}])
            if asked and problem:
                given.append(
                    ((row["question_id"], graded["passed"]), graded["code"], problem.answer)
                )
    found, _ = _graded(domain, given)
    against = [
        f"{name} {'fails' if passed else 'passes'}"
        for (name, passed), each in found
        if each.passed != passed
    ]
    return Figure(
        "What the tests would say whose arguments a program may have changed",
        "programs on the tests left out for that, by the official verdict",
        share(len(found) - len(against), len(found), against),
        "",
        None,
    )


def _solutions(domain: CodeDomain, problems: Sequence[Problem], setting: Setting) -> Figure:
    problems = problems[:: setting.size(1, 82)]
    right = [(each.id, each.known[0], each.answer) for each in problems if each.known]
    empty = [(each.id, "    pass", each.answer) for each in problems[::8]]
    (passing, seconds), (failing, _) = _graded(domain, right), _graded(domain, empty)
    wrong = [name for name, each in passing if not each.passed]
    wrong += [name for name, each in failing if each.passed]
    return Figure(
        "Solutions of HumanEval pass, and empty ones fail",
        f"{len(right)} solutions in {seconds:.0f} s, {len(empty)} empty ones",
        share(len(passing) + len(failing) - len(wrong), len(passing) + len(failing), wrong),
        "all",
        not wrong,
    )


def _harm(domain: CodeDomain, names: Sequence[str]) -> Figure:
    wrong = []
    for name in names:
        code, reason = ATTEMPTS[name]
        graded = domain.grade(f"```python\n{code}\n```", TWICE)
        after = domain.judge(f"print(2 * int(input()))  # {name}", TWICE.answer)
        if graded.correct or not after.passed or (reason and graded.reason != reason):
            wrong.append(f"{name}: {graded.reason}")
    return Figure(
        "Programs that do harm or forge a verdict are contained and named",
        f"{', '.join(names)}: each in a container with the limits of every program, and a plain one after it",
        share(len(names) - len(wrong), len(names), wrong),
        "all",
        not wrong,
    )
