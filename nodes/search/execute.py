"""`execute`: run the program, and keep what came of it by reference."""

import asyncio
from dataclasses import replace
from typing import Any, Final

from langgraft.environments.competitions.attempts import Attempt, aattempt, attempt, told
from langgraft.environments.sandboxes.limits import Limits
from langgraft.environments.sandboxes.programs import PythonProgram
from langgraft.environments.sandboxes.results import ExecutionResult
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.environments.sandboxes.telling import span
from langgraft.memory.recall import strip_block
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.replies import encodable
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.state import BranchState, Work

SPLIT_SEED: Final = "SPLIT_SEED"
"""Environment variable that says which split a program holds out; see `tree_rules.md`."""
LONGEST_MESSAGE: Final = 4_000
"""Most characters kept of an exception's message."""


def execute_node(place: Place, sandbox: Sandbox, *, seconds: float) -> GraphNode[BranchState]:
    """Make the node that runs the program that was written; without one, it does nothing.

    Args:
        place: The competition, and where contents are kept.
        sandbox: Runs it; what it raises (no engine, a container that died) is raised.
        seconds: Wall clock of a program.
    """
    settings: dict[str, Any] = {"seconds": seconds, "environment": {SPLIT_SEED: "0"}}

    def program(state: BranchState) -> PythonProgram | None:
        code = str(place.read(state["work"]["written"])["code"])
        return PythonProgram(code) if code else None

    def execute(state: BranchState) -> Update:
        written = program(state)
        if written is None:
            return {}
        made = attempt(written, place.competition, sandbox, **settings)
        return _update(place, state, made, sandbox, seconds)

    async def aexecute(state: BranchState) -> Update:
        written = await asyncio.to_thread(program, state)
        if written is None:
            return {}
        made = await aattempt(written, place.competition, sandbox, **settings)
        return await asyncio.to_thread(_update, place, state, made, sandbox, seconds)

    return GraphNode("execute", execute, aexecute)


def _update(
    place: Place, state: BranchState, made: Attempt, sandbox: Sandbox, seconds: float
) -> Update:
    result = made.result
    name, message = _exception(result, seconds)
    validity = {True: "valid", False: "invalid", None: "absent"}[made.submission_valid]
    kept = place.keep(
        {
            "output": shown(made, sandbox.limits, seconds),
            "exc_type": name,
            "exc_value": message,
            "timed_out": result.timed_out,
            "oom": result.oom,
            "ended": ended(result, seconds),
            "metric": made.metric,
            "submission": validity,
            "file": "" if made.submission is None else place.artifacts.keep(made.submission),
            "reasons": [encodable(reason) for reason in made.reasons],
        }
    )
    work: Work = {**state["work"], "executed": kept}
    return {"work": work}


def shown(made: Attempt, limits: Limits, seconds: float) -> str:
    """Tell what came of a program, without memory that it printed.

    Each stream by itself and before anything is cut: a mark that begins a block and has no end
    must not take away how the program ended.
    """
    result = made.result
    error = result.error
    if error is not None:
        error = replace(error, message=strip_block(error.message))
    stdout, stderr = strip_block(result.stdout), strip_block(result.stderr)
    printed = replace(result, stdout=stdout, stderr=stderr, error=error)
    kept = told(replace(made, result=printed), limits, seconds=seconds, exact=False)
    return encodable(kept)


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


def _exception(result: ExecutionResult, seconds: float) -> tuple[str | None, str | None]:
    """Name what ended a program as an exception.

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
