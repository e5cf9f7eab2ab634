"""`LightweightMemory`: tiers, cadence and shares."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item

from langgraft.memory.bank_format import read_items, write_items
from langgraft.memory.model import Outcome, fold
from langgraft.memory.providers import LightweightMemory, LightweightSettings
from langgraft.memory.recall import (
    OVER_SHARE,
    Budget,
    TokenCounter,
    count_tokens_approximately,
    render_block,
)

ENDINGS: st.SearchStrategy[list[bool | None]] = st.lists(
    st.sampled_from([True, False, None]), max_size=20
)

COUNTERS: dict[str, TokenCounter] = {
    "characters": len,
    "four to a token": count_tokens_approximately,
    "distinct characters": lambda text: len(set(text)),
    "squares": lambda text: len(text) ** 2 // 1000,
    "by chance": lambda text: zlib.crc32(text.encode()) % 150,
}
"""Ways to count, most of which do not add up."""


def memory_with(**fields: object) -> LightweightMemory:
    """Make a provider with settings."""
    return LightweightMemory(InMemoryStore(), settings=LightweightSettings.model_validate(fields))


def filled(endings: Sequence[bool | None], **fields: object) -> LightweightMemory:
    """Make a provider that has taken in episodes which ended so."""
    memory = memory_with(**fields)
    for number, success in enumerate(endings):
        memory.file(make_episode(f"e{number}", outcome=Outcome(success)))
    return memory


@given(endings=ENDINGS, long=st.integers(1, 4), short=st.integers(1, 4))
def test_tiers_when_pruned_lose_their_own_oldest(
    endings: list[bool | None], long: int, short: int
) -> None:
    """What succeeded is long-term, all else short-term; neither makes room for the other."""
    memory = filled(endings, max_long_term=long, max_short_term=short)
    succeeded = [f"e{n}" for n, success in enumerate(endings) if success]
    others = [f"e{n}" for n, success in enumerate(endings) if not success]
    kept = {item.episode_id for item in memory.content().items.values()}
    assert kept == {*succeeded[-long:], *others[-short:]}


@pytest.mark.parametrize(
    ("success", "kind"), [(True, "strategic"), (False, "error_trace"), (None, "other")]
)
def test_item_when_made_is_of_the_papers_type_and_names_no_tier(
    success: bool | None, kind: str
) -> None:
    """A tier is a function of the item; an unknown outcome is no success."""
    memory = filled([success])
    (item,) = memory.content().items.values()
    assert (item.type, item.success) == (kind, success)
    assert "term" not in str(item.to_json())
    assert not memory.content().notes


def test_recall_when_not_due_is_empty_and_due_every_third_episode() -> None:
    """The cadence goes by the position in the stream, and counts nothing itself."""
    memory = filled([True, False])
    due = [bool(memory.provide("open the red door", asking(episode_index=n))) for n in range(7)]
    assert due == [True, False, False, True, False, False, True]
    rare = filled([True], every=5)
    assert [n for n in range(11) if rare.provide("open the red door", asking(episode_index=n))] == [
        0,
        5,
        10,
    ]


def test_recall_when_the_stream_has_no_positions_goes_by_the_episodes_name() -> None:
    """One in three, in a bank that stands still too."""
    memory = filled([True])
    names = [f"e{number}" for number in range(600)]
    due = [bool(memory.provide("open the red door", asking(episode_id=name))) for name in names]
    assert 150 < sum(due) < 250
    again = [bool(memory.provide("open the red door", asking(episode_id=name))) for name in names]
    assert again == due


def test_recall_when_due_takes_both_tiers_best_first() -> None:
    """Each tier gives up to `top_k`; ties count over both."""
    memory = memory_with(top_k=2)
    for number, (task, success) in enumerate(
        [("open a door", True), ("open it", False), ("open it", True), ("open it", True)] * 2
    ):
        memory.file(make_episode(f"e{number}", task=task, outcome=Outcome(success)))
    recall = memory.provide("open it", asking(episode_index=0))
    assert [item.episode_id for item in recall.items] == ["e7", "e6", "e5", "e1"]
    assert recall.receipt.tied == 6
    for name in ("e8", "e9"):
        failed = Outcome(success=False)
        memory.file(make_episode(name, task="open it with the key", outcome=failed))
    recall = memory.provide("open it with the key", asking(episode_index=0))
    assert [item.episode_id for item in recall.items] == ["e9", "e8", "e7", "e6"]
    assert recall.receipt.tied == 2
    assert sorted(recall.scores, reverse=True) == list(recall.scores)


@given(
    endings=ENDINGS,
    tokens=st.integers(0, 300),
    share=st.sampled_from([0.1, 0.5, 0.9]),
    name=st.sampled_from(sorted(COUNTERS)),
)
def test_budget_when_shared_is_exceeded_by_neither_tier(
    endings: list[bool | None], tokens: int, share: float, name: str
) -> None:
    """The shares are strict, by any counter; nothing is dropped without a reason."""
    count = COUNTERS[name]
    memory = filled(endings, long_term_share=share, top_k=4)
    recall = memory.provide("open the red door", asking(episode_index=0), Budget(tokens, count))
    frame = count(render_block([""]))
    for success, part in ((True, share), (False, 1 - share)):
        texts = [item.text for item in recall.items if item.success is success]
        if texts:
            assert count(render_block(texts)) - frame <= part * max(tokens - frame, 0)
    assert recall.tokens == (count(recall.text) if recall.text else 0) <= tokens
    items = memory.content().items
    for success in (True, False):
        tier = [ending is True for ending in endings].count(success)
        given = [item for item in recall.items if (item.success is True) is success]
        dropped = [each for each in recall.dropped if (items[each.id].success is True) is success]
        assert len(given) <= 4
        # All of a tier are tried until there are four.
        assert len(given) == 4 or len(given) + len(dropped) == tier


def test_tier_when_the_other_is_empty_still_has_only_its_share() -> None:
    """What one tier leaves is not passed on (§4.2: 50/50)."""
    memory = filled([True] * 5)
    block = memory.provide("open the red door", asking(episode_index=0))
    recall = memory.provide("open the red door", asking(episode_index=0), Budget(block.tokens))
    assert 0 < len(recall.items) < 5
    assert {each.reason for each in recall.dropped} == {OVER_SHARE}


def test_items_when_imported_find_their_tiers_and_come_out_the_same(tmp_path: Path) -> None:
    """Tiers start afresh from the items alone, whatever their types say."""
    path, again = tmp_path / "bank.jsonl", tmp_path / "again.jsonl"
    listed = [
        make_item(f"i{n}", success=n % 2 == 0, type="other", order_index=n, key="open it")
        for n in range(8)
    ]
    write_items(path, listed)
    memory = memory_with(max_long_term=2, max_short_term=3)
    log = [memory.import_items(path)]
    kept = [item.id for item in sorted(memory.content().items.values(), key=lambda i: i.id)]
    assert kept == ["i3", "i4", "i5", "i6", "i7"]
    assert fold(log) == memory.content()
    memory.export_items(again)
    roomy = memory_with()
    roomy.import_items(again)
    roomy.export_items(path)
    assert [item.id for item in read_items(path)] == kept
    recall = memory.provide("open it", asking(episode_index=0))
    assert [item.id for item in recall.items] == ["i6", "i4", "i7", "i5", "i3"]
