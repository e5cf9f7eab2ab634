"""One attempt at a competition: a program runs on the public data, says what it reached, and leaves a submission.

The metric that it says it reached is its own word: good for choosing what to try next, never a score.
How that is read:

1. The last line counts that names the competition's metric and a number; where none does, the
   last one that names a score or some metric and a number; and then the last `Validation: 0.91`.
   Standard output goes before standard error.
2. A line that names training and no validation does not count. In a line that names a
   validation, what follows it goes first: `train-auc:0.99 valid-auc:0.91` reports 0.91.
3. Of the numbers after the name, those in brackets come last, and those right behind `:`, `=`,
   `is` or `of` first. A number that is a part of a word (`5-fold`, `f1`, `top-1`) is none.
4. `1,234.5` has a thousands separator, a percentage counts as hundredths, `1e-3` is what it
   is. `0,85` might be two numbers or one: it is not read. `nan` and `inf` are no metric.

Nothing in here knows an answer: what is told of a submission comes from the sample submission
alone, and grades are given elsewhere (`grading`).
"""

import ast
import asyncio
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from langgraft._core.errors import InputError
from langgraft._core.untrusted import parse_program, unreadable_as
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.submissions import check_submission, sample_file
from langgraft.environments.sandboxes import result_text
from langgraft.environments.sandboxes.sandbox import (
    ExecutionResult,
    Job,
    Limits,
    PythonProgram,
    Sandbox,
)


@dataclass(frozen=True, slots=True)
class Reported:
    """What a program says of its own validation."""

    value: float | None
    reason: str
    """Why there is no value; empty where there is one."""
    line: str
    """The line it was read from; empty where none names a metric."""


_VALIDATION: Final = re.compile(
    r"(?<![a-z])(?:validation|valid|val|hold[\s_-]?out|cv|cross[\s_-]?val\w*|oof|out[\s_-]of[\s_-]fold)"
    r"(?![a-z])",
    re.IGNORECASE,
)
_TRAINING: Final = re.compile(r"(?<![a-z])train(?:ing)?(?![a-z])", re.IGNORECASE)
_GENERAL: Final = re.compile(
    r"(?<![a-z])(?:metric|score|auc|roc|accuracy|acc|log[\s_-]?loss|loss|rmsle|rmse|mse|mae|mape"
    r"|f1|kappa|qwk|r2|precision|recall)(?![a-z])",
    re.IGNORECASE,
)
_PLAIN: Final = re.compile(
    rf"{_VALIDATION.pattern}(?:[\s_-](?:error|result|performance))?(?=\s*(?:[:=]|is\b))",
    re.IGNORECASE,
)

