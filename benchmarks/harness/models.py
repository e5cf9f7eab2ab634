"""Chat models as the harness uses them: cached, capped, retried and metered.

`make_model` turns a string of `init_chat_model` into one; `MeteredChatModel` wraps any chat
model. What happens to a request:

1. A kept reply of the response cache is returned; it costs nothing and no cap stops it.
2. A cap that would be exceeded raises `BudgetExceededError` before the call.
3. The inner model is called; its client must not retry by itself. A call has a deadline, and a
   reply a most size, which of OpenAI's family is all that is read: see `replies`. A model that is made
   to stream (`streaming`) is read as it streams.
4. A transient failure is repeated after a while, as `RetryPolicy` says, and raises
   `InfrastructureError` when patience ends. A permanent one (key, model name, unsupported
   parameter) raises `InputError`. Where the *model* failed (context exceeded, refusal, content
   filter), the reply is an `AIMessage` without content whose `response_metadata["failure"]` holds
   `kind`, `reason` and `detail`: it is scored as wrong, and never repeated in silence.
5. Tokens are counted into the `metered()` scopes around the call.

A request whose metadata names a sample (`langgraft.nodes.dialogue`) shares its answers with
requests of that name alone: at temperature above zero, two drafts of a search are two draws.

A truncated reply (`finish_reason` `length`) is returned as it is, and so is an empty one; neither
is kept. Streaming a wrapped model yields the whole reply as one chunk: half of one could not be repeated.
"""

import asyncio
import errno
import http.client
import os
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import BaseTool
from pydantic import Field, PrivateAttr

from langgraft._core.arguments import check_no_secrets
from langgraft._core.errors import InputError, SettingsError
from langgraft._core.texts import in_a_line
from langgraft.benchmarks.harness.budget import CALL_SECONDS, REPLY_BYTES, SPENT, CallBudget, Caps
from langgraft.benchmarks.harness.cache import CacheMode, ResponseCache
from langgraft.benchmarks.harness.exchange import (
    Exchange,
    ExchangeRules,
    Reached,
    RetryPolicy,
    Timing,
    identity_of,
)
from langgraft.benchmarks.harness.failures import one_line
from langgraft.benchmarks.harness.limits import NO_LIMIT, CallLimit, CallLimits
from langgraft.benchmarks.harness.log import PlanLog, read_events, run_folder
from langgraft.benchmarks.harness.replies import Streamed, bounded_clients, not_larger
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    Plan,
    RunSpec,
    Study,
    check_server_url,
)
from langgraft.nodes.dialogue import SAMPLE

TIMEOUT_SECONDS: Final = 300.0
"""How long a server may stay silent within one call, by default."""

_ROOM_SECONDS: Final = 0.25
"""How often a call looks whether others have left it room under a cap."""

T = TypeVar("T")

_OPENAI_FAMILY = frozenset({"openai", "azure_openai"})


