"""What items and episodes say they follow from."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import make_item

from langgraft import Episode, MemoryItem, Outcome, SimpleRAG
from langgraft._core.errors import BankFormatError, InputError
from langgraft.memory import ImportChoices, read_bundle, write_bundle, write_items
from langgraft.memory.sources import MAX_CHARACTERS, MAX_SOURCES, source

BAD: list[Any] = [
    "user:ada",
    ["ada"],
    ["friend:ada"],
    ["user:"],
    ["user:\ud83c"],
    ["user:a\x00"],
    ["user:" + "a" * MAX_CHARACTERS],
    [7],
    {"user": "ada"},
    [f"user:{number}" for number in range(MAX_SOURCES + 1)],
]


def episode(**fields: Any) -> Episode:
    """Return an episode of nothing in particular."""
    return Episode("e", "d", "t", "a task", (), Outcome(True), **fields)


@pytest.mark.parametrize("sources", BAD, ids=lambda value: repr(value)[:20])
def test_sources_when_they_are_not_possible_are_refused(sources: object) -> None:
    """An item, its JSON and an episode refuse alike, naming the field."""
    with pytest.raises(InputError, match="sources"):
        MemoryItem.from_json({**make_item("a").to_json(), "sources": sources})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="sources"):
        episode(sources=sources)


def test_sources_when_nobody_names_any_leave_no_trace() -> None:
    """JSON of items and episodes without sources is what it was before there were any."""
    assert "sources" not in make_item("a").to_json()
    assert "sources" not in episode().to_json()


def test_sources_when_given_come_back_sorted_and_once() -> None:
    """The same set is the same bytes, and survives JSON."""
    told = ["web:b", "user:ada", "web:b"]
    item = MemoryItem.from_json({**make_item("a").to_json(), "sources": told})
    held = episode(sources=told)
    assert item.sources == held.sources == ("user:ada", "web:b")
    assert MemoryItem.from_json(item.to_json()) == item
    assert Episode.from_json(held.to_json()) == held


def test_source_when_its_name_is_long_or_holds_nul_has_a_digest() -> None:
    """Whatever ids an application has, there is a source for each, and not the same."""
    names = ["a" * 900, "a" * 901, "a\x00", "a"]
    made = {source("item", name) for name in names}
    assert len(made) == len(names)
    assert episode(sources=tuple(made)).sources
    with pytest.raises(InputError, match="kind:name"):
        source("item", "")


def test_import_when_it_names_a_source_stamps_every_item(tmp_path: Path) -> None:
    """A bank that came in can be told from the rest; a transplant stays as it is."""
    items = [
        make_item("a"),
        make_item("b", order_index=1, sources=("item:a", "user:ada")),
    ]
    bare = tmp_path / "bank.jsonl"
    write_items(bare, items)
    memory = SimpleRAG(InMemoryStore())
    memory.import_items(bare)
    assert list(memory.content().items.values()) == items
    memory.import_items(bare, ImportChoices(source="office", on_conflict="rename"))
    held = memory.content().items
    assert held["a~2"].sources == ("import:office",)
    assert held["b~2"].sources == ("import:office", "item:a~2", "user:ada")
    write_bundle(tmp_path / "b.bundle", memory.content())
    assert {i.id: i for i in read_bundle(tmp_path / "b.bundle").items} == held


def test_file_when_a_source_is_none_is_refused_with_its_row(tmp_path: Path) -> None:
    """A stranger's file is held to the same form."""
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item("a", sources=("user:ada",))])
    path.write_bytes(path.read_bytes().replace(b"user:ada", b"nobody"))
    with pytest.raises(BankFormatError, match=r"row 1: sources: .*kind:name"):
        SimpleRAG(InMemoryStore()).import_items(path)