_NUMBER: Final = re.compile(
    r"""
    (?<![\w.,@+-])                      # no part of a word, of a list or of another number
    (?P<text>
        [+-]?
        (?: nan | inf(?:inity)?
          | (?: \d{1,3}+(?:,\d{3})++ | \d++ ) (?: \.\d*+ )?+ (?: e[+-]?\d++ )?+
          | \.\d++ (?: e[+-]?\d++ )?+
        )
    )
    \s?(?P<percent>%)?
    (?! ,?\d | [\w.]\w | \w | -[a-z] )  # `5-fold`, `1.2.3` and `0,85` are no numbers
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SAID: Final = re.compile(r"(?:[:=]|\bis|\bof)\s*$", re.IGNORECASE)

_LONGEST: Final = 2000
"""Characters of a line that are read: a metric is told in short."""

_ALIASES: Final = {
    "auc": ("auc",),
    "roc": ("auc",),
    "logloss": ("log loss", "logloss"),
    "kappa": ("kappa", "qwk"),
    "accuracy": ("accuracy", "acc"),
    "rmsle": ("rmsle",),
    "rmse": ("rmse", "root mean squared error"),
    "rootmeansquarederror": ("rmse",),
    "mae": ("mae", "mean absolute error"),
    "f1": ("f1",),
}
"""How programs call what a grader calls otherwise, by what its name contains."""


@unreadable_as(lambda *_: Reported(None, "its output cannot be read", ""))
def reported_metric(result: ExecutionResult, metric: str) -> Reported:
    """Return the validation metric that a program reports.

    Args:
        result: What came of the program.
        metric: The competition's name of it, such as `auc-roc`.
    """
    for names in (_naming(metric), _GENERAL, _PLAIN):
        for printed in (result.stdout, result.stderr):
            for line in reversed(printed.splitlines()):
                found = _read(line.strip()[:_LONGEST], names)
                if found is not None:
                    return found
    return Reported(None, "no line of its output names a metric and a number", "")


def _read(line: str, names: re.Pattern[str]) -> Reported | None:
    """Read one line, or return `None` where it does not count."""
    name = names.search(line)
    if name is None:
        return None
    validation = _VALIDATION.search(line)
    starts = [name.end()]
    if validation is not None:
        named_after = names.search(line, validation.end())
        starts = [validation.end(), *starts]
        starts = starts if named_after is None else [named_after.end(), *starts]
    elif _TRAINING.search(line):
        return None
    for start in starts:
        number = _number(line, start)
        if number is not None:
            return _value(number, line)
    return None


def _number(line: str, start: int) -> re.Match[str] | None:
    def rank(number: re.Match[str]) -> tuple[bool, bool]:
        before = line[start : number.start()]
        return before.count("(") > before.count(")"), _SAID.search(before) is None

    return min(_NUMBER.finditer(line, start), key=rank, default=None)


def _value(number: re.Match[str], line: str) -> Reported:
    text = number["text"]
    value = float(text.replace(",", "")) / (100 if number["percent"] else 1)
    if not math.isfinite(value):
        return Reported(None, f"the program reports {text}, which is no number", line)
    return Reported(value, "", line)


@lru_cache(maxsize=256)
def _naming(metric: str) -> re.Pattern[str]:
    """Return what finds a metric by its own name or as programs call it."""
    joined = re.sub(r"[^a-z0-9]+", "", metric.lower())
    names = {metric, *(name for key, known in _ALIASES.items() if key in joined for name in known)}
    words = (re.findall(r"[a-z0-9]+", name.lower()) for name in names)
    spelled = sorted((r"[\s_-]?".join(parts) for parts in words if parts), key=len, reverse=True)
    spelled = spelled or [r"(?!)"]
    return re.compile(rf"(?<![a-z])(?:{'|'.join(spelled)})(?![a-z])", re.IGNORECASE)


_IMPORTERS: Final = {"__import__", "import_module", "find_spec", "require", "files", "run_module"}
"""Functions that are given a module's name as text."""
_DRAWING: Final = "make_"
"""Begins the names of scikit-learn's functions that draw data at random: no source has such data."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A line that asks for the source data."""

    line: int
    """From 1."""
    module: str
    """Which of the modules that carry source data."""
    text: str
    """What was found: the name imported, or the text that names it."""


@unreadable_as(lambda *_: ())
def find_leaks(code: str, modules: Sequence[str]) -> tuple[Leak, ...]:
    """Return where a program's text names modules that carry source data.

    Found are imports in any form, `load_…` and `fetch_…` functions reached through the parent
    package, modules' names given as text to functions that import, and paths in texts. Functions
    named `make_…` (`sklearn.datasets.make_classification`) draw data at random and are none; a
    module that is imported whole is found, whatever is called of it then.

    Args:
        code: A Python program. One that does not parse is searched line by line, for any mention.
        modules: `Competition.source_modules`.
    """
    try:
        tree = parse_program(code)
    except SyntaxError:
        return tuple(_in_lines(code, modules))
    nodes = list(ast.walk(tree))
    # `a.b` within `a.b.c` is no name of its own.
    within = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    whole = [n for n in nodes if not isinstance(n, ast.Attribute) or id(n) not in within]
    found = {leak for node in whole for leak in _in_node(node, modules)}
    return tuple(sorted(found, key=lambda leak: (leak.line, leak.module, leak.text)))


def _in_node(node: ast.AST, modules: Sequence[str]) -> Iterator[Leak]:
    for name in _names(node):
        for module in modules:
            if _carries(name, module):
                yield Leak(getattr(node, "lineno", 1), module, name)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        for module in modules:
            if _is_path(node.value, module):
                yield Leak(node.lineno, module, node.value[:80])


def _carries(name: str, module: str) -> bool:
    """Whether a dotted name is a module with source data, or something in it that has data."""
    within = name.startswith(f"{module}.")
    return name == module or (within and not name.rpartition(".")[2].startswith(_DRAWING))


def _names(node: ast.AST) -> Iterator[str]:
    """Return dotted names that a node imports or reaches."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Attribute):
        yield _dotted(node)
    elif isinstance(node, ast.Call) and _called(node) in _IMPORTERS and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


def _dotted(node: ast.Attribute) -> str:
    parts, inner = [node.attr], node.value
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if isinstance(inner, ast.Name):
        parts.append(inner.id)
    return ".".join(reversed(parts))


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_path(text: str, module: str) -> bool:
    """Whether a text holds a module's name as folders: `…/sklearn/datasets/…`."""
    folders = module.replace(".", "/")
    return "/" in text and f"/{folders}/" in f"/{text.replace(chr(92), '/')}/"


def _in_lines(code: str, modules: Sequence[str]) -> Iterator[Leak]:
    forms = [(module, "from " + module.replace(".", " import ", 1)) for module in modules]
    forms = [(module, other) for module, other in forms if module in code or other in code]
    for number, line in enumerate(code.splitlines() if forms else (), 1):
        for module, other in forms:
            if module in line or other in line:
                yield Leak(number, module, line.strip()[:80])


INPUT: Final = "input"
"""Where the public data lies in the workspace, as AIDE's prompts have it."""

WEIGHTS: Final = "weights"
"""Where pretrained weights lie in the workspace, if there are any."""

SUBMISSIONS: Final = ("submission.csv", "working/submission.csv", "submission/submission.csv")
"""Where a submission is looked for, the first one found counts.

The second is AIDE's place, the third that of AIDE as MLE-bench runs it.
"""

_FOLDERS: Final[Mapping[str, bytes]] = {"working/.keep": b"", "submission/.keep": b""}
"""So that programs find AIDE's folders there."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of a program for a competition. `result` is what the sandbox saw."""

    result: ExecutionResult
    submission: bytes | None
    """The file it left, as it is; `None` where there is none."""
    submission_valid: bool | None
    """Whether it is like the sample submission; `None` where there is none."""
    reasons: tuple[str, ...]
    """Why it is absent or not valid; empty where it is valid."""
    reported: Reported
    """The validation metric that the program says it reached: never a score."""
    leaks: tuple[Leak, ...] = ()
    """Where the program's text asks for the competition's source data: for reports, not told."""

    @property
    def submission_present(self) -> bool:
        """Whether there is a submission at all."""
        return self.submission is not None

    @property
    def metric(self) -> float | None:
        """The program's own validation metric; `None` where it reports none."""
        return self.reported.value


def attempt(
    program: PythonProgram,
    competition: Competition,
    sandbox: Sandbox,
    *,
    seconds: float | None = None,
    seed: int = 0,
    files: Mapping[str, bytes | Path] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Attempt:
    """Run a program for a competition, and say what is told of it without any answer.

    Args:
        program: Finds the data in `./input` and leaves one of `SUBMISSIONS`.
        competition: What it is for.
        sandbox: Made with `inputs={"input": competition.input_dir}`, or `files` brings the data.
        seconds: Wall clock, in place of the sandbox's limit.
        seed: Of the program's hashes.
        files: Put into the workspace beforehand; `input_files(competition)` is the data.
        environment: Further environment variables.

    Raises:
        CompetitionError: The data is not prepared, or its sample submission cannot be read.
        InputError: It is no program, or a file cannot be put into the workspace.
        SandboxUnavailableError: There is no engine or image.
        SandboxFailureError: The engine or container died, and again when retried.
    """
    sample_file(competition)  # before a program runs for hours
    job = _job(program, seconds, seed, files, environment)
    return judged(sandbox.run(job), competition, program.code)


async def aattempt(
    program: PythonProgram,
    competition: Competition,
    sandbox: Sandbox,
    *,
    seconds: float | None = None,
    seed: int = 0,
    files: Mapping[str, bytes | Path] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Attempt:
    """Do what `attempt` does; cancelling kills the program."""
    sample_file(competition)
    job = _job(program, seconds, seed, files, environment)
    # In a thread: submissions may have millions of rows.
    return await asyncio.to_thread(judged, await sandbox.arun(job), competition, program.code)


def input_files(competition: Competition) -> dict[str, Path]:
    """Return a competition's public data as files of a job, for a sandbox without a mount of it."""
    folder = competition.input_dir
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{INPUT}/{path.relative_to(folder).as_posix()}": path for path in found}


def judged(result: ExecutionResult, competition: Competition, code: str = "") -> Attempt:
    """Say what a program's result means for a competition, without any answer.

    Args:
        result: What came of the program.
        competition: What it was for.
        code: The program's text, where it is known: searched for leaks.

    Raises:
        CompetitionError: The sample submission cannot be read.
    """
    reported = reported_metric(result, competition.grader.name)
    leaks = find_leaks(code, competition.source_modules)
    submission = next((result.files[name] for name in SUBMISSIONS if name in result.files), None)
    if submission is None:
        return Attempt(result, None, None, _why_absent(result), reported, leaks)
    validity = check_submission(submission, competition)
    return Attempt(result, submission, validity.valid, validity.reasons, reported, leaks)


def told(made: Attempt, limits: Limits, *, seconds: float | None = None, exact: bool = True) -> str:
    """Tell an agent what came of its program.

    Args:
        made: What came of it.
        limits: Of the sandbox that it ran in.
        seconds: Wall clock it was given, where it was another than the limits'.
        exact: Tell how long it ran; `False` tells only roughly, so that two runs of one program
            read the same.
    """
    ran = result_text.told(made.result, limits, seconds=seconds, exact=exact)
    parts = [ran, _about_submission(made)]
    if made.metric is None:
        parts.append(f"Validation metric: none ({made.reported.reason}).")
    else:
        parts.append(f"Validation metric, as the program reports it: {made.metric:g}.")
    return "\n\n".join(parts)


def _job(
    program: PythonProgram,
    seconds: float | None,
    seed: int,
    files: Mapping[str, bytes | Path] | None,
    environment: Mapping[str, str] | None,
) -> Job:
    if not isinstance(program, PythonProgram):
        raise InputError(f"program={program!r:.80} is no program: give PythonProgram(code)")
    return Job(
        program,
        files={**_FOLDERS, **(files or {})},
        collect=SUBMISSIONS,
        seconds=seconds,
        seed=seed,
        environment=environment or {},
    )


def _why_absent(result: ExecutionResult) -> tuple[str, ...]:
    left_out = tuple(
        f"{name} was not taken out: {result.left_out[name]}"
        for name in SUBMISSIONS
        if name in result.left_out
    )
    return left_out or (f"the program left no {' or '.join(SUBMISSIONS)}",)


def _about_submission(made: Attempt) -> str:
    if made.submission_valid:
        return "Submission: present and valid."
    state = "present, but not valid" if made.submission_present else "absent"
    return "\n".join([f"Submission: {state}.", *(f"- {reason}" for reason in made.reasons)])
