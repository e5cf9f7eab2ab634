"""Money and caps: prices, sums to the last digit, one count for all processes."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import BudgetExceededError, InputError
from langgraft.benchmarks.harness.budget import (
    CallBudget,
    Caps,
    Price,
    price_of,
    read_spent,
    shipped_prices,
)
from langgraft.benchmarks.harness.usage import TokenCounts

MINI = Price(prompt=0.4, cached_prompt=0.1, completion=1.6)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20
    )
)
def test_cost_when_summed_is_exact(replies: list[tuple[int, int, int]]) -> None:
    """A million small sums have no rounding in them: they equal decimal arithmetic."""
    counts = [TokenCounts(prompt, made, min(cached, prompt)) for prompt, made, cached in replies]
    want = sum(
        (each.prompt - each.cached_prompt) * Decimal("0.4")
        + each.cached_prompt * Decimal("0.1")
        + each.completion * Decimal("1.6")
        for each in counts
    )
    assert sum(map(MINI.of, counts)) == want * 10**6


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("openai:gpt-4.1-mini", 0.4),
        ("openai:gpt-4o-2024-08-06", 2.5),
        ("anthropic:claude-sonnet-4-5-20250929", 3),
        ("o3", 2),
        ("openai:one-of-mine", 7),
        ("openai:nobody-knows", None),
    ],
)
def test_price_when_asked_by_a_models_name_is_found(model: str, dollars: float | None) -> None:
    """With or without provider and date of a snapshot; one's own prices come first."""
    found = price_of(model, {"openai:one-of-mine": Price(prompt=7, completion=9)})
    assert (found and found.prompt) == dollars


def test_shipped_prices_when_read_have_a_date() -> None:
    """Prices change, so the table says of when it is."""
    as_of, models = shipped_prices()
    assert as_of >= "2026-11"
    assert all(price.completion >= price.prompt for price in models.values())


def test_reserve_when_money_runs_out_then_says_what_is_left() -> None:
    """Money is set aside at its worst, and stops the call that could exceed the cap."""
    budget = CallBudget(max_dollars=0.01)
    cost = MINI.cost(10_000, 3_000)
    budget.reserve(13_000, cost)
    with pytest.raises(BudgetExceededError, match=r"0\.01 dollars .*0\.0088 spent"):
        budget.reserve(13_000, cost)
    budget.settle(13_000, 500, set_aside=cost, cost=MINI.cost(400, 100))
    assert budget.spent() == {"calls": 1, "tokens": 500, "dollars": 0.00032}


def test_price_when_money_is_capped_and_none_is_known_then_is_asked_for() -> None:
    """A cap that could not be kept is refused before anything is paid."""
    with pytest.raises(InputError, match=r"no price of 'openai:mine' is known: .*prices"):
        CallBudget(max_dollars=1).price("openai:mine")
    assert CallBudget(max_calls=1).price("openai:mine") is None


@pytest.fixture(params=["memory", "file", "another process"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], CallBudget]:
    """Return what gives each of several callers the same budget of 50 calls."""
    path = None if request.param == "memory" else tmp_path / "spent.sqlite"
    budget = CallBudget(max_calls=50, path=path)
    if request.param != "another process":
        return lambda: budget
    return lambda: pickle.loads(pickle.dumps(budget))


def test_reserve_when_many_do_at_once_then_exactly_the_cap_is_granted(
    shared: Callable[[], CallBudget],
) -> None:
    """Threads and processes count together."""

    def ask(_: int) -> int:
        budget, granted = shared(), 0
        for _ in range(10):
            try:
                budget.reserve(1, 2)
            except BudgetExceededError:
                continue
            granted += 1
        return granted

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(20))) == 50
    assert shared().spent()["calls"] == 50


def test_count_when_its_process_dies_then_what_was_set_aside_stays_spent(tmp_path: Path) -> None:
    """A call that a crash cut off may have been billed: it counts, also under another cap."""
    path = tmp_path / "spent.sqlite"
    assert read_spent(path) is None
    first = CallBudget(max_tokens=100, calls=3, tokens=20, path=path)
    first.reserve(30)
    first.close()
    second = CallBudget(max_tokens=100, path=path)
    with pytest.raises(BudgetExceededError, match="50 spent or set aside"):
        second.reserve(51)
    assert read_spent(path) == {"calls": 4, "tokens": 50, "dollars": 0.0}


def test_count_when_its_file_is_cut_then_says_what_to_do_and_never_counts_less(
    tmp_path: Path,
) -> None:
    """A file that lost its end is refused wherever it was cut; nothing missing is read as nothing."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    budget = CallBudget(path=whole)
    budget.reserve(100)
    budget.close()
    data = whole.read_bytes()
    for size in range(1, len(data), 61):
        cut.write_bytes(data[:size])
        with pytest.raises(
            InputError, match=r"cut: not a count of what .* restore it, or delete it"
        ):
            CallBudget(path=cut).spent()
        assert cut.read_bytes() == data[:size]
    cut.write_bytes(data)
    assert CallBudget(path=cut).spent()["calls"] == 1


def test_caps_when_a_command_has_some_then_the_plans_fill_the_rest() -> None:
    """What is typed comes before what the plan says."""
    assert Caps(calls=5).over(Caps(calls=9, dollars=2)) == Caps(calls=5, dollars=2)
