"""Remedies: folding, MMR and quotas, alone and together."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_item

from langgraft.memory.model import BankContent, MemoryItem
from langgraft.memory.providers import InsightMemory, InsightSettings
from langgraft.memory.providers.retrieval import RetrievalSettings, choose
from langgraft.memory.rankers import BM25
from langgraft.memory.rankers.diversity import TfIdf

Ranking = Sequence[tuple[MemoryItem, float]]

TEXTS = ["look around", "look around now", "open each door", "look around", "wait and see"]


def ranking(texts: Sequence[str], domains: str = "") -> list[tuple[MemoryItem, float]]:
    """Make a ranking of texts, the best first; each letter is the domain of one."""
    letters = domains or "a" * len(texts)
    return [
        (make_item(f"i{n}", text=text, source_domain=letters[n]), float(len(texts) - n))
        for n, text in enumerate(texts)
    ]


def chosen(found: Ranking, limit: int, **fields: object) -> list[int]:
    """Choose for domain `a`."""
    remedies = RetrievalSettings.model_validate({"ranker": BM25(), "top_k": limit, **fields})
    return choose(found, remedies, domain="a", limit=limit)


def test_folding_when_texts_say_the_same_leaves_the_best_of_them() -> None:
    """What differs moves up; with nothing left that differs, fewer are recalled."""
    found = ranking(TEXTS)
    assert chosen(found, 3) == [0, 1, 2]
    assert chosen(found, 3, fold_above=1) == [0, 1, 2]
    assert chosen(found, 3, fold_above=0.6) == [0, 2, 4]
    assert chosen(found, 5, fold_above=0.6) == [0, 2, 4]
    assert chosen(ranking(["same"] * 4), 3, fold_above=1) == [0]


def test_mmr_when_set_prefers_what_differs_and_answers_in_the_order_of_scores() -> None:
    """λ says how much; what is chosen comes best first all the same."""
    found = ranking(TEXTS)
    assert chosen(found, 2, mmr=1) == [0, 1]
    assert chosen(found, 2, mmr=0.5) == [0, 2]
    assert chosen(found, 2, mmr=0) == [0, 2]
    assert chosen(found, 3, mmr=0) == [0, 2, 4]


@pytest.mark.parametrize(
    ("share", "expected"),
    [(None, [0, 1, 2]), (0.3, [0, 1, 3]), (0.5, [0, 3, 4]), (1.0, [0, 3, 4])],
)
def test_quota_when_others_match_better_keeps_slots_for_the_asking_domain(
    share: float | None, expected: list[int]
) -> None:
    """At least that share, rounded up, as long as there are any; the rest goes by rank."""
    found = ranking(["x", "y", "z", "u", "v"], "bbbaa")
    assert chosen(found, 3, own_domain_share=share) == expected


def test_quota_when_the_asking_domain_ranks_well_anyway_changes_nothing() -> None:
    """A quota is a floor, not a ceiling."""
    found = ranking(["x", "y", "z", "u"], "aaab")
    assert chosen(found, 3, own_domain_share=0.4) == chosen(found, 3) == [0, 1, 2]


def test_remedies_when_together_do_not_fold_the_quota_away() -> None:
    """A better match of another domain does not take the asking domain's slot by likeness."""
    found = ranking(["look around", "wait", "look around", "open each door"], "bbab")
    assert chosen(found, 2, own_domain_share=0.5, fold_above=0.9) == [1, 2]


remedies = st.fixed_dictionaries(
    {
        "fold_above": st.none() | st.sampled_from([0.3, 0.7, 1.0]),
        "mmr": st.none() | st.sampled_from([0.0, 0.4, 1.0]),
        "own_domain_share": st.none() | st.sampled_from([0.2, 0.5, 1.0]),
    }
)
words = st.lists(st.sampled_from(["look", "door", "key", "wait"]), max_size=3).map(" ".join)


@settings(deadline=None)
@given(
    st.lists(words, min_size=1, max_size=8),
    st.text("ab", min_size=8, max_size=8),
    st.integers(1, 5),
    remedies,
)
def test_choice_when_any_remedies_are_set_keeps_every_one_of_their_promises(
    texts: list[str],
    domains: str,
    limit: int,
    remedies: dict[str, float | None],
) -> None:
    """Never too many, none twice, none alike, the quota kept, and no slot left empty idly."""
    found = ranking(texts, domains)
    kept = chosen(found, limit, **remedies)
    fold, share = remedies["fold_above"], remedies["own_domain_share"]
    vectors = TfIdf.of(texts)
    assert kept == sorted(set(kept))
    assert len(kept) <= limit
    if fold is None:
        assert len(kept) == min(limit, len(texts))
        own = sum(domain == "a" for domain in domains[: len(texts)])
        assert sum(domains[i] == "a" for i in kept) >= min(own, (share or 0) * limit)
    else:
        assert all(vectors.similarities(i)[j] < fold for i in kept for j in kept if i != j)
        left = set(range(len(texts))) - set(kept)
        if len(kept) < limit:
            assert all(any(vectors.similarities(i)[j] >= fold for i in kept) for j in left)
    if all(setting is None for setting in remedies.values()):
        assert kept == list(range(min(limit, len(texts))))


def diluted(**fields: object) -> InsightMemory:
    """Make a memory with 3 items of domain `a` among 60 of `b` that match better."""
    content = BankContent()
    for n in range(63):
        domain = "a" if n % 21 == 20 else "b"
        key = "find the key" if domain == "a" else "find the red key"
        content.items[f"i{n}"] = make_item(
            f"i{n}", text=f"text {n}", key=key, source_domain=domain, order_index=n
        )
    memory = InsightMemory(
        InMemoryStore(), settings=InsightSettings.model_validate({"top_k": 4, **fields})
    )
    memory.restore(content)
    return memory


async def test_quota_when_a_bank_is_diluted_finds_what_ranks_below_the_candidates() -> None:
    """Own items are searched for, however far down they rank; scores stay as they were."""
    context = asking(domain="a")
    plain = diluted().provide("find the red key", context)
    assert {item.source_domain for item in plain.items} == {"b"}
    memory = diluted(own_domain_share=0.5)
    kept = memory.provide("find the red key", context)
    assert [item.source_domain for item in kept.items] == ["b", "b", "a", "a"]
    assert list(kept.scores) == sorted(kept.scores, reverse=True)
    assert kept.scores[:2] == plain.scores[:2]
    assert kept.receipt.tied == plain.receipt.tied == 60
    assert await memory.aprovide("find the red key", context) == kept


def test_quota_when_no_own_item_matches_leaves_the_slots_to_the_others() -> None:
    """A quota never empties a recall."""
    memory = diluted(own_domain_share=1)
    found = memory.provide("find the red key", asking(domain="c"))
    assert len(found.items) == 4


@pytest.mark.parametrize(("candidates", "expected"), [(1, 1), (9, 1), (10, 2), (50, 2)])
def test_candidates_when_few_end_the_search_for_what_differs(
    candidates: int, expected: int
) -> None:
    """How far down the ranking a remedy looks is stated; here the tenth is another text."""
    content = BankContent()
    for n in range(12):
        text = "wait" if n == 9 else "look around"
        content.items[f"i{n}"] = make_item(f"i{n}", text=text, key="find it", order_index=n)
    fields = {"top_k": 2, "fold_above": 0.9, "candidates": candidates, "ranker": BM25()}
    memory = InsightMemory(InMemoryStore(), settings=InsightSettings.model_validate(fields))
    memory.restore(content)
    assert len(memory.provide("find it", asking()).items) == expected
