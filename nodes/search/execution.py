"""`execute` and `review`: run a program, and decide by rules whether it counts.

A model says whether the program is at fault, sums up, and names the metric; the rest is not its
word. A program that failed, was ended by a limit, reports no finite metric or left no valid
submission is buggy whatever the model says. Whether lower is better, it is not asked at all: AIDE
asks each time, and ends with an error at the first answer that differs.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final

from langchain_core.messages import HumanMessage
from pydantic import BaseModel, BeforeValidator, StrictBool

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft.environments.competitions.attempts import Attempt, aattempt, attempt, told
from langgraft.environments.sandboxes.programs import Limits, PythonProgram
from langgraft.memory.questions import By
from langgraft.memory.recall import strip_block
from langgraft.nodes.chat_models import Model
from langgraft.nodes.execution_text import ended, raised_by, without_memory
from langgraft.nodes.model_dialogue import Talk, dialogue_node, spoken
from langgraft.nodes.node import Node, Update
from langgraft.nodes.program_text import quotable
from langgraft.nodes.replies import encodable
from langgraft.nodes.search.deps import SearchDeps
from langgraft.nodes.search.state import BranchState, sample_name, with_work
from langgraft.nodes.search.write import NO_PROGRAM
from langgraft.nodes.structured import asking, typed

SPLIT_SEED: Final = "SPLIT_SEED"
"""Environment variable that says which split a program holds out; see `tree_rules.md`."""
_LEAST_DIGITS: Final = 2
"""A metric that a review rounds to fewer digits may be any number."""
LONGEST_ANALYSIS: Final = 4_000
"""Most characters kept of a review that was to be two or three sentences."""
_NUMBERS: Final = re.compile(r"(?<![\w.])[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]*\d)")


@checked
def execute_node(deps: SearchDeps) -> Node[BranchState]:
    """Make the node that runs the program that was written; without one, it does nothing.

    What the sandbox raises (no engine, a container that died) is raised.
    """

    def execute(state: BranchState) -> Program[Call, Update]:
        code = str(deps.read(state["work"]["written"])["code"])
        if not code:
            return {}
        return _update(deps, state, (yield from attempted(deps, code, split=0)))

    return Node.running("execute", execute, in_threads=True)


def attempted(deps: SearchDeps, code: str, *, split: int) -> Program[Call, Attempt]:
    """Run a program, which holds out that split."""
    made: Attempt = yield Call(
        attempt,
        aattempt,
        PythonProgram(code),
        deps.competition,
        deps.sandbox,
        seconds=deps.seconds,
        environment={SPLIT_SEED: str(split)},
    )
    return made


def _update(deps: SearchDeps, state: BranchState, made: Attempt) -> Update:
    result = made.result
    name, message = raised_by(result, deps.seconds)
    validity = {True: "valid", False: "invalid", None: "absent"}[made.submission_valid]
    kept = deps.keep(
        {
            "output": shown(made, deps.sandbox.limits, deps.seconds),
            "exc_type": name,
            "exc_value": message,
            "timed_out": result.timed_out,
            "oom": result.oom,
            "ended": ended(result, deps.seconds),
            "metric": made.metric,
            "submission": validity,
            "file": "" if made.submission is None else deps.artifacts.keep(made.submission),
            "reasons": [encodable(reason) for reason in made.reasons],
        }
    )
    return with_work(state, executed=kept)


def shown(made: Attempt, limits: Limits, seconds: float) -> str:
    """Tell what came of a program, without memory that it printed."""
    printed = without_memory(made.result)
    kept = told(replace(made, result=printed), limits, seconds=seconds, exact=False)
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

    def begin(state: BranchState) -> Talk[Update]:
        work = state["work"]
        written, executed = deps.read(work["written"]), deps.read(work.get("executed"))
        if executed:
            review = yield from reviewing(deps, written, executed)
        else:
            reason = f"{NO_PROGRAM}: {written['why']}"
            review = Review(True, (reason,), None, "", "rules", reason, 0)
        return with_work(state, reviewed=deps.keep(asdict(review)))

    return dialogue_node("review", model, begin, sample_name)


def reviewing(
    deps: SearchDeps, written: Mapping[str, Any], executed: Mapping[str, Any]
) -> Talk[Review]:
    """Review what came of a program; see `review_node`."""
    text = deps.prompts.review.render(
        task=deps.competition.description.strip(),
        code=str(written["code"]).rstrip(),
        output=quotable(str(executed["output"])).strip(),
    )
    said = yield from spoken(asking([HumanMessage(encodable(text))], typed(_Reply)), "review")
    metric = _metric(said.value, executed)
    reasons = list(_reasons(said.value, executed, metric))
    summary = "" if said.value is None else strip_block(encodable(said.value.summary)).strip()
    return Review(
        is_buggy=bool(reasons),
        reasons=tuple(reasons),
        metric=None if reasons else metric,
        analysis=summary[:LONGEST_ANALYSIS] or _by_rules(reasons, executed, metric),
        by="rules" if said.value is None else "model",
        why=said.why,
        calls=said.calls,
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
    reply: _Reply | None, executed: Mapping[str, Any], metric: float | None
) -> Iterator[str]:
    """Say why a program is buggy; what a review finds at fault, only where nothing else does."""
    if executed["ended"]:
        yield str(executed["ended"])
    if executed["submission"] == "absent":
        yield f"there is no submission: {'; '.join(executed['reasons'])}"
    elif executed["submission"] == "invalid":
        yield f"the submission is not valid: {'; '.join(executed['reasons'])}"
    if metric is None:
        yield "it reports no validation metric that is a finite number"
    sound = not executed["ended"] and executed["submission"] == "valid" and metric is not None
    if sound and reply is not None and reply.is_bug:
        yield "the review found a fault"


def _metric(reply: _Reply | None, executed: Mapping[str, Any]) -> float | None:
    """Return the metric: the review's, if the output shows it, or the one that rules read there.

    A review may round what the program printed; then the number printed counts.
    """
    own: float | None = executed["metric"]
    if reply is None or reply.metric is None:
        return own
    shown = [float(number) for number in _NUMBERS.findall(executed["output"])]
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
    told = f"The program failed: {'; '.join(reasons)}."
    message = str(executed["exc_value"] or "").strip()
    return f"{told} {executed['exc_type']}: {message}"[:LONGEST_ANALYSIS] if message else told
