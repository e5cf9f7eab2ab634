"""`RecencyFewShot`: the last successes, and nothing else."""

from pathlib import Path

from dict_store import DictStore
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import SearchOp
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item, texts

from langgraft.memory.bank_format import write_items
from langgraft.memory.forgetting import Capacity
from langgraft.memory.model import Outcome, fold
from langgraft.memory.providers import RecencyFewShot, RecencySettings
from langgraft.memory.recall import Budget


@given(
    endings=st.lists(st.sampled_from([True, False, None]), max_size=12),
    examples=st.integers(1, 5),
    query=texts,
)
def test_recall_when_asked_anything_is_the_last_successes_newest_first(
    endings: list[bool | None], examples: int, query: str
) -> None:
    """What is asked does not matter; a failure is no example, an unknown end may be one."""
    memory = RecencyFewShot(DictStore(), settings=RecencySettings(examples=examples))
    for number, success in enumerate(endings):
        memory.file(make_episode(f"e{number}", outcome=Outcome(success)))
    succeeded = [f"e{number}" for number, success in enumerate(endings) if success is not False]
    recall = memory.provide(query, asking())
    assert [item.episode_id for item in recall.items] == succeeded[::-1][:examples]
    assert len(memory.content().items) == len(succeeded)


def test_block_when_rendered_is_in_the_order_things_happened() -> None:
    """The newest stands last, next to the task, whole."""
    memory = RecencyFewShot(InMemoryStore(), settings=RecencySettings(examples=2))
    for name in ("first", "second", "third"):
        memory.file(make_episode(name, task=f"the {name} task"))
    text = memory.provide("?", asking()).text
    assert "first" not in text
    assert 0 < text.index("Task: the second task") < text.index("Task: the third task")
    assert text.count("Observation: it is open\nResult: success") == 2


def test_budget_when_short_is_given_to_the_newest() -> None:
    """A long example that does not fit is dropped, and an older one may have the room."""
    memory = RecencyFewShot(InMemoryStore())
    for name, task in (("a", "old"), ("b", "short"), ("c", "long " * 500), ("d", "new")):
        memory.file(make_episode(name, task=task))
    recall = memory.provide("?", asking(), Budget(tokens=98))
    assert [item.episode_id for item in recall.items] == ["d", "b"]
    assert [each.id for each in recall.dropped] == ["c/trajectory", "a/trajectory"]


def test_recall_when_the_bank_holds_two_thousand_reads_only_a_few(tmp_path: Path) -> None:
    """Imported items are found from their end, and no search lists the bank."""
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item(f"i{n}", text="same", order_index=n) for n in range(2_000)])
    store = DictStore()
    donor = RecencyFewShot(InMemoryStore())
    log = [donor.import_items(path), donor.file(make_episode("own"))]
    assert fold(log) == donor.content()
    memory = RecencyFewShot(store)
    memory.restore(fold(log))
    store.log.clear()
    recall = memory.provide("?", asking())
    assert [item.id for item in recall.items[:3]] == ["own/trajectory", "i1999", "i1998"]
    assert len(recall.items) == 16
    assert sum(map(len, store.log)) < 200
    assert not any(isinstance(op, SearchOp) for batch in store.log for op in batch)


def test_items_when_imported_with_failures_are_kept_and_not_recalled(tmp_path: Path) -> None:
    """A transplanted bank loses nothing, and only its successes are examples."""
    path, again = tmp_path / "bank.jsonl", tmp_path / "again.jsonl"
    listed = [make_item(f"i{n}", success=n % 2 == 0, order_index=n) for n in range(6)]
    write_items(path, listed)
    memory = RecencyFewShot(InMemoryStore())
    memory.import_items(path)
    assert [item.id for item in memory.provide("?", asking()).items] == ["i4", "i2", "i0"]
    memory.export_items(again)
    assert again.read_bytes() == path.read_bytes()


def test_recall_when_a_policy_forgets_is_of_what_is_left() -> None:
    """The line passes over what is gone, at either end."""
    settings = RecencySettings(forgetting=(Capacity(limit=2),))
    memory = RecencyFewShot(InMemoryStore(), settings=settings)
    for number in range(100):
        memory.file(make_episode(f"e{number}"))
    assert [item.episode_id for item in memory.provide("?", asking()).items] == ["e99", "e98"]
