"""What is kept of a program: its diagnosis and lessons, a node of the journal, an episode of memory."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft.memory.episodes import Attempt, Episode, ErrorRecord, Lesson, Outcome, Step
from langgraft.memory.questions import Verdict
from langgraft.memory.recall import Receipt
from langgraft.nodes.chat_models import Model
from langgraft.nodes.diagnose import Failure, diagnosing
from langgraft.nodes.execution_text import with_limit
from langgraft.nodes.model_dialogue import Talk, dialogue_node, spoken
from langgraft.nodes.node import Node, Update
from langgraft.nodes.preflight import domain, instruction
from langgraft.nodes.reflect import distilling
from langgraft.nodes.replies import first_sentences
from langgraft.nodes.search.deps import SearchDeps
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.recall import episode_id
from langgraft.nodes.search.state import BranchState, Work, sample_name, with_work


@checked
def diagnose_program_node(deps: SearchDeps, model: Model) -> Node[BranchState]:
    """Make the node that turns a failure into an error record, for memory that keeps errors.

    It does nothing for a program that worked, nor where there is none. What a limit ended is an
    error of the kind `resource`, whatever a model calls it: memory may be told to keep that kind
    from some stages.
    """

    def begin(state: BranchState) -> Talk[Update]:
        work = state["work"]
        executed, reviewed = deps.read(work.get("executed")), deps.read(work["reviewed"])
        if not executed or not reviewed["is_buggy"]:
            return {}
        by_limit = executed["exc_type"] and (executed["timed_out"] or executed["oom"])
        code = deps.read(work["written"])["code"]
        failure = _failure(code, executed, reviewed["analysis"])
        found = yield from spoken(diagnosing(failure, deps.prompts.diagnose), "diagnose")
        record = found.record
        if record is not None and by_limit:
            record = replace(record, kind="resource")
        told: dict[str, JSON] = {"error": None, "by": "", "why": found.why, "calls": found.calls}
        if record is not None:
            told |= {"error": asdict(record), "by": record.by}
        return with_work(state, diagnosed=deps.keep(told))

    return dialogue_node("diagnose", model, begin, sample_name)


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
def reflect_program_node(deps: SearchDeps, model: Model) -> Node[BranchState]:
    """Make the node that draws lessons from a program, for memory that keeps lessons."""
    task = instruction(deps.competition)

    def begin(state: BranchState) -> Talk[Update]:
        work = state["work"]
        written, executed = deps.read(work["written"]), deps.read(work.get("executed"))
        reviewed = deps.read(work["reviewed"])
        steps = (Step(written["plan"], written["code"], executed.get("output", "")),)
        attempt = Attempt(steps, outcome(reviewed))
        drawn = yield from spoken(distilling(task, attempt), "reflect")
        kept = deps.keep(
            {
                "lessons": [asdict(lesson) for lesson in drawn.lessons],
                "why": drawn.why,
                "calls": drawn.calls,
            }
        )
        return with_work(state, reflected=kept)

    return dialogue_node("reflect", model, begin, sample_name)


def outcome(reviewed: dict[str, Any]) -> Outcome:
    """Return how a program's episode ended: it worked or not, and its validation metric."""
    reasons = reviewed["reasons"]
    told = "; ".join(reasons) or "it ran and left a valid submission"
    return Outcome(not reviewed["is_buggy"], reviewed["metric"], told)


def node_of(deps: SearchDeps, work: Work, judged: Mapping[str, Any] | None = None) -> JournalNode:
    """Put a program's node together from what a branch kept.

    Args:
        deps: What all nodes of the search depend on.
        work: What the branch brought.
        judged: How memory's questions about it were answered.
    """
    recalled, written = deps.read(work.get("recalled")), deps.read(work["written"])
    executed, reviewed = deps.read(work.get("executed")), deps.read(work["reviewed"])
    diagnosed, reflected = deps.read(work.get("diagnosed")), deps.read(work.get("reflected"))
    asked: dict[str, Any] = {
        "write": {key: written[key] for key in ("why", "calls")},
        "review": {key: reviewed[key] for key in ("by", "why", "calls")},
    }
    if diagnosed:
        asked["diagnose"] = {key: diagnosed[key] for key in ("by", "why", "calls")}
    if reflected:
        asked["reflect"] = {key: reflected[key] for key in ("why", "calls")}
    if judged:
        asked["judge"] = judged["judging"]
    return JournalNode(
        step=work["step"],
        id=work["id"],
        parent_id=work["parent_id"],
        plan=written["plan"],
        code=written["code"],
        metric=reviewed["metric"],
        is_buggy=reviewed["is_buggy"],
        exc_type=executed.get("exc_type"),
        exc_value=executed.get("exc_value"),
        analysis=reviewed["analysis"],
        output=executed.get("output", ""),
        timed_out=executed.get("timed_out", False),
        oom=executed.get("oom", False),
        submission=executed.get("submission"),
        reasons=tuple(reviewed["reasons"]),
        recalled=recalled.get("text", ""),
        recalled_kinds=tuple(recalled.get("kinds", ())),
        receipt=recalled.get("receipt"),
        error=diagnosed.get("error"),
        asked=asked,
    )


def submission_of(deps: SearchDeps, work: Work) -> str:
    """Return the reference of the file that a program left, or nothing."""
    return str(deps.read(work.get("executed")).get("file", ""))


def episode_of(
    deps: SearchDeps,
    search: str,
    work: Work,
    earlier: Sequence[JournalNode],
    verdicts: Sequence[Verdict] = (),
) -> Episode:
    """Put a program's episode together.

    A repair that worked resolves the episode of the program that it repairs, and files that
    program's error once more, now with the fix that the repair's plan states: it is known to
    work, while what a review advised at the time of the failure is a guess.

    Args:
        deps: What all nodes of the search depend on.
        search: Name of the search.
        work: What the branch brought.
        earlier: The programs that are in the journal.
        verdicts: Answers to memory's questions about it.
    """
    node = node_of(deps, work)
    parent = next((each for each in earlier if each.id == node.parent_id), None)
    repaired = parent if work["stage"] == "debug" and not node.is_buggy else None
    errors = [] if node.error is None else [_error(node.error)]
    if repaired is not None and (fixed := _verified(repaired, node.plan)) is not None:
        errors.append(fixed)
    lessons = deps.read(work.get("reflected")).get("lessons", ())
    receipt: Any = node.receipt
    return Episode(
        id=episode_id(search, node.id),
        domain=domain(deps.competition),
        task_id=deps.competition.id,
        task=instruction(deps.competition),
        steps=(Step(node.plan, node.code, node.output),),
        outcome=outcome(deps.read(work["reviewed"])),
        lessons=tuple(Lesson(**lesson) for lesson in lessons),
        errors=tuple(errors),
        verdicts=tuple(verdicts),
        recalls=() if receipt is None else (Receipt(**receipt),),
        resolves=() if repaired is None else (episode_id(search, repaired.id),),
    )


def _error(told: Mapping[str, Any]) -> ErrorRecord:
    return ErrorRecord(**told)


def _verified(failed: JournalNode, plan: str) -> ErrorRecord | None:
    """Return a failed program's error with the fix that its repair's plan states."""
    fix = first_sentences(plan)
    if failed.error is None or not fix:
        return None
    error = _error(failed.error)
    return ErrorRecord(error.package, error.error, fix, error.kind, verified=True, by=error.by)
