"""What can go wrong with a call of the model server, and when: faults, and scripts of them.

    seed: 7
    faults:
      - {kind: status, status: 429, headers: {retry-after: "1"}, rate: 0.02}
      - {kind: reset, rate: 0.01}                    # of all calls, drawn by seed and number
      - {kind: stall, name: hangs, at: [3, 17]}      # of the fourth and the eighteenth call

A call meets one fault at the most: one that names its number comes before one that is drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, Self, TypeAlias

from pydantic import ConfigDict, Field, model_validator

from langgraft._core.arguments import Settings, validation_as
from langgraft._core.canonical import seeded_fraction
from langgraft._core.errors import InputError
from langgraft._core.untrusted import load_yaml, read_most

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
    DRIP = "drip"
    """The body comes byte by byte for `seconds`, and then the rest of it."""
    DRIP_HEAD = "drip_head"
    """The head of the response comes byte by byte for `seconds`, and nothing else."""
    RESET = "reset"
    """The connection is reset (TCP RST) before any reply."""
    TRUNCATED_JSON = "truncated_json"
    """A complete HTTP reply whose JSON ends in the middle."""
    BODY = "body"
    """A response with `body`, `status` and `headers`, whatever they are."""
    HTML = "html"
    """A web page with status 200, as a misconfigured proxy sends."""
    ERROR_IN_REPLY = "error_in_reply"
    """Status 200, and an error with `code` and `message` in the body."""
    EMPTY_CHOICES = "empty_choices"
    """A well-formed reply without a choice."""
    FINISH_REASON = "finish_reason"
    """A good reply with `finish_reason` set to `reason`."""
    WRONG_MODEL = "wrong_model"
    """A good reply that names another model."""
    MISSING_USAGE = "missing_usage"
    """A good reply without token counts."""
    ODD_USAGE = "odd_usage"
    """A good reply whose token counts are none: a text, and less than zero."""
    LARGE = "large"
    """A good reply after `size` bytes of blanks, which JSON allows, or of empty lines, as streams do."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one call. `kind` is what goes wrong."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", hide_input_in_errors=True)

    kind: FaultKind
    status: Annotated[int, Field(ge=200, lt=600)] = 500
    """HTTP status, for `STATUS` and `BODY`."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Extra response headers, for `STATUS` and `BODY`."""
    body: bytes = b""
    """For `BODY`."""
    code: str | None = None
    """The provider's error code, for `STATUS`: `context_length_exceeded` …"""
    message: str = "fault injected on purpose"
    """The provider's error text, for `STATUS`."""
    seconds: Annotated[float, Field(ge=0)] = STALL_SECONDS
    """How long `SLOW_FIRST_BYTE`, `DRIP` and `DRIP_HEAD` take."""
    reason: str = "length"
    """The reported reason, for `FINISH_REASON`: `length`, `content_filter` …"""
    size: Annotated[int, Field(ge=0)] = 50_000_000
    """Bytes, for `LARGE`."""
    name: str = ""
    """What the call log calls it; empty: the kind."""
    rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    """In a script: the share of calls that it takes."""
    at: frozenset[int] = frozenset()
    """In a script: the numbers of calls that it takes, from 0."""

    @property
    def label(self) -> str:
        """What the call log calls it."""
        return self.name or self.kind.value


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


class FaultScript(Settings):
    """Which calls meet which fault: a `FaultPlan`, the same whenever it is asked.

    `faults` are tried in their order.

        script = FaultScript(seed=7, faults=(Fault(FaultKind.RESET, rate=0.05),))
        async with serve(model, faults=script) as server: ...

    Raises:
        SettingsError: The rates add up to more than 1, or a fault has neither a rate nor numbers.
    """

    seed: int = 0
    """Picks the calls that rates take."""
    faults: tuple[Fault, ...] = ()

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        idle = next((each for each in self.faults if not (each.rate or each.at)), None)
        if idle is not None:
            msg = f"fault {idle.label!r} has neither `rate` nor `at`"
            raise ValueError(msg)
        if (total := sum(each.rate for each in self.faults)) > 1 + 1e-9:
            msg = f"the rates add up to {total:g}, and must not to more than 1"
            raise ValueError(msg)
        return self

    def __call__(self, call: int) -> Fault | None:
        """Return the fault of a call, by its number from 0."""
        named = next((each for each in self.faults if call in each.at), None)
        left = seeded_fraction("fault", self.seed, call)
        for each in self.faults if named is None else ():
            left -= each.rate
            if left < 0:
                return each
        return named


def read_faults(path: Path) -> FaultScript:
    """Read a script of faults, YAML or JSON.

    Raises:
        InputError: It cannot be read, or asks for something that there is not.
    """
    try:
        data = load_yaml(read_most(path).decode())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    with validation_as(InputError, f"{path}: ", FaultScript.model_fields):
        return FaultScript.model_validate(data)
