"""Recalling: what a bank holds, within a budget, and nothing changes; questions, answers and credit."""

import asyncio
import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from langgraft._core.canonical import canonical_json
from langgraft.memory.forgetting import SUCCESSES, USES
from langgraft.memory.model import (
    Annotate,
    Episode,
    Outcome,
    Receipt,
    Remove,
    Verdict,
    fold,
    strip_block,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import (
    OVER_BUDGET,
    OVER_SHARE,
    SAME_TASK,
    Budget,
    count_tokens_approximately,
    render_block,
)
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.testing.base import needs
from langgraft.memory.testing.providers.base import (
    ACTIONS,
    COUNTERS,
    Make,
    NewStore,
    ProviderSuite,
    context_of,
)


class AskingCases(ProviderSuite):
    """A provider may be asked anything at any time."""

    @needs("recalls")
    def test_stream_when_asked_about_is_recalled(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """Something is found again: else the other cases would show nothing."""
        memory = self.filled(make, make_writer, new_store())
        found = [self.ask(memory, episode) for episode in self.stream()]
        assert any(found), "nothing was recalled: give `asks` what finds what was learned"

    @needs("recalls", value=False)
    def test_memory_when_it_recalls_nothing_is_empty_whatever_is_asked(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """No block, no items, no tokens, and a receipt that gives no credit."""
        for recall in self.recalls_of(self.filled(make, make_writer, new_store())):
            assert (recall.text, recall.items, recall.tokens) == ("", (), 0)
            assert not recall.receipt.item_ids

    def test_bank_when_empty_gives_nothing_and_is_no_error(
        self, make: Make, new_store: NewStore
    ) -> None:
        """A memory without experience renders to nothing at all."""
        memory = make(new_store())
        for recall in self.recalls_of(memory):
            assert (recall.text, recall.items, recall.tokens) == ("", (), 0)
        assert not memory.manage()
        memory.questions(self.episode(0))
        memory.draft_questions("", context_of(self.episode(0)))

    def test_memory_when_asked_anything_changes_nothing(
        self, make: Make, make_writer: Make, new_store: NewStore, tmp_path: Path
    ) -> None:
        """Recall, questions, dry runs and exports work on a store that refuses every write."""
        store = new_store()
        self.learn(make_writer(store))
        before = make(store).content().digest
        memory = make(ReadOnlyStore(store))
        self.recalls_of(memory)
        for query, context in self.contexts():
            memory.asks_again(query, context, context)
            memory.draft_questions(query, context)
        for number in (0, self.episodes):
            memory.questions(self.episode(number))
        assert memory.needs <= {"lessons", "errors", "facts", "verdicts", "draft"}
        memory.manage(dry_run=True)
        memory.export_items(tmp_path / "bank.jsonl")
        assert memory.content().digest == make(store).content().digest == before

    def test_memory_when_asked_again_gives_the_same_answer(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """No counter hides in the object: what was asked before shows in no answer."""
        store = new_store()
        memory = self.filled(make, make_writer, store)
        for query, context in self.contexts():
            answer = memory.provide(query, context)
            assert memory.provide(query, context) == answer
        other = make(store)
        query, context = self.asks(self.episode(0))
        assert other.provide(query, context) == memory.provide(query, context)

    def test_upkeep_when_dry_says_what_it_would_do(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """The delta is the one that upkeep then returns, and nothing is due after it.

        Nor is anything right after a filing, unless settings change.
        """
        store = new_store()
        memory = self.filled(make, make_writer, store)
        assert not memory.manage(dry_run=True)
        room = {"policy": "capacity", "limit": 1}
        writer = self.with_settings(make_writer(store), store, forgetting=[room])
        dry = writer.manage(dry_run=True)
        assert writer.manage() == dry
        assert not writer.manage()

    def test_recall_when_described_by_its_receipt_agrees_with_it(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """The receipt names each item and score, and all that was left out with a reason."""
        memory = self.filled(make, make_writer, new_store())
        held = memory.content().items
        for recall in self.recalls_of(memory):
            receipt = recall.receipt
            assert receipt.item_ids == tuple(item.id for item in recall.items)
            assert len(set(receipt.item_ids)) == len(receipt.item_ids)
            assert held.keys() >= set(receipt.item_ids)
            assert receipt.scores == recall.scores
            assert len(receipt.scores) == len(receipt.item_ids)
            assert all(math.isfinite(score) for score in receipt.scores)
            assert receipt.tokens == recall.tokens
            assert receipt.dropped == recall.dropped
            assert all(drop.reason for drop in recall.dropped)
            assert not {drop.id for drop in recall.dropped} & set(receipt.item_ids)
            assert bool(recall) is bool(recall.text)
            assert strip_block(f"before {recall.text}after") == "before after"
            json.loads(canonical_json(receipt.to_json()))

    @needs("recalls")
    def test_items_when_of_the_same_task_are_left_out_where_settings_say_so(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """No item of the task that asks is recalled, and those of other tasks still are."""
        store = new_store()
        memory = self.with_settings(
            self.filled(make, make_writer, store), store, same_task="exclude"
        )
        held, found = memory.content().items, 0
        for episode in self.stream():
            query, context = self.asks(episode)
            recall = memory.provide(query, context_of(episode))
            assert all(item.task_id != episode.task_id for item in recall.items)
            for drop in recall.dropped:
                if drop.reason == SAME_TASK:
                    assert held[drop.id].task_id == episode.task_id
            found += len(memory.provide(query, context).items)
        assert found, "nothing of other tasks was recalled"

    def test_memory_when_used_asynchronously_does_the_same(
        self,
        make: Make,
        make_writer: Make,
        new_store: NewStore,
        runner: asyncio.Runner,
        tmp_path: Path,
    ) -> None:
        """Every call has a twin for event loops that returns the same and leaves the same."""
        here, there = new_store(), new_store()
        writer, awriter = make_writer(here), make_writer(there)
        paths = tmp_path / "sync.jsonl", tmp_path / "async.jsonl"

        async def live() -> None:
            for episode in self.stream():
                judged = self.judged(writer, episode)
                assert await awriter.aquestions(judged) == writer.questions(judged)
                assert await awriter.afile(judged) == writer.file(judged)
            assert await awriter.amanage(dry_run=True) == writer.manage(dry_run=True)
            assert await awriter.amanage() == writer.manage()
            memory, amemory = make(here), make(there)
            for query, context in self.contexts():
                assert await amemory.aprovide(query, context) == memory.provide(query, context)
                drafted = await amemory.adraft_questions(query, context)
                assert drafted == memory.draft_questions(query, context)
            assert await amemory.acontent() == memory.content()
            assert await amemory.aexport_items(paths[1]) == memory.export_items(paths[0])
            if self.imports:
                fresh, afresh = make(new_store()), make(new_store())
                assert await afresh.aimport_items(paths[1]) == fresh.import_items(paths[0])
                await afresh.arestore(await amemory.acontent())
                assert await afresh.acontent() == memory.content()

        runner.run(live())
        assert paths[0].read_bytes() == paths[1].read_bytes()


class BudgetCases(ProviderSuite):
    """A budget is a limit, and what it leaves out is told."""

    def test_recall_when_limited_never_exceeds_the_budget(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """Any limit, by any counter, also one by which the whole is more than its parts."""
        memory = self.filled(make, make_writer, new_store())
        asked = [self.asks(episode) for episode in self.stream()]

        def test(share: float, counter: str, number: int) -> None:
            count = COUNTERS[counter]
            whole = memory.provide(*asked[number], Budget(None, count))
            tokens = int(share * whole.tokens)
            recall = memory.provide(*asked[number], Budget(tokens, count))
            assert recall.tokens == (count(recall.text) if recall.text else 0)
            assert recall.tokens <= tokens

        # Of what is recalled without a limit, most parts hold something and not all.
        self.check(
            test,
            share=st.floats(0, 1.1),
            counter=st.sampled_from(sorted(COUNTERS)),
            number=st.integers(0, len(asked) - 1),
        )

    def test_budget_when_zero_gives_nothing(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """No room is no block, by any counter."""
        memory = self.filled(make, make_writer, new_store())
        for count in COUNTERS.values():
            for episode in self.stream():
                recall = self.ask(memory, episode, Budget(0, count))
                assert (recall.text, recall.items, recall.tokens) == ("", (), 0)

    def test_items_when_found_are_recalled_or_dropped_whatever_the_budget(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """A budget decides what is given of what is found; only what lacks room is replaced."""
        memory = self.filled(make, make_writer, new_store())
        for episode in self.stream():
            found = [
                {*recall.receipt.item_ids, *(drop.id for drop in recall.dropped)}
                for tokens in (None, 0, 40, 60, 90, 200)
                for recall in [self.ask(memory, episode, Budget(tokens))]
            ]
            assert all(found[0] <= each for each in found)

    @needs("recalls")
    def test_item_when_larger_than_the_budget_is_dropped_with_the_reason(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """Nothing is cut to fit: a budget one token too small for any of the best gives none of them."""
        memory = self.filled(make, make_writer, new_store())
        for episode in self.stream():
            whole = self.ask(memory, episode)
            if not whole:
                continue
            sizes = [count_tokens_approximately(render_block([i.text])) for i in whole.items]
            recall = self.ask(memory, episode, Budget(min(sizes) - 1))
            best = {item.id for item in whole.items}
            assert best.isdisjoint(recall.receipt.item_ids)  # shorter ones may be in their place
            reasons = {drop.id: drop.reason for drop in recall.dropped}
            assert best <= reasons.keys()
            assert {reasons[name] for name in best} <= {OVER_BUDGET, OVER_SHARE}


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
