"""What failed calls mean, and how long the harness waits before it asks again."""

import asyncio
import errno
import json
import socket
import ssl
from email.utils import formatdate

import httpx
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAuthenticationError,
    ModelTimeoutError,
)

from langgraft._core.errors import BudgetExceededError
from langgraft.benchmarks.harness.exchange import RetryPolicy
from langgraft.benchmarks.harness.failures import (
    Failure,
    FailureKind,
    classify,
    one_line,
    retry_after,
)

NOW = 1_700_000_000.0
REQUEST = httpx2.Request("POST", "http://example.test/v1/chat/completions")
TRANSIENT = Failure(FailureKind.PROVIDER_TRANSIENT, "http_503")


def status_error(
    status: int, *, message: str = "no", code: str | None = None, **headers: str
) -> openai.APIStatusError:
    """Make the error the client raises for an HTTP status."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx2.Response(status, headers=named, request=REQUEST)
    body = {"message": message, "code": code}
    return openai.APIStatusError(f"Error code: {status} - {message}", response=response, body=body)


def caused(error: Exception, cause: BaseException) -> Exception:
    """Give an error a cause."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("status", "code", "kind", "reason"),
    [
        (408, None, FailureKind.PROVIDER_TRANSIENT, "http_408"),
        (409, None, FailureKind.PROVIDER_TRANSIENT, "http_409"),
        (429, "rate_limit_exceeded", FailureKind.PROVIDER_TRANSIENT, "rate_limit"),
        (500, None, FailureKind.PROVIDER_TRANSIENT, "http_500"),
        (502, None, FailureKind.PROVIDER_TRANSIENT, "http_502"),
        (503, None, FailureKind.PROVIDER_TRANSIENT, "http_503"),
        (529, None, FailureKind.PROVIDER_TRANSIENT, "http_529"),
        (429, "insufficient_quota", FailureKind.PROVIDER_PERMANENT, "quota"),
        (402, None, FailureKind.PROVIDER_PERMANENT, "quota"),
        (401, "invalid_api_key", FailureKind.PROVIDER_PERMANENT, "credentials"),
        (403, None, FailureKind.PROVIDER_PERMANENT, "credentials"),
        (404, "model_not_found", FailureKind.PROVIDER_PERMANENT, "not_found"),
        (400, "unsupported_parameter", FailureKind.PROVIDER_PERMANENT, "http_400"),
        (501, None, FailureKind.PROVIDER_PERMANENT, "http_501"),
        (400, "context_length_exceeded", FailureKind.MODEL_BEHAVIOR, "context_length"),
        (413, None, FailureKind.MODEL_BEHAVIOR, "context_length"),
        (400, "content_filter", FailureKind.MODEL_BEHAVIOR, "content_filter"),
        (403, "input_flagged", FailureKind.MODEL_BEHAVIOR, "content_filter"),
    ],
)
def test_classify_when_the_error_has_a_status_then_status_and_code_decide(
    status: int, code: str | None, kind: FailureKind, reason: str
) -> None:
    """Each HTTP status means what the table of the evaluation notes says."""
    failure = classify(status_error(status, code=code), now=NOW)
    assert (failure.kind, failure.reason) == (kind, reason)


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (BudgetExceededError("cap"), FailureKind.BUDGET_EXCEEDED, "budget"),
        (asyncio.CancelledError(), FailureKind.CANCELLED, "cancelled"),
        (KeyboardInterrupt(), FailureKind.CANCELLED, "cancelled"),
        (ContextOverflowError("long"), FailureKind.MODEL_BEHAVIOR, "context_length"),
        (openai.ContentFilterFinishReasonError(), FailureKind.MODEL_BEHAVIOR, "content_filter"),
        (openai.APITimeoutError(REQUEST), FailureKind.PROVIDER_TRANSIENT, "connection"),
        (httpx.ReadError("reset"), FailureKind.PROVIDER_TRANSIENT, "connection"),
        (httpx2.RemoteProtocolError("cut"), FailureKind.PROVIDER_TRANSIENT, "connection"),
        (ConnectionResetError("reset"), FailureKind.PROVIDER_TRANSIENT, "connection"),
        (TimeoutError("slow"), FailureKind.PROVIDER_TRANSIENT, "connection"),
        (OSError(errno.ENETUNREACH, "no net"), FailureKind.PROVIDER_TRANSIENT, "connection"),
        (json.JSONDecodeError("cut", "{", 1), FailureKind.PROVIDER_TRANSIENT, "broken_reply"),
        (
            KeyError("Response missing 'choices' key"),
            FailureKind.PROVIDER_TRANSIENT,
            "broken_reply",
        ),
        (
            ValueError({"code": 429, "message": "busy"}),
            FailureKind.PROVIDER_TRANSIENT,
            "rate_limit",
        ),
        (ModelTimeoutError("slow"), FailureKind.PROVIDER_TRANSIENT, "ModelTimeoutError"),
        (
            ModelAuthenticationError("key"),
            FailureKind.PROVIDER_PERMANENT,
            "ModelAuthenticationError",
        ),
        (httpx2.UnsupportedProtocol("ftp"), FailureKind.PROVIDER_PERMANENT, "bad_url"),
        (OSError(errno.ENOSPC, "disk full"), FailureKind.UNKNOWN, "OSError"),
        (ValueError("a bug"), FailureKind.UNKNOWN, "ValueError"),
    ],
)
def test_classify_when_the_error_has_no_status_then_its_class_decides(
    error: BaseException, kind: FailureKind, reason: str
) -> None:
    """Transport, parsing and LangChain errors are told apart; what is none of them is unknown."""
    failure = classify(error, now=NOW)
    assert (failure.kind, failure.reason) == (kind, reason)


