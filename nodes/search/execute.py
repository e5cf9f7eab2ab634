"""`execute`: run the program, and keep what came of it by reference."""

import asyncio
from dataclasses import replace
from typing import Any, Final

from langgraft._core.arguments import checked
from langgraft.environments.competitions.attempts import Attempt, aattempt, attempt, told
from langgraft.environments.sandboxes.limits import Limits
from langgraft.environments.sandboxes.programs import PythonProgram
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.nodes.execution_text import ended, raised_by, without_memory
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.replies import encodable
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.state import BranchState, Work

SPLIT_SEED: Final = "SPLIT_SEED"
"""Environment variable that says which split a program holds out; see `tree_rules.md`."""


@checked
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
    name, message = raised_by(result, seconds)
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
    """Tell what came of a program, without memory that it printed."""
    printed = without_memory(made.result)
    kept = told(replace(made, result=printed), limits, seconds=seconds, exact=False)
    return encodable(kept)
