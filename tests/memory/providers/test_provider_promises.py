"""What every provider promises beside its conformance suite: numbers and names after imports."""

from pathlib import Path

from langgraph.store.memory import InMemoryStore
from memory_cases import make_item

from langgraft.memory.bank_format import write_items
from langgraft.memory.model import Episode, Outcome, Step, fold
from langgraft.memory.providers import TrajectoryMemory


def test_import_when_lines_are_out_of_order_follows_their_numbers(tmp_path: Path) -> None:
    """The order among the items is theirs, however the lines were joined; a new bank keeps it."""
    memory = TrajectoryMemory(InMemoryStore())
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item("late", order_index=7), make_item("early", order_index=2)])
    memory.import_items(path)
    orders = {item.id: item.order_index for item in memory.content().items.values()}
    assert orders == {"early": 2, "late": 7}
    write_items(path, [make_item("last", order_index=7), make_item("then", order_index=2)])
    memory.import_items(path)
    orders = {item.id: item.order_index for item in memory.content().items.values()}
    assert orders == {"early": 2, "late": 7, "then": 8, "last": 9}


def test_item_when_an_imported_one_has_its_id_gets_another(tmp_path: Path) -> None:
    """A bank imported from an agent that played the same episodes goes on learning."""
    episode = Episode("e", "d", "t", "do it", (Step("", "", "seen"),), Outcome(success=True))
    source = TrajectoryMemory(InMemoryStore())
    source.file(episode)
    source.export_items(tmp_path / "bank.jsonl")
    target = TrajectoryMemory(InMemoryStore())
    deltas = [target.import_items(tmp_path / "bank.jsonl"), target.file(episode)]
    assert list(target.content().items) == ["e/trajectory", "e/trajectory~2"]
    assert fold(deltas) == target.content()
    assert not target.file(episode)
