"""Measures of what memory retrieved, on banks and queries small enough to work out by hand."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.canonical import JSON
from langgraft.benchmarks.continual.cells import Bank, RunResults
from langgraft.benchmarks.continual.retrieval import (
    MEASURES,
    SHARES,
    Measures,
    effective_number,
    measure,
)
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.memory.model import Add, MemoryDelta, MemoryItem

OWN, OTHER = "babyai/find_obj", "babyai/action_obj_door"


def item(name: str, domain: str, text: str = "look around") -> MemoryItem:
    """Make an item."""
    return MemoryItem(
        id=name,
        text=text,
        type="other",
        source_domain=domain,
        episode_id=name,
        success=True,
        order_index=0,
        key=f"key {text}",
    )


def bank_of(*items: MemoryItem, lessons: Sequence[str] = ("look", "go")) -> Bank:
    """Make a bank, an episode for each item."""
    bank = Bank()
    for each in items:
        bank.take([MemoryDelta((Add(each),))], lessons)
    return bank


def evaluation(*episodes: Sequence[Sequence[str]], tied: int = 1) -> RunResults:
    """Make a run: for each episode, what each of its retrievals found; ten tokens an item."""
    ids = tuple(f"{OWN}/{number}" for number in range(len(episodes)))
    factors: dict[str, JSON] = {"replicate": 0, "domain": OWN, "task": "B"}
    results: list[dict[str, JSON]] = [
        {
            "task_id": name,
            "success": True,
            "recalls": [
                {"item_ids": list(found), "tokens": 10 * len(found), "tied": tied * bool(found)}
                for found in episode
            ],
        }
        for name, episode in zip(ids, episodes, strict=True)
    ]
    return RunResults(RunSpec("continual", "r", factors, ids), tuple(results))


def measured(run: RunResults, bank: Bank) -> Measures:
    """Measure a run."""
    return measure(run, bank, 0.5).measures


BANK = bank_of(item("a", OWN), item("b", OWN, "go far"), item("c", OTHER), item("d", OTHER))


def test_measures_when_worked_out_by_hand_then_are_these() -> None:
    """Three queries over a bank of four: two are won by a, one retrieves nothing of its own."""
    found = measured(evaluation([["a", "c"]], [["a", "b"]], [["c", "d"]]), BANK)
    assert found.coverage_bank == 1.0
    assert found.coverage_slots == pytest.approx(4 / 6)
    assert found.top1_share == pytest.approx(2 / 3)
    assert found.top1_effective == pytest.approx(1 / ((2 / 3) ** 2 + (1 / 3) ** 2))
    assert found.own_share == pytest.approx(3 / 6)
    assert found.bank_own == 0.5
    assert (found.items, found.tokens, found.insights) == (2.0, 20.0, 2.0)
    assert (found.queries, found.bank_items, found.empty_share) == (3.0, 4.0, 0.0)
    assert found.key_diversity == 0.5


def test_measures_when_an_episode_asks_again_then_each_retrieval_is_a_query() -> None:
    """Two retrievals in one episode weigh as much as two episodes, and their tokens add up."""
    found = measured(evaluation([["a"], ["b"]], [["a"]]), BANK)
    assert found.queries == 3.0
    assert found.top1_share == pytest.approx(2 / 3)
    assert found.tokens == 10.0
    assert found.tokens_per_episode == 15.0


def test_measures_when_all_queries_are_served_alike_then_contexts_have_no_diversity() -> None:
    """One item for every query: collapse in its purest form, however varied the bank."""
    found = measured(evaluation([["b"]], [["b"]], [["b"]]), BANK)
    assert found.context_diversity == 0.0
    assert found.top1_share == 1.0
    assert found.top1_effective == 1.0
    assert found.coverage_bank == 0.25


def test_measures_when_every_query_gets_the_same_varied_items_then_only_items_are_diverse() -> None:
    """What varies within a context and not between contexts shows in one measure alone."""
    found = measured(evaluation([["a", "b"]], [["a", "b"]]), BANK)
    assert found.context_diversity == pytest.approx(4 / 6)
    assert found.between_contexts == 0.0


def test_measures_when_contexts_share_no_word_then_diversity_is_one() -> None:
    """Two contexts without a word in common are as varied as can be."""
    assert measured(evaluation([["a"]], [["b"]]), BANK).context_diversity == 1.0


def test_measures_when_nothing_is_retrieved_then_counts_as_empty_and_not_as_zero() -> None:
    """Empty recalls have a rate of their own; what has no value has none."""
    found = measured(evaluation([[]], [["a"]]), BANK)
    assert found.empty_share == 0.5
    assert found.items == 0.5
    assert found.top1_share == 1.0
    nothing = measured(evaluation([[]], [[]]), BANK)
    assert nothing.own_share is None
    assert nothing.top1_share is None
    assert nothing.context_diversity is None
    assert nothing.coverage_bank == 0.0


def test_tie_rate_when_receipts_do_not_tell_then_is_not_known() -> None:
    """A count of 0 is not a tie of none."""
    assert measured(evaluation([["a"]], tied=0), BANK).tie_rate is None
    assert measured(evaluation([["a"]], tied=1), BANK).tie_rate == 0.0
    assert measured(evaluation([["a"]], tied=3), BANK).tie_rate == 1.0


def test_insights_when_an_item_bundles_lessons_then_all_of_them_count() -> None:
    """A bundle of two lessons is two insights; a raw trajectory has none."""
    lessons = ("- look around", "- go far")
    bundle = bank_of(item("a", OWN, "\n".join(lessons)), lessons=lessons)
    raw = bank_of(item("a", OWN, "I look around"), lessons=lessons)
    assert measured(evaluation([["a"]]), bundle).insights == 2.0
    assert measured(evaluation([["a"]]), raw).insights == 0.0


def test_insights_when_lessons_are_kept_twice_then_each_item_counts_what_it_holds() -> None:
    """Adaptive granularity keeps a bundle beside the single lessons; neither takes from the other."""
    lessons = ("look around", "go far")
    items = (item("both", OWN, "\n".join(lessons)), item("one", OWN, lessons[0]))
    bank = Bank()
    bank.take([MemoryDelta(tuple(Add(each) for each in items))], lessons)
    assert measured(evaluation([["both"]]), bank).insights == 2.0
    assert measured(evaluation([["one"]]), bank).insights == 1.0


def test_measures_when_an_item_is_in_no_bank_then_only_what_is_known_counts() -> None:
    """What memory made up on the way has no family and no text, and takes no part in either."""
    found = measured(evaluation([["a", "made-up"]]), BANK)
    assert found.own_share == 1.0
    assert found.items == 2.0


def test_own_shares_when_asked_per_item_then_average_an_episodes_retrievals() -> None:
    """An episode's share is over all items it was given."""
    run = measure(evaluation([["a", "c"], ["c", "d"]], [["c"]]), BANK, None)
    assert run.own == {f"{OWN}/0": 0.25, f"{OWN}/1": 0.0}
    assert run.top1 == "c"


