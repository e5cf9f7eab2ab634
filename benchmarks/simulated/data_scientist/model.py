"""The chat model: messages in, a reply in the asked form out; reviews and diagnoses say what an output says."""

import json
import re
from collections.abc import Sequence
from typing import Final

from langchain_core.messages import BaseMessage
from pydantic import Field

from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.conversation import Dice, harmless_reply
from langgraft.benchmarks.simulated.data_scientist.programs import sections_of, title_of
from langgraft.benchmarks.simulated.data_scientist.tasks import (
    FilledPrompt,
    dice_for,
    read_prompt,
)
from langgraft.benchmarks.simulated.data_scientist.writer import writer_for
from langgraft.benchmarks.simulated.judging import judging_reply, shown_novelty
from langgraft.memory.model import ErrorRecord
from langgraft.nodes.diagnose import Failure, diagnose_by_rules
from langgraft.nodes.judging import Novelty

MODEL_NAME = "simulated-data-scientist"
KINDS: Final = (
    "tree_draft",
    "tree_improve",
    "tree_debug",
    "tree_merge",
    "tree_draft_current",
    "tree_improve_current",
    "tree_debug_current",
    "tree_review",
    "diagnose",
    "diagnose_by_example",
)
"""Prompts that are understood, by the names they ship under."""
_AT_A_LOSS: Final = (
    "I can only work on machine-learning competitions, and I do not understand this."
)


