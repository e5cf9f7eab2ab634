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
    spend,
    tokens_of,
    too_dear,
)
from langgraft.nodes.workbench.log import RunState

PRICES = TokenPrices(prompt=2.0, completion=8.0)


def used(**spent: Any) -> RunState:
    """Return the state of a run that used this."""
    return {"steps": 0, "spent": spend({}, prices=PRICES, **spent)}


@pytest.mark.parametrize(
    ("state", "ended"),
    [
        ({}, ""),
        ({"steps": 4}, ""),
        ({"steps": 5}, "steps"),
        (used(seconds=3600.0), "hours"),
        (used(seconds=3599.0), ""),
        (used(prompt_tokens=250_000, completion_tokens=62_500), "dollars"),
        (used(prompt_tokens=250_000), ""),
    ],
)
def test_ended_by_when_a_limit_is_reached_then_it_is_named(state: RunState, ended: str) -> None:
    """Of several the first in this order; without any, the run may go on."""
    limits = RunLimits(steps=5, hours=1.0, dollars=1.0)
    assert ended_by(limits, state, PRICES) == ended


@pytest.mark.parametrize(("prompt", "dear"), [(0, False), (250_000, False), (250_001, True)])
def test_too_dear_when_a_prompt_costs_more_than_is_left_then_it_is(
    prompt: int, *, dear: bool
) -> None:
    """Also where the run has no step and no time left: a failure may still have to be diagnosed."""
    limits, state = RunLimits(steps=5, hours=1.0, dollars=1.0), used(prompt_tokens=250_000)
    at_its_last_step: RunState = {**state, "steps": 5}
    for each in (state, at_its_last_step, used(prompt_tokens=250_000, seconds=3600.0)):
        assert too_dear(limits, each, PRICES, prompt_tokens=prompt) is dear
    assert not too_dear(RunLimits(), state, PRICES, prompt_tokens=prompt)


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
    with pytest.raises(SettingsError, match=r"give|(is|must be) a (whole )?number"):
        make()
