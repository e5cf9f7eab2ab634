"""A branch of a tree search: `write` a program, `execute` it, `review` what came of it.

Whatever a model says, the search goes on. In a review it says whether the program is at fault, sums
up, and names the metric; the rest is not its word. A program that failed, was ended by a limit,
reports no finite metric or left no valid submission is buggy whatever the model says (with
`invalid_is_bug=False` one that left none at all). Whether lower
is better, it is not asked at all: AIDE asks each time, and ends with an error at the first answer that
differs. `summarize` is AIDE's summary of the attempts that worked, for prompts.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel, BeforeValidator, StrictBool

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft._core.texts import Prompt
from langgraft.environments.competitions.attempts import Attempt, aattempt, attempt
from langgraft.environments.competitions.attempts import told as attempt_text
from langgraft.environments.sandboxes.sandbox import Limits, PythonProgram
from langgraft.memory.model import By, strip_block
from langgraft.nodes.dialogue import Dialogue, Model, Node, Update, dialogue_node
from langgraft.nodes.program_text import (
    asking_for_program,
    ended,
    quotable,
    raised_by,
    without_memory,
)
from langgraft.nodes.replies import encodable
from langgraft.nodes.search.deps import (
    BranchState,
    Scope,
    SearchDeps,
    Work,
    sample_name,
    spent,
    with_work,
)
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.policy import best_node
from langgraft.nodes.structured import asking, held_to, typed

NO_PROGRAM: Final = "the reply held no program"
_NO_CODE: Final = "# There is no program: the reply held none."
LONGEST_SUMMARY: Final = 12_000
"""Characters of a summary, about 3,000 tokens: some 15 to 25 attempts of usual length."""
_LONGEST_PART: Final = 1_200
"""Characters of one plan or result: three to five sentences have a third of that."""
_NONE_WORKED: Final = "No attempt has worked so far."


@dataclass(frozen=True, slots=True)
class Written:
    """What came of asking for a program."""

    plan: str
    code: str
    """Empty where no reply held a program."""
    why: str
    """`ok`, or what was wrong with the reply that counts."""
    calls: int
    """How often the model was asked."""


@checked
def write_node(deps: SearchDeps, model: Model) -> Node[BranchState]:
    """Make the node that asks for a program."""

    def begin(state: BranchState) -> Dialogue[Update]:
        question = HumanMessage(encodable(_prompt(deps, state)))
        written = yield from writing([question], deps.prompts.repair)
        return with_work(state, written=deps.keep(asdict(written)))

    return dialogue_node("write", model, begin, sample_name)


def writing(messages: Sequence[BaseMessage], repair: Prompt) -> Dialogue[Written]:
    """Ask for a plan and a program; see `asking_for_program`."""
    reply = yield from asking_for_program(messages, "write", repair)
    found = reply.found
    counts = found.code and found.problem and not reply.failed
    why = found.problem if counts else reply.why
    return Written(found.plan, found.code, why, reply.calls)


_RAN: Final = re.compile(r"^It ran for ([^\n]*)\.$", re.MULTILINE)
"""How long a program ran, as its output tells it."""


def _rules(deps: SearchDeps, work: Work, parent: JournalNode | None) -> str:
    bounds = deps.bounds.text(deps.prompts.bounds, done=work["step"], spent=spent(work))
    if parent is not None and (ran := _RAN.findall(parent.output)):
        bounds = f"{bounds}\n- The previous solution ran for {ran[-1]}."
    packages = ", ".join(deps.packages)
    again = deps.candidates > 1
    rules = deps.prompts.rules.render(
        split=f"\n{deps.prompts.split.render().strip()}" if again else "",
        folds=str(deps.folds),
        packages=packages,
        bounds=bounds,
    )
    hint = f"{work['hint']}\n\n" if "hint" in work else ""
    return f"{hint}{rules.strip()}"


def _prompt(deps: SearchDeps, state: BranchState) -> str:
    work = state["work"]
    recalled = str(deps.read(work.get("recalled")).get("text", ""))
    parent, partner = (*deps.parents(state), None, None)[:2]
    journal = deps.nodes(state["journal"])
    nodes = within(work.get("scope", "all"), journal, work)
    shown = {
        "task": deps.competition.description.strip(),
        "memory": f"{recalled}\n" if recalled else "",
        "rules": _rules(deps, work, parent),
        "attempts": summarize(nodes, lower_is_better=deps.lower_is_better),
        "data": deps.artifacts.read(state["preview"]).decode(),
        "code": _code(parent),
        "metric": _metric_of(parent),
        "partner": _code(partner),
        "partner_metric": _metric_of(partner),
        "output": quotable(parent.output or "; ".join(parent.reasons))
        if parent is not None
        else "",
        "direction": f"{'lower' if deps.lower_is_better else 'higher'} is better",
        "complexity": complexity(deps.prompts.levels(work["stage"]), journal, work["parent_id"]),
        "ancestors": ancestors(journal, work["parent_id"]),
    }
    prompts = deps.prompts
    by_stage = {
        "draft": prompts.draft,
        "debug": prompts.debug,
        "improve": prompts.improve,
        "merge": prompts.merge,
    }
    return by_stage[work["stage"]].render(**shown)


def _code(node: JournalNode | None) -> str:
    return "" if node is None else node.code.rstrip() or _NO_CODE


def _metric_of(node: JournalNode | None) -> str:
    return "none" if node is None or node.metric is None else f"{node.metric:.6g}"


def within(scope: Scope, nodes: Sequence[JournalNode], work: Work) -> Sequence[JournalNode]:
    """Return the programs that a writer is told of, in the order of their steps.

    Args:
        scope: All; `siblings`, those written from the same parents (of a draft: the drafts); or
            `ancestors`, all that the new program descends from.
        nodes: All programs of the search.
        work: The program that is to be written.
    """
    parents = tuple(filter(None, (work["parent_id"], work.get("partner_id"))))
    if scope == "all":
        return nodes
    if scope == "siblings":
        return [node for node in nodes if set(node.parent_ids) == set(parents)]
    line = set(parents)
    for node in reversed(nodes):
        line |= set(node.parent_ids) if node.id in line else set()
    return [node for node in nodes if node.id in line]


_STEPS_OF_COMPLEXITY: Final = (2, 4)
"""Programs from which on the next one is to be more elaborate, as in AIRA."""
LONGEST_ANCESTRY: Final = 6_000
"""Characters told of the repairs before a repair."""


def complexity(levels: Sequence[str], nodes: Sequence[JournalNode], parent_id: str | None) -> str:
    """Say how elaborate the next program is to be, the more so the more of its kind there are.

    Args:
        levels: What can be said, the simplest first; where nothing can, nothing is.
        nodes: All programs of the search.
        parent_id: What it is written from; `None` for a draft.
    """
    count = sum(node.parent_id == parent_id and node.partner_id is None for node in nodes)
    at = sum(count >= least for least in _STEPS_OF_COMPLEXITY)
    return levels[min(at, len(levels) - 1)] if levels else ""


def ancestors(nodes: Sequence[JournalNode], parent_id: str | None) -> str:
    """Tell how a failed program came about: it, and what failed before it, oldest first.

    The chain ends at the last program that worked. Where not all fit, the newest stay.

    Args:
        nodes: All programs of the search.
        parent_id: The failed program.
    """
    known = {node.id: node for node in nodes}
    told: list[str] = []
    room = LONGEST_ANCESTRY
    node = known.get(parent_id or "")
    while node is not None and node.is_buggy:
        why = _cut(node.analysis) or "; ".join(node.reasons)
        text = f"Plan: {_cut(node.plan)}\nWhat failed: {why}"
        room -= len(text)
        if room < 0:
            told.append("(What came before is left out.)")
            break
        told.append(text)
        node = known.get(node.parent_id or "")
    return "\n\n".join(reversed(told))


def summarize(
    nodes: Sequence[JournalNode], *, lower_is_better: bool, most: int = LONGEST_SUMMARY
) -> str:
    """Sum up the attempts that worked, for drafts and improvements.

    As AIDE has it: of every working program its plan, its result and its metric, in the order of
    the steps, and nothing of failures. AIDE's grows without limit. Here, where not all fit, the
    best attempt stays, then the newest do, and a first line says how many are left out; a plan or
    result of unusual length is cut.

    Args:
        nodes: All programs of the search, in the order of their steps.
        lower_is_better: The metric's direction, from the competition's board.
        most: Characters at most. The best attempt stays even where it alone is longer.
    """
    working = [node for node in nodes if not node.is_buggy]
    best = best_node(working, lower_is_better=lower_is_better)
    if best is None:
        return _NONE_WORKED
    texts = {node.id: _summary_of(node) for node in working}
    kept = {best.id}
    room = most - len(texts[best.id]) - len(_left_out(len(working)))
    for node in reversed(working):
        if node.id in kept:
            continue
        room -= len(texts[node.id]) + 2
        if room < 0:
            break
        kept.add(node.id)
    missing = [_left_out(len(working) - len(kept))] if len(kept) < len(working) else []
    return "\n\n".join([*missing, *(texts[node.id] for node in working if node.id in kept)])


def _left_out(count: int) -> str:
    return f"({count} older attempts that worked are left out.)"


def _summary_of(node: JournalNode) -> str:
    return f"Plan: {_cut(node.plan)}\nResult: {_cut(node.analysis)}\nValidation metric: {_metric_of(node)}"


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART].rstrip()} …"


SPLIT_SEED: Final = "SPLIT_SEED"
"""Environment variable that says which split a program holds out; see `tree_split.md`."""
_LEAST_DIGITS: Final = 2
"""A metric that a review rounds to fewer digits may be any number."""
LONGEST_ANALYSIS: Final = 4_000
"""Most characters kept of a review that was to be two or three sentences."""
NUMBERS: Final = re.compile(r"(?<![\w.])[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?(?![\w.]*\d)")


@checked
def execute_node(deps: SearchDeps) -> Node[BranchState]:
    """Make the node that runs the program that was written; without one, it does nothing.

    What the sandbox raises (no engine, a container that died) is raised.
    """

    def execute(state: BranchState) -> Program[Call, Update]:
        code = str(deps.read(state["work"]["written"])["code"])
        if not code:
            return {}
        allowed = deps.bounds.allowed(spent(state["work"]))
        made = yield from attempted(deps, code, split=0, seconds=allowed)
        return _update(deps, state, made, allowed)

    return Node.running("execute", execute, in_threads=True)


def attempted(deps: SearchDeps, code: str, *, split: int, seconds: float) -> Program[Call, Attempt]:
    """Run a program for at most so many seconds; it is told the split only where it will get others."""
    made: Attempt = yield Call(
        attempt,
        aattempt,
        PythonProgram(code),
        deps.competition,
        deps.sandbox,
        seconds=seconds,
        environment={SPLIT_SEED: str(split)} if deps.candidates > 1 else {},
    )
    return made


def _update(deps: SearchDeps, state: BranchState, made: Attempt, allowed: float) -> Update:
    result = made.result
    name, message = raised_by(result, allowed)
    validity = {True: "valid", False: "invalid", None: "absent"}[made.submission_valid]
    kept = deps.keep(
        {
            "output": shown(made, deps.sandbox.limits, allowed),
            "exc_type": name,
            "exc_value": message,
            "timed_out": result.timed_out,
            "oom": result.oom,
            "ended": ended(result, allowed),
            "cut_short": result.timed_out and allowed < deps.seconds,
            "metric": made.metric,
            "submission": validity,
            "file": "" if made.submission is None else deps.artifacts.keep(made.submission),
            "reasons": [encodable(reason) for reason in made.reasons],
        }
    )
    # Looked up or not, a program takes the time that it ran: searches are told apart by nothing else.
    return with_work(state, executed=kept, seconds=spent(state["work"]) + result.duration)


def shown(made: Attempt, limits: Limits, seconds: float) -> str:
    """Tell what came of a program, without memory that it printed."""
    printed = without_memory(made.result)
    kept = attempt_text(replace(made, result=printed), limits, seconds=seconds, exact=False)
    return encodable(kept)


@dataclass(frozen=True, slots=True)
class Review:
    """What was made of a program's run."""

    is_buggy: bool
    reasons: tuple[str, ...]
    """Why it is buggy; empty where it is not."""
    metric: float | None
    """`None` for a buggy program, as in AIDE's journals."""
    analysis: str
    by: By
    """Who reviewed it."""
    why: str
    """`ok`, or what was wrong with a model's replies."""
    calls: int
    """How often the model was asked."""


