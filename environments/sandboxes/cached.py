"""A sandbox that runs each program once: what came of it before, comes of it again."""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Lock

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.closing import Closing
from langgraft.environments.sandboxes.execution_cache import LAYOUT, ExecutionCache
from langgraft.environments.sandboxes.limits import Limits
from langgraft.environments.sandboxes.programs import Job, Program, PythonProgram
from langgraft.environments.sandboxes.requests import check_types
from langgraft.environments.sandboxes.results import ExecutionResult
from langgraft.environments.sandboxes.sandbox import Kernel, Sandbox


class CachedSandbox(Closing):
    """A sandbox over another, with every result in a file before anybody sees it.

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
        InputError: The file cannot be used: unwritable, damaged, or no execution cache.
    """

    def __init__(self, sandbox: Sandbox, path: Path | str) -> None:
        self.sandbox = sandbox
        self.limits: Limits = sandbox.limits
        self.cache = ExecutionCache(path)
        self._lock = Lock()
        self._running: dict[str, Future[None]] = {}

    @property
    def digest(self) -> str:
        """What else decides a result: that of the sandbox below."""
        return self.sandbox.digest

    def run(self, job: Job) -> ExecutionResult:
        """Return what came of a program, running it only if nobody knows.

        Raises:
            InputError: A file of the job cannot be read, or changed while the program ran; the
                cache is damaged.
            SandboxUnavailableError: There is no engine or image.
            SandboxFailureError: The engine or container died, and again when retried.
        """
        key = job_key(job, self.sandbox)
        while (ahead := self._claim(key)) is not None:
            ahead.result()
        try:
            kept = self.cache.get(key)
            return self._keep(key, job, self.sandbox.run(job)) if kept is None else kept
        finally:
            self._release(key)

    async def arun(self, job: Job) -> ExecutionResult:
        """Do what `run` does; cancelling kills the program."""
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

    def kernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        """Open a persistent kernel; its cells are not cached."""
        return self.sandbox.kernel(preload=preload, files=files)

    async def akernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        """Do what `kernel` does."""
        return await self.sandbox.akernel(preload=preload, files=files)

    def close(self) -> None:
        """Close the file and the sandbox below."""
        self.cache.close()
        self.sandbox.close()

    async def aclose(self) -> None:
        """Do what `close` does."""
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
