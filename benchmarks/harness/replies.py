"""What a chat model's reply says about itself, in one vocabulary for all providers."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult, Generation

from langgraft._core.canonical import JSON
from langgraft._core.printable import in_a_line
from langgraft.benchmarks.harness.failures import TOLD, Failure, FailureKind, broken_reply
from langgraft.benchmarks.harness.usage import TokenCounts, is_count

FAILURE_KEY = "failure"
"""Where, in `response_metadata`, a reply says that the model failed."""

SIMULATED_FINGERPRINT = "simulated"
"""The `system_fingerprint` in the `response_metadata` of a reply that no language model wrote. It is a
field of OpenAI's format, so that clients hand it on when such a model is served over HTTP."""

_TRUNCATED = {"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"}
_FILTERED = {"content_filter", "safety", "prohibited_content", "blocklist", "recitation"}
_REFUSED = {"refusal"}
_BROKEN = {"error"}


def finish_reason(generation: Generation) -> str | None:
    """Return why a reply ended, in the provider's word, in lower case."""
    places: list[Mapping[str, Any]] = [generation.generation_info or {}]
    if isinstance(generation, ChatGeneration):
        places.append(generation.message.response_metadata)
    for place in places:
        details = place.get("incomplete_details") or {}
        named = (place.get(key) for key in ("finish_reason", "stop_reason", "done_reason"))
        reason = next((word for word in named if word), None) or details.get("reason")
        if reason:
            return str(reason).lower()
    return None


def is_complete(generations: Sequence[Generation]) -> bool:
    """Tell whether replies are worth keeping: none is cut short, filtered, refused or empty.

    An empty reply is the model's answer, but there is nothing to it: it is asked again whenever the
    request comes again.
    """
    bad = _TRUNCATED | _FILTERED | _REFUSED | _BROKEN
    return bool(generations) and all(
        finish_reason(generation) not in bad
        and not _refusal(generation)
        and not _is_empty(generation)
        for generation in generations
    )


def says_simulated(result: ChatResult) -> bool:
    """Tell whether a reply says that a simulated model wrote it."""
    return any(
        generation.message.response_metadata.get("system_fingerprint") == SIMULATED_FINGERPRINT
        for generation in result.generations
    )


def _is_empty(generation: Generation) -> bool:
    if not isinstance(generation, ChatGeneration):
        return not generation.text.strip()
    message = generation.message
    calls = (getattr(message, name, None) for name in ("tool_calls", "invalid_tool_calls"))
    return not any(calls) and not message.text.strip()


def failure_in(result: ChatResult) -> Failure | None:
    """Find the failure that a reply without an error carries inside."""
    if not result.generations:
        return broken_reply("the reply holds no choices")
    for generation in result.generations:
        reason = finish_reason(generation)
        if reason in _BROKEN:
            return Failure(
                FailureKind.PROVIDER_TRANSIENT, "provider_error", f"finished: {reason:.80}"
            )
        if reason in _FILTERED:
            detail = f"the reply was filtered: {reason:.80}"
            return Failure(FailureKind.MODEL_BEHAVIOR, "content_filter", detail)
        if reason in _REFUSED or _refusal(generation):
            return Failure(FailureKind.MODEL_BEHAVIOR, "refusal", _refusal(generation))
    return None


def _refusal(generation: Generation) -> str:
    if not isinstance(generation, ChatGeneration):
        return ""
    return in_a_line(str(generation.message.additional_kwargs.get("refusal") or ""), TOLD)


def tokens_of(result: ChatResult) -> TokenCounts | None:
    """Return the tokens of a result; `None` if the provider did not count them."""
    total: TokenCounts | None = None
    for generation in result.generations:
        # Providers report the usage of the whole call with each of its choices.
        total = total or _counts(getattr(generation.message, "usage_metadata", None))
    return total


def _counts(usage: Any) -> TokenCounts | None:
    """Read token counts; `None` where one of them is none."""
    if not isinstance(usage, Mapping):
        return None
    told, made = usage.get("input_token_details"), usage.get("output_token_details")
    counts = (
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        (told or {}).get("cache_read") or 0,
        (made or {}).get("reasoning") or 0,
    )
    numbers = [each for each in counts if is_count(each)]
    return TokenCounts(*numbers) if len(numbers) == len(counts) else None


def settled(result: ChatResult) -> ChatResult:
    """Move what the provider said beside the messages into them, and drop their ids.

    An id would come back from the cache a second time, and LangGraph takes two messages of
    one id for the same message. Halves of surrogate pairs, which no later request could send
    and no log could hold, become U+FFFD.
    """
    generations = []
    for generation in result.generations:
        metadata = {
            **(result.llm_output or {}),
            **(generation.generation_info or {}),
            **generation.message.response_metadata,
        }
        content = _encodable(generation.message.content)
        update = {"id": None, "content": content, "response_metadata": metadata}
        if _counts(getattr(generation.message, "usage_metadata", None)) is None:
            update["usage_metadata"] = None
        message = generation.message.model_copy(update=update)
        info = generation.generation_info
        generations.append(ChatGeneration(message=message, generation_info=info))
    return ChatResult(generations=generations)


def _encodable(content: Any) -> Any:
    if not isinstance(content, str):
        return content
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def from_cache(generations: Sequence[Generation]) -> ChatResult:
    """Make a result of kept replies, marked as LangChain marks its own hits: cost zero."""
    marked = []
    for generation in generations:
        message = getattr(generation, "message", None) or AIMessage(generation.text)
        usage = getattr(message, "usage_metadata", None)
        if usage is not None:
            message = message.model_copy(update={"usage_metadata": {**usage, "total_cost": 0}})
        marked.append(ChatGeneration(message=message, generation_info=generation.generation_info))
    return ChatResult(generations=marked)


def failure_reply(failure: Failure) -> ChatResult:
    """Make the reply of a model that failed by its own doing: empty, and saying why."""
    said: dict[str, JSON] = {
        "kind": failure.kind.value,
        "reason": failure.reason,
        "detail": failure.detail,
    }
    message = AIMessage("", response_metadata={FAILURE_KEY: said})
    return ChatResult(generations=[ChatGeneration(message=message)])