class MeteredChatModel(BaseChatModel):
    """A chat model behind the harness's cache, caps, retries and meter."""

    inner: BaseChatModel
    """The model that answers. Its client must not retry: `max_retries=0`."""
    identity: Mapping[str, Any]
    """JSON values that decide what `inner` answers beside the request: name, URL, sampling.

    Two models of one identity share their kept replies. Settings that only decide how a
    reply is fetched (time limits, retries, keys) do not belong here.
    """
    responses: ResponseCache | None = None
    """Where replies are kept; `None` keeps none."""
    budget: CallBudget | None = None
    """Caps shared by all models of a plan."""
    retry: RetryPolicy = Field(default_factory=RetryPolicy)
    """How patient to be."""
    timing: Timing = Field(default_factory=Timing)
    """Clock and sleep."""
    limits: CallLimits = Field(default_factory=lambda: CallLimits(NO_LIMIT))
    """How many calls may be in flight to each server, of all models that share it."""
    max_completion: int = 0
    """Most tokens of a reply, set aside before a call under a cap on tokens; 0 if unknown."""
    call_seconds: float | None = CALL_SECONDS
    """How long a call may take in all; then it has failed, and may be repeated.

    `None` is for models of this process, which nothing keeps waiting: a synchronous call with a
    deadline takes a thread of its own.
    """

    reply_bytes: int = REPLY_BYTES
    """Most bytes of a reply; more is a failed call."""

    _reached: Reached = PrivateAttr(default_factory=Reached)

    def model_post_init(self, context: Any, /) -> None:
        """Keep LangChain's own cache out, whose key is no good here, and nested retries.

        Raises:
            SettingsError: The client of `inner` retries by itself.
        """
        super().model_post_init(context)
        self.cache = False
        if getattr(self.inner, "max_retries", 0) != 0:
            msg = (
                f"{self._label()} is set to retry by itself, which would multiply with the "
                "harness's own retries: build it with max_retries=0"
            )
            raise SettingsError(msg)

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type  # noqa: SLF001 - a wrapper passes on what subclasses define

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return dict(self.identity)

    @property
    def _rules(self) -> ExchangeRules:
        return ExchangeRules(
            label=self._label(),
            identity=self.identity,
            cache=self.responses,
            budget=self.budget,
            policy=self.retry,
            timing=self.timing,
            max_completion=self.max_completion,
        )

    def _label(self) -> str:
        name = self.identity.get("model", self._llm_type)
        url = self.identity.get("base_url")
        return f"model {name!r} at {url}" if url else f"model {name!r}"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.inner._get_ls_params(stop=stop, **kwargs)  # noqa: SLF001

    def _exchange(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        settings: Mapping[str, Any],
        caller: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None,
    ) -> Exchange:
        sample = "" if caller is None else str(caller.metadata.get(SAMPLE, ""))
        return Exchange(self._rules, self._reached, messages, {**settings, "stop": stop}, sample)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        exchange = self._exchange(messages, stop, kwargs, run_manager)
        while exchange.reply is None:
            if exchange.delay:
                self.timing.sleep(exchange.delay)
            if self.inner.rate_limiter:
                self.inner.rate_limiter.acquire()
            call = partial(self._ask, messages, stop, run_manager, **kwargs)
            with self._limit.held():
                while not exchange.may_be_made():
                    self.timing.sleep(_ROOM_SECONDS)
                with self._watched(exchange), exchange.attempt() as attempt:
                    attempt.result = _within(self.call_seconds, call)
        return exchange.reply

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        exchange = self._exchange(messages, stop, kwargs, run_manager)
        while exchange.reply is None:
            if exchange.delay:
                await self.timing.asleep(exchange.delay)
            if self.inner.rate_limiter:
                await self.inner.rate_limiter.aacquire()
            async with self._limit.aheld():
                while not exchange.may_be_made():
                    await self.timing.asleep(_ROOM_SECONDS)
                with self._watched(exchange), exchange.attempt() as attempt:
                    async with _deadline(self.call_seconds):
                        attempt.result = await self._aask(messages, stop, run_manager, **kwargs)
        return exchange.reply

    def _ask(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        run_manager: CallbackManagerForLLMRun | None,
        **kwargs: Any,
    ) -> ChatResult:
        """Call the inner model, which may be made to stream: then its reply is put together here."""
        if not getattr(self.inner, "streaming", False):
            result = self.inner._generate(messages, stop, run_manager, **kwargs)  # noqa: SLF001
            return not_larger(result, self.reply_bytes)
        reply = Streamed(self.reply_bytes)
        for chunk in self.inner._stream(messages, stop, **kwargs):  # noqa: SLF001
            reply.take(chunk)
        return reply.whole()

    async def _aask(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        run_manager: AsyncCallbackManagerForLLMRun | None,
        **kwargs: Any,
    ) -> ChatResult:
        if not getattr(self.inner, "streaming", False):
            result = await self.inner._agenerate(messages, stop, run_manager, **kwargs)  # noqa: SLF001
            return not_larger(result, self.reply_bytes)
        reply = Streamed(self.reply_bytes)
        async for chunk in self.inner._astream(messages, stop, **kwargs):  # noqa: SLF001
            reply.take(chunk)
        return reply.whole()

    @property
    def _limit(self) -> CallLimit:
        url = self.identity.get("base_url")
        return self.limits.of(str(url or self._llm_type))

    @contextmanager
    def _watched(self, exchange: Exchange) -> Iterator[None]:
        """Tell the limit how a call ended."""
        clock = self.timing.clock
        started = clock.monotonic()
        try:
            yield
        finally:
            if exchange.failure is not None:
                self._limit.failed(exchange.failure)
            elif exchange.reply is not None:
                self._limit.replied(clock.monotonic() - started)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools as the inner model does.

        Args:
            tools: What it may call.
            tool_choice: What it has to call.
            parallel_tool_calls: Left out where the inner model does not take it.
            kwargs: Others that the inner model takes.

        Raises:
            NotImplementedError: The inner model takes no tools, or binds them in another way
                than by call settings.
        """
        from langgraft.nodes.dialogue import takes_one_call  # noqa: PLC0415  (loads `langchain`)

        if parallel_tool_calls is not None and takes_one_call(self.inner):
            kwargs["parallel_tool_calls"] = parallel_tool_calls
        bound = self.inner.bind_tools(tools, tool_choice=tool_choice, **kwargs)
        if not isinstance(bound, RunnableBinding) or bound.bound is not self.inner:
            msg = f"{self._label()}: its way of binding tools cannot be wrapped"
            raise NotImplementedError(msg)
        return self.bind(**bound.kwargs)


_SHARED: Final = ("responses", "budget", "retry", "timing", "limits")


def shared_by(model: BaseChatModel | None) -> dict[str, Any]:
    """Return cache, caps and patience of a model, for `make_model` of another: an agent's own."""
    if not isinstance(model, MeteredChatModel):
        return {}
    return {shared: getattr(model, shared) for shared in _SHARED}


