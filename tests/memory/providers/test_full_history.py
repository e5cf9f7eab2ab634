"""`FullHistory`: everything, in order, as far as it fits."""

from pathlib import Path

from dict_store import DictStore
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, episodes, make_episode, make_item, texts

from langgraft.memory.bank_format import write_items
from langgraft.memory.model import Episode, Outcome
from langgraft.memory.providers import FullHistory
from langgraft.memory.recall import OVER_BUDGET, Budget


@given(listed=st.lists(episodes(), max_size=9, unique_by=lambda episode: episode.id), query=texts)
def test_recall_when_there_is_no_limit_is_everything(listed: list[Episode], query: str) -> None:
    """Every episode in which something happened, however it ended and whatever is asked, newest first."""
    memory = FullHistory(DictStore())
    for episode in listed:
        memory.file(episode)
    recall = memory.provide(query, asking())
    kept = [each.id for each in listed if not each.is_blank]
    assert [item.episode_id for item in recall.items] == kept[::-1]
    assert len(recall.dropped) == len(listed) - len(kept)


def test_block_when_rendered_is_in_the_order_things_happened() -> None:
    """The newest stands last, and each says how it ended."""
    memory = FullHistory(InMemoryStore())
    for number, success in enumerate((True, False, None)):
        memory.file(make_episode(f"e{number}", task=f"t{number}", outcome=Outcome(success)))
    lines = memory.provide("?", asking()).text.splitlines()
    told = [line for line in lines if line.startswith(("Task:", "Result:"))]
    assert told == ["Task: t0", "Result: success", "Task: t1", "Result: failure", "Task: t2"]


@given(lengths=st.lists(st.integers(0, 200), max_size=8), tokens=st.integers(0, 200))
def test_budget_when_limited_is_filled_from_the_newest_on(lengths: list[int], tokens: int) -> None:
    """No episode is left out that would have fitted beside all newer ones that are in."""
    memory = FullHistory(InMemoryStore())
    for number, length in enumerate(lengths):
        memory.file(make_episode(f"e{number}", task="x" * length, steps=()))
    recall = memory.provide("?", asking(), Budget(tokens, len))
    assert recall.tokens == len(recall.text) <= tokens
    everything = memory.provide("?", asking(), Budget(10_000, len))
    room = tokens - (everything.tokens - sum(len(item.text) + 2 for item in everything.items))
    fitting = []
    for item in everything.items:
        if len(item.text) + 2 <= room:
            fitting.append(item)
            room -= len(item.text) + 2
    assert list(recall.items) == fitting
    assert {each.reason for each in recall.dropped} <= {OVER_BUDGET}
    assert len(recall.items) + len(recall.dropped) == len(lengths)


def test_bank_when_two_thousand_texts_are_equal_recalls_all_newest_first(tmp_path: Path) -> None:
    """There is nothing but age to go by."""
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item(f"i{n:04}", text="same", order_index=n) for n in range(2_000)])
    memory = FullHistory(InMemoryStore())
    memory.import_items(path)
    recall = memory.provide("?", asking(), Budget(tokens=None))
    assert [item.id for item in recall.items] == [f"i{n:04}" for n in range(1_999, -1, -1)]
