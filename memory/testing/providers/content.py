"""Content that no episode brings: forgotten, edited and cleared by hand; exported, imported, opened elsewhere.

What is forgotten is nowhere, what is edited is found, what is cleared is as new. Where a bank lies shows in
nothing that is recalled.
"""

import asyncio
import importlib
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import BankFormatError, InputError, ReadOnlyStoreError
from langgraft.memory.bank_format import read_items, write_items
from langgraft.memory.forgetting import SUCCESSES, USES
from langgraft.memory.model import BankContent, Episode, MemoryDelta, MemoryItem, Remove, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.recall import Recall
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.testing.base import needs
from langgraft.memory.testing.providers.base import (
    Make,
    NewStore,
    ProviderSuite,
    Reopen,
    sample_items,
    with_every_text,
)

CANARY = "zanzibar-7431"
"""A word that stands in one episode, and in nothing else."""


def stored(store: BaseStore) -> str:
    """Return all that a store holds, as text."""
    found = store.search((), limit=10_000)
    return "\n".join(canonical_json([each.key, each.value]) for each in found)


def recalled(recall: Recall) -> str:
    """Return all that a recall tells."""
    said = [recall.text, canonical_json(recall.receipt.to_json())]
    return "\n".join([*said, *(canonical_json(item.to_json()) for item in recall.items)])


class EditingCases(ProviderSuite):
    """Forgetting, editing and clearing by hand."""

    def told(self, memory: MemoryProvider[Any]) -> tuple[Episode, list[MemoryItem]]:
        """Have a bank learn a stream, one of whose episodes holds the canary; return its items."""
        stream = self.stream()[:5]
        stream[2] = with_every_text(stream[2], CANARY)
        self.learn(memory, stream)
        return stream[2], self.telling(memory)

    def telling(self, memory: MemoryProvider[Any]) -> list[MemoryItem]:
        """Return the items that hold the canary."""
        items = memory.content().items.values()
        return [item for item in items if CANARY in canonical_json(item.to_json())]

    @needs("learns")
    def test_items_when_forgotten_are_in_no_record_and_no_recall(
        self, make: Make, new_store: NewStore, reopen: Reopen
    ) -> None:
        """Nothing that was made of them is left, whoever looks; the log still folds to the bank."""
        store = new_store()
        memory = make(store)
        _, items = self.told(memory)
        assert items
        start, deltas = memory.content(), []
        while items:
            deltas.append(memory.forget(items[0].id))
            assert items[0].id not in memory.content().items
            items = self.telling(memory)
        assert fold(deltas, start).to_bytes() == memory.content().to_bytes()
        assert CANARY not in stored(store)
        for other in (memory, make(store), make(reopen(store))):
            # Asked in other words: a receipt repeats the question.
            query, context = self.asks(self.episode(2))
            assert CANARY not in recalled(other.provide(query, context))
        assert not memory.manage(dry_run=True)

    @needs("learns")
    def test_source_when_revoked_leaves_nothing_or_says_what(
        self, make: Make, new_store: NewStore
    ) -> None:
        """No item follows from it any more; a bank that is said to be exact never saw it."""
        memory, never = make(new_store()), make(new_store())
        told = [replace(each, sources=("web:evil.example",)) for each in self.stream()]
        clean = self.stream()
        for number, episode in enumerate(clean):
            self.learn(memory, [episode if number % 2 else told[number]])
            if number % 2:
                self.learn(never, [episode])
        before = memory.content()
        done = memory.revoke("web:evil.example")
        held = memory.content()
        assert fold([done.delta], before).to_bytes() == held.to_bytes()
        assert not any("web:evil.example" in item.sources for item in held.items.values())
        if done.exact:
            assert held.to_bytes() == never.content().to_bytes()

    @needs("learns")
    def test_item_when_forgotten_does_not_come_back_with_its_episode(
        self, make: Make, new_store: NewStore
    ) -> None:
        """The episode was filed, whatever became of what it left."""
        memory = make(new_store())
        episode, items = self.told(memory)
        memory.forget(items[0].id)
        before = memory.content().digest
        assert not memory.file(episode)
        assert memory.content().digest == before

    @needs("learns")
    def test_item_when_edited_says_what_is_new_and_nothing_of_the_old(
        self, make: Make, new_store: NewStore, runner: asyncio.Runner
    ) -> None:
        """It is recalled in its new words, with its id and age; the old ones stand nowhere."""
        store = new_store()
        memory = make(store)
        episode = self.episode(1)
        self.learn(memory, [episode])
        found = self.ask(memory, episode).items if self.recalls else ()
        item = next(iter((*found, *memory.content().items.values())))
        start, text = memory.content(), f"{item.text} {CANARY}"
        delta = runner.run(memory.aedit(item.id, text=text, metadata={"note": 1}))
        assert fold([delta], start).to_bytes() == memory.content().to_bytes()
        new = memory.content().items[item.id]
        assert (new.text, new.metadata["note"]) == (text, 1)
        assert (new.order_index, new.episode_id) == (item.order_index, item.episode_id)
        if self.recalls:
            assert CANARY in recalled(self.ask(memory, episode))
        memory.edit(item.id, text=text.replace(CANARY, "aruba-1"), metadata={"note": None})
        assert CANARY not in stored(store)
        assert "note" not in memory.content().items[item.id].metadata
        assert not memory.edit(item.id, text=text.replace(CANARY, "aruba-1"))
        assert not memory.manage(dry_run=True)

    @needs("learns")
    def test_bank_when_cleared_is_as_new(
        self, make: Make, new_store: NewStore, runner: asyncio.Runner
    ) -> None:
        """It holds nothing, and learns as an empty one does."""
        store, fresh = new_store(), make(new_store())
        memory = make(store)
        self.told(memory)
        start = memory.content()
        delta = runner.run(memory.aclear())
        assert fold([delta], start) == memory.content() == BankContent()
        assert CANARY not in stored(store)
        assert not memory.clear()
        for each in (memory, fresh):
            self.learn(each)
        assert memory.content().to_bytes() == fresh.content().to_bytes()

    @needs("learns")
    def test_change_when_it_is_not_possible_changes_nothing(
        self, make: Make, new_store: NewStore, runner: asyncio.Runner
    ) -> None:
        """An id that is not there, one near it named; no change, or none that an item can hold."""
        store = new_store()
        memory = make(store)
        _, items = self.told(memory)
        identity, before = items[-1].id, memory.content().digest
        near = f"no item '{identity}x' in the bank .*: did you mean .*'{identity}'"
        with pytest.raises(InputError, match=near):
            memory.forget(f"{identity}x")
        with pytest.raises(InputError, match=near):
            runner.run(memory.aedit(f"{identity}x", text="new"))
        refused: list[tuple[dict[str, Any], str]] = [
            ({}, "nothing to edit"),
            ({"text": " \n"}, "forget the item instead"),
            ({"text": "\ud800"}, "surrogates"),
            ({"metadata": {"feedback": "environment"}}, "`feedback` of item .* cannot be edited"),
            ({"metadata": {"n": float("nan")}}, "cannot be edited"),
        ]
        for fields, said in refused:
            with pytest.raises(InputError, match=said):
                memory.edit(identity, **fields)
        frozen = make(ReadOnlyStore(store))
        with pytest.raises(ReadOnlyStoreError):
            frozen.forget(identity)
        with pytest.raises(ReadOnlyStoreError):
            frozen.edit(identity, text="new")
        with pytest.raises(ReadOnlyStoreError):
            frozen.clear()
        assert memory.content().digest == before


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
