"""`FifoOrder`: the oldest and the newest of a bank, found without reading it."""

from collections.abc import Sequence
from pathlib import Path

from dict_store import DictStore
from hypothesis import example, given
from hypothesis import strategies as st
from langgraph.store.base import SearchOp
from langgraph.store.memory import InMemoryStore
from memory_cases import make_episode, make_item, names

from langgraft._core.effects import drive
from langgraft.memory import bank
from langgraft.memory.bank_format import write_items
from langgraft.memory.forgetting import SuccessRate, noted_items
from langgraft.memory.importing import ImportChoices
from langgraft.memory.model import MemoryDelta, Outcome, Receipt, Remove, SetState, fold
from langgraft.memory.providers import SimpleRAG, SimpleRAGSettings
from langgraft.memory.providers.episode_items import FifoOrder


def survivors(memory: SimpleRAG) -> list[str]:
    """List the ids in a bank, oldest first."""
    return [entry.item.id for entry in noted_items(memory.content())]


@given(ids=st.lists(names, max_size=30, unique=True), limit=st.integers(1, 8))
def test_line_when_over_its_limit_loses_exactly_the_first(ids: Sequence[str], limit: int) -> None:
    """First in, first out, whatever the names are; each removal says why."""
    memory = SimpleRAG(DictStore(), settings=SimpleRAGSettings(max_items=limit))
    log = []
    for name in ids:
        log += [memory.file(make_episode(name))]
        assert len(memory.content().items) <= limit
    assert survivors(memory) == [f"{name}/note" for name in ids][-limit:]
    removed = [change for delta in log for change in delta if isinstance(change, Remove)]
    assert [change.id for change in removed] == [f"{name}/note" for name in ids][:-limit]
    assert {change.reason for change in removed} <= {f"over the capacity of {limit}"}
    assert fold(log) == memory.content()


@given(ids=st.lists(names, min_size=1, max_size=20, unique=True), limit=st.integers(1, 25))
def test_line_when_asked_for_its_ends_reads_them_in_order(ids: Sequence[str], limit: int) -> None:
    """The newest come newest first, and no listing of the bank is needed for either end."""
    store = DictStore()
    memory = SimpleRAG(store)
    for name in ids:
        memory.file(make_episode(name))
    store.log.clear()
    line = FifoOrder(memory.namespace)
    newest = drive(line.newest(limit), store)
    assert [item.episode_id for item in newest] == list(ids)[::-1][:limit]
    some = drive(line.newest(limit, where=lambda item: item.order_index % 2 == 0), store)
    assert [item.order_index for item in some] == list(range(0, len(ids), 2))[::-1][:limit]
    oldest = drive(line.oldest(), store)
    assert oldest is not None
    assert oldest.episode_id == ids[0]
    assert not any(isinstance(op, SearchOp) for batch in store.log for op in batch)


def test_line_when_nobody_ever_joined_is_empty() -> None:
    """An empty bank has no first and no last."""
    memory = SimpleRAG(InMemoryStore())
    line = FifoOrder(memory.namespace)
    assert drive(line.newest(3), memory.store) == []
    assert drive(line.oldest(), memory.store) is None
    assert not memory.manage()


@example(forgotten=[True] * 40, limit=2, first=False)
@given(forgotten=st.lists(st.booleans(), max_size=40), limit=st.integers(1, 6), first=st.booleans())
def test_line_when_others_remove_items_counts_only_those_that_are_left(
    forgotten: Sequence[bool], limit: int, first: bool
) -> None:
    """Whatever a policy forgets makes room, and the line does not grow with what is gone."""
    settings = SimpleRAGSettings(max_items=limit)
    memory = SimpleRAG(InMemoryStore(), settings=settings)
    log: list[MemoryDelta] = []
    expected: list[str] = []
    for number, forget in enumerate(forgotten):
        log += [memory.file(make_episode(f"e{number}"))]
        expected = [*expected, f"e{number}/note"][-limit:]
        if forget and len(expected) > 1:
            delta = MemoryDelta((Remove(expected.pop(0 if first else 1), "for a reason"),))
            drive(bank.apply_delta(memory.namespace, delta), memory.store)
            log.append(delta)
        assert survivors(memory) == expected
        upkeep = memory.manage()
        log.append(upkeep)
        assert not memory.manage()
        line = FifoOrder(memory.namespace)
        newest = drive(line.newest(9), memory.store)
        assert [item.id for item in newest] == expected[::-1]
        oldest = drive(line.oldest(), memory.store)
        assert oldest is not None
        assert oldest.id == expected[0]
    assert fold(log) == memory.content()
    places = [key for key in memory.content().state if key.startswith("arrivals/items/")]
    assert len(places) <= 2 * limit + 1


