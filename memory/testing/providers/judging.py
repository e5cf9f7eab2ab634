"""Judging: what is asked of a model, what becomes of the answers, and credit for what was recalled."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from langgraft.memory.deltas import Annotate, Remove, fold
from langgraft.memory.episodes import Episode, Outcome
from langgraft.memory.forgetting import SUCCESSES, USES
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Verdict
from langgraft.memory.recall import Receipt
from langgraft.memory.testing.providers.samples import ACTIONS, context_of
from langgraft.memory.testing.providers.suite import Make, NewStore, ProviderSuite
from langgraft.memory.testing.suite import needs

GONE = "an item that is not there"


class JudgingCases(ProviderSuite):
    """A provider asks, a node answers, and the answers come back as verdicts."""

    def test_questions_when_asked_twice_are_the_same_and_answered_are_gone(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """A question is named by what it shows; one that was answered is not put again."""
        memory = self.filled(make, make_writer, new_store())
        episode = self.episode(self.episodes)
        asked = memory.questions(episode)
        assert asked == memory.questions(episode)
        assert len({question.id for question in asked}) == len(asked)
        for question in asked:
            verdict = Verdict(question.id, "none")
            left = memory.questions(replace(episode, verdicts=(verdict,)))
            assert left == [each for each in asked if each.id != question.id]

    def test_draft_questions_when_asked_twice_are_the_same_and_answered_are_gone(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """So it is with what is asked about a draft."""
        memory = self.filled(make, make_writer, new_store())
        for episode in self.stream():
            context = context_of(episode)
            asked = memory.draft_questions(episode.task, context)
            assert asked == memory.draft_questions(episode.task, context)
            for question in asked:
                judged = replace(context, verdicts=(Verdict(question.id, "none"),))
                left = memory.draft_questions(episode.task, judged)
                assert left == [each for each in asked if each.id != question.id]

    @needs("learns")
    def test_verdicts_when_their_item_has_gone_are_ignored(
        self, make: Make, new_store: NewStore
    ) -> None:
        """Nothing is done to an item that is not there, whatever a judge says of it."""
        memory = make(new_store())
        log = self.learn(memory)
        number = self.episodes
        for action in ACTIONS:
            episode = self.episode(number)
            number += 1
            said = tuple(
                Verdict(question.id, action, GONE, "other words")
                for question in memory.questions(episode)
            )
            stray = Verdict("a question nobody asked", action, GONE, "other words")
            delta = memory.file(replace(episode, verdicts=(*said, stray)))
            changed = [change for change in delta if isinstance(change, Remove | Annotate)]
            assert GONE not in {change.id for change in changed}
            log.append(delta)
        assert fold(log).to_bytes() == memory.content().to_bytes()

    def test_verdicts_on_a_draft_when_their_item_has_gone_are_ignored(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """A recall is what it would be without them."""
        memory = self.filled(make, make_writer, new_store())
        for episode in self.stream():
            context = context_of(episode)
            stray = tuple(Verdict("a question nobody asked", action, GONE) for action in ACTIONS)
            expected = memory.provide(episode.task, context)
            recall = memory.provide(episode.task, replace(context, verdicts=stray))
            assert recall.items == expected.items


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
