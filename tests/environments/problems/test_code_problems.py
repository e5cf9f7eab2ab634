"""LiveCodeBench and HumanEval from files and rows; private tests decoded without unpickling."""

import base64
import gzip
import json
import pickle
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InputError
from langgraft.environments.problems import code_problems, read_humaneval, read_livecodebench
from langgraft.environments.problems.code_problems import CodeTests, decode_tests


def encoded(value: object, protocol: int = 4) -> str:
    """Encode as LiveCodeBench's private tests are."""
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def as_test(given: str, told: str, kind: str = "stdin") -> dict[str, str]:
    """Return a test as a release has it."""
    return {"input": given, "output": told, "testtype": kind}


RELEASED: dict[str, Any] = {
    "question_id": "abc_a",
    "question_title": "Twice",
    "question_content": "Print twice the number.",
    "platform": "atcoder",
    "contest_id": "abc",
    "contest_date": "2024-01-01T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps([as_test("1\n", "2\n")]),
    "private_test_cases": encoded(json.dumps([as_test("4\n", "8\n")])),
    "metadata": "{}",
}
FUNCTION: dict[str, Any] = {
    **RELEASED,
    "question_id": "3000",
    "platform": "leetcode",
    "starter_code": "class Solution:\n    def twice(self, numbers: List[int], by: int) -> int:\n        ",
    "public_test_cases": json.dumps([as_test("[1, 2]\n3", "9", "functional")]),
    "private_test_cases": "[]",
    "metadata": '{"func_name": "twice"}',
}
GRADED: dict[str, Any] = {
    **{name: RELEASED[name] for name in RELEASED if not name.endswith("cases")},
    "known_tests": [{"input": "3\n", "expected": "6\n", "truncated": False, "kind": "hidden"}],
    "graded_solution": {"code": "print(2 * int(input()))", "passed": True, "metadata": "{}"},
}
PROMPT = 'def inc(n: int) -> int:\n    """Return n + 1."""\n'
FUNCTIONS: dict[str, Any] = {
    "task_id": "HumanEval/0",
    "prompt": PROMPT,
    "entry_point": "inc",
    "canonical_solution": "    return n + 1\n",
    "test": "def check(candidate):\n    assert candidate(1) == 2\n",
}


def only(row: Mapping[str, Any]) -> CodeTests:
    """Return the tests of a row."""
    (problem,) = read_livecodebench([row])
    return CodeTests.of(problem.answer)


def test_release_when_read_has_public_and_private_tests(tmp_path: Path) -> None:
    """From lines, compressed or not, and rows; private ones as JSON or encoded."""
    rows = [RELEASED, {**FUNCTION, "question_id": "2"}]
    lines = "\n".join(map(json.dumps, rows)).encode()
    (tmp_path / "plain.jsonl").write_bytes(lines)
    (tmp_path / "zipped.jsonl.gz").write_bytes(gzip.compress(lines))
    sources: list[Any] = [tmp_path / "plain.jsonl", tmp_path / "zipped.jsonl.gz", rows]
    first, *others = (read_livecodebench(each) for each in sources)
    assert others == [first, first]
    assert CodeTests.of(first[0].answer) == CodeTests(
        "stdin", cases=(("1\n", "2\n"), ("4\n", "8\n"))
    )
    assert CodeTests.of(first[1].answer) == CodeTests("call", "twice", (([[1, 2], 3], 9),))
    assert (first[0].kind, first[0].level, first[0].known) == ("atcoder", "easy", ("", ""))
    assert "standard input" in first[0].text
    assert "def twice" in first[1].text
    plain = {**RELEASED, "private_test_cases": json.dumps([as_test("4\n", "8\n")])}
    assert only(plain) == CodeTests.of(first[0].answer)


def test_function_when_metadata_does_not_name_it_is_that_of_the_starter_code() -> None:
    """Its only method."""
    assert only({**FUNCTION, "metadata": None}).name == "twice"


