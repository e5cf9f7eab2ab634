"""How model servers fail: the faults a served model can be told to show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

STALL_SECONDS = 3600.0
"""How long a stalled reply would last; the client or the end of the server cuts it short."""


class FaultKind(StrEnum):
    """The ways a call can go wrong."""

    STATUS = "status"
    """An HTTP error: `status`, `headers` and `code` say which."""
    SLOW_FIRST_BYTE = "slow_first_byte"
    """A good reply that begins only after `seconds`."""
    STALL = "stall"
    """The body stops in the middle and never goes on."""
    RESET = "reset"
    """The connection is reset (TCP RST) before any reply."""
    TRUNCATED_JSON = "truncated_json"
    """A complete HTTP reply whose JSON ends in the middle."""
    HTML = "html"
    """A web page with status 200, as a misconfigured proxy sends."""
    EMPTY_CHOICES = "empty_choices"
    """A well-formed reply without a choice."""
    FINISH_REASON = "finish_reason"
    """A good reply with `finish_reason` set to `reason`."""
    MISSING_USAGE = "missing_usage"
    """A good reply without token counts."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call."""

    kind: FaultKind
    status: int = 500
    """HTTP status, for `STATUS`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Extra response headers, for `STATUS`."""
    code: str | None = None
    """The provider's error code, for `STATUS`: `context_length_exceeded` …"""
    message: str = "fault injected on purpose"
    """The provider's error text, for `STATUS`."""
    seconds: float = STALL_SECONDS
    """How long `SLOW_FIRST_BYTE` waits."""
    reason: str = "length"
    """The reported reason, for `FINISH_REASON`: `length`, `content_filter` …"""


def rate_limited(**headers: str) -> Fault:
    """Return a 429; `_` in a header name stands for `-`: `rate_limited(retry_after="1")`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault(
        FaultKind.STATUS,
        status=429,
        headers=named,
        code="rate_limit_exceeded",
        message="too many requests",
    )


def failing(status: int, *, code: str | None = None, message: str = "the server failed") -> Fault:
    """Return an HTTP error."""
    return Fault(FaultKind.STATUS, status=status, code=code, message=message)


FaultPlan: TypeAlias = "Sequence[Fault | None] | Callable[[int], Fault | None]"
"""Faults of the first calls in order (`None`: none), or a function of the call's index."""