QUERIES = st.lists(
    st.lists(st.lists(st.sampled_from("abcd"), max_size=4, unique=True), max_size=3),
    min_size=1,
    max_size=6,
)


@given(QUERIES)
def test_measures_when_anything_is_retrieved_then_shares_are_shares(
    episodes: list[list[list[str]]],
) -> None:
    """Every share and every diversity lies in 0..1, and so many items are effective at most."""
    found = measured(evaluation(*episodes), BANK)
    bounded = SHARES | {"key_diversity", "context_diversity", "between_contexts"}
    for name in MEASURES:
        value = getattr(found, name)
        assert value is None or value >= 0
        assert value is None or name not in bounded or value <= 1 + 1e-12
    if found.top1_effective is not None and found.top1_share is not None:
        assert 1 / found.top1_share - 1e-9 <= found.top1_effective <= 4 + 1e-9


@given(QUERIES, st.randoms(use_true_random=False))
def test_measures_when_episodes_are_shuffled_then_stay_the_same(
    episodes: list[list[list[str]]], random: st.DataObject
) -> None:
    """No measure depends on the order in which test items are played."""
    shuffled = list(episodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a `random.Random`
    first, second = measured(evaluation(*episodes), BANK), measured(evaluation(*shuffled), BANK)
    for name in MEASURES:
        assert getattr(first, name) == pytest.approx(getattr(second, name), abs=1e-9)


@pytest.mark.parametrize(
    ("counts", "number"), [([], None), ([5], 1.0), ([1, 1], 2.0), ([3, 1], 1.6), ([0, 2, 2], 2.0)]
)
def test_effective_number_when_counted_then_is_as_many_as_equal_ones(
    counts: list[int], number: float | None
) -> None:
    """Equal counts are as many as they are; unequal ones are fewer."""
    assert effective_number(counts) == number
