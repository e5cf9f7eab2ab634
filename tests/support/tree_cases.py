"""A tiny competition, and chat models that write and review programs for it by rule."""

import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field, PrivateAttr
from typing_extensions import override

from langgraft._core.canonical import seeded_fraction
from langgraft.environments.competitions.competition import Board, Competition, Grader, Thresholds
from langgraft.environments.sandboxes.sandbox import ExecutionResult, Job, PythonProgram
from langgraft.environments.sandboxes.subprocess import SubprocessSandbox
from langgraft.graphs.tree import build_tree_agent
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.dialogue import SAMPLE
from langgraft.nodes.search.deps import TreeInput
from langgraft.nodes.search.journal import Search, read_search

SUBMISSION = "id,target\\n1,0.1\\n2,0.9\\n3,0.4\\n"
GOOD = """\
import os
split = int(os.environ.get("SPLIT_SEED", "0"))
assert os.path.exists("input/train.csv")
open("submission.csv", "w").write("{submission}")
print("Validation metric:", {metric} + split * {drift})
"""
FIX = "Pass eta only."
BROKEN = """\
def fit(eta):
    return eta
fit(eta=1, rate={number})
"""
ABSENT = 'print("Validation metric: 0.9")\n'
NOT_A_NUMBER = GOOD.replace("{metric} + split * {drift}", "float('nan')")


def toy(folder: Path, *, lower_is_better: bool = False) -> Competition:
    """Make a competition whose answers are not even there."""
    public, private = folder / "public", folder / "private"
    if not public.exists():
        public.mkdir(parents=True)
        (public / "sample_submission.csv").write_bytes(b"id,target\n1,0.5\n2,0.5\n3,0.5\n")
        (public / "train.csv").write_bytes(b"id,x,target\n8,1,0\n9,2,1\n")
    best = (0.1, 0.2, 0.3, 0.4) if lower_is_better else (0.9, 0.8, 0.7, 0.6)
    thresholds = Thresholds(*best, lower_is_better=lower_is_better, teams=10)
    return Competition(
        id="toy",
        name="Toy",
        description="# Toy\n\nTell what $1 costs.\n",
        competition_type="simple",
        modality="tabular",
        metric_group=None,
        grader=Grader("auc-roc", _never),
        board=Board(thresholds),
        raw_dir=folder / "raw",
        public_dir=public,
        private_dir=private,
        answers=private / "answers.csv",
        sample_submission=public / "sample_submission.csv",
        prepare_fn=None,
    )


def _never(submission: Any, answers: Any) -> float:
    raise AssertionError("a search graded a submission")


def sandbox(competition: Competition) -> SubprocessSandbox:
    """Make a sandbox that has the competition's data."""
    return SubprocessSandbox(inputs={"input": competition.input_dir})


class Hurrying(SubprocessSandbox):
    """Ends programs that sleep for a minute soon after they began; all others have their time.

    A short limit for all would end those that work, where the machine is busy.
    """

    def __init__(self, competition: Competition) -> None:
        super().__init__(inputs={"input": competition.input_dir})

    @override
    def run(self, job: Job) -> ExecutionResult:
        code = job.program.code if isinstance(job.program, PythonProgram) else ""
        if "time.sleep(60)" not in code:
            return super().run(job)
        assert job.seconds == 60
        prints = "print" in code
        for seconds in (1, 10) if prints else (1,):
            result = super().run(replace(job, seconds=seconds))
            if result.stderr or not prints:
                return result
        return super().run(job)


Rule = Callable[[str, str], "str | AIMessage"]
"""Replies to the text of the last message, by the name of the sample."""


class RuleModel(BaseChatModel):
    """Replies by a rule, and keeps what it was asked."""

    rule: Rule
    asked: list[tuple[str, str]] = Field(default_factory=list)
    """Sample and text of each call, in the order they came."""
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "rule"

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        metadata = (run_manager.metadata if run_manager is not None else None) or {}
        sample, text = str(metadata.get(SAMPLE, "")), messages[-1].text
        with self._lock:
            self.asked.append((sample, text))
        said = self.rule(text, sample)
        message = AIMessage(said) if isinstance(said, str) else said
        return ChatResult(generations=[ChatGeneration(message=message)])

    def texts(self, what: str) -> list[str]:
        """Return what it was asked for one purpose, in the order of the samples."""
        return [text for sample, text in sorted(self.asked) if sample.split("/")[2] == what]


