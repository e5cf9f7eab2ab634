"""A sandbox that runs each program once: what came of it before, comes of it again."""

import asyncio
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock
from typing import Any, Final

from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft._core.sqlite_file import Layout, SQLiteFile
from langgraft.environments.sandboxes.requests import check_types
from langgraft.environments.sandboxes.sandbox import (
    ExecutionResult,
    Frame,
    Job,
    Kernel,
    Program,
    ProgramError,
    PythonProgram,
    Sandbox,
)

LAYOUT: Final = 2
"""Part of every key and of the file: raise it when kept results can no longer be trusted."""

_FILE: Final = Layout(
    kind="an execution cache",
    application=0x6C677865,
    version=LAYOUT,
    schema="""
        CREATE TABLE executions (
            key TEXT PRIMARY KEY,
            result TEXT NOT NULL,
            files BLOB NOT NULL,
            sha256 BLOB NOT NULL
        )
    """,
    advice="give another path, or delete the file: programs are then run again",
)


class CachedSandbox(Sandbox):
    """A sandbox over another, with every result in a file before anybody sees it.

    `limits` are those of the sandbox below, `cache` holds the results.

    A run that is killed and resumed with the same file sees the same results, durations
    included, and so ends as if it had never been killed. Whatever a program did is kept:
    exceptions, timeouts and memory that ran out too, since asking again until it goes well
    would be another experiment. What failed around it (`SandboxFailureError`) is not.

    Tasks and threads that ask for one program at once run it once; processes that do may both
    run it, and use the result that was kept first. Kernels keep state between cells: they are
    passed through, and nothing of them is kept.

    | setting | meaning |
    | --- | --- |
    | `sandbox` | runs what is not known yet; closed together with this one |
    | `path` | the file; created together with its folder |

    Raises:
        InputError: The file cannot be used: unwritable, damaged, or no execution cache; from `run`
            also: a file of the job cannot be read, or changed while the program ran.
    """

    def __init__(self, sandbox: Sandbox, path: Path | str) -> None:
        self.sandbox = sandbox
        self.limits = sandbox.limits
        self.cache = ExecutionCache(path)
        self._lock = Lock()
        self._running: dict[str, Future[None]] = {}

    @property
    @override
    def digest(self) -> str:
        return self.sandbox.digest

    @override
    def run(self, job: Job) -> ExecutionResult:
        key = job_key(job, self.sandbox)
        while (ahead := self._claim(key)) is not None:
            ahead.result()
        try:
            kept = self.cache.get(key)
            return self._keep(key, job, self.sandbox.run(job)) if kept is None else kept
        finally:
            self._release(key)

    @override
    async def arun(self, job: Job) -> ExecutionResult:
        # In threads: input files may be large, and a file system slow.
        key = await asyncio.to_thread(job_key, job, self.sandbox)
        while (ahead := self._claim(key)) is not None:
            # One who gives up waiting must not cancel it for all.
            await asyncio.shield(asyncio.wrap_future(ahead))
        try:
            kept = await asyncio.to_thread(self.cache.get, key)
            if kept is None:
                result = await self.sandbox.arun(job)
                kept = await asyncio.to_thread(self._keep, key, job, result)
            return kept
        finally:
            self._release(key)

    @override
    def kernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        return self.sandbox.kernel(preload=preload, files=files)

    @override
    async def akernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        return await self.sandbox.akernel(preload=preload, files=files)

    @override
    def close(self) -> None:
        self.cache.close()
        self.sandbox.close()

    @override
    async def aclose(self) -> None:
        self.cache.close()
        await self.sandbox.aclose()

    def _claim(self, key: str) -> "Future[None] | None":
        """Take a program for oneself, or return what ends when the one who has it is done."""
        with self._lock:
            ahead = self._running.get(key)
            if ahead is None:
                self._running[key] = Future()
            return ahead

    def _release(self, key: str) -> None:
        with self._lock:
            done = self._running.pop(key)
        done.set_result(None)

    def _keep(self, key: str, job: Job, result: ExecutionResult) -> ExecutionResult:
        if any(isinstance(content, Path) for content in job.files.values()):
            _check_unchanged(key, job, self.sandbox)
        return self.cache.keep(key, result)


def job_key(job: Job, sandbox: Sandbox) -> str:
    """Return the key of a job: everything that decides what comes of it.

    Raises:
        InputError: Something in the job is of the wrong type, or a file of it cannot be read.
    """
    check_types(job)
    parts: JSON = {
        "layout": LAYOUT,
        "sandbox": sandbox.digest,
        "program": _program(job.program),
        "files": {name: _content_digest(content) for name, content in job.files.items()},
        "collect": list(job.collect),
        "seconds": float(sandbox.limits.seconds if job.seconds is None else job.seconds),
        "seed": job.seed,
        "environment": dict(job.environment),
    }
    # ASCII, because what a model wrote may hold halves of surrogate pairs.
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _program(program: Program) -> JSON:
    if isinstance(program, PythonProgram):
        return {"python": [program.name, program.code, *program.arguments]}
    if isinstance(program.line, str):
        return {"line": program.line}
    return {"arguments": list(program.line)}


