"""Imports: what comes in, as what, under which number; and that it is all or nothing."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, items, make_episode, make_item
from typing_extensions import override

from langgraft._core.errors import BankFormatError, InputError, SettingsError
from langgraft.memory.bank_format import read_items, write_items
from langgraft.memory.bundle import write_bundle
from langgraft.memory.forgetting import Capacity
from langgraft.memory.importing import REPLACED, ImportChoices
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    Change,
    MemoryItem,
    Remove,
    SetState,
    fold,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import (
    PROVIDERS,
    InsightMemory,
    InsightSettings,
    TrajectoryMemory,
    make_provider,
)
from langgraft.memory.stores.read_only import ReadOnlyStore

VARIED = [
    make_item("a", type="operational", metadata={"n": 1, "flag": True}),
    make_item("b", order_index=1, success=False, source_domain="math", task_id="t1"),
    make_item("c", order_index=2, source_domain="code", task_id="t2", metadata={"n": "1"}),
    make_item("d", order_index=3, metadata={"n": 1.0, "with.period": "x"}),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file of four items that differ."""
    write_items(tmp_path / "varied.jsonl", VARIED)
    return tmp_path / "varied.jsonl"


@pytest.fixture
def memory() -> InsightMemory:
    """Return an empty memory."""
    return InsightMemory(InMemoryStore())


def ids(memory: MemoryProvider[Any]) -> list[str]:
    """List what a bank holds, in order."""
    return [item.id for item in ordered(memory)]


def ordered(memory: MemoryProvider[Any]) -> list[MemoryItem]:
    """List a bank's items in order."""
    return sorted(memory.content().items.values(), key=lambda item: (item.order_index, item.id))


# Numbers ----------------------------------------------------------------------------------


@st.composite
def banks(draw: st.DrawFn) -> list[MemoryItem]:
    """Draw the items of a bank that may have been pruned: in order, each number once."""
    drawn = draw(st.lists(items(), max_size=5, unique_by=lambda item: item.id))
    numbers = draw(st.lists(st.integers(0, 10**6), min_size=5, max_size=5, unique=True))
    numbered = zip(drawn, sorted(numbers), strict=False)
    return [item.model_copy(update={"order_index": number}) for item, number in numbered]


