"""Moving: content leaves and enters as items; where a bank lies shows in nothing that is recalled."""

import importlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import BankFormatError, InputError, ReadOnlyStoreError
from langgraft.memory.bank_format import read_items, write_items
from langgraft.memory.forgetting import SUCCESSES, USES
from langgraft.memory.model import MemoryDelta, MemoryItem, Remove, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.testing.base import needs
from langgraft.memory.testing.providers.base import (
    Make,
    NewStore,
    ProviderSuite,
    Reopen,
    sample_items,
)


def unnumbered(items: list[MemoryItem]) -> list[MemoryItem]:
    """Return items without their place in the stream of a bank."""
    return [item.model_copy(update={"order_index": 0}) for item in items]


def removed(delta: MemoryDelta) -> dict[str, str]:
    """Return what a delta removes, and why."""
    return {change.id: change.reason for change in delta if isinstance(change, Remove)}


class MovingCases(ProviderSuite):
    """Export, import, export again: the same items, but for what has no room."""

    @needs("imports")
    def test_items_when_exported_imported_and_exported_are_the_same_bytes(
        self, make: Make, make_writer: Make, new_store: NewStore, tmp_path: Path
    ) -> None:
        """A fresh bank takes all over, numbers included; derived values are made again."""
        paths = [tmp_path / f"{number}.jsonl" for number in range(3)]
        first = self.items(make_writer, new_store(), paths[0])
        write_items(paths[0], first)
        for source, target in pairwise(paths):
            memory = make(new_store())
            dry = memory.import_items(source, dry_run=True)
            assert not memory.content().items
            delta = memory.import_items(source)
            assert delta == dry
            assert fold([delta]).to_bytes() == memory.content().to_bytes()
            assert memory.export_items(target) == len(memory.content().items)
            assert not memory.manage()
        assert paths[0].read_bytes() == paths[1].read_bytes() == paths[2].read_bytes()

    @needs("imports")
    def test_items_when_learned_from_gold_answers_are_refused_unless_declared(
        self, make: Make, new_store: NewStore, tmp_path: Path
    ) -> None:
        """What is refused from an episode does not come in as a file."""
        (item,), path = sample_items(1), tmp_path / "told.jsonl"
        write_items(path, [item.model_copy(update={"metadata": {"feedback": "oracle"}})])
        store = new_store()
        memory = make(store)
        before = memory.content().digest
        with pytest.raises(InputError, match="feedback='oracle'"):
            memory.import_items(path)
        assert memory.content().digest == before
        assert self.with_settings(memory, store, feedback="oracle").import_items(path)

    @needs("imports")
    def test_items_when_more_than_there_is_room_for_are_pruned_in_the_delta(
        self, make: Make, make_writer: Make, new_store: NewStore, tmp_path: Path
    ) -> None:
        """What is missing after an import, its delta removes with a reason; the rest is whole.

        Many copies of one text are imported, as a collapsed memory would hold them.
        """
        path, again = tmp_path / "many.jsonl", tmp_path / "again.jsonl"
        own = self.items(make_writer, new_store(), path)[0]
        many = [
            own.model_copy(update={"id": f"copy-{number}", "order_index": number})
            for number in range(self.many)
        ]
        write_items(path, many)
        store = new_store()
        memory = make(store)
        delta = memory.import_items(path)
        left, gone = memory.content(), removed(delta)
        assert left.items.keys() | gone.keys() == {item.id for item in many}
        assert len(left.items) + len(gone) == self.many
        assert all(gone.values())
        assert fold([delta]).to_bytes() == left.to_bytes()

        memory.export_items(again)
        kept = [item for item in many if item.id in left.items]
        assert unnumbered(read_items(again)) == unnumbered(kept)
        recalls = [self.ask(memory, episode) for episode in self.stream()[:2]]
        other = make(store)
        assert recalls == [self.ask(other, episode) for episode in self.stream()[:2]]
        assert memory.content().digest == left.digest

    @needs("imports")
    def test_items_when_imported_follow_those_already_there(
        self, make: Make, make_writer: Make, new_store: NewStore, tmp_path: Path
    ) -> None:
        """They are renumbered after the bank's last, in the order of their own numbers."""
        path = tmp_path / "bank.jsonl"
        early, late = self.items(make_writer, new_store(), path)[:2]
        lines = [
            late.model_copy(update={"id": "late", "order_index": 7}),
            early.model_copy(update={"id": "early", "order_index": 2}),
        ]
        write_items(path, lines)
        memory = make(new_store())
        log = [*self.learn(memory), memory.import_items(path)]
        log += self.learn(memory, [self.episode(self.episodes)])
        held = memory.content()
        assert fold(log).to_bytes() == held.to_bytes()
        orders = {name: item.order_index for name, item in held.items.items()}
        assert orders["early"] < orders["late"]
        before = [name for name in orders if orders[name] < orders["early"]]
        after = [name for name in orders if orders[name] > orders["late"]]
        assert len(before) + len(after) + 2 == len(orders)
        for line in lines:
            moved = held.items[line.id]
            assert moved.model_copy(update={"order_index": line.order_index}) == line

    @needs("imports")
    def test_notes_when_items_are_imported_start_afresh(
        self, make: Make, make_writer: Make, new_store: NewStore, tmp_path: Path
    ) -> None:
        """What items earned elsewhere does not count here."""
        path, store = tmp_path / "bank.jsonl", new_store()
        own = self.items(make_writer, store, path)
        write_items(path, own)
        target = new_store()
        memory = self.with_settings(make(target), target, credit=True)
        memory.import_items(path)
        for notes in memory.content().notes.values():
            assert not notes.get(USES)
            assert not notes.get(SUCCESSES)

    @needs("imports")
    def test_import_when_refused_changes_nothing(
        self, make: Make, new_store: NewStore, tmp_path: Path
    ) -> None:
        """All or none: an id that is taken, a torn last line and a wrong row are named."""
        memory, path = make(new_store()), tmp_path / "bank.jsonl"
        write_items(path, sample_items(3))
        memory.import_items(path)
        self.learn(memory)
        before = memory.content().digest
        names = list(memory.content().items)
        taken = sample_items(1)[0].model_copy(update={"id": names[0]})
        fresh = [item.model_copy(update={"id": f"new-{item.id}"}) for item in sample_items(3)]
        write_items(path, [fresh[0], taken])
        with pytest.raises(BankFormatError, match=r"row 2: .*already in the bank"):
            memory.import_items(path)
        write_items(path, fresh)
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        with pytest.raises(BankFormatError, match=r"row 3: .*truncated"):
            memory.import_items(path)
        path.write_bytes(whole.replace(b'"strategic"', b'"tactical"', 1))
        with pytest.raises(BankFormatError, match="row 1: "):
            memory.import_items(path)
        assert memory.content().digest == before

    @needs("imports", value=False)
    def test_import_when_the_bank_is_not_to_be_written_is_refused(
        self, make: Make, make_writer: Make, new_store: NewStore, tmp_path: Path
    ) -> None:
        """Not even content gets in."""
        memory = self.filled(make, make_writer, new_store())
        before = memory.content().digest
        write_items(tmp_path / "bank.jsonl", sample_items(3))
        with pytest.raises(ReadOnlyStoreError):
            memory.import_items(tmp_path / "bank.jsonl")
        assert memory.content().digest == before


