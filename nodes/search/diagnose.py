"""`diagnose` and `reflect` in a branch: what memory is to keep of a program, where it asks for it."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft.memory.episodes import Attempt, Outcome, Step
from langgraft.nodes.chat_models import Model
from langgraft.nodes.competing import instruction
from langgraft.nodes.diagnose import Failure, diagnosing
from langgraft.nodes.execution_text import with_limit
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.reflect import distilling
from langgraft.nodes.search.briefing import TreePrompts
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.state import BranchState, Work, of_branch
from langgraft.nodes.talking import Talk, spoken, talking_node


@checked
def diagnose_program_node(
    place: Place, model: Model, prompts: TreePrompts
) -> GraphNode[BranchState]:
    """Make the node that turns a failure into an error record, for memory that keeps errors.

    It does nothing for a program that worked, nor where there is none. What a limit ended is an
    error of the kind `resource`, whatever a model calls it: memory may be told to keep that kind
    from some stages.
    """

    def begin(state: BranchState) -> Talk[Update]:
        work = state["work"]
        executed, reviewed = place.read(work.get("executed")), place.read(work["reviewed"])
        if not executed or not reviewed["is_buggy"]:
            return {}
        by_limit = executed["exc_type"] and (executed["timed_out"] or executed["oom"])
        code = place.read(work["written"])["code"]
        failure = _failure(code, executed, reviewed["analysis"])
        found = yield from spoken(diagnosing(failure, prompts.diagnose), "diagnose")
        record = found.record
        if record is not None and by_limit:
            record = replace(record, kind="resource")
        told: dict[str, JSON] = {"error": None, "by": "", "why": found.why, "calls": found.calls}
        if record is not None:
            told |= {"error": asdict(record), "by": record.by}
        done: Work = {**work, "diagnosed": place.keep(told)}
        return {"work": done}

    return talking_node("diagnose", model, begin, of_branch)


def _failure(code: str, executed: Mapping[str, Any], analysis: str) -> Failure:
    raised, message = executed["exc_type"], executed["exc_value"]
    limit = executed["timed_out"] or executed["oom"]
    return Failure(
        output=with_limit(executed["output"], raised, message, by_limit=limit),
        code=code,
        analysis=analysis,
        exception=raised or "",
        message=message or "",
    )


@checked
def reflect_program_node(place: Place, model: Model) -> GraphNode[BranchState]:
    """Make the node that draws lessons from a program, for memory that keeps lessons."""
    task = instruction(place.competition)

    def begin(state: BranchState) -> Talk[Update]:
        work = state["work"]
        written, executed = place.read(work["written"]), place.read(work.get("executed"))
        reviewed = place.read(work["reviewed"])
        steps = (Step(written["plan"], written["code"], executed.get("output", "")),)
        attempt = Attempt(steps, outcome(reviewed))
        drawn = yield from spoken(distilling(task, attempt), "reflect")
        kept = place.keep(
            {
                "lessons": [asdict(lesson) for lesson in drawn.lessons],
                "why": drawn.why,
                "calls": drawn.calls,
            }
        )
        done: Work = {**work, "reflected": kept}
        return {"work": done}

    return talking_node("reflect", model, begin, of_branch)


def outcome(reviewed: dict[str, Any]) -> Outcome:
    """Return how a program's episode ended: it worked or not, and its validation metric."""
    reasons = reviewed["reasons"]
    told = "; ".join(reasons) or "it ran and left a valid submission"
    return Outcome(not reviewed["is_buggy"], reviewed["metric"], told)