def make_model(
    name: str,
    *,
    base_url: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    api_key: str | None = None,
    timeout: float = TIMEOUT_SECONDS,
    call_seconds: float = CALL_SECONDS,
    reply_bytes: int = REPLY_BYTES,
    responses: ResponseCache | None = None,
    budget: CallBudget | None = None,
    retry: RetryPolicy | None = None,
    timing: Timing | None = None,
    limits: CallLimits | None = None,
) -> MeteredChatModel:
    """Build the model a plan names. Nothing is sent before the first call.

    | setting | meaning |
    | --- | --- |
    | `name` | what `init_chat_model` understands: `openai:gpt-4.1-mini` |
    | `base_url` | another server of the same kind: OpenRouter, vLLM, Ollama's `/v1`; holds no secret |
    | `temperature`, `max_tokens`, `seed` | sampling; `None` leaves the provider's default |
    | `settings` | others of the client that decide what is answered: `{"reasoning_effort": "low"}` |
    | `api_key` | default: the provider's environment variable |
    | `timeout` | seconds a server may stay silent within a call |
    | `call_seconds` | seconds a call may take in all |
    | `reply_bytes` | most bytes of a reply; only of OpenAI's family are no more read |
    | `responses`, `budget`, `retry`, `timing`, `limits` | see `MeteredChatModel` |

    With `base_url` and no key anywhere the key is `none`, as local servers need no other; and so it is
    where `responses` only replays, for any provider.

    Raises:
        InputError: No such provider, its package or key is missing, or a setting is no good.
    """
    provider = name.partition(":")[0]
    _check_url("base_url", base_url)
    sampling = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
    _check_settings(settings or {}, sampling)
    given: dict[str, Any] = {key: value for key, value in sampling.items() if value is not None}
    given |= settings or {}
    fetching: dict[str, Any] = {"timeout": timeout, "max_retries": 0}
    if base_url is not None:
        fetching["base_url"] = base_url
    if provider in _OPENAI_FAMILY:
        # Off by default with a base_url of one's own: streamed tokens would count as zero.
        fetching["stream_usage"] = True
        fetching |= bounded_clients(base_url, reply_bytes, call_seconds, _running_loop())
    replays = responses is not None and responses.mode is CacheMode.READ_ONLY
    key = "none" if replays else api_key or _keyless(provider, base_url)
    if key is not None:
        fetching["api_key"] = key
    inner = _construct(name, {**given, **fetching})
    return MeteredChatModel(
        inner=inner,
        identity={
            "model": name,
            "base_url": _endpoint(inner, base_url),
            **sampling,
            **({"settings": named} if (named := identity_of(settings or {})) else {}),
        },
        responses=responses,
        budget=budget,
        retry=retry or RetryPolicy(),
        timing=timing or Timing(),
        limits=limits or CallLimits(NO_LIMIT),
        max_completion=max_tokens or 0,
        call_seconds=call_seconds,
        reply_bytes=reply_bytes,
    )


