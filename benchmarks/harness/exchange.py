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
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatResult
from pydantic import BaseModel

from langgraft._core.canonical import JSON
from langgraft._core.effects import Clock, SystemClock
from langgraft._core.errors import BudgetExceededError, InfrastructureError, InputError
from langgraft.benchmarks.harness.budget import CallBudget, Price
from langgraft.benchmarks.harness.cache import ResponseCache, key_text, request_key
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

_OPERATIONAL = frozenset(
    {
        "api_key",
        "callbacks",
        "extra_headers",
        "max_retries",
        "stream",
        "stream_options",
        "stream_usage",
        "streaming",
        "timeout",
    }
)
"""Call settings that do not decide what a model answers."""

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
        self._price: Price | None = None
        if rules.budget is not None:
            self._prompt_tokens = count_tokens_approximately(messages)
            self._price = rules.budget.price(str(rules.identity.get("model", "")))
        self._request = ""
        kept_apart = any(meter.ledger is not None for meter in self._meters)
        if rules.cache is not None or kept_apart:
            self._key = request_texts(rules.identity, messages, settings, sample)
            self._request = request_key(*self._key)
        if rules.cache is not None:
            found = rules.cache.lookup(*self._key)
            if found is not None:
                result = from_cache(found)
                self._accept(result, tokens=tokens_of(result), hit=True)

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """Frame one call: what it returns or raises becomes a reply, a delay or an error.

        Raises:
            BudgetExceededError: A cap would be exceeded; the call must not be made.
            InputError: The provider refuses for good, and would refuse everything alike.
            InfrastructureError: The provider failed for longer than the policy bears with.
        """
        reserved, set_aside = self._reserve()
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
                    meter.count_billed(billed, cost)
                    meter.note_calls([each.id for each in sent], self._reason, billed)

    def _reserve(self) -> tuple[int, int]:
        """Set aside the most tokens and picodollars that the call may take."""
        prompt, most = self._prompt_tokens, self._rules.max_completion
        cost = 0 if self._price is None else self._price.cost(prompt, most)
        if self._rules.budget is not None:
            self._rules.budget.reserve(prompt + most, cost)
        return prompt + most, cost

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
        if cache is not None and is_complete(result.generations):
            kept = cache.keep(*self._key, result.generations)
            if kept is not result.generations:
                result = from_cache(kept)
        self._accept(result, tokens=tokens_of(result))

    def _accept(self, result: ChatResult, *, tokens: TokenCounts | None, hit: bool = False) -> None:
        self.reply = result
        simulated = says_simulated(result)
        for meter in self._meters:
            meter.count_reply(
                tokens, hit=hit, simulated=simulated, node=self._node, request=self._request
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
    named = {
        name: _plain(name, value)
        for name, value in settings.items()
        if name not in _OPERATIONAL and value is not None
    }
    model: dict[str, JSON] = {"identity": dict(identity), "settings": named}
    if sample:
        model["sample"] = sample
    try:
        return key_text([_sent(message) for message in messages]), key_text(model)
    except TypeError as error:
        msg = f"a message cannot be part of a cache key: {error}"
        raise InputError(msg) from error


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
    try:
        key_text(value)
    except TypeError as error:
        msg = f"model setting {name!r} cannot be part of a cache key: {error}"
        raise InputError(msg) from error
    plain: JSON = value
    return plain


# How many calls a server bears -------------------------------------------------------------

_QUEUEING: Final = 4.0
"""Replies that take so many times as long as in the best window have waited in the server's queue."""
_LEAST_WINDOW: Final = 8
"""Calls by which a server is judged, at least."""
_TOO_MANY: Final = frozenset({"rate_limit", "http_408", "http_503", "http_504", "http_529"})
"""Reasons of failures that fewer calls at once may cure (`langgraft.benchmarks.harness.failures`)."""


class CallLimit:
    """Calls in flight to one server, as many as it bears; for threads and event loops alike.

    Additive increase, multiplicative decrease, as DCTCP has it (RFC 8257): each window of calls, as many
    as may be in flight, allows one call more, up to `most`, and takes away half the share of what is
    allowed that the server refused for being too many. So a flood of refusals halves it, and one in
    five, at random, leaves ten. Where replies of a window took over four times as
    long as in the best one, the server makes them wait, and one call fewer is allowed.

    It decides when a call is made, and never what it says.

    Args:
        most: Calls in flight at the most; the limit begins there.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._allowed = float(most)
        self._flying = 0
        self._lock = threading.Condition()
        self._tickets: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._replies = self._refused = 0
        self._seconds = 0.0
        self._best = float("inf")

    @property
    def allowed(self) -> int:
        """Calls that may be in flight now; at least 1."""
        return max(1, int(self._allowed))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait in a thread until one call more may be made, and count it while it is."""
        with self._lock:
            while self._flying >= self.allowed:
                self._lock.wait()
            self._flying += 1
        try:
            yield
        finally:
            self._end()

    @asynccontextmanager
    async def aheld(self) -> AsyncIterator[None]:
        """Do as `held` does, in an event loop."""
        while True:
            with self._lock:
                if self._flying < self.allowed:
                    self._flying += 1
                    break
                loop = asyncio.get_running_loop()
                ticket: asyncio.Future[None] = loop.create_future()
                self._tickets.append((loop, ticket))
            try:
                await ticket
            except asyncio.CancelledError:
                self._wake()  # in case that it was this one's turn
                raise
        try:
            yield
        finally:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._flying -= 1
        self._wake()

    def _wake(self) -> None:
        """Wake as many as there is room for; who finds none waits again."""
        with self._lock:
            room = max(0, self.allowed - self._flying)
            self._lock.notify(room)
            woken, self._tickets = self._tickets[:room], self._tickets[room:]
        for loop, ticket in woken:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, ticket)

    def replied(self, seconds: float) -> None:
        """Count a reply that took so long."""
        with self._lock:
            self._replies += 1
            self._seconds += seconds
            self._judge()
        self._wake()

    def failed(self, failure: Failure) -> None:
        """Take note of a failed call; most failures say nothing of how many a server bears."""
        if failure.reason in _TOO_MANY or "RateLimit" in failure.reason:
            with self._lock:
                self._refused += 1
                self._judge()

    def _judge(self) -> None:
        """Judge a window, once it is full."""
        calls = self._replies + self._refused
        if calls < max(_LEAST_WINDOW, self.allowed):
            return
        step = 1
        if not self._refused:
            mean = self._seconds / calls
            self._best = min(self._best, mean)
            step = -1 if mean > _QUEUEING * self._best else 1
        allowed = self._allowed * (1 - self._refused / calls / 2) + step
        self._allowed = min(float(self.most), max(1.0, allowed))
        self._replies, self._refused, self._seconds = 0, 0, 0.0


class CallLimits:
    """A `CallLimit` for each server that models of a plan ask.

    Args:
        most: Calls in flight to one of them at the most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._of: dict[str, CallLimit] = {}

    def __reduce__(self) -> "tuple[type[CallLimits], tuple[int]]":
        """Send another process the number alone: what it is refused it finds itself."""
        return CallLimits, (self._most,)

    def of(self, server: str) -> CallLimit:
        """Return the limit of a server, by its URL or any other name."""
        with self._lock:
            return self._of.setdefault(server, CallLimit(self._most))


NO_LIMIT: Final = 1 << 30
"""Calls in flight where nobody says how many."""


def _settle(ticket: asyncio.Future[None]) -> None:
    if not ticket.done():
        ticket.set_result(None)