@pytest.mark.parametrize(
    ("cause", "kind", "unreachable"),
    [
        (httpx2.ConnectError("refused"), FailureKind.PROVIDER_TRANSIENT, True),
        (socket.gaierror(-2, "unknown host"), FailureKind.PROVIDER_TRANSIENT, True),
        (httpx2.ReadError("reset"), FailureKind.PROVIDER_TRANSIENT, False),
        (ssl.SSLCertVerificationError("self-signed"), FailureKind.PROVIDER_PERMANENT, False),
        (httpx2.LocalProtocolError("illegal header"), FailureKind.PROVIDER_PERMANENT, False),
    ],
)
def test_classify_when_a_client_says_connection_error_then_its_cause_decides(
    cause: Exception, kind: FailureKind, unreachable: bool
) -> None:
    """The client's one connection error covers mistyped URLs, lost connections and bad keys."""
    failure = classify(caused(openai.APIConnectionError(request=REQUEST), cause), now=NOW)
    assert (failure.kind, failure.unreachable) == (kind, unreachable)
    assert str(cause).split("]")[-1].strip() in failure.detail


def test_classify_when_the_provider_names_a_wait_then_it_is_read() -> None:
    """`Retry-After` arrives with the failure."""
    assert classify(status_error(429, retry_after="121"), now=NOW).retry_after == 121.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, 90.0),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, 0.0),
        # A clock of ours that is an hour behind, or a day ahead, changes no wait.
        (
            {
                "retry-after": formatdate(NOW + 3_690, usegmt=True),
                "date": formatdate(NOW + 3_600, usegmt=True),
            },
            90.0,
        ),
        (
            {
                "retry-after": formatdate(NOW - 86_310, usegmt=True),
                "date": formatdate(NOW - 86_400, usegmt=True),
            },
            90.0,
        ),
        ({"retry-after": formatdate(NOW + 90, usegmt=True), "date": "yesterday"}, 90.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after_when_written_in_any_form_then_it_is_in_seconds(
    headers: dict[str, str], seconds: float | None
) -> None:
    """Seconds, milliseconds and dates are understood; nonsense is ignored."""
    assert retry_after(headers, now=NOW) == seconds


@given(
    attempts=st.integers(1, 10_000),
    fraction=st.floats(0, 1, exclude_max=True),
    wait=st.none() | st.floats(0, 300),
)
def test_delay_when_transient_then_it_is_jittered_below_the_cap_and_never_before_retry_after(
    attempts: int, fraction: float, wait: float | None
) -> None:
    """The jitter spans the whole exponential window, on top of what the provider asks for."""
    failure = Failure(FailureKind.PROVIDER_TRANSIENT, "rate_limit", retry_after=wait)
    delay = RetryPolicy().delay(
        failure, attempts=attempts, elapsed=0.0, fraction=fraction, reached=True
    )
    assert delay is not None
    window = min(60.0, 2.0 ** min(attempts - 1, 10))
    assert (wait or 0.0) <= delay <= (wait or 0.0) + window


@given(elapsed=st.floats(0, 2_000), fraction=st.floats(0, 1, exclude_max=True))
def test_delay_when_it_would_end_after_the_budget_then_there_is_none(
    elapsed: float, fraction: float
) -> None:
    """No attempt begins later than 15 minutes after the first."""
    delay = RetryPolicy().delay(
        TRANSIENT, attempts=9, elapsed=elapsed, fraction=fraction, reached=True
    )
    assert delay is None or elapsed + delay <= 900
    assert delay is not None or elapsed + 60 > 900


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind != "provider_transient"])
def test_delay_when_not_transient_then_there_is_none(kind: FailureKind) -> None:
    """Only transient failures are repeated."""
    failure = Failure(kind, "x")
    delay = RetryPolicy().delay(failure, attempts=1, elapsed=0.0, fraction=0.5, reached=True)
    assert delay is None


def test_delay_when_nothing_ever_answered_then_patience_is_a_minute() -> None:
    """A mistyped URL is not waited for as long as a provider that was there before."""
    failure = Failure(FailureKind.PROVIDER_TRANSIENT, "connection", unreachable=True)
    policy = RetryPolicy()
    asked = {"attempts": 9, "elapsed": 100.0, "fraction": 0.0}
    assert policy.delay(failure, reached=False, **asked) is None  # type: ignore[arg-type]
    assert policy.delay(failure, reached=True, **asked) is not None  # type: ignore[arg-type]


def test_one_line_when_the_message_is_long_and_broken_then_it_fits_a_line() -> None:
    """Messages for people are one line of bounded length, and never empty."""
    assert one_line(ValueError("a\n  b")) == "a b"
    assert len(one_line(ValueError("x" * 1000))) == 300
    assert one_line(TimeoutError()) == "TimeoutError"