def test_line_when_an_import_replaces_an_item_moves_it_to_the_end(tmp_path: Path) -> None:
    """The new one is young, nothing else has to go for it, and it leaves in its turn."""
    path = tmp_path / "bank.jsonl"
    memory = SimpleRAG(InMemoryStore(), settings=SimpleRAGSettings(max_items=3))
    for name in "abc":
        memory.file(make_episode(name))
    write_items(path, [make_item("b/note", text="better")])
    delta = memory.import_items(path, ImportChoices(on_conflict="replace"))
    assert [change.id for change in delta if isinstance(change, Remove)] == ["b/note"]
    assert survivors(memory) == ["a/note", "c/note", "b/note"]
    newest = drive(FifoOrder(memory.namespace).newest(9), memory.store)
    assert [item.id for item in newest] == ["b/note", "c/note", "a/note"]
    for name, left in (("d", "c b d"), ("e", "b d e"), ("f", "d e f")):
        memory.file(make_episode(name))
        assert survivors(memory) == [f"{each}/note" for each in left.split()]


def test_line_when_items_are_imported_begins_anew_and_prunes(tmp_path: Path) -> None:
    """Imported items join in the order of the file, after what is there, within capacity."""
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item(name, order_index=number) for number, name in enumerate("abcd")])
    memory = SimpleRAG(InMemoryStore(), settings=SimpleRAGSettings(max_items=3))
    log = [memory.file(make_episode("own")), memory.import_items(path)]
    assert survivors(memory) == ["b", "c", "d"]
    assert [change.id for change in log[1] if isinstance(change, Remove)] == ["own/note", "a"]
    log += [memory.file(make_episode("later"))]
    assert survivors(memory) == ["c", "d", "later/note"]
    assert fold(log) == memory.content()


def test_line_when_an_imported_item_has_a_new_ones_id_holds_the_name_it_got(
    tmp_path: Path,
) -> None:
    """Both items leave in their turn, under their own names."""
    donor = SimpleRAG(InMemoryStore())
    donor.file(make_episode("e"))
    donor.export_items(tmp_path / "bank.jsonl")
    memory = SimpleRAG(InMemoryStore(), settings=SimpleRAGSettings(max_items=2))
    memory.import_items(tmp_path / "bank.jsonl")
    memory.file(make_episode("e"))
    assert survivors(memory) == ["e/note", "e/note~2"]
    for name in ("x", "y"):
        memory.file(make_episode(name))
    assert survivors(memory) == ["x/note", "y/note"]


def test_delta_when_an_episode_is_filed_is_short_however_large_the_bank_is() -> None:
    """The log grows with what happens, not with what there is."""
    memory = SimpleRAG(InMemoryStore(), settings=SimpleRAGSettings(max_items=50))
    for number in range(120):
        delta = memory.file(make_episode(f"e{number}"))
    assert len(delta.changes) == 9
    assert [type(change) for change in delta.changes[6:]] == [Remove, SetState, SetState]


@given(
    blamed=st.lists(st.integers(1, 6) | st.none(), min_size=5, max_size=25),
    room=st.integers(1, 6),
    every=st.integers(1, 4),
)
@example(blamed=[None, None, 1, 3], room=3, every=1)
def test_upkeep_when_policies_forget_too_leaves_nothing_due(
    blamed: Sequence[int | None], room: int, every: int
) -> None:
    """Gaps that forgetting leaves in the line are no reason to write; they do not add up either."""
    settings = SimpleRAGSettings(max_items=room, forgetting=(SuccessRate(below=0.4),))
    memory = SimpleRAG(DictStore(), settings=settings)
    for number, back in enumerate(blamed):
        # Each episode fails, and may blame an item of some episodes before.
        ids = () if back is None else (f"{number - back}/note",)
        receipt = Receipt(f"receipt {number}", "", 0, ids, (0.0,) * len(ids), 0)
        failed = Outcome(success=False)
        memory.file(make_episode(str(number), outcome=failed, recalls=(receipt,)))
        if number % every == 0:
            memory.manage()
            assert not memory.manage()
            places = [key for key in memory.content().state if key.startswith("arrivals/items/")]
            assert len(places) <= 2 * room
