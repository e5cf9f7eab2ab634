"""How long a run may go on: steps, hours, and money."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import BaseMessage

from langgraft._core.arguments import check_whole
from langgraft._core.errors import SettingsError
from langgraft.nodes.workbench.log import RunState, Spent

NOTHING_SPENT: Final = Spent(seconds=0.0, prompt_tokens=0, completion_tokens=0, dollars=0.0)
_HOUR: Final = 3600.0
_MILLION: Final = 1_000_000
_CHARACTERS: Final = 4
"""Of a token, where nobody counted."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What a run may use.

    Raises:
        SettingsError: A number is out of its range.
    """

    steps: int = 500
    """Actions of the agent (OpenHands as MLE-bench runs it: 500)."""
    hours: float = 24.0
    """Wall clock in model calls and executions, together."""
    dollars: float | None = None
    """For all that models are asked, by one `TokenPrices`; `None` sets no limit."""

    def __post_init__(self) -> None:
        check_whole("RunLimits: steps", self.steps)
        _check_positive("RunLimits: hours", self.hours)
        if self.dollars is not None:
            _check_positive("RunLimits: dollars", self.dollars)


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """What a model costs, in dollars per million tokens.

    `prompt` for what is sent, `completion` for what is replied.

    Raises:
        SettingsError: A price is no number, or below 0.
    """

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for name in ("prompt", "completion"):
            _check_positive(f"TokenPrices: {name}", getattr(self, name), zero=True)

    def cost(self, prompt: int, completion: int = 0) -> float:
        """Return what so many tokens cost, in dollars."""
        return (prompt * self.prompt + completion * self.completion) / _MILLION


def check_limits(limits: RunLimits, prices: TokenPrices | None) -> None:
    """Refuse a limit on money where nobody knows what anything costs.

    Raises:
        SettingsError: `dollars` is set and there are no prices, or one is of another class.
    """
    if not isinstance(limits, RunLimits):
        msg = f"limits={limits!r:.80}: give RunLimits(steps=…, hours=…, dollars=…)"
        raise SettingsError(msg)
    if prices is not None and not isinstance(prices, TokenPrices):
        msg = f"prices={prices!r:.80}: give TokenPrices(prompt=…, completion=…)"
        raise SettingsError(msg)
    if limits.dollars is not None and prices is None:
        msg = (
            f"a limit of {limits.dollars:g} dollars needs to know what tokens cost: give"
            " prices=TokenPrices(prompt=…, completion=…), in dollars per million tokens"
        )
        raise SettingsError(msg)


def ended_by(limits: RunLimits, state: RunState, prices: TokenPrices | None = None) -> str:
    """Say which limit a run has reached: `steps`, `hours`, `dollars`, or nothing.

    Args:
        limits: What it may use.
        state: What it has used.
        prices: What tokens cost, where money is limited.
    """
    if state.get("steps", 0) >= limits.steps:
        return "steps"
    if state.get("spent", NOTHING_SPENT)["seconds"] >= limits.hours * _HOUR:
        return "hours"
    return "dollars" if too_dear(limits, state, prices) else ""


def too_dear(
    limits: RunLimits, state: RunState, prices: TokenPrices | None, *, prompt_tokens: int = 0
) -> bool:
    """Say whether there is no money left, or not what a prompt of so many tokens alone would cost."""
    if limits.dollars is None or prices is None:
        return False
    used = state.get("spent", NOTHING_SPENT)["dollars"]
    return used >= limits.dollars or used + prices.cost(prompt_tokens) > limits.dollars


def spend(
    state: RunState,
    *,
    seconds: float = 0.0,
    prompt_tokens: int = 0,
    completion_tokens: int = 0,
    prices: TokenPrices | None = None,
) -> Spent:
    """Return what a run has used with this on top of it."""
    used = state.get("spent", NOTHING_SPENT)
    cost = 0.0 if prices is None else prices.cost(prompt_tokens, completion_tokens)
    return Spent(
        seconds=used["seconds"] + max(seconds, 0.0),
        prompt_tokens=used["prompt_tokens"] + prompt_tokens,
        completion_tokens=used["completion_tokens"] + completion_tokens,
        dollars=used["dollars"] + cost,
    )


def tokens_of(reply: BaseMessage, prompt: Sequence[BaseMessage]) -> tuple[int, int]:
    """Return the tokens of a prompt and its reply, estimated where the provider tells none."""
    usage: Any = getattr(reply, "usage_metadata", None) or {}
    sent, got = usage.get("input_tokens"), usage.get("output_tokens")
    return (
        sent if isinstance(sent, int) and sent > 0 else estimated_tokens(prompt),
        got if isinstance(got, int) and got >= 0 else estimated_tokens([reply]),
    )


def estimated_tokens(messages: Sequence[BaseMessage]) -> int:
    """Estimate the tokens of messages: a quarter of their characters, and four for each."""
    return sum(_characters(message) // _CHARACTERS + _CHARACTERS for message in messages)


def _characters(message: BaseMessage) -> int:
    calls = getattr(message, "tool_calls", ()) or ()
    return len(str(message.text)) + sum(_written(call.get("args", "")) for call in calls)


def _written(arguments: object) -> int:
    try:
        return len(str(arguments))
    except RecursionError:  # nested deeper than anybody would write
        return 0


def _check_positive(name: str, value: Any, *, zero: bool = False) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        least = "of at least 0" if zero else "above 0"
        msg = f"{name} is a number {least}, got {value!r:.80}"
        raise SettingsError(msg)
