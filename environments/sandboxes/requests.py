"""What callers hand in, checked before anything is started; and collected files, written out."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.inside.files import MAX_NAME, Putting, split_name
from langgraft.environments.sandboxes.sandbox import Command, Job, Limits, PythonProgram

_MAX_SEED: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file that was checked and can be put."""

    name: str
    content: bytes | Path
    size: int


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A program as a supervisor is asked for it: nothing about it can be wrong any more."""

    program: Mapping[str, object]
    seconds: float
    environment: Mapping[str, str]
    patterns: Sequence[str]
    """Of files to collect."""


def prepare(job: Job, limits: Limits) -> tuple[list[OutgoingFile], RunRequest]:
    """Check a job; return its files, the program's own among them, and what to ask for then.

    Raises:
        InputError: Its files cannot be put, a name leaves the workspace, or its program, time,
            seed or environment is none that can be had.
    """
    check_types(job)
    files = check_files(_with_source(job), limits)
    if not 0 <= job.seed <= _MAX_SEED:
        raise InputError(f"seed={job.seed!r} of a job: PYTHONHASHSEED takes 0 to {_MAX_SEED}")
    program = _asked(job.program)
    patterns = check_patterns(job.collect)
    seconds = check_seconds(job.seconds, limits)
    for name, value in job.environment.items():
        if not name or "=" in name or "\0" in name + value:
            raise InputError(f"{name!r}={value!r} is no environment variable that can be set")
    environment = {**environment_of(job.seed), **job.environment}
    return files, RunRequest(program, seconds, environment, patterns)


def prepare_command(
    command: Command, limits: Limits, *, seconds: float | None, collect: Sequence[str]
) -> RunRequest:
    """Check a command that is to run beside a kernel.

    Raises:
        InputError: The command, its time or a pattern is not usable.
    """
    allowed = check_seconds(seconds, limits)
    patterns = check_patterns(collect)
    # Of a Python program there is no file here: put it, and run `Command(["python3", name])`.
    check_type("command", command, Command)
    return RunRequest(_asked(command), allowed, environment_of(seed=0), patterns)


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
    """Refuse a value that is of none of some types; `True` is no number.

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


def environment_of(seed: int) -> dict[str, str]:
    """Return the environment variables that a seed sets."""
    return {"PYTHONHASHSEED": str(seed)}


def _with_source(job: Job) -> dict[str, bytes | Path]:
    files = dict(job.files)
    if isinstance(job.program, PythonProgram):
        name = check_name(job.program.name)
        if name in files:
            raise InputError(f"{name!r} is the program's own file and one of the job's: rename it")
        # What is no UTF-8 is the program's own error, told by its interpreter.
        files[name] = job.program.code.encode("utf-8", "surrogatepass")
    return files


def _asked(program: PythonProgram | Command) -> dict[str, object]:
    """Return a program as it is asked for, or refuse one that is empty or has NUL in a word."""
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


# Files, in and out


def check_name(name: str) -> str:
    """Return a path relative to the workspace, or refuse it.

    Raises:
        InputError: It is empty, absolute, has `..`, an empty part or NUL, or is no UTF-8.
    """
    try:
        split_name(str(name))
        fits = isinstance(name, str) and len(name.encode("utf-8")) <= MAX_NAME
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"{name!r} is no path inside the workspace: give a relative one with forward slashes, "
            f"of at most {MAX_NAME} bytes of UTF-8, such as 'working/model.txt'"
        )
    return name


def check_patterns(patterns: Sequence[str]) -> list[str]:
    """Return what is to be collected, or refuse it.

    Raises:
        InputError: A pattern leaves the workspace, or this is one text instead of a sequence.
    """
    if isinstance(patterns, str):
        raise InputError(
            f"collect={patterns!r} is one text: give a sequence, such as [{patterns!r}]"
        )
    if not isinstance(patterns, Iterable):
        raise InputError(f"collect={patterns!r} is no sequence: give one, such as ['out/**']")
    return [check_name(pattern) for pattern in patterns]


def check_files(files: Mapping[str, bytes | Path], limits: Limits) -> list[OutgoingFile]:
    """Return files as they can be put, by name.

    Raises:
        InputError: A name leaves the workspace or is another's folder, a path is no regular file
            that can be read, or together they are larger than the workspace.
    """
    for name in files:
        check_name(name)
    outgoing = [_outgoing(name, content) for name, content in sorted(files.items())]
    for name in files:
        parts = name.split("/")
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            if folder in files:
                raise InputError(f"{folder!r} is to be a file and the folder of {name!r}")
    size = sum(file.size for file in outgoing)
    if size > limits.workspace:
        raise InputError(
            f"the files have {size} bytes and the workspace holds {limits.workspace}: give fewer, "
            "raise Limits.workspace, or let the sandbox mount them as inputs"
        )
    return outgoing


def write_files(files: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write collected files into a folder of this machine, and nowhere else.

    Links inside the folder are not followed: one under a file's name is replaced, one in place of
    a folder is an error. Other files of the same name are replaced.

    Raises:
        InputError: A name leaves the folder, or a folder on the way is a link or a file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name, content in sorted(files.items()):
            check_name(name)
            try:
                _write(opened, name, content)
            except OSError as error:
                raise InputError(f"{folder / name} cannot be written: {error.strerror}") from error
    finally:
        os.close(opened)
    return [folder / name for name in sorted(files)]


def _outgoing(name: str, content: bytes | Path) -> OutgoingFile:
    if isinstance(content, bytes):
        return OutgoingFile(name, content, len(content))
    if not isinstance(content, Path):
        raise InputError(f"{name!r} is {type(content).__name__}: give bytes, or a Path to a file")
    if not content.is_file() or not os.access(content, os.R_OK):
        raise InputError(f"{name!r} is to be {content}, which is no file that can be read")
    return OutgoingFile(name, content, content.stat().st_size)


def _write(folder: int, name: str, content: bytes) -> None:
    file = Putting(folder, name)
    try:
        file.write(content)
        file.finish()
    except OSError:
        file.abandon()
        raise
