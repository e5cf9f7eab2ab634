"""What a run may use, and what it has used."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langgraft._core.errors import SettingsError
from langgraft.nodes.workbench.limits import (
    RunLimits,
    TokenPrices,
    check_limits,
    ended_by,
    left,
    spend,
    tokens_of,
)
from langgraft.nodes.workbench.state import RunState

PRICES = TokenPrices(prompt=2.0, completion=8.0)


def used(**spent: Any) -> RunState:
    """Return the state of a run that used this."""
    return {"steps": 0, "spent": spend({}, prices=PRICES, **spent)}


@pytest.mark.parametrize(
    ("state", "prompt", "ended"),
    [
        ({}, 0, ""),
        ({"steps": 4}, 0, ""),
        ({"steps": 5}, 0, "steps"),
        (used(seconds=3600.0), 0, "hours"),
        (used(seconds=3599.0), 0, ""),
        (used(prompt_tokens=250_000, completion_tokens=62_500), 0, "dollars"),
        (used(prompt_tokens=250_000), 250_000, ""),
        (used(prompt_tokens=250_000), 250_001, "dollars"),
    ],
)
def test_ended_by_when_a_limit_is_reached_then_it_is_named(
    state: RunState, prompt: int, ended: str
) -> None:
    """The prompt that comes next costs money before its reply does."""
    limits = RunLimits(steps=5, hours=1.0, dollars=1.0)
    assert ended_by(limits, state, prices=PRICES, prompt_tokens=prompt) == ended


def test_left_when_more_was_used_than_allowed_then_nothing_is() -> None:
    """A call that was under way may have gone beyond."""
    state: RunState = {"steps": 7, "spent": spend({}, seconds=10_000)}
    assert left(RunLimits(steps=5, hours=1.0), state) == (0, 0.0)


def test_tokens_of_when_nobody_counted_then_they_are_estimated() -> None:
    """A limit on money holds for a provider that tells no usage."""
    reply = AIMessage("x" * 400, tool_calls=[{"name": "a", "args": {"c": "y" * 400}, "id": "1"}])
    sent, got = tokens_of(reply, [HumanMessage("x" * 4000)])
    assert sent == 1004
    assert got > 200
    counted = AIMessage(
        "x", usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    )
    assert tokens_of(counted, [HumanMessage("x")]) == (7, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RunLimits(steps=0),
        lambda: RunLimits(steps=True),
        lambda: RunLimits(hours=float("inf")),
        lambda: RunLimits(hours=0),
        lambda: RunLimits(dollars=0.0),
        lambda: TokenPrices(prompt=-1.0, completion=0.0),
        lambda: TokenPrices(prompt=1.0, completion="2"),  # type: ignore[arg-type]
        lambda: check_limits(RunLimits(dollars=1.0), None),
        lambda: check_limits(5, None),  # type: ignore[arg-type]
    ],
)
def test_limits_when_they_cannot_be_then_they_are_refused(make: Any) -> None:
    """Before a model is paid, with what to give instead."""
    with pytest.raises(SettingsError, match=r"give|is a (whole )?number"):
        make()
