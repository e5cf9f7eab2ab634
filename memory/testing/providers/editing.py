"""Changes by hand: what is forgotten is nowhere, what is edited is found, what is cleared is as new."""

import asyncio
from typing import Any

import pytest
from langgraph.store.base import BaseStore

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft.memory.model import BankContent, Episode, MemoryItem, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Recall
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.testing.base import needs
from langgraft.memory.testing.providers.base import (
    Make,
    NewStore,
    ProviderSuite,
    Reopen,
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