_OURS: Final = frozenset({"base_url", "max_retries", "timeout", "stream_usage", "http_client"})
"""Settings of a client that decide how a reply is fetched: they are the harness's."""


def _check_settings(settings: Mapping[str, Any], sampling: Mapping[str, Any]) -> None:
    for name in settings:
        if name in sampling or name in {"model", "model_provider"}:
            msg = f"model_settings: {name!r} has a field of its own"
        elif name in _OURS or name.startswith("http_"):
            msg = f"model_settings: {name!r} decides how replies are fetched, and is the harness's"
        elif "token_provider" in name.lower():
            msg = f"model_settings: {name!r} may be a secret; give it in the provider's variable"
        else:
            continue
        raise InputError(msg)
    try:
        check_no_secrets(settings, "model_settings")
    except ValueError as error:
        raise InputError(str(error)) from error


def _check_url(what: str, url: str | None) -> None:
    try:
        if url is not None:
            check_server_url(url)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from error


def _keyless(provider: str, base_url: str | None) -> str | None:
    if provider == "openai" and base_url is not None and not os.environ.get("OPENAI_API_KEY"):
        return "none"
    return None


def _construct(name: str, settings: Mapping[str, Any]) -> BaseChatModel:
    # Imported here: `langchain` and the provider's client take a second to load.
    from langchain.chat_models import init_chat_model  # noqa: PLC0415

    provider, colon, model = name.partition(":")
    if not colon or not provider or not model:
        msg = f"model {name!r} is not of the form provider:model, such as 'openai:gpt-4.1-mini'"
        raise InputError(msg)
    try:
        inner: BaseChatModel = init_chat_model(model, model_provider=provider, **settings)
    except ImportError as error:
        msg = f"model {name!r}: {one_line(error)}"
        raise InputError(msg) from error
    except ValueError as error:
        msg = f"model {name!r}: {_refusal(error, provider)}"
        raise InputError(msg) from error
    except Exception as error:
        msg = f"model {name!r} cannot be set up: {one_line(error)}"
        raise InputError(msg) from error
    return inner


def _refusal(error: ValueError, provider: str) -> str:
    said = one_line(error)
    if said.startswith("Unsupported"):
        return f"{provider!r} is no provider that init_chat_model knows"
    return said


def _endpoint(inner: BaseChatModel, base_url: str | None) -> str | None:
    """Return where an inner model sends its requests, as far as it says.

    It may have the URL from the environment, and replies of different servers must never
    be mistaken for each other.
    """
    if base_url is not None:
        return base_url.rstrip("/")
    client = getattr(inner, "root_client", None)
    url = getattr(client, "base_url", None) or getattr(inner, "base_url", None)
    _check_url("the server's URL in the environment", str(url) if url else None)
    return str(url).rstrip("/") if url else None


def silence(plan: Plan) -> float:
    """Return the seconds a server may stay silent: as long as a call, where that is more than usual.

    A reply that is not streamed comes whole, after all that a model reasons before it.
    """
    return plan.call_seconds if plan.call_seconds > CALL_SECONDS else TIMEOUT_SECONDS


RESPONSES: Final = "responses.sqlite"
"""File of a run directory that keeps the replies of a real model."""


def kept_replies(place: Path) -> Path:
    """Return the file of kept replies that is meant by a path: it, or that of a run directory."""
    return place / RESPONSES if place.is_dir() else place


