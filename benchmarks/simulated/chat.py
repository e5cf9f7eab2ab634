"""What the simulated chat models have in common: draws by seed, LangChain's interface, tokens."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from langgraft._core.tokens import count_tokens_approximately
from langgraft.nodes.sampling import SAMPLE


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is to be drawn."""

    seed: int
    sampled: bool
    """Whether to draw at all, or to take what is most likely."""
    sample: str
    """Name of the call, where it has one: another name is another draw."""


class SimulatedChatModel(BaseChatModel):
    """A rule-based chat model: the same messages, seed and sample get the same reply."""

    seed: int = 0
    """Picks the draws."""
    temperature: float = Field(default=0.5, ge=0)
    """Above 0 choices are drawn; at 0 it takes the most likely option."""
    model_name: str

    @abstractmethod
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Return the reply to a conversation."""

    @property
    def _llm_type(self) -> str:
        return str(type(self).model_fields["model_name"].default)

    @property
    def _identifying_params(self) -> dict[str, Any]:
        own = type(self).model_fields.keys() - BaseChatModel.model_fields.keys()
        return {name: getattr(self, name) for name in sorted(own)}

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
        sampled = (self.temperature if temperature is None else temperature) > 0
        reply = self.reply(messages, Sampling(self.seed if seed is None else seed, sampled, sample))
        for word in stop or ():
            reply = reply.partition(word)[0]
        message = AIMessage(
            reply,
            usage_metadata=_usage(messages, reply),
            response_metadata={"model_name": self.model_name, "finish_reason": "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def _sample(manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None) -> str:
    return "" if manager is None else str((manager.metadata or {}).get(SAMPLE, ""))


def _usage(messages: Sequence[BaseMessage], reply: str) -> UsageMetadata:
    given = sum(count_tokens_approximately(message.text) for message in messages)
    made = count_tokens_approximately(reply)
    return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)