def reply(code: str, plan: str = "First I try this. Then I see. And more.") -> str:
    """Write a reply with a program."""
    return f"{plan}\n\n```python\n{code}```\n"


def good(metric: float = 0.5, drift: float = 0.0) -> str:
    """Write a program that works."""
    return GOOD.format(submission=SUBMISSION, metric=metric, drift=drift)


def programs(*replies: "str | AIMessage") -> RuleModel:
    """Make a model that gives a reply for each program, and the last one for all further ones."""
    return RuleModel(
        rule=lambda _, sample: replies[min(int(sample.split("/")[1]), len(replies) - 1)]
    )


def scripted(*replies: "str | AIMessage") -> RuleModel:
    """Make a model that gives these replies, one call after the other, and then the last one."""
    given: dict[str, str | AIMessage] = {}
    lock = threading.Lock()

    def rule(text: str, sample: str) -> str | AIMessage:
        with lock:
            return given.setdefault(sample, replies[min(len(given), len(replies) - 1)])

    return RuleModel(rule=rule)


def mixed(text: str, sample: str) -> str:
    """Write programs of all sorts, by chance of the sample; a fix in the prompt is heeded."""
    chance = seeded_fraction("mixed", sample)
    metric = round(0.5 + chance / 3, 6)
    if chance < 0.08:
        return "I would rather not."
    if chance < 0.16:
        return reply(ABSENT)
    if chance < 0.2:
        return reply(NOT_A_NUMBER.replace("{submission}", SUBMISSION))
    if chance < 0.6 and FIX not in text:
        fixed = "# Previous solution" in text and "# What came of it" in text and chance < 0.4
        if not fixed:
            return reply(BROKEN.format(number=int(chance * 1000)))
        return reply(good(metric), plan=f"{FIX} So it runs. And more.")
    return reply(good(metric))


def feedback(text: str, sample: str) -> str:
    """Review, diagnose and judge by what the prompt shows."""
    if text.startswith("You review a run"):
        shown = re.findall(r"Validation metric: ([\d.]+)$", text, re.MULTILINE)
        metric = float(shown[-1]) if shown else None
        bug = metric is None
        return json.dumps({"is_bug": bug, "summary": "It failed." if bug else "It ran.",
                           "metric": metric})  # fmt: skip
    if text.startswith("A program failed"):
        error = re.findall(r"^(?:Exception: )?(\w+Error: .*)$", text, re.MULTILINE)
        told = error[-1] if error else "no submission was written"
        return json.dumps({"package": "general", "error": told, "fix": "", "kind": "code"})
    if text.startswith("You decide whether an error"):
        ids = re.findall(r'"id": ?"(.*?)"', text)
        same = seeded_fraction("novel", sample, text) < 0.5 and ids
        return json.dumps({"action": "none", "repeats": ids[0]} if same else {"action": "add"})
    if text.startswith("You look back"):
        return json.dumps([{"when_to_use": "always", "lesson": "write the submission"}])
    raise AssertionError(f"nobody knows how to answer {text[:80]!r}")


def writing(rule: Rule = mixed) -> RuleModel:
    """Make a model that writes programs."""
    return RuleModel(rule=rule)


def reviewing(rule: Rule = feedback) -> RuleModel:
    """Make a model that reviews, diagnoses and judges."""
    return RuleModel(rule=rule)


def searched(
    competition: Competition, code: RuleModel, given: TreeInput | None = None, **settings: Any
) -> tuple[dict[str, Any], Search]:
    """Search the tree with real programs, and return what came out and the journal."""
    artifacts = MemoryArtifacts()
    with settings.pop("sandbox", None) or sandbox(competition) as place:
        settings = {"steps": 3, "seconds": 60, "feedback_model": reviewing(), **settings}
        agent = build_tree_agent(
            code, competition=competition, sandbox=place, artifacts=artifacts, **settings
        )
        out = agent.invoke(given or {"episode_id": "s"})
    return out, read_search(artifacts, out["journal"])