def real_model(
    plan: Plan,
    responses: ResponseCache | None,
    budget: CallBudget | None = None,
    limits: CallLimits | None = None,
    api_key: str | None = None,
) -> MeteredChatModel:
    """Make the model that a plan names; nothing is sent.

    Raises:
        InputError: It cannot be set up.
    """
    return make_model(
        plan.model,
        base_url=plan.base_url,
        temperature=plan.temperature,
        max_tokens=plan.max_tokens,
        settings=plan.model_settings,
        api_key=api_key,
        timeout=silence(plan),
        call_seconds=plan.call_seconds,
        reply_bytes=plan.reply_bytes,
        responses=responses,
        budget=budget,
        limits=limits,
    )


def plan_budget(plan: Plan, out: Path, caps: Caps, part: str = "") -> CallBudget:
    """Return what counts, and caps, what a plan's real models are asked.

    What earlier commands spent on the directory counts already.

    Args:
        plan: The plan, with its prices.
        out: The run directory, which need not be there yet.
        caps: The caps.
        part: Of a shard its name: it counts for itself.

    Raises:
        InputError: Money is capped, and the price of the plan's model is not known.
    """
    calls = tokens = 0
    path = _of_part(out / SPENT, part)
    if not path.exists() and not part and (out / "manifest.json").exists():
        for run in PlanLog(out).graph:  # it was begun when nothing was counted in a file
            for event in read_events(run_folder(out, run) / "events.jsonl"):
                cost = event.get("data", {}).get("usage", {})
                calls += cost.get("attempts", 0)
                tokens += cost.get("prompt_tokens", 0) + cost.get("completion_tokens", 0)
    budget = CallBudget(
        max_calls=caps.calls,
        max_tokens=caps.tokens,
        max_dollars=caps.dollars,
        calls=calls,
        tokens=tokens,
        prices=plan.prices,
        path=path,
    )
    budget.price(plan.model)
    return budget


def _of_part(path: Path, part: str) -> Path:
    """Return a file of a shard's own: SQLite files must not be shared between machines."""
    return path.with_stem(f"{path.stem}-{part}") if part else path


class PlanModels:
    """Makes the models of a plan's runs; what it opens in another process it opens there anew.

    Args:
        study: Makes simulated ones.
        plan: The plan.
        budget: Caps on what a real one is asked.
        limits: How many calls may be in flight to each server.
        responses: Opens what keeps the replies of a real one.
    """

    def __init__(
        self,
        study: Study[Any],
        plan: Plan,
        budget: CallBudget | None,
        limits: CallLimits | None,
        *,
        responses: Callable[[], ResponseCache],
    ) -> None:
        self._study = study
        self._plan = plan
        self.responses = responses
        self.budget = budget
        self.limits = limits
        self._lock = Lock()
        self._made: MeteredChatModel | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Send no lock and nothing open to another process."""
        return {**self.__dict__, "_lock": None, "_made": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become what was sent."""
        self.__dict__.update({**state, "_lock": Lock()})

    def __call__(self, _plan: Any, run: RunSpec) -> BaseChatModel:
        """Return the model of a run.

        Raises:
            InputError: It cannot be set up.
        """
        if self._plan.model == SIMULATED:
            return self._study.simulated_model(self._plan, run)
        with self._lock:
            # Not earlier: opening makes the file, and the directory must be known to be ours.
            if self._made is None:
                self._made = real_model(self._plan, self.responses(), self.budget, self.limits)
        return self._made

    def over(
        self, budget: CallBudget | None, responses: Callable[[], ResponseCache]
    ) -> "PlanModels":
        """Return the same over another count and cache, as on a machine that has neither's file."""
        return PlanModels(self._study, self._plan, budget, self.limits, responses=responses)

    def close(self) -> None:
        """Close what is open."""
        if self._made is not None and self._made.responses is not None:
            self._made.responses.close()
        if self.budget is not None:
            self.budget.close()


_PROBE_SECONDS: Final = 5.0
"""How long a server may take to accept a connection."""
_NOWHERE: Final = frozenset((errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN))


