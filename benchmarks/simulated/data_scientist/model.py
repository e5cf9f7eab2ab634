"""The chat model: messages in, a reply in the asked form out."""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from langgraft._core.canonical import text_digest
from langgraft._core.tokens import count_tokens_approximately
from langgraft.benchmarks.simulated.data_scientist.asked import Asked, read_prompt
from langgraft.benchmarks.simulated.data_scientist.desk import desk_for
from langgraft.benchmarks.simulated.data_scientist.dice import Dice
from langgraft.benchmarks.simulated.data_scientist.drafting import write_draft
from langgraft.benchmarks.simulated.data_scientist.improving import write_improvement
from langgraft.benchmarks.simulated.data_scientist.repairing import write_repair
from langgraft.benchmarks.simulated.data_scientist.reviewing import (
    write_diagnosis,
    write_novelty,
    write_review,
)
from langgraft.benchmarks.simulated.judging import judging_reply, shown_novelty
from langgraft.memory.recall import strip_block
from langgraft.nodes.search.sampling import SAMPLE

MODEL_NAME = "simulated-data-scientist"


class SimulatedDataScientist(BaseChatModel):
    """A rule-based writer of machine-learning programs. It is not a language model.

        model = SimulatedDataScientist(seed=42)
        agent = build_tree_agent(model, competition=…, sandbox=…, memory=memory)

    It reads messages only: the task, the data's preview, notes recalled from memory where there
    are any, and what came of a program. The package's docstring says what it can do and what it
    gets wrong.
    """

    seed: int = 0
    """Picks the draws; the same messages under the same sample name get the same reply."""
    temperature: float = Field(default=0.5, ge=0)
    """Above 0 choices are drawn; at 0 it takes the most likely option."""
    ignorance: float = Field(default=1.0, ge=0, le=2)
    """Factor on the rates of its habits: 0 makes no mistake, 1 those that are documented."""
    model_name: str = MODEL_NAME

    @property
    def _llm_type(self) -> str:
        return MODEL_NAME

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {
            "model_name": self.model_name,
            "seed": self.seed,
            "temperature": self.temperature,
            "ignorance": self.ignorance,
        }

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_provider"] = "simulated"
        params["ls_model_name"] = self.model_name
        return params

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._answered(messages, stop, _sample(run_manager), kwargs)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._answered(messages, stop, _sample(run_manager), kwargs)

    def _answered(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        sample: str,
        settings: dict[str, Any],
    ) -> ChatResult:
        seed, temperature = settings.get("seed"), settings.get("temperature")
        reply = answer(
            messages,
            seed=self.seed if seed is None else seed,
            sampled=(self.temperature if temperature is None else temperature) > 0,
            ignorance=self.ignorance,
            sample=sample,
        )
        for word in stop or ():
            reply = reply.partition(word)[0]
        message = AIMessage(
            reply,
            usage_metadata=_usage(messages, reply),
            response_metadata={"model_name": self.model_name, "finish_reason": "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def answer(
    messages: Sequence[BaseMessage],
    *,
    seed: int,
    sampled: bool,
    ignorance: float = 1.0,
    sample: str = "",
) -> str:
    """Return the reply to a conversation.

    Args:
        messages: The whole conversation.
        seed: Picks the draws.
        sampled: Whether to draw at all, or to take what is most likely.
        ignorance: Factor on the rates of habits.
        sample: Name of the model call; another name is another draw.
    """
    texts = [message.text for message in messages]
    for text in texts:
        if (shown := shown_novelty(text)) is not None:
            return write_novelty(shown)
        if (judged := judging_reply(text)) is not None:
            return judged
        if (asked := read_prompt(text)) is not None:
            return _replied(asked, _dice(texts, seed, sampled=sampled, sample=sample), ignorance)
    return _harmless("\n".join(texts))


def _replied(asked: Asked, dice: Dice, ignorance: float) -> str:
    if asked.kind == "diagnose":
        return write_diagnosis(asked)
    if asked.kind == "tree_review":
        return write_review(asked, dice)
    desk = desk_for(asked, dice, ignorance)
    if asked.kind == "tree_debug":
        return write_repair(desk, asked.part("code"), asked.part("output"))
    if asked.kind == "tree_improve":
        return write_improvement(desk, asked.part("code"), asked.part("attempts"))
    return write_draft(desk, asked.part("attempts"))


def _dice(texts: Sequence[str], seed: int, *, sampled: bool, sample: str) -> Dice:
    read = "\n".join(strip_block(text) for text in texts)
    digest = text_digest(read.encode("utf-8", "replace").decode("utf-8"))
    return Dice(seed, sampled, digest, sample)


def _sample(manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None) -> str:
    return "" if manager is None else str((manager.metadata or {}).get(SAMPLE, ""))


def _harmless(prompt: str) -> str:
    """Answer what it does not understand, in the form that is asked for."""
    words = prompt.lower()
    if "json list" in words or "json array" in words:
        return "[]"
    if "json" in words:
        return "{}"
    return "I can only work on machine-learning competitions, and I do not understand this."


def _usage(messages: Sequence[BaseMessage], reply: str) -> UsageMetadata:
    given = sum(count_tokens_approximately(message.text) for message in messages)
    made = count_tokens_approximately(reply)
    return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)
