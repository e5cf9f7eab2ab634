"""One request to a chat model: cache, cap, attempt, retry, meter. No I/O of its own.

An `Exchange` decides; whoever drives it calls the model and waits. So the synchronous and
the asynchronous model share every rule.

One loop owns all retries: clients are built with `max_retries=0`, because nested retries multiply, and
because a client's own are too few (two attempts are about 1.5 seconds of patience) and give up on a
`Retry-After` above 120 seconds.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatResult
from pydantic import BaseModel

from langgraft._core.canonical import JSON
from langgraft._core.confidential import is_secret_name
from langgraft._core.effects import Clock, SystemClock
from langgraft._core.errors import BudgetExceededError, InfrastructureError, InputError
from langgraft.benchmarks.harness.budget import CallBudget, Price
from langgraft.benchmarks.harness.cache import Request, ResponseCache, key_text
from langgraft.benchmarks.harness.failures import Failure, FailureKind, classify
from langgraft.benchmarks.harness.replies import (
    failure_in,
    failure_reply,
    from_cache,
    is_complete,
    says_simulated,
    sent_calls,
    settled,
    tokens_of,
)
from langgraft.benchmarks.harness.usage import TokenCounts, asking_node, current_meters


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient to be. Defaults: exponential from 1 to 60 s with full jitter, 15 minutes in all."""

    first_seconds: float = 1.0
    """Longest wait after the first failure; doubles with each further one."""
    most_seconds: float = 60.0
    """Longest wait of our own choosing; a provider's `Retry-After` may be longer."""
    total_seconds: float = 900.0
    """How long after its first attempt a request may still be repeated."""
    unreachable_seconds: float = 60.0
    """The same as long as nothing has ever answered there, as with a mistyped URL."""

    def delay(
        self, failure: Failure, *, attempts: int, elapsed: float, fraction: float, reached: bool
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or `None` to give up.

        Args:
            failure: How the last attempt failed.
            attempts: Attempts so far, at least 1.
            elapsed: Seconds since the first attempt began.
            fraction: A random number in [0, 1): the jitter.
            reached: Whether the provider has ever answered.
        """
        if failure.kind is not FailureKind.PROVIDER_TRANSIENT:
            return None
        ceiling = min(self.most_seconds, self.first_seconds * 2.0 ** min(attempts - 1, 32))
        wait = fraction * ceiling + (failure.retry_after or 0.0)
        patience = self.total_seconds
        if failure.unreachable and not reached:
            patience = min(patience, self.unreachable_seconds)
        return wait if elapsed + wait <= patience else None


class Timing:
    """Where waiting comes from; tests pass a clock that does not wait.

    Attributes:
        clock: The time, for dates and durations.
        sleep: Waits some seconds.
        asleep: The same for a coroutine.
        fraction: Gives random numbers in [0, 1). They decide when a call is made, never what
            it says.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        fraction: Callable[[], float] = random.random,
    ) -> None:
        self.clock = clock or SystemClock()
        self.sleep = sleep
        self.asleep = asleep
        self.fraction = fraction


_logger = logging.getLogger(__name__)

OPERATIONAL: Final = frozenset(
    (
        *("api_key", "openai_api_key", "azure_ad_token", "azure_ad_token_provider"),
        *("azure_ad_async_token_provider", "organization", "openai_organization"),
        *("client", "async_client", "root_client", "root_async_client", "rate_limiter"),
        *("http_client", "http_async_client", "http_socket_options", "openai_proxy"),
        *("default_headers", "extra_headers", "openai_api_type", "validate_base_url"),
        *("timeout", "request_timeout", "max_retries", "stream_chunk_timeout"),
        *("stream", "streaming", "stream_options", "stream_usage", "disable_streaming"),
        *("name", "cache", "callbacks", "verbose", "tags", "metadata", "profile"),
        *("custom_get_token_ids", "tiktoken_model_name", "user", "safety_identifier"),
        *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
    )
)
"""Settings of a client or a call that decide how a reply is fetched, billed or traced, and not what it says.

All others are part of a request's identity, those that nobody knows too: at worst a model is asked again.
So are a server's URL, as models of one name differ from server to server, and what only might decide
an answer (`service_tier`, `store`).
"""

_SENT = (
    "type",
    "role",
    "name",
    "content",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_id",
    "status",
)
"""Parts of a message a provider may see; not its id, token counts, metadata or artifact."""


@dataclass(frozen=True, slots=True)
class ExchangeRules:
    """What an exchange goes by; one per model."""

    label: str
    """What error messages call the model."""
    identity: Mapping[str, JSON]
    """What decides the model's answers beside the request."""
    cache: ResponseCache | None
    budget: CallBudget | None
    policy: RetryPolicy
    timing: Timing
    max_completion: int
    """Most tokens of a reply, to reserve before a call; 0 if unknown."""


