"""Counting what model calls cost, and stopping before they cost too much."""

import asyncio
import contextvars
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import BudgetExceededError
from langgraft.benchmarks.harness.budget import CallBudget
from langgraft.benchmarks.harness.usage import TokenCounts, current_meters, metered


def count_one(tokens: TokenCounts | None = None, *, hit: bool = False) -> None:
    """Count one call as a model does."""
    for meter in current_meters():
        if not hit:
            meter.count_attempt()
            meter.count_billed(tokens or TokenCounts())
        meter.count_reply(tokens, hit=hit)


def test_metered_when_calls_are_made_then_totals_and_billing_are_json() -> None:
    """What was used and what was paid for are told apart, and both can be logged."""
    with metered() as usage:
        count_one(TokenCounts(10, 3, cached_prompt=4, reasoning=1))
        count_one(TokenCounts(10, 3), hit=True)
        count_one(None)
        usage.count_failure("rate_limit", wait=1.5)
    assert json.loads(json.dumps(usage.totals())) == {
        "replies": 3,
        "replies_without_usage": 1,
        "simulated_replies": 0,
        "prompt_tokens": 20,
        "completion_tokens": 6,
        "cached_prompt_tokens": 4,
        "reasoning_tokens": 1,
        "by_node": {},
    }
    assert json.loads(json.dumps(usage.billing())) == {
        "attempts": 2,
        "cache_hits": 1,
        "failures": {"rate_limit": 1},
        "waited_seconds": 1.5,
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "cached_prompt_tokens": 4,
        "reasoning_tokens": 1,
    }


def test_metered_when_scopes_nest_then_the_outer_counts_everything() -> None:
    """An item's meter counts its own calls, its run's meter those of all items."""
    with metered() as outer:
        count_one()
        with metered() as inner:
            count_one()
    count_one()
    assert outer.totals()["replies"] == 2
    assert inner.totals()["replies"] == 1


async def test_metered_when_tasks_run_side_by_side_then_each_counts_its_own() -> None:
    """Items that run at the same time do not count each other's calls."""

    async def item(calls: int) -> int:
        with metered() as usage:
            for _ in range(calls):
                await asyncio.sleep(0)
                count_one()
        replies = usage.totals()["replies"]
        assert isinstance(replies, int)
        return replies

    assert list(await asyncio.gather(item(3), item(5), item(1))) == [3, 5, 1]


def test_metered_when_threads_share_a_scope_then_no_call_is_lost() -> None:
    """Graph nodes may run in threads of a copied context."""
    with metered() as usage, ThreadPoolExecutor(8) as pool:
        for _ in range(400):
            pool.submit(contextvars.copy_context().run, count_one, TokenCounts(1, 1))
    assert usage.totals()["replies"] == usage.totals()["prompt_tokens"] == 400


@given(
    costs=st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1)), max_size=30),
    cap=st.integers(0, 300),
)
def test_budget_when_calls_reserve_before_they_start_then_no_cap_is_exceeded(
    costs: list[tuple[int, float]], cap: int
) -> None:
    """Even with every call under way at once, what is spent stays below the cap."""
    budget = CallBudget(max_tokens=cap, max_calls=10)
    under_way: list[tuple[int, int]] = []
    for most, part in costs:
        with suppress(BudgetExceededError):
            if budget.reserve(most):
                under_way.append((most, int(most * part)))
    assert len(under_way) <= 10
    assert sum(most for most, _ in under_way) <= cap
    for most, used in under_way:
        budget.settle(most, used)
    assert budget.spent() == {
        "calls": len(under_way),
        "tokens": sum(used for _, used in under_way),
        "dollars": 0.0,
    }


def test_budget_when_threads_reserve_at_once_then_exactly_the_cap_is_granted() -> None:
    """Reserving is atomic."""
    budget = CallBudget(max_calls=50)

    def ask(_: int) -> bool:
        try:
            budget.reserve(1)
        except BudgetExceededError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(200))) == 50


def test_budget_when_resumed_then_what_was_spent_before_counts() -> None:
    """A plan cannot exceed its cap by being interrupted; the message says what to do."""
    budget = CallBudget(max_calls=3, calls=3)
    with pytest.raises(BudgetExceededError, match=r"cap of 3 calls .* 3 spent .* higher cap"):
        budget.reserve(0)
