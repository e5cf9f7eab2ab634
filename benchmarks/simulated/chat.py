"""What the simulated chat models have in common: draws by seed, LangChain's interface, tools, tokens."""

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from langgraft._core.canonical import JSON, text_digest
from langgraft.benchmarks.harness.replies import SIMULATED_FINGERPRINT
from langgraft.memory.recall import count_tokens_approximately
from langgraft.nodes.dialogue import SAMPLE


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a reply is to be drawn."""

    seed: int
    sampled: bool
    """Whether to draw at all, or to take what is most likely."""
    sample: str
    """Name of the call, where it has one: another name is another draw."""
    tools: tuple[str, ...] = ()
    """Names of the tools it may call."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool."""

    name: str
    arguments: Mapping[str, JSON] | str = field(default_factory=dict)
    """A text is sent as it stands: arguments that are no JSON, as language models write them, too."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model says, and the tools it calls."""

    text: str
    calls: tuple[ToolUse, ...] = ()


class AtALoss(str):
    """A reply that says that the prompt was not understood."""

    __slots__ = ()


class SimulatedChatModel(BaseChatModel):
    """A rule-based chat model: the same messages, seed and sample get the same reply."""

    seed: int = 0
    """Picks the draws."""
    temperature: float = Field(default=0.5, ge=0)
    """Above 0 choices are drawn; at 0 it takes the most likely option."""
    model_name: str
    context: int | None = Field(default=None, gt=0)
    """Most tokens of a prompt, at four characters each; a longer one raises
    `ContextOverflowError`, as providers' models do. `None` sets no limit."""

    @abstractmethod
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str | Reply:
        """Return the reply to a conversation: a text, or one with calls of tools."""

    def understands(self, messages: Sequence[BaseMessage], tools: Sequence[Any] = ()) -> bool:
        """Say whether it makes anything of a conversation; `tools` are those of the request."""
        return not isinstance(self.reply(messages, self._sampling("", {"tools": tools})), AtALoss)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools as settings of each call, so that a wrapper can pass them on."""
        choice = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **choice, **kwargs)

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
        given = sum(map(_tokens, messages))
        if self.context is not None and given > self.context:
            msg = f"the prompt is too long: {given} tokens, where {self.context} is the maximum"
            raise ContextOverflowError(msg)
        reply = self.reply(messages, self._sampling(sample, settings))
        reply = Reply(str(reply)) if isinstance(reply, str) else reply
        text = reply.text
        for word in stop or ():
            text = text.partition(word)[0]
        message = _message(text, reply.calls, _call_id(messages, sample))
        message.usage_metadata = _usage(given, _tokens(message))
        finish = "tool_calls" if reply.calls else "stop"
        message.response_metadata = {
            "model_name": self.model_name,
            "finish_reason": finish,
            "system_fingerprint": SIMULATED_FINGERPRINT,
        }
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _sampling(self, sample: str, settings: Mapping[str, Any]) -> Sampling:
        seed, temperature = settings.get("seed"), settings.get("temperature")
        sampled = (self.temperature if temperature is None else temperature) > 0
        tools = tuple(_tool_name(each) for each in settings.get("tools") or ())
        return Sampling(self.seed if seed is None else seed, sampled, sample, tools)


def _tool_name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("function", tool).get("name", ""))


def _call_id(messages: Sequence[BaseMessage], sample: str) -> str:
    """Return an id for calls that no other reply of a conversation has."""
    texts = [sample, *(message.text for message in messages)]
    written = json.dumps(texts)  # ASCII: a text may hold what cannot be encoded
    return f"call_{text_digest(written)[:16]}"


def _message(text: str, calls: Sequence[ToolUse], name: str) -> AIMessage:
    message = AIMessage(text)
    for place, call in enumerate(calls):
        written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        read = _read(written)
        kept = {"name": call.name, "id": f"{name}_{place}"}
        if read is None:
            message.invalid_tool_calls.append(
                invalid_tool_call(args=written, error="not a JSON object", **kept)
            )
        else:
            message.tool_calls.append(tool_call(args=read, **kept))
    return message


def _read(arguments: str) -> dict[str, Any] | None:
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _sample(manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None) -> str:
    return "" if manager is None else str((manager.metadata or {}).get(SAMPLE, ""))


def _tokens(message: BaseMessage) -> int:
    """Count the tokens of a message, its calls of tools included."""
    calls = ""
    if isinstance(message, AIMessage):
        written = [json.dumps(call["args"]) for call in message.tool_calls]
        written += [str(call["args"]) for call in message.invalid_tool_calls]
        calls = "".join(written)
    return count_tokens_approximately(message.text) + count_tokens_approximately(calls)


def _usage(given: int, made: int) -> UsageMetadata:
    return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)