class Reached:
    """Remembers whether a provider has ever answered."""

    def __init__(self) -> None:
        self.ever = False


@dataclass(slots=True)
class Attempt:
    """One call to the model; the driver puts the result in."""

    result: ChatResult | None = None


class Exchange:
    """One request under way.

    Attributes:
        reply: The answer, once there is one.
        delay: Seconds to wait before the next attempt.
        failure: How the last attempt failed, if it did.
    """

    def __init__(
        self,
        rules: ExchangeRules,
        reached: Reached,
        messages: Sequence[BaseMessage],
        settings: Mapping[str, Any],
        sample: str = "",
    ) -> None:
        """Look the request up.

        Args:
            rules: What to go by.
            reached: Shared by all exchanges with one model.
            messages: What the model is shown.
            settings: Everything else of the request: tools, stop words, response format.
            sample: Name of the draw, where the same request is to be answered anew under
                another name.
        """
        self.reply: ChatResult | None = None
        self.delay = 0.0
        self.failure: Failure | None = None
        self._rules = rules
        self._reached = reached
        self._meters = current_meters()
        self._node = asking_node()
        self._attempts = 0
        self._reason = ""
        self._started = rules.timing.clock.monotonic()
        self._prompt_tokens = 0
        self._set_aside = (0, 0)
        self._price: Price | None = None
        if rules.budget is not None:
            told = [each for each in settings.get("tools") or () if isinstance(each, dict)]
            self._prompt_tokens = count_tokens_approximately(messages, tools=[*told])
            self._price = rules.budget.price(str(rules.identity.get("model", "")))
        self._request: Request | None = None
        kept_apart = any(meter.ledger is not None for meter in self._meters)
        if rules.cache is not None or kept_apart:
            self._request = Request.now(*request_texts(rules.identity, messages, settings, sample))
        if rules.cache is not None and self._request is not None:
            found = rules.cache.answer(self._request)
            if found is not None:
                result = from_cache(found)
                self._accept(result, tokens=tokens_of(result), hit=True)

    def may_be_made(self) -> bool:
        """Set aside the most tokens and picodollars that the next call may take.

        Returns:
            Whether the caps have room for it; if not, another call that is under way may leave some.

        Raises:
            BudgetExceededError: A cap would be exceeded; the call must not be made.
        """
        prompt, most = self._prompt_tokens, self._rules.max_completion
        self._set_aside = (
            prompt + most,
            0 if self._price is None else self._price.cost(prompt, most),
        )
        budget = self._rules.budget
        return budget is None or budget.reserve(*self._set_aside)

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """Frame one call that may be made: what it returns or raises becomes a reply, a delay or an error.

        Raises:
            InputError: The provider refuses for good, and would refuse everything alike.
            InfrastructureError: The provider failed for longer than the policy bears with.
        """
        reserved, set_aside = self._set_aside
        used = billed = TokenCounts()
        call, self._reason = Attempt(), "cancelled"
        self._attempts += 1
        self.failure = None
        for meter in self._meters:
            meter.count_attempt()
        with sent_calls() as sent:
            try:
                yield call
                assert call.result is not None
                billed = tokens_of(call.result) or TokenCounts()
                used = billed if billed.total else self._estimate(call.result)
                self._reason = ""
                self._replied(settled(call.result))
            except (InputError, InfrastructureError, BudgetExceededError):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a provider's client may raise
                self._failed(classify(error, now=self._rules.timing.clock.time()), error)
            finally:
                # What no client could read has been paid for all the same.
                told = sum((each.tokens or TokenCounts() for each in sent), TokenCounts())
                billed = billed if billed.total else told
                used = used if used.total else billed
                cost = 0 if self._price is None else self._price.of(used)
                if self._rules.budget is not None:
                    self._rules.budget.settle(reserved, used.total, set_aside=set_aside, cost=cost)
                for meter in self._meters:
                    meter.count_billed(billed, cost, node=self._node)
                    meter.note_calls([each.id for each in sent], self._reason, billed)

    def _estimate(self, result: ChatResult) -> TokenCounts:
        """Guess, for the caps, what a call cost whose provider does not say."""
        replies = [generation.message for generation in result.generations]
        return TokenCounts(self._prompt_tokens, count_tokens_approximately(replies))

    def _replied(self, result: ChatResult) -> None:
        failure = failure_in(result)
        if failure is not None:
            self._failed(failure, None, tokens=tokens_of(result))
            return
        self._reached.ever = True
        cache = self._rules.cache
        if cache is not None and self._request is not None and is_complete(result.generations):
            kept = cache.keep(self._request, result.generations)
            if kept is not result.generations:
                result = from_cache(kept)
        self._accept(result, tokens=tokens_of(result))

    def _accept(self, result: ChatResult, *, tokens: TokenCounts | None, hit: bool = False) -> None:
        self.reply = result
        simulated = says_simulated(result)
        request = "" if self._request is None else self._request.key
        for meter in self._meters:
            meter.count_reply(
                tokens, hit=hit, simulated=simulated, node=self._node, request=request
            )

    def _failed(
        self, failure: Failure, error: Exception | None, *, tokens: TokenCounts | None = None
    ) -> None:
        """Turn a failure into an empty reply, a delay, or an error."""
        self.failure = failure
        answered = not failure.unreachable and failure.kind is not FailureKind.UNKNOWN
        self._reached.ever = self._reached.ever or answered
        delay = self._next_delay(failure)
        self.delay = delay or 0.0
        self._reason = failure.reason
        for meter in self._meters:
            meter.count_failure(failure.reason, wait=self.delay, detail=failure.detail)
        if failure.kind is FailureKind.MODEL_BEHAVIOR:
            self._accept(failure_reply(failure), tokens=tokens or TokenCounts())
        elif failure.kind is FailureKind.PROVIDER_PERMANENT:
            raise InputError(self._message("refuses the request", failure)) from error
        elif delay is None:
            attempts = f"{self._attempts} attempt{'s' if self._attempts > 1 else ''}"
            what = f"gave no answer in {attempts} ({failure.reason})"
            raise InfrastructureError(
                self._message(what, failure), reason=failure.reason
            ) from error
        else:
            told = self._message(f"failed ({failure.reason})", failure)
            _logger.warning("%s; asking again in %.1f s", told, delay)

    def _next_delay(self, failure: Failure) -> float | None:
        timing = self._rules.timing
        return self._rules.policy.delay(
            failure,
            attempts=self._attempts,
            elapsed=timing.clock.monotonic() - self._started,
            fraction=timing.fraction(),
            reached=self._reached.ever,
        )

    def _message(self, what: str, failure: Failure) -> str:
        hint = f"; {failure.hint}" if failure.hint else ""
        return f"{self._rules.label} {what}: {failure.detail}{hint}"


