"""Memory in a tree search: asked before a program is written, and taught what came of it.

In a branch, `recall`, `diagnose` and `reflect` keep what they find by reference. Branches work at the
same time; after them `judge` and `remember` file one program after the other, in the order of the
steps: what memory asks about a program is asked when all before it are filed, so that what is filed
never depends on which branch was done first.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from langgraft._core.arguments import checked, validation_as
from langgraft._core.canonical import canonical_json, digest
from langgraft._core.effects import Call, Program
from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.files import sync
from langgraft.memory.model import (
    Attempt,
    Episode,
    ErrorRecord,
    Lesson,
    MemoryDelta,
    Outcome,
    Receipt,
    Step,
    Verdict,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, RecallContext
from langgraft.nodes.artifacts import reference_of
from langgraft.nodes.competition_run import domain, instruction
from langgraft.nodes.diagnose import diagnosing, execution_failure
from langgraft.nodes.dialogue import Dialogue, Model, Node, Update, dialogue_node, responding
from langgraft.nodes.judge import answering_all, judgments_json
from langgraft.nodes.memory import filed, provided, questions_about, recalled_parts, verified
from langgraft.nodes.program_text import with_limit
from langgraft.nodes.reflect import distilling
from langgraft.nodes.replies import first_sentences
from langgraft.nodes.search.deps import (
    BranchState,
    SearchDeps,
    TreeState,
    Work,
    sample_name,
    spent,
    with_work,
)
from langgraft.nodes.search.ends import candidates
from langgraft.nodes.search.journal import JournalNode, append_record, node_json


@checked
def recall_program_node(
    deps: SearchDeps, memory: MemoryProvider[Any], *, budget: Budget | None = None
) -> Node[BranchState]:
    """Make the node that asks memory what to heed in the program that is to be written."""
    query = instruction(deps.competition)

    def recall(state: BranchState) -> Program[Call, Update]:
        recalled = yield from provided(memory, query, recall_context(deps, state), budget)
        return with_work(state, recalled=deps.keep(recalled_parts(recalled)))

    return Node.running("recall", recall, in_threads=True)


def recall_context(deps: SearchDeps, state: BranchState) -> RecallContext:
    """Tell memory where the search stands.

    What came of the parent is shown where it is to be repaired; there is nothing else to see. Memory
    knows of three stages: to it, a merge is an improvement.
    """
    work = state["work"]
    failed = deps.parent(state) if work["stage"] == "debug" else None
    return RecallContext(
        domain=domain(deps.competition),
        task_id=deps.competition.id,
        episode_id=episode_id(state["episode_id"], work["id"]),
        stage="improve" if work["stage"] == "merge" else work["stage"],
        step=work["step"],
        observation="" if failed is None else seen(failed),
    )


def episode_id(search: str, node: str) -> str:
    """Name the episode of a program: each is one."""
    return f"{search}/{node}"


def seen(node: JournalNode) -> str:
    """Return what a failed program showed.

    Where nothing was raised at all (no submission, say), its output tells of no error, and the
    diagnosis stands for it: memory keeps the failure under those words.
    """
    if node.exc_type is None and node.error is not None:
        return str(node.error["error"])
    limit = node.timed_out or node.oom
    return with_limit(node.output, node.exc_type, node.exc_value, by_limit=limit)


@checked
def diagnose_program_node(deps: SearchDeps, model: Model) -> Node[BranchState]:
    """Make the node that turns a failure into an error record, for memory that keeps errors.

    It does nothing for a program that worked, nor where there is none, nor for one that the end of
    the search stopped before its time: that tells of no program. What a limit ended is an
    error of the kind `resource`, whatever a model calls it: memory may be set to keep that kind
    from some stages.
    """

    def begin(state: BranchState) -> Dialogue[Update]:
        work = state["work"]
        executed, reviewed = deps.read(work.get("executed")), deps.read(work["reviewed"])
        if not executed or not reviewed["is_buggy"] or executed.get("cut_short"):
            return {}
        failure = execution_failure(
            executed["output"],
            deps.read(work["written"])["code"],
            executed["exc_type"],
            executed["exc_value"],
            limit=executed["timed_out"] or executed["oom"],
            analysis=reviewed["analysis"],
        )
        found = yield from diagnosing(failure, deps.prompts.diagnose)
        return with_work(state, diagnosed=deps.keep(found.to_json()))

    return dialogue_node("diagnose", model, begin, sample_name)


@checked
def reflect_program_node(deps: SearchDeps, model: Model) -> Node[BranchState]:
    """Make the node that draws lessons from a program, for memory that keeps lessons."""
    task = instruction(deps.competition)

    def begin(state: BranchState) -> Dialogue[Update]:
        work = state["work"]
        written, executed = deps.read(work["written"]), deps.read(work.get("executed"))
        reviewed = deps.read(work["reviewed"])
        steps = (Step(written["plan"], written["code"], executed.get("output", "")),)
        attempt = Attempt(steps, outcome(reviewed))
        drawn = yield from distilling(task, attempt)
        return with_work(state, reflected=deps.keep(asdict(drawn)))

    return dialogue_node("reflect", model, begin, sample_name)


def outcome(reviewed: dict[str, Any]) -> Outcome:
    """Return how a program's episode ended: it worked or not, and its validation metric."""
    reasons = reviewed["reasons"]
    reason = "; ".join(reasons) or "it ran and left a submission"
    return Outcome(not reviewed["is_buggy"], reviewed["metric"], reason)


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
        partner_id=work.get("partner_id"),
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
    error: Any = node.error
    errors = [] if error is None else [ErrorRecord(**error)]
    if repaired is not None:
        fixed = verified(repaired.error, first_sentences(node.plan))
        errors += [] if fixed is None else [fixed]
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


