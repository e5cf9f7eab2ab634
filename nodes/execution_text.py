"""What came of an execution, as it is kept: text without memory, and how it ended by name."""

from dataclasses import replace
from typing import Final

from langgraft.environments.sandboxes.programs import ExecutionResult
from langgraft.environments.sandboxes.result_text import span
from langgraft.memory.recall import strip_block
from langgraft.nodes.replies import encodable

LONGEST_MESSAGE: Final = 4_000
"""Most characters kept of an exception's message."""


def without_memory(result: ExecutionResult) -> ExecutionResult:
    """Take recalled blocks out of what was printed and raised.

    Each stream by itself and before anything is cut: a mark that begins a block and has no end
    must not take away how the program ended.
    """
    error = result.error
    if error is not None:
        error = replace(error, message=strip_block(error.message))
    stdout, stderr = strip_block(result.stdout), strip_block(result.stderr)
    return replace(result, stdout=stdout, stderr=stderr, error=error)


def ended(result: ExecutionResult, seconds: float) -> str:
    """Say how a program failed, in a clause; nothing where it ran to its end."""
    if result.timed_out:
        return f"it was stopped after {span(seconds)}"
    if result.stopped == "output":
        return "it was stopped for printing too much"
    if result.ok:
        return ""
    if result.oom:
        return "it ran out of memory"
    if result.error is not None:
        return encodable(f"it raised {result.error.type}")
    if result.signal is not None:
        return f"it was ended by {result.signal}"
    return f"it ended with exit code {result.exit_code}"


def with_limit(output: str, exc_type: str | None, exc_value: str | None, *, by_limit: bool) -> str:
    """Return what a program showed, and where a limit ended it, that as an error at the end.

    What it printed tells of no such error, and maybe of others that it went on after.
    """
    return f"{output}\n\n{exc_type}: {exc_value or ''}" if by_limit and exc_type else output


def raised_by(result: ExecutionResult, seconds: float) -> tuple[str | None, str | None]:
    """Name what ended a program as an exception: its class and message.

    A timeout is a `TimeoutError`, as in AIDE's journals, and a program killed for its memory a
    `MemoryError`: limits raise nothing, and memory files an error by its class.
    """
    if result.error is not None and not result.timed_out:
        message = encodable(result.error.message)
        return encodable(result.error.type), message[:LONGEST_MESSAGE]
    if result.timed_out:
        return "TimeoutError", f"the program was stopped after {span(seconds)}"
    if result.oom and not result.ok:
        return "MemoryError", "the program was killed for using too much memory"
    return None, None
