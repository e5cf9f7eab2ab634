"""Jobs and commands, checked and put as a supervisor is asked for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.files import (
    OutgoingFile,
    check_files,
    check_name,
    check_patterns,
)
from langgraft.environments.sandboxes.limits import Limits
from langgraft.environments.sandboxes.programs import Command, Job, PythonProgram

_MAX_SEED: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A job that was checked: nothing about it can be wrong any more."""

    files: list[OutgoingFile]
    program: Mapping[str, object]
    patterns: list[str]
    seconds: float
    environment: Mapping[str, str]


def prepare(job: Job, limits: Limits) -> PreparedJob:
    """Check a job.

    Raises:
        InputError: Its files cannot be put, a name leaves the workspace, or its program, time,
            seed or environment is none that can be had.
    """
    check_types(job)
    files = check_files(_with_source(job), limits)
    if not 0 <= job.seed <= _MAX_SEED:
        raise InputError(f"seed={job.seed!r} of a job: PYTHONHASHSEED takes 0 to {_MAX_SEED}")
    return PreparedJob(
        files=files,
        program=program_request(job.program),
        patterns=check_patterns(job.collect),
        seconds=check_seconds(job.seconds, limits),
        environment={**environment_of(job.seed), **_checked(job.environment)},
    )


def check_types(job: Job) -> None:
    """Refuse a job with something in it that is not what `Job` says.

    Raises:
        InputError: It has.
    """
    check_type("job", job, Job)
    check_type("program", job.program, PythonProgram, Command)
    if isinstance(job.program, PythonProgram):
        check_type("code", job.program.code, str)
        check_type("name", job.program.name, str)
        check_texts("arguments", job.program.arguments)
    elif not isinstance(job.program.line, str):
        check_texts("line", job.program.line)
    check_type("files", job.files, Mapping)
    check_texts("names of files", tuple(job.files))
    for name, content in job.files.items():
        check_type(f"the content of {name!r}", content, bytes, Path)
    check_texts("collect", job.collect)
    if job.seconds is not None:
        check_type("seconds", job.seconds, int, float)
    check_type("seed", job.seed, int)
    check_type("environment", job.environment, Mapping)
    check_texts("environment", (*job.environment, *job.environment.values()))


def check_type(what: str, value: object, *kinds: type) -> None:
    """Refuse a value that is of none of some types.

    Raises:
        InputError: It is not.
    """
    if not isinstance(value, kinds) or isinstance(value, bool):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise InputError(f"{what} is {type(value).__name__}: give {wanted}")


def check_texts(what: str, texts: Sequence[str]) -> list[str]:
    """Return texts, or refuse what is one text, or no texts.

    Raises:
        InputError: It is.
    """
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise InputError(f"{what}={texts!r} is {type(texts).__name__}: give a sequence of texts")
    for text in texts:
        check_type(f"{text!r} in {what}", text, str)
    return list(texts)


def environment_of(seed: int) -> dict[str, str]:
    """Return the environment variables that a seed sets."""
    return {"PYTHONHASHSEED": str(seed)}


def check_seconds(seconds: float | None, limits: Limits) -> float:
    """Return the wall clock of a program.

    Raises:
        InputError: It is not above 0, or without end.
    """
    allowed = limits.seconds if seconds is None else seconds
    check_type("seconds", allowed, int, float)
    if not 0 < allowed < float("inf"):
        raise InputError(f"seconds={seconds!r}: give a number above 0, or None for the limit's")
    return float(allowed)


def _with_source(job: Job) -> dict[str, bytes | Path]:
    files = dict(job.files)
    if isinstance(job.program, PythonProgram):
        name = check_name(job.program.name)
        if name in files:
            raise InputError(f"{name!r} is the program's own file and one of the job's: rename it")
        # What is no UTF-8 is the program's own error, told by its interpreter.
        files[name] = job.program.code.encode("utf-8", "surrogatepass")
    return files


def program_request(program: PythonProgram | Command) -> dict[str, object]:
    """Return a program as it is asked for.

    Raises:
        InputError: It is empty, or has NUL in a word.
    """
    if isinstance(program, PythonProgram):
        words = list(program.arguments)
        request: dict[str, object] = {"python": {"name": program.name, "arguments": words}}
    else:
        line = program.line
        words = ["sh", "-c", line] if isinstance(line, str) else list(line)
        if not (line.strip() if isinstance(line, str) else words and words[0]):
            raise InputError(f"{program!r} names no command")
        request = {"argv": words}
    if any("\0" in word for word in words):
        raise InputError(f"{program!r} has NUL in an argument, which no command can take")
    return request


def _checked(environment: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise InputError(f"{name!r}={value!r} is no environment variable that can be set")
    return environment