@checked
def review_node(deps: SearchDeps, model: Model) -> Node[BranchState]:
    """Make the node that reviews a program; what holds no program is buggy without asking."""

    def begin(state: BranchState) -> Dialogue[Update]:
        work = state["work"]
        written, executed = deps.read(work["written"]), deps.read(work.get("executed"))
        if executed:
            review = yield from reviewing(deps, written, executed)
        else:
            reason = f"{NO_PROGRAM}: {written['why']}"
            review = Review(True, (reason,), None, "", "rules", reason, 0)
        return with_work(state, reviewed=deps.keep(asdict(review)))

    held = held_to(model, "submit_review", _REVIEW, "Says what came of the program.")
    return dialogue_node("review", held, begin, sample_name)


_REVIEW: Final[Mapping[str, Any]] = {
    "is_bug": {"type": "boolean"},
    "summary": {"type": "string"},
    "metric": {"type": ["number", "null"]},
}
"""Fields of a review, as the prompt asks for them."""


def reviewing(
    deps: SearchDeps, written: Mapping[str, Any], executed: Mapping[str, Any]
) -> Dialogue[Review]:
    """Review what came of a program; see `review_node`."""
    text = deps.prompts.review.render(
        task=deps.competition.description.strip(),
        code=str(written["code"]).rstrip(),
        output=quotable(str(executed["output"])).strip(),
    )
    answer = yield from asking([HumanMessage(encodable(text))], typed(_Reply), what="review")
    metric = _metric(answer.value, executed)
    reasons = _reasons(answer.value, executed, metric, invalid_is_bug=deps.invalid_is_bug)
    summary = "" if answer.value is None else strip_block(encodable(answer.value.summary)).strip()
    return Review(
        is_buggy=bool(reasons),
        reasons=tuple(reasons),
        metric=None if reasons else metric,
        analysis=summary[:LONGEST_ANALYSIS] or _by_rules(reasons, executed, metric),
        by="rules" if answer.value is None else "model",
        why=answer.why,
        calls=answer.calls,
    )


