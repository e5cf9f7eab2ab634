"""Sameness: where a bank lies and when it was opened shows in nothing that is recalled."""

import importlib
import json
from typing import Any

from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import canonical_json
from langgraft.memory.deltas import fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.testing.providers.suite import Make, NewStore, ProviderSuite, Reopen
from langgraft.memory.testing.suite import needs


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