@pytest.mark.parametrize("name", PROVIDERS)
@given(banks())
@settings(max_examples=20)
def test_bank_when_exported_imported_and_exported_is_the_same_bytes(
    name: str, held: list[MemoryItem]
) -> None:
    """Gaps that pruning left stay gaps, for every provider and whatever the items hold."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "first", Path(folder) / "second"
        donor, target = (make_provider(name, InMemoryStore(), settings={}) for _ in range(2))
        donor.restore(BankContent(items={item.id: item for item in held}))
        donor.export_items(first)
        delta = target.import_items(first)
        target.export_items(second)
        assert first.read_bytes() == second.read_bytes()
    assert fold([delta]) == target.content()
    assert target.content().items == donor.content().items
    if held:
        assert target.content().state["next_order_index"] == held[-1].order_index + 1


def test_items_when_learned_after_an_import_come_after_it(
    tmp_path: Path, memory: InsightMemory
) -> None:
    """No number is given twice, gaps or not."""
    write_items(tmp_path / "bank", [make_item("x", order_index=4), make_item("y", order_index=9)])
    deltas = [memory.import_items(tmp_path / "bank"), memory.file(make_episode())]
    numbers = [item.order_index for item in ordered(memory)]
    assert numbers[:2] == [4, 9]
    assert numbers[2:] == list(range(10, 8 + len(numbers)))
    assert fold(deltas) == memory.content()


@pytest.mark.parametrize(
    "numbers", [(3, 3), (0, 2**53), (0, 10**400)], ids=["twice", "big", "vast"]
)
def test_numbers_when_they_are_not_of_one_bank_are_given_anew(
    tmp_path: Path, memory: InsightMemory, numbers: tuple[int, int]
) -> None:
    """Files that were joined, and numbers no store keeps, are counted from 0."""
    listed = [make_item(name, order_index=n) for name, n in zip("ab", numbers, strict=True)]
    write_items(tmp_path / "bank", listed)
    memory.import_items(tmp_path / "bank")
    assert [(item.id, item.order_index) for item in ordered(memory)] == [("a", 0), ("b", 1)]


def test_numbers_when_the_bank_held_items_before_continue_its_own(
    tmp_path: Path, path: Path
) -> None:
    """A bank that was emptied has given numbers away that its log still holds."""
    emptied = InsightMemory(
        InMemoryStore(), settings=InsightSettings(forgetting=(Capacity(limit=0),))
    )
    first = emptied.import_items(path)
    assert not emptied.content().items
    second = emptied.import_items(path)
    numbers = [change.item.order_index for change in second if isinstance(change, Add)]
    assert numbers == [4, 5, 6, 7]
    assert fold([first, second]) == emptied.content()


# Choices ----------------------------------------------------------------------------------

FILTERS: list[tuple[Mapping[str, Any], str]] = [
    ({}, "abcd"),
    ({"type": "operational"}, "a"),
    ({"type": ["operational", "strategic"]}, "abcd"),
    ({"source_domain": ["math", "code"]}, "bc"),
    ({"success": False}, "b"),
    ({"success": "false"}, ""),
    ({"task_id": "t2"}, "c"),
    ({"metadata.n": 1}, "a"),
    ({"metadata.n": "1"}, "c"),
    ({"metadata.n": True}, ""),
    ({"metadata.n": [1, 1.0]}, "ad"),
    ({"metadata.flag": True}, "a"),
    ({"metadata.with.period": "x"}, "d"),
    ({"metadata.none": ""}, ""),
    ({"success": True, "source_domain": "code"}, "c"),
    ({"type": []}, ""),
]


@pytest.mark.parametrize(("where", "taken"), FILTERS, ids=str)
def test_items_when_filtered_are_those_that_fit_in_value_and_type(
    path: Path, memory: InsightMemory, where: Mapping[str, Any], taken: str
) -> None:
    """A field has one of the values given, all fields do, and 1 is not "1" nor `True`."""
    memory.import_items(path, ImportChoices(where=where))
    assert "".join(ids(memory)) == taken


def test_items_when_remapped_have_the_new_values_and_filters_see_the_old(
    path: Path, memory: InsightMemory
) -> None:
    """All items, or those of an old value; what is not named stays."""
    memory.import_items(
        path,
        ImportChoices(
            remap={"source_domain": {"math": "algebra", "toy": "play"}, "task_id": "one"},
            where={"source_domain": ("math", "code", "toy")},
        ),
    )
    assert [item.source_domain for item in ordered(memory)] == ["play", "algebra", "code", "play"]
    assert {item.task_id for item in ordered(memory)} == {"one"}
    assert [item.text for item in ordered(memory)] == [item.text for item in VARIED]


def conflicting(memory: InsightMemory, path: Path) -> Path:
    """Put `a` and `c` into the bank with notes, and return a file that holds other ones."""
    memory.import_items(path, ImportChoices(where={"source_domain": ("toy", "code")}))
    content = memory.content()
    content.notes = {"a": {"uses": 7}, "d": {"uses": 1}}
    memory.restore(content)
    write_items(
        path,
        [
            make_item("new"),
            make_item("a", text="other", order_index=1),
            make_item("a~2", order_index=2),
        ],
    )
    return path


def test_id_when_taken_and_refused_changes_nothing(path: Path, memory: InsightMemory) -> None:
    """By default, and by name; the line says what may be chosen."""
    conflicting(memory, path)
    before = memory.content()
    for choices in (ImportChoices(), ImportChoices(on_conflict="refuse")):
        with pytest.raises(BankFormatError, match="id 'a' is already in the bank; choose to skip"):
            memory.import_items(path, choices)
    with pytest.raises(BankFormatError, match="row 2: id 'a' is already in the bank"):
        memory.import_items(path)
    assert memory.content() == before


def test_id_when_taken_and_skipped_leaves_what_is_there(path: Path, memory: InsightMemory) -> None:
    """The bank's item and its notes stay; the others come in."""
    conflicting(memory, path)
    before = memory.content()
    memory.import_items(path, ImportChoices(on_conflict="skip"))
    assert ids(memory) == ["a", "c", "d", "new", "a~2"]
    assert memory.content().items["a"] == before.items["a"]
    assert memory.content().notes == before.notes


def test_id_when_taken_and_replaced_is_the_new_item_without_the_old_notes(
    path: Path, memory: InsightMemory
) -> None:
    """The delta shows a removal and an addition, and the new item is the bank's youngest."""
    conflicting(memory, path)
    start = memory.content()
    delta = memory.import_items(path, ImportChoices(on_conflict="replace"))
    assert ids(memory) == ["c", "d", "new", "a", "a~2"]
    assert memory.content().items["a"].text == "other"
    assert memory.content().notes == {"d": {"uses": 1}}
    changes = list(delta)
    assert changes.index(Remove("a", REPLACED)) + 1 == [
        isinstance(change, Add) and change.item.id == "a" for change in changes
    ].index(True)
    assert fold([delta], start) == memory.content()


def test_id_when_taken_and_renamed_gets_one_that_neither_bank_nor_file_has(
    path: Path, memory: InsightMemory
) -> None:
    """`a~2` is in the file, so that `a` becomes `a~3`."""
    conflicting(memory, path)
    memory.import_items(path, ImportChoices(on_conflict="rename"))
    assert ids(memory) == ["a", "c", "d", "new", "a~3", "a~2"]
    assert memory.content().items["a~3"].text == "other"