def _content_digest(content: bytes | Path) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    try:
        with content.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        msg = f"{content}: this input file of a program cannot be read: {error.strerror}"
        raise InputError(msg) from error


def _check_unchanged(key: str, job: Job, sandbox: Sandbox) -> None:
    if job_key(job, sandbox) != key:
        paths = sorted(str(content) for content in job.files.values() if isinstance(content, Path))
        msg = (
            f"an input file changed while a program ran on it ({', '.join(paths)}): nobody knows"
            " which content its result belongs to; run it again on files that nothing writes to"
        )
        raise InputError(msg)


class ExecutionCache:
    """Keep what came of programs. The first result of a key wins and never changes.

    Any number of threads and processes may share the file. A result is on disk once `keep`
    returns, whatever happens to the process or the machine afterwards; a process that is killed
    in between leaves the file as it was.

    Args:
        path: The file; created together with its folder.

    Raises:
        InputError: The file cannot be opened, is damaged, or is not one of ours.
    """

    def __init__(self, path: Path | str) -> None:
        self._file = SQLiteFile(path, _FILE)
        self.path = self._file.path

    def get(self, key: str) -> ExecutionResult | None:
        """Return what came of the program with this key, or `None`.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be read now.
        """
        statement = "SELECT result, files, sha256 FROM executions WHERE key = ?"
        with self._file.transaction(write=False) as cursor:
            row = cursor.execute(statement, (key,)).fetchone()
        if row is None:
            return None
        written, content, checksum = row
        try:
            if _checksum(key, written, content) == checksum:
                return read_result(written, content)
            why: Exception | None = None
        # The file may be somebody else's, whose checksum is right.
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            RecursionError,
            zlib.error,
        ) as error:
            why = error
        msg = f"{self.path}: the result {key[:12]} is damaged; {_FILE.advice}"
        raise InputError(msg) from why

    def keep(self, key: str, result: ExecutionResult) -> ExecutionResult:
        """Keep a result, and return the one that counts: the first one of its key.

        Files are kept compressed, and read back only where another result was first: a submission
        may have 157 MB.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be written now.
        """
        written, content = write_result(result)
        row = (key, written, content, _checksum(key, written, content))
        with self._file.transaction(write=True) as cursor:
            cursor.execute("INSERT OR IGNORE INTO executions VALUES (?, ?, ?, ?)", row)
            first = cursor.rowcount == 1
        if first:
            return result
        kept = self.get(key)
        assert kept is not None
        return kept

    def __len__(self) -> int:
        """Return the number of results kept."""
        with self._file.transaction(write=False) as cursor:
            (rows,) = cursor.execute("SELECT count(*) FROM executions").fetchone()
        return int(rows)

    def __bool__(self) -> bool:
        """An empty cache is a cache."""
        return True

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()


def write_result(result: ExecutionResult) -> tuple[str, bytes]:
    """Write a result as JSON, with the lengths of its files, and these, compressed, one after another.

    JSON in ASCII with sorted keys: unlike UTF-8 it bears halves of surrogate pairs, which an
    exception's message may hold.
    """
    files = {name: zlib.compress(content, 1) for name, content in result.files.items()}
    # Without the files: `asdict` copies what it is given.
    written = asdict(replace(result, files={})) | {
        "files": [[name, len(content)] for name, content in files.items()],
        # As pairs, because sorted keys would change their order.
        "left_out": [[name, reason] for name, reason in result.left_out.items()],
    }
    text = json.dumps(written, sort_keys=True, separators=(",", ":"))
    return text, b"".join(files.values())


def read_result(written: str, content: bytes) -> ExecutionResult:
    """Read what `write_result` wrote."""
    fields: dict[str, Any] = json.loads(written)
    files: dict[str, bytes] = {}
    view, start = memoryview(content), 0
    for name, length in fields["files"]:
        files[name] = zlib.decompress(view[start : start + length])
        start += length
    error = fields["error"]
    return ExecutionResult(
        **fields
        | {
            "error": None if error is None else _read_error(error),
            "printed": tuple(fields["printed"]),
            "files": files,
            "left_out": dict(fields["left_out"]),
        }
    )


def _read_error(fields: dict[str, Any]) -> ProgramError:
    frames = tuple(Frame(**frame) for frame in fields["frames"])
    return ProgramError(fields["type"], fields["message"], frames)


def _checksum(key: str, written: str, content: bytes) -> bytes:
    checksum = hashlib.sha256(b"\0".join([key.encode(), written.encode(), b""]))
    checksum.update(content)
    return checksum.digest()
