"""`diagnose` and `reflect` in a branch: what memory is to keep of a program, where it asks for it."""

from dataclasses import asdict
from typing import Any

from langchain_core.language_models import BaseChatModel

from langgraft._core.canonical import JSON
from langgraft.memory.episodes import Outcome, Step
from langgraft.nodes.diagnose import Failure, diagnosing
from langgraft.nodes.reflect import Attempt, distilling
from langgraft.nodes.search.briefing import TreePrompts, instruction
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.state import BranchState, SearchNode, Update, Work
from langgraft.nodes.search.talking import Talk, of_branch, spoken, talking_node


def diagnose_program_node(
    place: Place, model: BaseChatModel, prompts: TreePrompts
) -> SearchNode[BranchState]:
    """Make the node that turns a failure into an error record, for memory that keeps errors.

    It does nothing for a program that worked, nor where there is none.
    """

    def begin(state: BranchState) -> Talk[Update]:
        work = state["work"]
        executed, reviewed = place.read(work.get("executed")), place.read(work["reviewed"])
        if not executed or not reviewed["is_buggy"]:
            return {}
        failure = Failure(
            output=executed["output"],
            code=place.read(work["written"])["code"],
            analysis=reviewed["analysis"],
            exception=executed["exc_type"] or "",
            message=executed["exc_value"] or "",
        )
        found = yield from spoken(diagnosing(failure, prompts.diagnose), "diagnose")
        record: JSON = None if found.record is None else asdict(found.record)
        by = "" if found.record is None else found.record.by
        kept = place.keep({"error": record, "by": by, "why": found.why, "calls": found.calls})
        done: Work = {**work, "diagnosed": kept}
        return {"work": done}

    return talking_node("diagnose", model, begin, of_branch)


def reflect_program_node(place: Place, model: BaseChatModel) -> SearchNode[BranchState]:
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