def test_known_tests_when_they_are_cut_short_or_may_be_changed_are_left_out() -> None:
    """What a program got as a list it may have changed before it was told; public tests are checked."""
    starter = FUNCTION["starter_code"]
    tests = [
        {"input": "[[1], 2]", "expected": "2", "truncated": False, "kind": "public"},
        {"input": "[[inf], 2]", "expected": "2", "truncated": False, "kind": "hidden"},
        {"input": "[1, 2]", "expected": "2", "truncated": False, "kind": "hidden"},
        {
            "input": "[1, 2...(truncated) ...]",
            "expected": "2",
            "truncated": True,
            "kind": "truncated",
        },
    ]
    cases = only({**GRADED, "starter_code": starter, "known_tests": tests}).cases
    assert cases == (([[1], 2], 2), ([1, 2], 2))
    texts = only(
        {**GRADED, "starter_code": starter.replace("-> int", "-> str"), "known_tests": tests}
    )
    assert [told for _, told in texts.cases] == ["2", "2"]


def test_problem_when_it_has_no_known_tests_is_read_and_never_drawn() -> None:
    """Its answer is empty; its program and the verdict are known all the same."""
    (problem,) = read_livecodebench([{**GRADED, "known_tests": []}])
    assert problem.answer == ""
    assert problem.known == ("print(2 * int(input()))", "")
    failed = {"graded_solution": {"code": "pass", "passed": False}}
    assert read_livecodebench([{**GRADED, **failed}])[0].known == ("", "pass")
    assert "print(2" not in repr(problem)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"question_id": None}, "line 2: the field 'question_id' is missing"),
        ({"question_content": " "}, "line 2: the field 'question_content' is no text"),
        ({"difficulty": "insane"}, "line 2: unknown difficulty 'insane'; expected easy, medium"),
        ({"public_test_cases": None}, "line 2: the field 'public_test_cases' is missing"),
        ({"public_test_cases": "[1"}, "line 2: the field 'public_test_cases' is no JSON"),
        ({"public_test_cases": "[1]"}, "line 2: the field 'public_test_cases' is no list of tests"),
        ({"public_test_cases": "[{}]"}, "line 2: the field 'testtype' is missing"),
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "line 2: the tests are empty"),
        (
            {"public_test_cases": FUNCTION["public_test_cases"]},
            "line 2: the tests are of several kinds: functional, stdin",
        ),
        ({"private_test_cases": "?"}, "line 2: private tests cannot be decoded"),
        ({"private_test_cases": RELEASED["private_test_cases"][:-8]}, "line 2: private tests"),
        ({"known_tests": {}}, "line 2: the field 'known_tests' is no list"),
        ({"known_tests": [{"input": 3}]}, "line 2: the field 'input' is no text"),
        (
            {"graded_solution": {"code": "pass"}},
            "line 2: the field 'graded_solution' has no verdict",
        ),
        ({"question_id": "abc_a"}, "line 2: two problems have the id 'abc_a'"),
    ],
)
def test_release_when_something_is_wrong_then_its_line_is_named(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """Nothing is read before all of it can be."""
    path = tmp_path / "release.jsonl"
    second = {**RELEASED, "question_id": "abc_b", **change}
    path.write_text(f"{json.dumps(RELEASED)}\n{json.dumps(second)}\n")
    with pytest.raises(InputError, match=said):
        read_livecodebench(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metadata": "{}", "starter_code": " "}, "nor the starter code names the function"),
        ({"metadata": '{"func_name": "a b"}'}, "nor the starter code names the function"),
        (
            {"public_test_cases": json.dumps([as_test("[1", "1", "functional")])},
            "a test is no JSON",
        ),
        (
            {"public_test_cases": json.dumps([as_test("1", "NaN", "functional")])},
            "a test is no JSON",
        ),
        (
            {"public_test_cases": json.dumps([as_test("1", "1", "judged")])},
            "unknown kind of test 'jud",
        ),
    ],
)
def test_function_when_its_tests_are_not_usable_is_refused(
    change: dict[str, Any], said: str
) -> None:
    """A name and JSON are needed."""
    with pytest.raises(InputError, match=said):
        read_livecodebench([{**FUNCTION, **change}])


def test_file_when_it_is_of_another_encoding_or_empty_or_damaged_is_refused(tmp_path: Path) -> None:
    """One line each."""
    line = json.dumps({**RELEASED, "question_content": "é"}, ensure_ascii=False)
    (tmp_path / "mixed").write_bytes(f"{json.dumps(FUNCTION)}\n".encode() + line.encode("latin-1"))
    (tmp_path / "empty").write_bytes(b"\n")
    (tmp_path / "cut").write_bytes(gzip.compress(line.encode())[:-9])
    for name, said in (
        ("mixed", "mixed, line 2: not JSON"),
        ("empty", "no problems of LiveCodeBench"),
        ("cut", "cut cannot be read"),
        ("absent", "absent cannot be read"),
    ):
        with pytest.raises(InputError, match=said):
            read_livecodebench(tmp_path / name)
    rows: list[Any] = [3]
    with pytest.raises(InputError, match="row 0: expected a problem's fields, got int"):
        read_livecodebench(rows)


