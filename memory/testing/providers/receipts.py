"""Receipts: what recalled items did counts once, however often a receipt is handed in."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from langgraft.memory.deltas import fold
from langgraft.memory.episodes import Episode, Outcome
from langgraft.memory.forgetting import SUCCESSES, USES
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Receipt
from langgraft.memory.testing.providers.suite import Make, NewStore, ProviderSuite
from langgraft.memory.testing.suite import needs

WORKERS = 16


class ReceiptCases(ProviderSuite):
    """Credit for what was recalled, where settings ask for it."""

    def _carrying(self, number: int, *receipts: Receipt, success: bool = True) -> Episode:
        """Return an episode that ended so, with receipts."""
        episode = self.episode(self.episodes + number)
        return replace(episode, outcome=Outcome(success=success), recalls=receipts)

    def _credited(self, make: Make, new_store: NewStore) -> MemoryProvider[Any]:
        """Return the provider, counting uses, over what there was to learn."""
        store = new_store()
        memory = self.with_settings(make(store), store, credit=True)
        self.learn(memory)
        return memory

    def _receipt(self, memory: MemoryProvider[Any]) -> Receipt:
        """Return the receipt of a recall that holds something."""
        recalls = (self.ask(memory, episode) for episode in self.stream())
        return next(recall.receipt for recall in recalls if recall)

    @needs("learns")
    @needs("recalls")
    def test_receipt_when_carried_by_several_episodes_counts_once(
        self, make: Make, new_store: NewStore
    ) -> None:
        """The first episode that carries it gives the credit, for use and for success."""
        memory = self._credited(make, new_store)
        receipt = self._receipt(memory)
        memory.file(self._carrying(0, receipt, receipt, success=True))
        memory.file(self._carrying(0, receipt, success=True))
        memory.file(self._carrying(1, receipt, success=False))
        content = memory.content()
        for name in set(receipt.item_ids) & content.items.keys():
            assert (content.notes[name][USES], content.notes[name][SUCCESSES]) == (1, 1)
        other = replace(receipt, id="another recall of the same")
        memory.file(self._carrying(2, other, success=False))
        content = memory.content()
        for name in set(receipt.item_ids) & content.items.keys():
            assert (content.notes[name][USES], content.notes[name][SUCCESSES]) == (2, 1)

    @needs("learns")
    @needs("recalls")
    def test_receipt_when_sixteen_threads_hand_it_in_counts_once(
        self, make: Make, new_store: NewStore
    ) -> None:
        """Branches of a search share one recall; no credit is given twice."""
        memory = self._credited(make, new_store)
        receipt = self._receipt(memory)
        branches = [self._carrying(number, receipt) for number in range(WORKERS)]
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(memory.file, branches))
        content = memory.content()
        for name in set(receipt.item_ids) & content.items.keys():
            assert content.notes[name][USES] == 1

    @needs("learns")
    def test_receipt_when_its_items_have_gone_is_passed_over(
        self, make: Make, new_store: NewStore
    ) -> None:
        """An item may be forgotten between a recall and the end of its episode."""
        store = new_store()
        memory = self.with_settings(make(store), store, credit=True)
        log = self.learn(memory)
        receipt = Receipt("r", "q", 0, ("never there",), (1.0,), 10)
        log.append(memory.file(self._carrying(0, receipt)))
        assert fold(log).to_bytes() == memory.content().to_bytes()
        assert "never there" not in memory.content().notes

    @needs("learns")
    @needs("recalls")
    def test_receipt_when_settings_do_not_ask_for_credit_leaves_no_count(
        self, make: Make, new_store: NewStore
    ) -> None:
        """Nothing is counted that nobody reads."""
        store = new_store()
        memory = self.with_settings(make(store), store, credit=False, forgetting=())
        self.learn(memory)
        memory.file(self._carrying(0, self._receipt(memory)))
        assert not [notes for notes in memory.content().notes.values() if USES in notes]