def test_bundle_when_there_are_choices_is_taken_and_its_notes_are_not(
    tmp_path: Path, memory: InsightMemory
) -> None:
    """Derived values start afresh."""
    content = BankContent({item.id: item for item in VARIED}, {"a": {"votes": 9}})
    write_bundle(tmp_path / "bank", content)
    memory.import_items(tmp_path / "bank", ImportChoices())
    assert memory.content().items == content.items
    assert not memory.content().notes


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"where": {"text": "x"}}, "cannot filter by 'text'"),
    ({"where": {"metadata.": "x"}}, "cannot filter by 'metadata.'"),
    ({"where": {"metadata": "x"}}, "cannot filter by 'metadata'"),
    ({"where": {"success": None}}, "where"),
    ({"where": {"success": {}}}, "where"),
    ({"remap": {"id": "x"}}, "remap"),
    ({"remap": {"source_domain": ""}}, "a domain cannot be empty"),
    ({"remap": {"source_domain": {"a": ""}}}, "a domain cannot be empty"),
    ({"remap": {"task_id": "\ud800"}}, "surrogates not allowed"),
    ({"on_conflict": "merge"}, "on_conflict"),
    ({"on_conflicts": "skip"}, "on_conflicts"),
]


@pytest.mark.parametrize(("choices", "said"), WRONG, ids=str)
def test_choices_when_one_is_not_possible_are_refused(choices: dict[str, Any], said: str) -> None:
    """Before any file is opened."""
    with pytest.raises(SettingsError, match=said):
        ImportChoices(**choices)


# All or nothing ---------------------------------------------------------------------------


class Failing(TrajectoryMemory):
    """Fails in the upkeep that follows an import."""

    @override
    def _maintain(self) -> Sequence[Change]:
        msg = "no upkeep today"
        raise InputError(msg)


class Settling(TrajectoryMemory):
    """Notes what it imports."""

    @override
    def _settle(self, items: Sequence[MemoryItem]) -> Sequence[Change]:
        return [
            *(Annotate(item.id, {"imported": True}) for item in items),
            SetState("imports", len(items)),
        ]


def test_import_when_upkeep_fails_leaves_the_bank_as_it_was(path: Path) -> None:
    """What an import changes is worked out before any of it is written."""
    memory = Failing(InMemoryStore())
    with pytest.raises(InputError, match="no upkeep today"):
        memory.import_items(path)
    assert memory.content() == BankContent()


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-30] + b"\n"])
def test_file_when_torn_is_refused_at_its_last_row_whatever_is_chosen(
    path: Path, memory: InsightMemory, damage: Any
) -> None:
    """The row is named, and nothing changes."""
    path.write_bytes(damage(path.read_bytes()))
    for choices in (None, ImportChoices(), ImportChoices(where={"type": "other"})):
        with pytest.raises(BankFormatError, match="row 4: "):
            memory.import_items(path, choices)
    assert memory.content() == BankContent()


async def test_import_when_dry_shows_what_it_would_change_and_changes_nothing(path: Path) -> None:
    """Adding, what settles, and what upkeep then prunes: the same as when it is done."""
    limited = Settling.settings_model(forgetting=(Capacity(limit=3),))
    memory = Settling(InMemoryStore(), settings=limited)
    memory.file(make_episode("own"))
    before = memory.content()
    shown = memory.import_items(path, dry_run=True)
    assert shown == await memory.aimport_items(path, dry_run=True)
    assert shown == Settling(ReadOnlyStore(memory.store), settings=limited).import_items(
        path, dry_run=True
    )
    assert memory.content() == before
    assert memory.import_items(path) == shown
    assert fold([shown], before) == memory.content()
    assert ids(memory) == ["b", "c", "d"]
    assert memory.content().notes == {name: {"imported": True} for name in "bcd"}
    assert [change.id for change in shown if isinstance(change, Remove)] == ["own/trajectory", "a"]


async def test_import_when_asynchronous_changes_the_same(path: Path, tmp_path: Path) -> None:
    """One logic for both."""
    choices = ImportChoices(on_conflict="rename", remap={"source_domain": "x"})
    one, other = InsightMemory(InMemoryStore()), InsightMemory(InMemoryStore())
    for _ in range(2):
        assert one.import_items(path, choices) == await other.aimport_items(path, choices)
    assert one.content() == other.content()


def test_items_when_imported_are_found_at_once(path: Path, memory: InsightMemory) -> None:
    """An index that was built before the import follows it."""
    assert not memory.provide("text of c", asking())
    memory.import_items(path)
    assert "c" in {item.id for item in memory.provide("text of c", asking()).items}


def test_export_when_read_back_is_the_bank_in_order(path: Path, memory: InsightMemory) -> None:
    """What is written is what is there."""
    memory.import_items(path)
    assert memory.export_items(path) == 4
    assert read_items(path) == ordered(memory)
