r"""LiveCodeBench (Jain et al. 2024) and HumanEval (Chen et al. 2021): their problems, with tests as their answers.

    problems = read_livecodebench("test6.jsonl")  # a release file, or rows such as `datasets` gives
    domain = CodeDomain("code", problems)

Private tests come as base64 of zlib of a pickled text. The text is taken out of the pickle by its
opcodes, within bounds of size: nothing is unpickled.
"""

import ast
import base64
import gzip
import json
import pickletools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft._core.untrusted import load_json, parse_program
from langgraft.environments.problems.domain import Problem

Source: TypeAlias = str | Path | Iterable[Mapping[str, Any]]
Mode: TypeAlias = Literal["stdin", "call", "check"]

DIFFICULTIES: Final = ("easy", "medium", "hard")

_MOST_LINE: Final = 1 << 28
"""Bytes of a line of a file, and of the private tests of a problem once they are decoded."""
_MOST_FILE: Final = 1 << 33
"""Bytes of a file once it is decompressed; the largest release file has 1.3 GB."""
_TEXT_OPCODES: Final = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"}
_IDLE_OPCODES: Final = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}
_METHOD: Final = re.compile(r"^\s*def (\w+)\(self", re.MULTILINE)
_RETURNS_TEXT: Final = re.compile(r"->\s*str\s*:")
_TASKS: Final = {
    "stdin": "Write a Python program that reads its input from standard input and prints the answer.",
    "call": "Complete this Python code:",
    "check": "Complete this Python function, and give the whole of it, its imports included.",
}


@dataclass(frozen=True, slots=True)
class CodeTests:
    """What a program is graded by; as canonical JSON it is the `answer` of a problem."""

    mode: Mode
    """`stdin`: print what is expected; `call`: return it; `check`: pass a function of HumanEval's."""
    name: str = ""
    """The function that is called, a method of `Solution` or a plain one."""
    cases: tuple[tuple[JSON, JSON], ...] = ()
    """What is given and what is expected: texts, or arguments and a value; none of `check`."""
    prompt: str = ""
    """Of HumanEval: what the program is to complete."""
    solution: str = ""
    """Of HumanEval: completes the prompt. It tells which calls the check makes."""
    check: str = ""
    """Of HumanEval: the source of `check`."""

    @property
    def text(self) -> str:
        """Return them as canonical JSON; the empty text where there are none."""
        return canonical_json(asdict(self)) if self.cases or self.check else ""

    @classmethod
    def of(cls, text: str) -> Self:
        """Read what `text` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "cases": tuple((given, told) for given, told in fields["cases"])})


def read_livecodebench(source: Source) -> tuple[Problem, ...]:
    """Read problems of LiveCodeBench, in the order of the source.

    Args:
        source: A JSON Lines file (compressed by gzip or not) or rows, with the fields of a release:
            `question_id`, `question_content`, `platform`, `starter_code`, `difficulty`, and
            `public_test_cases`, `private_test_cases` and `metadata`; or, in the place of the last
            three, `known_tests` with `input` and `expected` as graded outputs tell them. Left out is
            what is cut short, and arguments that a failed program may have changed: they were told
            after it had run, so lists count only where the test is `public`. None may be left: such
            a problem is never drawn. `graded_solution` is a program with its verdict.

    Raises:
        InputError: There is none, a field is missing or not what it should be, a problem has no
            tests or tests of two kinds, or two have one id. It names the file and the line.
    """
    return _read(source, "LiveCodeBench", _of_livecodebench)


def read_humaneval(source: Source) -> tuple[Problem, ...]:
    """Read problems of HumanEval, in the order of the source.

    Args:
        source: A JSON Lines file (compressed by gzip or not) or rows, with the fields `task_id`,
            `prompt`, `entry_point`, `canonical_solution` and `test`.

    Raises:
        InputError: There is none, a field is missing or no text, the prompt with its solution is no
            Python that defines the entry point, or two have one id. It names the file and the line.
    """
    return _read(source, "HumanEval", _of_humaneval)


def _read(source: Source, what: str, made: Any) -> tuple[Problem, ...]:
    found: dict[str, Problem] = {}
    for where, row in _rows(source):
        try:
            if not isinstance(row, Mapping):
                msg = f"expected a problem's fields, got {type(row).__name__}"
                raise ValueError(msg)  # noqa: TRY004  (a row of a file is no argument)
            problem: Problem = made(row)
            if problem.id in found:
                msg = f"two problems have the id {problem.id!r:.80}"
                raise ValueError(msg)
        except ValueError as error:
            msg = f"{where}: {error}"
            raise InputError(msg) from error
        found[problem.id] = problem
    if not found:
        msg = f"no problems of {what} in {source}"
        raise InputError(msg)
    return tuple(found.values())


def _rows(source: Source) -> Iterator[tuple[str, Any]]:
    """Yield where each row stands, and the row."""
    if not isinstance(source, str | Path):
        yield from ((f"row {number}", row) for number, row in enumerate(source))
        return
    path = Path(source)
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            yield f"{path}, line {number}", load_json(line, most=_MOST_LINE)
        except ValueError as error:
            msg = f"{path}, line {number}: not JSON: {error}"
            raise InputError(msg) from error


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file one by one: a release has gigabytes."""
    size = 0
    try:
        with path.open("rb") as plain:
            zipped = plain.peek(2).startswith(b"\x1f\x8b")
            with gzip.open(plain) if zipped else plain as file:
                while line := file.readline(_MOST_LINE + 1):
                    size += len(line)
                    if len(line) > _MOST_LINE or size > _MOST_FILE:
                        msg = f"a line has more than {_MOST_LINE:,} bytes, or all {_MOST_FILE:,}"
                        raise ValueError(msg)
                    yield line
    except (OSError, EOFError, ValueError, zlib.error) as error:
        msg = f"{path} cannot be read: {error}"
        raise InputError(msg) from error


