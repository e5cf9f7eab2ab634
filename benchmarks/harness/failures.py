"""Why a model call failed, and whether asking again can help."""

import asyncio
import errno
import json
import math
import socket
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

from langchain_core.exceptions import ContextOverflowError, ModelError
from pydantic import ValidationError

from langgraft._core.confidential import without_secrets
from langgraft._core.errors import BudgetExceededError, causes
from langgraft._core.texts import in_a_line


class FailureKind(StrEnum):
    """What a failed call means for the item and for the plan."""

    PROVIDER_TRANSIENT = "provider_transient"
    """Asking again may help: rate limits, 5xx, lost connections, broken replies."""
    PROVIDER_PERMANENT = "provider_permanent"
    """No repetition helps: bad key, unknown model, unsupported parameter. Stops the plan."""
    MODEL_BEHAVIOR = "model_behavior"
    """The model's own doing: context exceeded, refusal, filter. Scored as wrong, not retried."""
    BUDGET_EXCEEDED = "budget_exceeded"
    """A cap of ours was reached. Stops the plan, which can go on with a higher cap."""
    CANCELLED = "cancelled"
    """Somebody stopped the call."""
    UNKNOWN = "unknown"
    """None of the above: not retried, not scored."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call, classified."""

    kind: FailureKind
    reason: str
    """Short name of the reason: `rate_limit`, `context_length` …"""
    detail: str = ""
    """What the provider said, in one line."""
    hint: str = ""
    """What a person can do about it."""
    retry_after: float | None = None
    """Seconds the provider asks to wait."""
    unreachable: bool = False
    """No sign that a model server listens there at all."""


TOLD: Final = 300
"""Characters that are told of what a provider said."""
_READ: Final = 8 * TOLD
"""Characters that are looked at for it: twice as many as can be shown, so that no key is cut in two unseen."""


