r"""A rule-based solver of problems. It is not a language model.

    known = KnownProblem("What is 2+2?", "Arithmetic", "Level 1", right="4", wrong="5")
    model = SimulatedSolver(known=(known,), strengths=STRONG, seed=42)

It knows the problems it is made with, each with a right and a wrong result, and *declares* how often
it finds the right one: by level, more often where a recalled note stands for the kind of problem at
hand, and less often where there are notes and none does. It reads messages only. One draw belongs to a
problem and a seed, whatever the prompt says beside it: what a memory changes is what the prompt changed.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Final

from langchain_core.messages import BaseMessage
from pydantic import Field
from typing_extensions import override

from langgraft._core.arguments import Settings
from langgraft._core.canonical import seeded_fraction, text_digest
from langgraft.benchmarks.simulated.chat import AtALoss, Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.judging import judging_reply
from langgraft.benchmarks.simulated.notes import parts_of, stances
from langgraft.memory.model import BLOCK_END, BLOCK_START

MODEL_NAME = "simulated-solver"

_BLOCK: Final = re.compile(rf"{re.escape(BLOCK_START)}(.*?){re.escape(BLOCK_END)}", re.DOTALL)
_TASK: Final = "\nTask:\n"
_REVIEWED: Final = re.compile(
    r"\nTask: (?P<task>.*)\nOutcome: (?P<outcome>\w+)[^\n]*\n\nTrajectory:\n", re.DOTALL
)
_LIMIT: Final = re.compile(r"about (\d+) lessons?", re.IGNORECASE)
_ADVICE: Final = {
    True: re.compile(r"\b(?:use|apply|write|check|test|draw|name|split)\b", re.IGNORECASE)
}
_ANY_PROBLEM: Final = re.compile(r"\b(?:any|whatever the|all kinds? of) problems?\b", re.IGNORECASE)


class KnownProblem(Settings):
    """A problem that a simulated solver knows."""

    text: str
    """The whole statement: it is found by it."""
    kind: str
    level: str
    right: str | None
    """What it replies where it is right; `None`: it never is."""
    wrong: str
    program: bool = False
    """Whether the two are programs, and go into a fenced block; else into a box."""


class Strengths(Settings):
    """What a simulated solver is declared to be able to; probabilities."""

    base: Mapping[str, float] = Field(default_factory=dict)
    """Level → how often it is right without any note."""
    otherwise: float = Field(default=0.5, ge=0, le=1)
    """The same of levels that are not named."""
    gain: float = Field(default=0.0, ge=0, le=1)
    """What a note adds that says what to do with problems of this kind."""
    general: float = Field(default=0.0, ge=0, le=1)
    """What a note adds that says what to do with any problem."""
    harm: float = Field(default=0.0, ge=0, le=1)
    """What is taken off where there are notes, and none of them is of either sort."""
    spoken: float = Field(default=1.0, ge=0, le=1)
    """How often it draws a lesson from an attempt."""
    generalizes: float = Field(default=0.0, ge=0, le=1)
    """How often a lesson is of any problem, and not of the kind it was learned on."""


STRONG: Final = Strengths(
    base={"Level 1": 0.95, "Level 2": 0.86, "Level 3": 0.78, "Level 4": 0.66, "Level 5": 0.53},
    gain=0.08,
    general=0.04,
    harm=0.05,
    generalizes=0.2,
)
"""About 64 % at 25 : 35 : 40 of Levels 3 to 5, as Qwen 2.5 7B (memory-transplants §4.3)."""

WEAK: Final = Strengths(
    base={"Level 1": 0.8, "Level 2": 0.66, "Level 3": 0.52, "Level 4": 0.38, "Level 5": 0.27},
    gain=0.14,
    general=0.06,
    harm=0.08,
    generalizes=0.2,
)
"""About 37 %, as Llama 3.2 3B (memory-transplants App. D)."""

PRESETS: Final[Mapping[str, Strengths]] = {"strong": STRONG, "weak": WEAK}


class SimulatedSolver(SimulatedChatModel):
    """Solves the problems it knows as often as its strengths say, and draws lessons from attempts."""

    model_name: str = MODEL_NAME
    known: tuple[KnownProblem, ...] = Field(exclude=True, repr=False)
    strengths: Strengths = STRONG

    at_a_loss: ClassVar = AtALoss("I do not know this problem.")

    @cached_property
    def by_text(self) -> Mapping[str, KnownProblem]:
        """The problems by digests of their statements."""
        return {text_digest(each.text.strip()): each for each in self.known}

    @override
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        text = messages[-1].text if messages else ""
        judged = judging_reply(text)
        if judged is not None:
            return judged
        reviewed = _REVIEWED.search(text)
        if reviewed is not None:
            return self._lessons(text, reviewed, sampling)
        before, _, task = text.rpartition(_TASK)
        # A task may itself hold such a line.
        while (problem := self._known(task)) is None and before:
            before, _, more = before.rpartition(_TASK)
            task = f"{more}{_TASK}{task}"
        return self.at_a_loss if problem is None else self._solution(problem, text, sampling)

    def _known(self, text: str) -> KnownProblem | None:
        return self.by_text.get(text_digest(text.strip()))

    def _solution(self, problem: KnownProblem, prompt: str, sampling: Sampling) -> str:
        draw = seeded_fraction("solve", sampling.seed, problem.text)
        right = draw < self.rate(problem, "\n".join(_BLOCK.findall(prompt)))
        result = problem.right if right and problem.right is not None else problem.wrong
        shown = f"```python\n{result}\n```" if problem.program else f"$\\boxed{{{result}}}$"
        return f"This is a problem of {problem.kind}. I work it out, and the result is\n{shown}"

    def rate(self, problem: KnownProblem, notes: str) -> float:
        """Return how often a problem is solved with these notes recalled."""
        strengths = self.strengths
        rate = strengths.base.get(problem.level, strengths.otherwise)
        own, general = _advised(notes, problem.kind)
        rate += strengths.gain * own + strengths.general * general
        if notes.strip() and not (own or general):
            rate -= strengths.harm
        return min(1.0, max(0.0, rate))

    def _lessons(self, prompt: str, reviewed: re.Match[str], sampling: Sampling) -> str:
        problem = self._known(reviewed["task"])
        if problem is None:
            return "[]"
        strengths, said = self.strengths, (sampling.seed, problem.text)
        if seeded_fraction("spoken", *said) >= strengths.spoken:
            return "[]"
        limit = _LIMIT.search(prompt)
        if limit is not None and int(limit[1]) < 1:
            return "[]"
        when = f"a problem is about {problem.kind}"
        if seeded_fraction("generalizes", *said) < strengths.generalizes:
            when = "you work at any problem"
        forms = _LESSONS[reviewed["outcome"] == "success"]
        lesson = forms[int(seeded_fraction("form", *said) * len(forms))]
        return json.dumps([{"when_to_use": when, "lesson": lesson}])


_LESSONS: Final = {
    True: (
        "Write down what is given and what is asked, and check the result against both.",
        "Use the method that names every quantity first, and check the last step again.",
        "Split it into cases, and check each of them before adding up.",
    ),
    False: (
        "Check the result with small numbers before giving it.",
        "Write every step on a line of its own, and check signs and bounds.",
        "Test the first idea on an example, and use another one if it fails.",
    ),
}
"""By whether the attempt succeeded."""


def _advised(notes: str, kind: str) -> tuple[bool, bool]:
    """Say whether notes stand for what to do with a kind of problems, and with any problem."""
    named = re.compile(rf"\b{re.escape(kind.lower())}\b")
    own = general = False
    for line in notes.splitlines():
        if "When " not in line:
            continue
        for situation, said in parts_of(line, lambda when: named.search(when) or _any(when)):
            if stances(said, _ADVICE).get(True) is not True:
                continue
            own = own or bool(named.search(situation))
            general = general or _any(situation)
    return own, general


def _any(situation: str) -> bool:
    return bool(_ANY_PROBLEM.search(situation))