class SimulatedDataScientist(SimulatedChatModel):
    """A rule-based writer of machine-learning programs. It is not a language model.

    `model_name` is what logs call it.

        model = SimulatedDataScientist(seed=42)
        agent = build_tree_agent(model, competition=…, sandbox=…, memory=memory)

    It reads messages only: the task, the data's preview, notes recalled from memory where there
    are any, and what came of a program. What it can do, and what it gets wrong, is
    in `docs/simulated-models.md`.
    """

    ignorance: float = Field(default=1.0, ge=0, le=2)
    """Factor on the rates of its habits: 0 makes no mistake, 1 those that are documented."""
    model_name: str = MODEL_NAME

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Write a program, review one, diagnose or judge."""
        return answer(messages, sampling, self.ignorance)


def answer(messages: Sequence[BaseMessage], sampling: Sampling, ignorance: float) -> str:
    """Return the reply to a conversation, in the form that is asked for."""
    texts = [message.text for message in messages]
    for text in texts:
        if (shown := shown_novelty(text)) is not None:
            return write_novelty(shown)
        if (judged := judging_reply(text)) is not None:
            return judged
        if (asked := read_prompt(text, KINDS)) is not None:
            dice = dice_for(sampling.seed, texts, sampled=sampling.sampled, sample=sampling.sample)
            return _replied(asked, dice, ignorance)
    return harmless_reply("\n".join(texts), "", _AT_A_LOSS)


def _replied(asked: FilledPrompt, dice: Dice, ignorance: float) -> str:
    if asked.kind.startswith("diagnose"):
        return write_diagnosis(asked)
    if asked.kind == "tree_review":
        return write_review(asked, dice)
    writer = writer_for(asked, dice, ignorance)
    stage = asked.kind.removeprefix("tree_").removesuffix("_current")
    if stage == "debug":
        program = writer.repair(asked.part("code"), asked.part("output"))
    elif stage == "improve":
        program = writer.improve(asked.part("code"), asked.part("attempts"))
    elif stage == "merge":
        program = writer.merge(asked.part("code"), asked.part("partner"), asked.part("attempts"))
    else:
        program = writer.draft(asked.part("attempts"))
    return f"{program.plan}\n\n```python\n{program.code.rstrip()}\n```\n"


# Reviews and diagnoses by rules -----------------------------------------------------------

_FAILED: Final = re.compile(
    r"Traceback \(most recent call last\)|^Exception: |^TIMEOUT|^OUT OF MEMORY|^TOO MUCH OUTPUT"
    r"|^ENDED BY|ended with exit code [1-9]|^Submission: (?:absent|present, but not valid)",
    re.MULTILINE,
)
_METRIC: Final = re.compile(
    r"Validation metric(?:, as the program reports it)?: (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
)
_RAISED: Final = re.compile(
    r"^(?:Exception: )?((?:\w+\.)*\w+(?:Error|Exception)\b[^\n]*)", re.MULTILINE
)
_KEYWORD: Final = re.compile(r"(?:(\w+)(?:\.\w+)*\(\) )?got an unexpected keyword argument '(\w+)'")
_MEANT: Final = re.compile(r"Did you mean: '(\w+)'|[Uu]se `([\w.]+)` instead")
_ENDED: Final = re.compile(r"^(TIMEOUT|OUT OF MEMORY)\b[^\n]*", re.MULTILINE)
_INVALID: Final = re.compile(
    r"^Submission: present, but not valid\.\n((?:- [^\n]*\n?)+)", re.MULTILINE
)
_LIMIT: Final = re.compile(
    r"^(?:TIMEOUT|OUT OF MEMORY)\b|ran into the (?:time limit|limit of memory)", re.MULTILINE
)
_ROUNDS: Final = re.compile(
    r"\b(\w+(?:Classifier|Regressor))\((?:[^()]|\([^()]*\))*?\b(?:n_estimators|max_iter)=(\d+)"
)
"""Models, with how many rounds or trees they take."""
_LIBRARIES: Final = (("LGBM", "lightgbm"), ("XGB", "xgboost"), ("", "sklearn"))
ADVISED: Final = 0.5
"""Chance that a review advises what an output shows."""


def write_review(asked: FilledPrompt, dice: Dice) -> str:
    """Review a run."""
    output, code = asked.part("output"), asked.part("code")
    metric, failed = reported(output), went_wrong(output)
    if failed or metric is None:
        summary = _failure(output, dice)
    else:
        sections = {slot: title_of(text) for slot, text in sections_of(code).items()}
        how = f"{sections.get('Features', 'the data')} with {sections.get('Model', 'a model')}"
        summary = f"It used {how} and reached {metric:g} in validation. The submission is in order."
    found = {"is_bug": failed or metric is None, "summary": summary, "metric": metric}
    return json.dumps(found, ensure_ascii=False)


def reported(output: str) -> float | None:
    """Return the validation metric that an output shows last."""
    metrics = _METRIC.findall(output)
    return float(metrics[-1]) if metrics else None


def went_wrong(output: str) -> bool:
    """Say whether an output tells of a failure."""
    return _FAILED.search(output) is not None


def _failure(output: str, dice: Dice) -> str:
    raised = _RAISED.findall(output)
    if ended := _ENDED.search(output):
        limit = "the time limit" if ended.group(1) == "TIMEOUT" else "the limit of memory"
        return f"It ran into {limit}, and was stopped before it was done."
    if invalid := _INVALID.search(output):
        return f"The submission is not valid: {' '.join(invalid.group(1).split())[2:]}."
    if not raised:
        return "It printed no validation metric, and it does not say why."
    advice = _advice(output) if dice.coin("advice", ADVISED) else ""
    return f"It failed with {raised[-1].strip().rstrip('.')}.{advice}"


def _advice(output: str) -> str:
    """Advise what the output shows, right or not: an argument may be needed under another name."""
    if meant := _MEANT.search(output):
        return f" Use `{meant.group(1) or meant.group(2)}` instead."
    if keyword := _KEYWORD.search(output):
        of = f" of `{keyword.group(1)}`" if keyword.group(1) else ""
        return f" The argument `{keyword.group(2)}`{of} should be removed."
    return ""


def write_diagnosis(asked: FilledPrompt) -> str:
    """Diagnose a failure: what rules read from it, and what a limit was hit by."""
    output, code, analysis = (asked.part(name) for name in ("output", "code", "analysis"))
    analysis = "" if analysis.strip() == "(empty)" else analysis
    record = diagnose_by_rules(Failure(output=output, code=code, analysis=analysis))
    if _LIMIT.search(f"{output}\n{analysis}"):
        return json.dumps(_limit(code, output, record))
    if record is None:
        return json.dumps({"package": "general", "error": "unknown", "fix": "", "kind": "code"})
    names = ("package", "error", "fix", "kind")
    return json.dumps({name: getattr(record, name) for name in names}, ensure_ascii=False)


def _limit(code: str, output: str, record: ErrorRecord | None) -> dict[str, str]:
    """Blame the model with the most rounds for a limit."""
    name = max(_ROUNDS.findall(code), key=lambda found: int(found[1]), default=("", ""))[0]
    package = (
        next(lib for start, lib in _LIBRARIES if name.startswith(start)) if name else "general"
    )
    error = "MemoryError: out of memory" if "MEMORY" in output else "TimeoutError: timed out"
    while_fitting = f" while fitting {name}" if name else ""
    return {
        "package": package,
        "error": f"{error}{while_fitting}",
        "fix": record.fix if record else "",
        "kind": "resource",
    }


def write_novelty(shown: Novelty) -> str:
    """Say whether an error is new: names in quotations are what it is about, and count.

    It is not if a record of the same package has the same error but for paths and numbers, and has
    a fix or the new one has none either. Asked whether the message is the same, it is the message.
    """
    if shown.same == "message":
        (ruling,) = shown.by_rules(())
        return json.dumps({"action": ruling.action, "repeats": ruling.item_id})
    new = shown.record
    for name, kept in shown.neighbours.items():
        same = new.package == kept.package and _masked(new.error) == _masked(kept.error)
        if same and (kept.fix or not new.fix):
            return json.dumps({"action": "none", "repeats": name})
    return json.dumps({"action": "add"})


def _masked(error: str) -> str:
    error = re.sub(r"(?:[\w.-]*/)+[\w.-]*", "<path>", error.casefold())
    return " ".join(re.sub(r"\d+(?:\.\d+)?", "<number>", error).split())