def _text(row: Mapping[str, Any], name: str, *, empty: bool = False) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not (empty or value.strip()):
        msg = f"the field {name!r} is {'missing' if value is None else 'no text'}"
        raise ValueError(msg)
    return value


# LiveCodeBench ------------------------------------------------------------------------------


def _of_livecodebench(row: Mapping[str, Any]) -> Problem:
    difficulty = _text(row, "difficulty")
    if difficulty not in DIFFICULTIES:
        msg = f"unknown difficulty {difficulty!r:.80}; expected {', '.join(DIFFICULTIES)}"
        raise ValueError(msg)
    starter = _text(row, "starter_code", empty=True)
    tests = _known_tests(row, starter) if "known_tests" in row else _released_tests(row, starter)
    content = _text(row, "question_content").strip()
    code = f"\n```python\n{starter.rstrip()}\n```" if starter.strip() else ""
    return Problem(
        id=_text(row, "question_id"),
        text=f"{content}\n\n{_TASKS['call' if code else 'stdin']}{code}",
        kind=_text(row, "platform"),
        level=difficulty,
        answer=tests.text,
        known=_graded(row.get("graded_solution")),
    )


def _graded(solution: Any) -> tuple[str, str]:
    """Return a program by its verdict, as the right or as the wrong one."""
    if solution is None:
        return "", ""
    if not isinstance(solution, Mapping) or not isinstance(solution.get("passed"), bool):
        msg = "the field 'graded_solution' has no verdict `passed`"
        raise ValueError(msg)  # noqa: TRY004
    code = _text(solution, "code", empty=True)
    return (code, "") if solution["passed"] else ("", code)


def _released_tests(row: Mapping[str, Any], starter: str) -> CodeTests:
    tests = [*_listed(row, "public_test_cases"), *_listed(row, "private_test_cases")]
    kinds = {_text(each, "testtype") for each in tests}
    if len(kinds) != 1:
        found = f"are of several kinds: {', '.join(sorted(kinds))}" if kinds else "are empty"
        msg = f"the tests {found}"
        raise ValueError(msg)
    pairs = [
        (_text(each, "input", empty=True), _text(each, "output", empty=True)) for each in tests
    ]
    match kinds.pop():
        case "stdin":
            return CodeTests("stdin", cases=tuple(pairs))
        case "functional":
            cases = tuple(
                ([_json(line) for line in given.split("\n")], _json(told)) for given, told in pairs
            )
            return CodeTests("call", _function(row, starter), cases)
        case other:
            msg = f"unknown kind of test {other!r:.80}; expected stdin or functional"
            raise ValueError(msg)


def _function(row: Mapping[str, Any], starter: str) -> str:
    """Return the function that tests call: from the metadata, else the starter code's only method."""
    metadata = row.get("metadata")
    if isinstance(metadata, str) and metadata.strip():
        metadata = _json(metadata)
    name = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    if name is None:
        methods = _METHOD.findall(starter)
        name = methods[0] if len(methods) == 1 else None
    if not isinstance(name, str) or not name.isidentifier():
        msg = "neither the field 'metadata' (`func_name`) nor the starter code names the function"
        raise ValueError(msg)
    return name


