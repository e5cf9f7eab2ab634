"""Budgets: what is recalled never has more tokens than there is room for, however they count."""

from hypothesis import strategies as st

from langgraft._core.tokens import count_tokens_approximately
from langgraft.memory.recall import OVER_BUDGET, OVER_SHARE, Budget, render_block
from langgraft.memory.testing.providers.samples import COUNTERS
from langgraft.memory.testing.providers.suite import Make, NewStore, ProviderSuite
from langgraft.memory.testing.suite import needs


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
        """A budget decides what is given of what was found, and not what is found."""
        memory = self.filled(make, make_writer, new_store())
        for episode in self.stream():
            found = [
                {*recall.receipt.item_ids, *(drop.id for drop in recall.dropped)}
                for tokens in (None, 0, 40, 60, 90, 200)
                for recall in [self.ask(memory, episode, Budget(tokens))]
            ]
            assert all(each == found[0] for each in found)

    @needs("recalls")
    def test_item_when_larger_than_the_budget_is_dropped_with_the_reason(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """Nothing is cut to fit: a budget one token too small for any item gives none."""
        memory = self.filled(make, make_writer, new_store())
        for episode in self.stream():
            whole = self.ask(memory, episode)
            if not whole:
                continue
            sizes = [count_tokens_approximately(render_block([i.text])) for i in whole.items]
            recall = self.ask(memory, episode, Budget(min(sizes) - 1))
            assert not recall
            reasons = {drop.id: drop.reason for drop in recall.dropped}
            assert {item.id for item in whole.items} <= reasons.keys()
            assert {reasons[item.id] for item in whole.items} <= {OVER_BUDGET, OVER_SHARE}