def _number(value: Any) -> Any:
    """Read a metric as models give it; what is no finite number is no metric."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    if isinstance(value, int | float):
        try:
            return float(value) if math.isfinite(value) else None
        except OverflowError:
            return None
    return None


class _Reply(BaseModel):
    is_bug: Annotated[
        StrictBool,
        BeforeValidator(
            lambda said: {"true": True, "false": False}.get(str(said).strip().lower(), said)
        ),
    ]
    summary: Annotated[str, BeforeValidator(lambda text: "" if text is None else text)] = ""
    metric: Annotated[float | None, BeforeValidator(_number)] = None


def _reasons(
    reply: _Reply | None,
    executed: Mapping[str, Any],
    metric: float | None,
    *,
    invalid_is_bug: bool,
) -> list[str]:
    """Say why a program is buggy; what a review finds at fault, only where nothing else does."""
    reasons = list(_at_fault(executed, metric, invalid_is_bug=invalid_is_bug))
    if not reasons and reply is not None and reply.is_bug:
        return ["the review found a fault"]
    return reasons


def _at_fault(
    executed: Mapping[str, Any], metric: float | None, *, invalid_is_bug: bool
) -> Iterator[str]:
    if executed["ended"]:
        yield str(executed["ended"])
    if executed["submission"] == "absent":
        yield f"there is no submission: {'; '.join(executed['reasons'])}"
    elif executed["submission"] == "invalid" and invalid_is_bug:
        yield f"the submission is not valid: {'; '.join(executed['reasons'])}"
    if metric is None:
        yield "it reports no validation metric that is a finite number"


def _metric(reply: _Reply | None, executed: Mapping[str, Any]) -> float | None:
    """Return the metric: the review's, if the output shows it, or the one that rules read there.

    A review may round what the program printed; then the number printed counts.
    """
    own: float | None = executed["metric"]
    if reply is None or reply.metric is None:
        return own
    shown = [float(number) for number in NUMBERS.findall(executed["output"])]
    candidates = [*([] if own is None else [own]), *filter(math.isfinite, shown)]
    found = (_meant(reply.metric, number) for number in candidates)
    return next((number for number in found if number is not None), own)


def _meant(said: float, shown: float) -> float | None:
    """Return the number that a review means, if it is one that is shown, maybe in hundredths."""
    for value in (shown, shown / 100):
        if math.isclose(said, value, rel_tol=1e-9, abs_tol=1e-12):
            return value
    digits = len(repr(said).partition("e")[0].partition(".")[2])
    return shown if digits >= _LEAST_DIGITS and round(shown, digits) == said else None


def _by_rules(reasons: list[str], executed: Mapping[str, Any], metric: float | None) -> str:
    if not reasons:
        return f"The program ran and reports a validation metric of {metric:.6g}."
    failure = f"The program failed: {'; '.join(reasons)}."
    message = str(executed["exc_value"] or "").strip()
    return f"{failure} {executed['exc_type']}: {message}"[:LONGEST_ANALYSIS] if message else failure