def request_texts(
    identity: Mapping[str, JSON],
    messages: Sequence[BaseMessage],
    settings: Mapping[str, Any],
    sample: str = "",
) -> tuple[str, str]:
    """Write a request as LangChain's caches want it: the prompt, and the model with its settings.

    Both are JSON with sorted keys, free of ids, token counts and operational settings, so that a
    conversation that holds replies from the cache asks what it asked the first time. A sample's
    name is a part only where there is one.

    Raises:
        InputError: A setting or a message cannot be written as JSON.
    """
    named = identity_of({name: value for name, value in settings.items() if value is not None})
    model: dict[str, JSON] = {"identity": dict(identity), "settings": named}
    if sample:
        model["sample"] = sample
    try:
        return key_text([_sent(message) for message in messages]), key_text(model)
    except TypeError as error:
        msg = f"a message cannot be part of a cache key: {error}"
        raise InputError(msg) from error


def identity_of(settings: Mapping[str, Any]) -> dict[str, JSON]:
    """Return the settings that are part of a request's identity, without keys and tokens in them.

    Raises:
        InputError: One of them cannot be written as JSON.
    """
    return {name: _plain(name, each) for name, each in settings.items() if name not in OPERATIONAL}


def _sent(message: BaseMessage) -> JSON:
    """Return what a provider gets to see of a message."""
    if isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    # Read from the instance itself: pydantic's look-up of absent names is slow.
    values = vars(message)
    sent: dict[str, JSON] = {name: values[name] for name in _SENT if values.get(name)}
    extra = {name: part for name, part in message.additional_kwargs.items() if part is not None}
    return {**sent, "additional_kwargs": extra} if extra else sent


def _plain(name: str, value: Any) -> JSON:
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value.model_json_schema()
    value = _without_secrets(value)
    try:
        key_text(value)
    except TypeError as error:
        msg = f"model setting {name!r} cannot be part of a cache key: {error}"
        raise InputError(msg) from error
    plain: JSON = value
    return plain


def _without_secrets(value: Any) -> Any:
    """Return a setting without keys: whoever holds one is no part of what is asked."""
    if isinstance(value, Mapping):
        hidden = {"headers"} if value.get("type") == "mcp" else set[str]()
        return {
            name: _without_secrets(part)
            for name, part in value.items()
            if name not in hidden and not (isinstance(part, str) and is_secret_name(str(name)))
        }
    return [_without_secrets(part) for part in value] if isinstance(value, list | tuple) else value