def check_reachable(model: MeteredChatModel) -> None:
    """Ask the server of a model for its list of models, once; any answer will do, and none is paid for.

    Raises:
        InputError: Nothing listens there.
    """
    url = model.identity.get("base_url")
    if not url:
        return  # where this provider's client asks, only it knows
    try:
        with urllib.request.urlopen(f"{url}/models", timeout=_PROBE_SECONDS):  # noqa: S310  (`check_server_url`)
            return
    except urllib.error.HTTPError:
        return
    except urllib.error.URLError as error:
        why = error.reason
        refused = isinstance(why, ConnectionRefusedError | TimeoutError | socket.gaierror)
        if not refused and getattr(why, "errno", None) not in _NOWHERE:
            return
        msg = (
            f"the model server {url} cannot be reached ({in_a_line(str(why), 200)}): start it, or correct"
            " the address (--base-url, or `base_url`); nothing was asked"
        )
        raise InputError(msg) from error
    except (OSError, ValueError, http.client.HTTPException):
        return  # it listens, and the client knows better what it speaks


def _check_answers(model: MeteredChatModel, out: Path) -> None:
    """Refuse a server that cannot be reached, unless the run directory needs no more answers.

    Raises:
        InputError: Nothing listens there.
    """
    try:
        check_reachable(model)
    except InputError:
        if not ((out / "manifest.json").exists() and PlanLog(out).complete):
            raise


@contextmanager
def run_models(
    study: Study[Any],
    plan: Plan,
    out: Path,
    budget: CallBudget | None = None,
    limits: CallLimits | None = None,
    *,
    part: str = "",
    replay: Path | None = None,
) -> Iterator[PlanModels]:
    """Say how the model of a run is made; a real one is checked before anything is written.

    Args:
        study: Makes simulated ones.
        plan: The plan.
        out: The run directory, where replies of a real one are kept.
        budget: Caps on what a real one is asked.
        limits: How many calls may be in flight to each server.
        part: Of a shard its name: it keeps replies for itself.
        replay: Kept replies, or a run directory that has some: nothing else is answered, and nothing
            is asked.

    Raises:
        InputError: The model cannot be set up, or there are no replies to replay.
    """
    replayed = None
    if replay is not None:
        if plan.model == SIMULATED:
            raise InputError("a simulated model is asked anew: there is nothing to replay")
        replayed = ResponseCache(kept_replies(replay), CacheMode.READ_ONLY)
        replayed.close()
    if plan.model != SIMULATED:
        tried = real_model(plan, replayed)
        if replayed is None:
            _check_answers(tried, out)
    if replayed is None:
        place = _of_part(out / RESPONSES, part)
        responses = partial(ResponseCache, place, most_bytes=plan.cache_bytes)
    else:
        responses = partial(ResponseCache, replayed.path, replayed.mode)
    models = PlanModels(study, plan, budget, limits, responses=responses)
    try:
        yield models
    finally:
        models.close()


@asynccontextmanager
async def _deadline(seconds: float | None) -> AsyncIterator[None]:
    """Cancel what takes longer.

    Raises:
        TimeoutError: It did.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError as error:
        if seconds is None or not limit.expired():
            raise
        raise TimeoutError(_late(seconds)) from error


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _within(seconds: float | None, call: Callable[[], T]) -> T:
    """Call in a thread, and leave it to itself where it takes longer; call here without a limit.

    A client that reads what drips cannot be stopped from outside; `bounded_clients` ends it.

    Raises:
        TimeoutError: It did.
    """
    if seconds is None:
        return call()
    ended: Future[T] = Future()

    def work() -> None:
        try:
            ended.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where it was called for
            ended.set_exception(error)

    Thread(target=copy_context().run, args=(work,), daemon=True).start()
    try:
        return ended.result(seconds)
    except TimeoutError as error:
        if ended.done():
            raise
        raise TimeoutError(_late(seconds)) from error


def _late(seconds: float) -> str:
    return f"no whole reply in {seconds:g} s"