def _listed(row: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    value = row.get(name)
    if isinstance(value, str):
        text = value.strip()
        value = _json(text if text.startswith("[") else decode_tests(text), f"the field {name!r}")
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        msg = f"the field {name!r} is {'missing' if row.get(name) is None else 'no list of tests'}"
        raise ValueError(msg)
    return value


def decode_tests(encoded: str) -> str:
    """Return the text of private tests: base64, of zlib, of a pickle that is one text.

    The opcodes of the pickle are read and none is carried out.

    Raises:
        ValueError: It is anything else, or larger than it may be.
    """
    try:
        unzip = zlib.decompressobj()
        pickled = unzip.decompress(base64.b64decode(encoded, validate=True), _MOST_LINE)
        complete = unzip.eof and not unzip.unused_data
    except (ValueError, zlib.error) as error:
        msg = f"private tests cannot be decoded: {error}"
        raise ValueError(msg) from error
    if not complete:
        msg = f"private tests are cut short, or have more than {_MOST_LINE:,} bytes"
        raise ValueError(msg)
    texts: list[str] = []
    end = -1
    try:
        for opcode, argument, position in pickletools.genops(pickled):
            if opcode.name in _TEXT_OPCODES:
                texts.append(str(argument))
            elif opcode.name not in _IDLE_OPCODES:
                msg = f"the pickle is more than a text: it holds {opcode.name}"
                raise ValueError(msg)
            end = position or 0
    except (ValueError, OverflowError, MemoryError) as error:
        msg = f"private tests cannot be decoded: {error}"
        raise ValueError(msg) from error
    if len(texts) != 1 or end != len(pickled) - 1:
        msg = f"private tests cannot be decoded: the pickle holds {len(texts)} texts and no more"
        raise ValueError(msg)
    return texts[0]


def _json(text: str, what: str = "a test") -> Any:
    try:
        value = load_json(text.encode(), most=_MOST_LINE)
        canonical_json(value)  # neither NaN nor halves of surrogate pairs
    except ValueError as error:
        msg = f"{what} is no JSON: {error}"
        raise ValueError(msg) from error
    return value


def _known_tests(row: Mapping[str, Any], starter: str) -> CodeTests:
    tests = row["known_tests"]
    if not isinstance(tests, list) or not all(isinstance(each, Mapping) for each in tests):
        msg = "the field 'known_tests' is no list of tests"
        raise ValueError(msg)
    whole = [
        (_text(each, "input", empty=True), _text(each, "expected", empty=True), each.get("kind"))
        for each in tests
        if not each.get("truncated")
    ]
    if not starter.strip():
        return CodeTests("stdin", cases=tuple((given, told) for given, told, _ in whole))
    plain = bool(_RETURNS_TEXT.search(starter))
    cases: list[tuple[JSON, JSON]] = []
    for given, told, kind in whole:
        if kind != "public" and kind is not None and "[" in given.strip()[1:]:
            continue
        arguments = _literal(given)
        if not isinstance(arguments, list):
            msg = f"the arguments of a known test are no list: {given!r:.80}"
            raise ValueError(msg)  # noqa: TRY004
        cases.append((arguments, told if plain else _literal(told)))
    return CodeTests("call", _function(row, starter), tuple(cases))


def _literal(text: str) -> Any:
    """Return a literal of Python as JSON holds it, tuples as lists.

    Raises:
        ValueError: It is none.
    """
    try:
        (only,) = parse_program(text.strip(), most=len(text)).body
        value = ast.literal_eval(only.value) if isinstance(only, ast.Expr) else None
        return json.loads(json.dumps(value, allow_nan=False))
    except (SyntaxError, ValueError, TypeError, RecursionError) as error:
        msg = f"{text!r:.80} is no value of Python: {error}"
        raise ValueError(msg) from error


# HumanEval ----------------------------------------------------------------------------------


def _of_humaneval(row: Mapping[str, Any]) -> Problem:
    prompt, name = _text(row, "prompt"), _text(row, "entry_point")
    solution, check = _text(row, "canonical_solution"), _text(row, "test")
    if not defines(f"{prompt}{solution}", name) or not defines(prompt, name):
        msg = f"the prompt with its solution is no Python that defines {name!r:.80}"
        raise ValueError(msg)
    if not defines(check, "check"):
        msg = "the field 'test' is no Python that defines 'check'"
        raise ValueError(msg)
    return Problem(
        id=_text(row, "task_id"),
        text=f"{_TASKS['check']}\n\n```python\n{prompt.rstrip()}\n```",
        kind="functions",
        level="?",
        answer=CodeTests("check", name, prompt=prompt, solution=solution, check=check).text,
        known=(f"{prompt}{solution}", ""),
    )


def defines(code: str, name: str) -> bool:
    """Return whether code is Python that defines a function of this name outside of any other."""
    try:
        body = parse_program(code).body
    except SyntaxError:
        return False
    return any(isinstance(each, ast.FunctionDef) and each.name == name for each in body)