@checked
def judge_program_node(
    deps: SearchDeps, memory: MemoryProvider[Any], model: Model
) -> Node[TreeState]:
    """Make the node that answers what memory asks about the program that is filed next."""

    def judge(state: TreeState) -> Program[Call, Update]:
        episode = _episode(deps, state)
        asked = yield from questions_about(memory, episode)
        if not asked:
            return {}
        lessons = [lesson.text for lesson in episode.lessons]
        began = deps.clock()
        judged = yield from responding(answering_all(asked, lessons), model, _whose(state))
        work = state["finished"][0]
        seconds = round(spent(work) + deps.clock() - began, 3)
        return {
            "judged": deps.keep(judgments_json(judged)),
            "finished": [{**work, "seconds": seconds}],
        }

    return Node.running("judge", judge, in_threads=True)


@checked
def remember_program_node(
    deps: SearchDeps, memory: MemoryProvider[Any] | None, *, folder: Path | None
) -> Node[TreeState]:
    """Make the node that files one program: in memory, then in the journal.

    The journal's record holds what memory changed, so that the bank is the fold of the journal.
    A crash in between files the episode again, which changes nothing in a bank that was restored
    from the journal (`langgraft.nodes.search.ends`).

    Args:
        deps: What all nodes of the search depend on.
        memory: The provider to teach; `None` files in the journal alone.
        folder: Where the best solution is written at each improvement; `None` writes none.
    """

    def remember(state: TreeState) -> Program[Call, Update]:
        work, delta = state["finished"][0], MemoryDelta()
        if memory is not None:
            delta = yield from filed(memory, _episode(deps, state))
        reference = append_record(
            deps.artifacts,
            state["journal"],
            node_of(deps, work, deps.read(state.get("judged"))),
            submission=submission_of(deps, work),
            deltas=[delta] if delta else [],
        )
        if folder is not None:
            _write_best(deps, reference, work, folder)
        seconds = max(state.get("seconds", 0.0), spent(work))
        update: Update = {"journal": reference, "finished": work["step"], "seconds": seconds}
        return {**update, "judged": ""} if state.get("judged") else update

    return Node.running("remember", remember, in_threads=True)


def after_filing(state: TreeState) -> Literal["more", "all"]:
    """Say whether branches have brought more."""
    return "more" if state["finished"] else "all"


def _whose(state: TreeState) -> tuple[str, str]:
    return state["episode_id"], state["finished"][0]["id"]


def _episode(deps: SearchDeps, state: TreeState) -> Episode:
    verdicts = [
        Verdict(**verdict) for verdict in deps.read(state.get("judged")).get("verdicts", ())
    ]
    earlier = deps.nodes(state["journal"])
    return episode_of(deps, state["episode_id"], state["finished"][0], earlier, verdicts)


def _write_best(deps: SearchDeps, journal: str, work: Work, folder: Path) -> None:
    """Write the best solution into a folder, where the latest program is it."""
    search = deps.search(journal)
    best = candidates(search.nodes, count=1, lower_is_better=deps.lower_is_better)
    if best and best[0].id == work["id"]:
        reference = search.submission(best[0])
        submission = deps.artifacts.read(reference) if reference else None
        keep_best(folder, best[0], submission)


# The best programs -----------------------------------------------------------------------

