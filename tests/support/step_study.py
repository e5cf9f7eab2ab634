"""A study of the agents that work step by step, at the competition of houses, with models by rule."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chain_cases import call
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable
from mlab_cases import FINAL, edit, execute, fenced
from mle_study import PROGRAM, house_plan
from tree_cases import BROKEN, FIX, RuleModel, feedback
from typing_extensions import override

from langgraft._core.canonical import seeded_fraction
from langgraft.benchmarks.harness.models import MeteredChatModel
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.study import MleStudy

STEPS = 6


class CallingModel(RuleModel):
    """Replies by a rule to the text of all messages; tools may be bound to it."""

    @override
    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=list(tools), **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        text = "\n".join(message.text for message in messages)
        return super()._generate([HumanMessage(text)], stop, run_manager, **kwargs)


def program(text: str, sample: str) -> str:
    """Write a program that fails by chance of the sample, unless a fix is in sight."""
    chance = seeded_fraction("houses", sample)
    if chance < 0.6 and FIX not in text and "TypeError" not in text:
        return BROKEN.format(number=int(chance * 4))
    return PROGRAM.format(off=round(chance * 3, 3))


def step_of(sample: str) -> int:
    """Return the step that a sample is of."""
    return int(sample.rsplit("/", maxsplit=2)[-2].removeprefix("step-"))


def rule(text: str, sample: str) -> str | AIMessage:
    """Do the next step of either agent, or answer what is asked aside."""
    what = sample.rsplit("/", maxsplit=1)[-1]
    if what in {"diagnose", "judge"}:
        return feedback(text, sample)
    if what == "edit":
        return fenced(program(text, sample))
    if "/mlab/" not in f"/{sample}":
        code = program(text, sample)
        return call("finish") if step_of(sample) >= STEPS else call("run_python", FIX, code=code)
    if step_of(sample) >= STEPS:
        return FINAL
    return execute("do.py", FIX) if step_of(sample) % 2 else edit("do.py")


class StepStudy(MleStudy):
    """The study, with models that reply by rule; what was asked is kept.

    Args:
        before_call: Called with each sample's name; may raise.
    """

    def __init__(self, before_call: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._before_call = before_call

    @override
    def simulated_model(self, plan: MlePlan, run: RunSpec) -> BaseChatModel:
        """Return a model that replies by rule."""

        def answer(text: str, sample: str) -> str | AIMessage:
            self._before_call(sample)
            self.asked.append(sample)
            return rule(text, sample)

        return MeteredChatModel(inner=CallingModel(rule=answer), identity={"model": "rule"})


def step_plan(folder: Path, **changes: Any) -> MlePlan:
    """Make a small plan of both agents."""
    agents = [{"name": name, "steps": STEPS} for name in ("chain", "mlab")]
    fields = {"agents": agents, "memory": ["off", "warm"], "seeds": [0], "build_seeds": [100]}
    return house_plan(folder, **{**fields, **changes})