# The decoder --------------------------------------------------------------------------------


class Shell:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit('unpickled')",)


@given(st.text(), st.sampled_from([0, 1, 2, 3, 4, 5]))
def test_text_when_pickled_by_any_protocol_is_decoded(text: str, protocol: int) -> None:
    """Whatever stands in it."""
    assert decode_tests(encoded(text, protocol)) == text


@pytest.mark.parametrize(
    "value",
    [Shell(), ["text"], 3, b"text", {"a": "b"}, ("a", "b"), None],
    ids=lambda value: type(value).__name__,
)
def test_pickle_when_it_is_more_than_a_text_is_refused_and_nothing_of_it_run(value: object) -> None:
    """A command that a pickle would run is an opcode that is not allowed."""
    with pytest.raises(ValueError, match="private tests cannot be decoded"):
        decode_tests(encoded(value))


@given(st.binary())
def test_bytes_when_they_are_anything_are_decoded_or_refused(data: bytes) -> None:
    """As a pickle, and as what is compressed; nothing but `ValueError` comes out."""
    for text in (
        base64.b64encode(zlib.compress(data)).decode(),
        base64.b64encode(data).decode(),
        data.decode("latin-1"),
    ):
        try:
            assert isinstance(decode_tests(text), str)
        except ValueError as error:
            assert "private tests" in str(error)  # noqa: PT017


def test_private_tests_when_they_grow_beyond_all_bounds_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No more than the bound is ever decompressed."""
    monkeypatch.setattr(code_problems, "_MOST_LINE", 1_000_000)
    bomb = zlib.compress(bytes(50_000_000))
    assert len(bomb) < 100_000
    with pytest.raises(ValueError, match="more than 1,000,000 bytes"):
        decode_tests(base64.b64encode(bomb).decode())


def test_file_when_a_line_grows_beyond_all_bounds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same of a compressed file."""
    monkeypatch.setattr(code_problems, "_MOST_LINE", 1_000_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(InputError, match="more than 1,000,000 bytes"):
        read_livecodebench(tmp_path / "bomb.gz")


# HumanEval ----------------------------------------------------------------------------------


def test_humaneval_when_read_shows_the_prompt_and_keeps_solution_and_check() -> None:
    """The solution is the right program that is known."""
    (problem,) = read_humaneval([FUNCTIONS])
    assert PROMPT.strip() in problem.text
    assert "return n + 1" not in problem.text
    assert problem.known == (f"{PROMPT}    return n + 1\n", "")
    assert CodeTests.of(problem.answer).mode == "check"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prompt": None}, "row 0: the field 'prompt' is missing"),
        (
            {"entry_point": "dec"},
            "row 0: the prompt with its solution is no Python that defines 'dec'",
        ),
        ({"canonical_solution": "  return ("}, "row 0: the prompt with its solution is no Python"),
        ({"test": "assert True"}, "row 0: the field 'test' is no Python that defines 'check'"),
    ],
)
def test_humaneval_when_something_is_wrong_then_its_row_is_named(
    change: dict[str, Any], said: str
) -> None:
    """In one line."""
    with pytest.raises(InputError, match=said):
        read_humaneval([{**FUNCTIONS, **change}])


# Real data ----------------------------------------------------------------------------------


def test_real_problems_are_read_whole(data_dir: Path) -> None:
    """1,055 of LiveCodeBench, 686 of them with tests that are sure; 164 of HumanEval."""
    problems = read_livecodebench(data_dir / "code" / "livecodebench.jsonl.gz")
    assert len(problems) == 1055
    assert sum(bool(each.answer) for each in problems) == 686
    assert len(read_humaneval(data_dir / "code" / "humaneval.jsonl.gz")) == 164


def test_real_private_tests_are_decoded_to_what_they_are(data_dir: Path) -> None:
    """The sample and its decoding."""
    path = data_dir / "code" / "livecodebench_private_tests_sample.json"
    sample = json.loads(path.read_text("utf-8"))
    assert json.loads(decode_tests(sample["private_test_cases"])) == sample["decoded"]