BEST: Final = "best"
SOLUTION: Final = "solution.py"
SUBMISSION: Final = "submission.csv"
NODE: Final = "node.json"

_VERSION: Final = re.compile(r"\.best-[0-9a-f]{16}(\.[0-9a-f]{16}\.(tmp|link))?")
_TRIES: Final = 100
"""Looks at a link that changes each time: a search improves at most once in seconds."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best solution of a search so far."""

    node: JournalNode
    solution: str
    submission: bytes | None
    """`None` where it left none."""


def keep_best(folder: Path, node: JournalNode, submission: bytes | None) -> Path:
    """Put a solution in the place of the best one; the same one again changes nothing.

    Only one search writes to a folder.

    Args:
        folder: Of the search; made where it is not there.
        node: The program that is now the best.
        submission: The file it left; `None` where it left none.

    Returns:
        `<folder>/best`.

    Raises:
        InputError: Something of another kind is in the way, or the node holds what is no JSON.
        InfrastructureError: The disk is full, or it cannot be written to.
    """
    best = folder / BEST
    files = _files(node, submission)
    name = f".best-{digest({file: reference_of(files[file]) for file in files})[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if best.exists() and not best.is_symlink():
            msg = f"{best}: is there, and not as the best solution of a search; move it away"
            raise InputError(msg)
        if not (folder / name).is_dir():
            _write_version(folder / name, files)
        if not best.is_symlink() or best.readlink() != Path(name):
            _point(best, name)
        _clear(folder, besides=name)
    except (FileExistsError, NotADirectoryError) as error:
        msg = f"{error.filename or folder}: is in the way of a search's folder; give another one"
        raise InputError(msg) from error
    except OSError as error:
        msg = f"{best}: cannot be written: {error.strerror}; free the disk and resume the search"
        raise InfrastructureError(msg) from error
    return best


def read_best(folder: Path) -> Best | None:
    """Read the best solution of a search, also while it runs; `None` where none worked yet.

    Raises:
        InputError: What is there is no best solution, or cannot be read.
    """
    best = folder / BEST
    for _ in range(_TRIES):
        version = None
        try:
            version = best.readlink()
            found = _read_version(folder / version)
            if best.readlink() == version:
                return found
        except FileNotFoundError as error:
            if not os.path.lexists(best):
                return None
            if version is not None and best.readlink() == version:
                msg = f"{best}: {Path(error.filename).name} is missing from it"
                raise InputError(msg) from error
        except OSError as error:
            msg = f"{best}: cannot be read as a best solution: {error.strerror}"
            raise InputError(msg) from error
    raise InfrastructureError(f"{best}: changes faster than it can be read")


def _files(node: JournalNode, submission: bytes | None) -> dict[str, bytes]:
    written = node_json(node)
    files = {
        SOLUTION: str(written["code"]).encode("utf-8"),
        NODE: canonical_json(written).encode("utf-8"),
    }
    return files if submission is None else {**files, SUBMISSION: submission}


def _write_version(version: Path, files: dict[str, bytes]) -> None:
    """Write a version's folder; it has its name once all of it is on disk."""
    draft = version.with_name(f"{version.name}.{secrets.token_hex(8)}.tmp")
    draft.mkdir()
    for name, content in files.items():
        with (draft / name).open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    sync(draft)
    draft.rename(version)


def _point(best: Path, name: str) -> None:
    link = best.with_name(f"{name}.{secrets.token_hex(8)}.link")
    link.symlink_to(name, target_is_directory=True)
    link.replace(best)
    sync(best.parent)


def _clear(folder: Path, *, besides: str) -> None:
    """Remove earlier versions, and what a killed process left half done."""
    for path in folder.iterdir():
        if path.name == besides or _VERSION.fullmatch(path.name) is None:
            continue
        if path.is_symlink():
            path.unlink()
            continue
        # Out of the way first: what has a version's name is whole.
        gone = path.with_name(f"{path.name[:22]}.{secrets.token_hex(8)}.tmp")
        path.rename(gone)
        shutil.rmtree(gone)


def _read_version(version: Path) -> Best:
    """Read a version; a part of it that is missing raises `FileNotFoundError`."""
    written = (version / NODE).read_bytes()
    solution = (version / SOLUTION).read_text(encoding="utf-8")
    try:
        submission = (version / SUBMISSION).read_bytes()
    except FileNotFoundError:
        submission = None
    try:
        node = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{version / NODE}: is no JSON: {error}") from error
    with validation_as(InputError, f"{version / NODE}: "):
        return Best(JournalNode.model_validate(node), solution, submission)
