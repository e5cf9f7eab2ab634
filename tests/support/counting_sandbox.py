"""A sandbox that runs nothing: it answers what it was told to, and counts how often."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from langgraft.environments.sandboxes.sandbox import Closing, ExecutionResult, Job, Kernel, Limits


def number(job: Job, count: int) -> ExecutionResult:
    """Answer with how many programs there were so far."""
    return ExecutionResult(0, f"run {count}\n", "", duration=0.25 + count)


class CountingSandbox(Closing):
    """Answers each job by a function, without running it.

    Args:
        answer: What came of a job, by the job and its number from 1; or it raises.
        digest: What else decides a result.
        limits: Of the sandbox.
    """

    def __init__(
        self,
        answer: Callable[[Job, int], ExecutionResult] = number,
        digest: str = "image-1",
        limits: Limits | None = None,
    ) -> None:
        self.answer = answer
        self.digest = digest
        self.limits = Limits() if limits is None else limits
        self.jobs: list[Job] = []
        self.closed = 0

    def run(self, job: Job) -> ExecutionResult:
        """Answer."""
        self.jobs.append(job)
        return self.answer(job, len(self.jobs))

    async def arun(self, job: Job) -> ExecutionResult:
        """Answer, after letting others go first."""
        await asyncio.sleep(0.01)
        return self.run(job)

    def kernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        """Say that there are none."""
        raise NotImplementedError

    async def akernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        """Say that there are none."""
        raise NotImplementedError

    def close(self) -> None:
        """Count."""
        self.closed += 1

    async def aclose(self) -> None:
        """Count."""
        self.close()