class RefusedReplyError(Exception):
    """A reply that came whole, and is a failure by what it says."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


def classify(error: BaseException, *, now: float) -> Failure:
    """Say what kind of failure an exception of a model call is.

    Understood are LangChain's model errors, every client error that carries an HTTP status
    (`openai` and all clients built alike), transport errors of `httpx` and `httpx2`, and
    Python's own network errors. None of the clients is imported for it.

    Args:
        error: What the call raised.
        now: Seconds since the epoch, to read a `Retry-After` that is a date.
    """
    detail = one_line(error)
    if isinstance(error, BudgetExceededError):
        return Failure(FailureKind.BUDGET_EXCEEDED, "budget", detail)
    if not isinstance(error, Exception) or isinstance(error, asyncio.CancelledError):
        return Failure(FailureKind.CANCELLED, "cancelled", detail)
    for link in causes(error):  # clients wrap it
        if isinstance(link, RefusedReplyError):
            return link.failure
    return (
        _model_behavior(error, detail)
        or _in_a_reply(error)
        or _http_status(error, detail, now)
        or _broken_reply(error, detail)
        or _network(error, detail)
        or _langchain(error, detail)
        or Failure(FailureKind.UNKNOWN, type(error).__name__, detail)
    )


def one_line(error: BaseException) -> str:
    """Return the message of an exception in one printable line of at most `TOLD` characters, without keys."""
    return in_a_line(without_secrets(str(error)[:_READ]), TOLD) or type(error).__name__


# Errors that clients raise, while parsing, about a reply that came back as it should.
_REPLY_ERRORS = {
    "ContentFilterFinishReasonError": "content_filter",
    "LengthFinishReasonError": "length",
    "OpenAIRefusalError": "refusal",
}

# LangChain makes no message of a call whose arguments are JSON and no object.
_MESSAGES = ("AIMessage", "AIMessageChunk")

_CONTEXT_SIGNS = (
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "exceed_context_size",
    "prompt is too long",
    "input is too long",
)
_FILTER_SIGNS = ("content_filter", "content_policy", "responsibleaipolicy", "moderation", "flagged")
_QUOTA_SIGNS = ("insufficient_quota", "billing_hard_limit", "exceeded your current quota")


def _model_behavior(error: Exception, detail: str) -> Failure | None:
    if isinstance(error, ContextOverflowError):
        return Failure(FailureKind.MODEL_BEHAVIOR, "context_length", detail)
    if isinstance(error, ValidationError) and error.title in _MESSAGES:
        return Failure(FailureKind.MODEL_BEHAVIOR, "unreadable", detail)
    for cls in type(error).__mro__:
        if cls.__name__ in _REPLY_ERRORS:
            return Failure(FailureKind.MODEL_BEHAVIOR, _REPLY_ERRORS[cls.__name__], detail)
    return None


def _in_a_reply(error: Exception) -> Failure | None:
    """Classify what LangChain raises for an `error` in a reply with status 200."""
    told = error.args[0] if isinstance(error, ValueError) and error.args else None
    return reported(told) if isinstance(told, Mapping) else None


def _http_status(error: Exception, detail: str, now: float) -> Failure | None:
    """Classify by HTTP status, with a look at the text where a status means several things."""
    status = _status_of(error)
    if status is None:
        return None
    # The body says more than the message: some providers give their code there only.
    said = f"{error} {getattr(error, 'code', '')} {getattr(error, 'body', '')}".lower()
    wait = retry_after(_headers_of(error), now=now)
    return _of_status(status, said, detail, wait)


def _of_status(status: int, said: str, detail: str, wait: float | None = None) -> Failure:
    if status in (400, 403, 413, 422) and any(sign in said for sign in _FILTER_SIGNS):
        return Failure(FailureKind.MODEL_BEHAVIOR, "content_filter", detail)
    if status == 413 or (status in (400, 422) and any(sign in said for sign in _CONTEXT_SIGNS)):  # noqa: PLR2004
        return Failure(FailureKind.MODEL_BEHAVIOR, "context_length", detail)
    if status == 402 or (status == 429 and any(sign in said for sign in _QUOTA_SIGNS)):  # noqa: PLR2004
        return _permanent("quota", detail, "check the account's credit")
    if status in (408, 409, 425, 429) or (status >= 500 and status not in (501, 505)):  # noqa: PLR2004
        reason = "rate_limit" if status == 429 else f"http_{status}"  # noqa: PLR2004
        return Failure(FailureKind.PROVIDER_TRANSIENT, reason, detail, retry_after=wait)
    if status in (401, 403):
        return _permanent("credentials", detail, "check the API key and what it may use")
    if status == 404:  # noqa: PLR2004
        return _permanent("not_found", detail, "check the model's name and base_url")
    return _permanent(f"http_{status}", detail, "check the model's settings")


_STATUS_OF_CODE = {
    "authentication_error": 401,
    "content_filter": 400,
    "context_length_exceeded": 400,
    "insufficient_quota": 402,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
}
"""What providers write where others have the status of HTTP."""


def reported(problem: object) -> Failure:
    """Classify an error that stands in a reply with status 200, as OpenRouter sends it.

    Its code may be a status, as a number or in digits, or a word. What nobody knows may pass.
    """
    code, message = None, problem
    if isinstance(problem, Mapping):
        code, message = problem.get("code") or problem.get("type"), problem.get("message")
    detail = in_a_line(without_secrets(str(message or problem)[:_READ]), TOLD)
    status = code
    if isinstance(code, str):
        digits = code.isascii() and code.isdigit()
        status = int(code[:3]) if digits else _STATUS_OF_CODE.get(code)
    if isinstance(status, int) and status in range(400, 600):
        return _of_status(status, f"{code} {message}".lower(), detail)
    return Failure(FailureKind.PROVIDER_TRANSIENT, "provider_error", detail)


def _permanent(reason: str, detail: str, hint: str) -> Failure:
    return Failure(FailureKind.PROVIDER_PERMANENT, reason, detail, hint)


def _status_of(error: Exception) -> int | None:
    """Return the HTTP status of an error."""
    reply = getattr(error, "response", None)
    candidates = [getattr(error, "status_code", None), getattr(reply, "status_code", None)]
    failing = range(400, 600)
    return next((code for code in candidates if isinstance(code, int) and code in failing), None)


def _headers_of(error: Exception) -> Mapping[str, str]:
    headers = getattr(getattr(error, "response", None), "headers", None)
    return headers if isinstance(headers, Mapping) else {}


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Read how many seconds a provider asks to wait: `retry-after-ms`, seconds, or a date.

    Args:
        headers: Response headers; names are looked up in lower case.
        now: Seconds since the epoch, for a date in a response that does not say when it was sent: its
            own `date` goes before our clock, which may be wrong by a day.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    until, sent = _date(value), _date(headers.get("date"))
    return None if until is None else max(0.0, until - (now if sent is None else sent))


def _date(text: str | None) -> float | None:
    try:
        return None if text is None else parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


# LangChain raises plain ValueError, KeyError and TypeError for replies it cannot read.
_BROKEN_SIGNS = (
    "Unexpected response type",
    "Response missing 'choices'",
    "null value for 'choices'",
)


def _broken_reply(error: Exception, detail: str) -> Failure | None:
    unreadable = isinstance(error, json.JSONDecodeError)
    validation = "APIResponseValidationError" in {cls.__name__ for cls in type(error).__mro__}
    if unreadable or validation or any(sign in str(error) for sign in _BROKEN_SIGNS):
        return broken_reply(detail)
    return None


def broken_reply(detail: str) -> Failure:
    """Return the failure of a reply that is no chat completion."""
    return Failure(
        FailureKind.PROVIDER_TRANSIENT,
        "broken_reply",
        detail,
        "check that base_url leads to an OpenAI-compatible server",
        unreachable=True,
    )


_MISUSE = {"UnsupportedProtocol", "InvalidURL", "LocalProtocolError"}
_CONNECT = {"ConnectError", "ConnectTimeout"}


def _network(error: Exception, detail: str) -> Failure | None:
    """Classify by what lies under a client's "connection error"."""
    chain = list(causes(error))
    names = {type(link).__name__ for link in chain}
    root = one_line(chain[-1])
    said = detail if root == detail else f"{detail} ({root})"
    if names & _MISUSE:
        return _permanent("bad_url", said, "check base_url and the API key's characters")
    if any(isinstance(link, ssl.SSLCertVerificationError) for link in chain):
        return _permanent("certificate", said, "check base_url and the machine's certificates")
    if not any(_is_transport(link) for link in chain):
        return None
    refused = any(isinstance(link, ConnectionRefusedError | socket.gaierror) for link in chain)
    unreachable = refused or bool(names & _CONNECT)
    hint = "check base_url and the network" if unreachable else ""
    return Failure(
        FailureKind.PROVIDER_TRANSIENT, "connection", said, hint, unreachable=unreachable
    )


_UNREACHABLE = {errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH}


def _is_transport(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in _UNREACHABLE:
        return True
    return isinstance(error, _transport_errors())


def _transport_errors() -> tuple[type[BaseException], ...]:
    """List the network errors that can occur: an error's module must have been imported."""
    found: list[type[BaseException]] = [ConnectionError, TimeoutError, ssl.SSLError]
    found.append(socket.gaierror)
    for name in ("httpx", "httpx2"):
        module = sys.modules.get(name)
        if module is not None:
            found.append(module.TransportError)
    openai = sys.modules.get("openai")
    if openai is not None:
        found.append(openai.APITimeoutError)
    return tuple(found)


def _langchain(error: Exception, detail: str) -> Failure | None:
    """Classify the model errors of LangChain's other providers."""
    if not isinstance(error, ModelError):
        return None
    # A client may wrap any bug into its connection error; a real one has been seen by now.
    if any(isinstance(link, RuntimeError | TypeError | ValueError) for link in causes(error)):
        return None
    reason = type(error).__name__
    if error.is_retryable:
        return Failure(FailureKind.PROVIDER_TRANSIENT, reason, detail)
    return _permanent(reason, detail, "check the model's name, key and settings")