class SamenessCases(ProviderSuite):
    """The same settings and the same bank give the same, always."""

    def test_memory_when_made_anew_elsewhere_does_the_same(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """Two fresh ones return equal deltas and recalls: no clock, no chance, whatever the store.

        The other one is in LangGraph's `InMemoryStore`.
        """
        here, there = new_store(), InMemoryStore()
        assert self.learn(make_writer(here)) == self.learn(make_writer(there))
        memory, other = make(here), make(there)
        assert memory.content().to_bytes() == other.content().to_bytes()
        assert self.recalls_of(memory) == self.recalls_of(other)

    def test_bank_when_reopened_restored_or_frozen_is_recalled_alike(
        self, make: Make, make_writer: Make, new_store: NewStore, reopen: Reopen
    ) -> None:
        """A bank is what it holds: not who wrote it, how often, or where."""
        store, elsewhere = new_store(), new_store()
        writer = make_writer(store)
        log = self.learn(writer)
        memory = make(store)
        restored = make_writer(elsewhere)
        restored.file(self.episode(self.episodes))
        restored.restore(fold(log))
        expected, held = self.recalls_of(memory), memory.content().to_bytes()
        for other in (make(reopen(store)), make(elsewhere), make(ReadOnlyStore(store))):
            assert other.content().to_bytes() == held
            assert self.recalls_of(other) == expected

    @needs("learns")
    def test_bank_when_reopened_goes_on(
        self, make: Make, new_store: NewStore, reopen: Reopen
    ) -> None:
        """What is learned in two sittings is what would be learned in one."""
        store, half = new_store(), self.episodes // 2
        log = self.learn(make(store), self.stream()[:half])
        log += self.learn(make(reopen(store)), self.stream()[half:])
        whole = make(new_store())
        assert log == self.learn(whole)
        assert make(reopen(store)).content() == whole.content()

    def test_architecture_when_described_is_json_and_independent_of_the_bank(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """Neither the store nor what it holds is part of it."""
        fresh = make(new_store())
        described = fresh.describe()
        assert json.loads(canonical_json(described)) == described
        memory = self.filled(make, make_writer, new_store())
        assert memory.describe() == described
        assert memory.architecture == fresh.architecture

    def test_settings_when_read_from_their_description_make_the_same_provider(
        self, make: Make, new_store: NewStore
    ) -> None:
        """A plan that says what `describe` says gets this provider."""
        memory = _wrapped(make(new_store()))
        described = json.loads(canonical_json(memory.describe()))
        again = type(memory.settings).model_validate(described["settings"])
        assert again == memory.settings
        assert hash(again) == hash(memory.settings)
        assert again.describe() == described["settings"]
        if name := _name_in_plans(type(memory)):
            made = make_provider(name, new_store(), settings=described["settings"])
            assert type(made) is type(memory)
            assert made.describe() == memory.describe()


def _wrapped(memory: MemoryProvider[Any]) -> MemoryProvider[Any]:
    """Return the provider that a control wraps, or else the provider."""
    inner: MemoryProvider[Any] | None = getattr(memory, "inner", None)
    return memory if inner is None else _wrapped(inner)


def _name_in_plans(kind: type) -> str | None:
    """Return the name of a provider in plans, or else its path, if it can be imported."""
    place = kind.__module__, kind.__qualname__
    for name, known in PROVIDERS.items():
        if known == place:
            return name
    try:
        found = getattr(importlib.import_module(place[0]), place[1], None)
    except ImportError:
        return None
    return ":".join(place) if found is kind else None
