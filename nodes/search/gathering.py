"""What a branch brings: a node of the journal, and an episode for memory."""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraft.memory.episodes import Episode, ErrorRecord, Lesson, Step
from langgraft.memory.questions import Verdict
from langgraft.memory.recall import Receipt
from langgraft.nodes.competing import domain, instruction
from langgraft.nodes.replies import first_sentences
from langgraft.nodes.search.diagnose import outcome
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.recall import episode_id
from langgraft.nodes.search.state import Work


def node_of(place: Place, work: Work, judged: Mapping[str, Any] | None = None) -> JournalNode:
    """Put a program's node together from what a branch kept.

    Args:
        place: Where the contents are.
        work: What the branch brought.
        judged: How memory's questions about it were answered.
    """
    recalled, written = place.read(work.get("recalled")), place.read(work["written"])
    executed, reviewed = place.read(work.get("executed")), place.read(work["reviewed"])
    diagnosed, reflected = place.read(work.get("diagnosed")), place.read(work.get("reflected"))
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


def submission_of(place: Place, work: Work) -> str:
    """Return the reference of the file that a program left, or nothing."""
    return str(place.read(work.get("executed")).get("file", ""))


def episode_of(
    place: Place,
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
        place: The competition, and where the contents are.
        search: Name of the search.
        work: What the branch brought.
        earlier: The programs that are in the journal.
        verdicts: Answers to memory's questions about it.
    """
    node = node_of(place, work)
    parent = next((each for each in earlier if each.id == node.parent_id), None)
    repaired = parent if work["stage"] == "debug" and not node.is_buggy else None
    errors = [] if node.error is None else [_error(node.error)]
    if repaired is not None and (fixed := _verified(repaired, node.plan)) is not None:
        errors.append(fixed)
    lessons = place.read(work.get("reflected")).get("lessons", ())
    receipt: Any = node.receipt
    return Episode(
        id=episode_id(search, node.id),
        domain=domain(place.competition),
        task_id=place.competition.id,
        task=instruction(place.competition),
        steps=(Step(node.plan, node.code, node.output),),
        outcome=outcome(place.read(work["reviewed"])),
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
