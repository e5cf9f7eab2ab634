"""Filing: what an episode leaves behind, once, and what it must not."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft.memory.deltas import Add, MemoryDelta, fold
from langgraft.memory.episodes import Episode, Feedback, Outcome
from langgraft.memory.recall import BLOCK_START, render_block
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.testing.providers.samples import HOSTILE, with_every_text
from langgraft.memory.testing.providers.suite import Make, NewStore, ProviderSuite
from langgraft.memory.testing.suite import needs

SECRET = "zanzibar-7391"  # noqa: S105 - a word that nothing else holds
BLOCK = render_block([SECRET])


def judged_by(episode: Episode, feedback: Feedback) -> Episode:
    """Return an episode whose outcome somebody else reports."""
    outcome = episode.outcome
    return replace(episode, outcome=Outcome(outcome.success, outcome.score, feedback=feedback))


def added(delta: MemoryDelta) -> list[dict[str, Any]]:
    """Return the metadata of the items that a delta adds."""
    return [dict(change.item.metadata) for change in delta if isinstance(change, Add)]


class FilingCases(ProviderSuite):
    """An episode is filed once, whole or not at all, and without what memory itself said."""

    @needs("learns")
    def test_stream_when_filed_leaves_items(self, make: Make, new_store: NewStore) -> None:
        """Something is learned from the stream: else the other cases would show nothing."""
        memory = make(new_store())
        assert any(self.learn(memory))
        assert memory.content().items, "nothing was kept: give `episode` what it learns from"

    @needs("learns")
    def test_episode_when_filed_again_changes_nothing(
        self, make: Make, new_store: NewStore
    ) -> None:
        """An episode is known by its id; a second call returns an empty delta."""
        memory = make(new_store())
        self.learn(memory)
        before = memory.content().digest
        for number in range(self.episodes):
            assert not memory.file(self.episode(number))
            assert not memory.file(replace(self.episode(number + 1), id=self.episode(number).id))
        assert memory.content().digest == before

    @needs("learns", value=False)
    def test_episode_when_nothing_is_to_be_learned_changes_nothing(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """What does not learn returns empty deltas and leaves the bank as it is."""
        memory = self.filled(make, make_writer, new_store())
        before = memory.content().digest
        assert not memory.file(self.episode(self.episodes))
        assert not memory.manage()
        assert memory.content().digest == before

    @needs("learns")
    def test_bank_when_read_only_refuses_an_episode(self, make: Make, new_store: NewStore) -> None:
        """A frozen bank is as it was; an episode that is in it already is no write."""
        store = new_store()
        memory = make(store)
        memory.file(self.episode(0))
        before = memory.content().digest
        frozen = make(ReadOnlyStore(store))
        with pytest.raises(ReadOnlyStoreError):
            frozen.file(self.episode(1))
        assert not frozen.file(self.episode(0))
        assert frozen.content().digest == memory.content().digest == before

    @needs("learns")
    def test_episode_when_it_quotes_recalled_memory_is_filed_without_it(
        self, make: Make, new_store: NewStore
    ) -> None:
        """Memory never feeds on itself: neither items nor questions hold an injected block."""
        memory = make(new_store())
        for episode in self.stream():
            quoting = with_every_text(episode, BLOCK)
            shown = [question.shows for question in memory.questions(quoting)]
            assert SECRET not in repr(shown)
            self.learn(memory, [with_every_text(self.judged(memory, quoting), BLOCK)])
        held = memory.content().to_bytes().decode()
        assert SECRET not in held
        assert BLOCK_START not in held

    @needs("learns")
    def test_texts_when_hostile_are_kept_as_the_deltas_say(
        self, make: Make, new_store: NewStore
    ) -> None:
        """Controls, quotes and astral characters are text like any other, on the way and there."""
        memory = make(new_store())
        listed = [
            with_every_text(self.episode(number), text) for number, text in enumerate(HOSTILE)
        ]
        deltas = self.learn(memory, listed)
        logged = [MemoryDelta.from_json(delta.to_json()) for delta in deltas]
        assert memory.content().to_bytes() == fold(logged).to_bytes()
        for episode in listed:
            self.ask(memory, episode)

    @needs("learns")
    def test_episode_when_no_file_could_hold_it_is_refused_whole(
        self, make: Make, new_store: NewStore
    ) -> None:
        """A lone surrogate is refused in one line that names the episode, or not kept."""
        memory = make(new_store())
        bad = with_every_text(self.episode(0), "\ud800")
        before = memory.content().to_bytes()
        with suppress(InputError):
            memory.questions(bad)
        refused: InputError | None = None
        try:
            memory.file(bad)
        except InputError as error:
            refused = error
        if refused is None:
            assert memory.content().to_bytes()
            return
        assert bad.id in str(refused)
        assert len(str(refused).encode().splitlines()) == 1
        assert memory.content().to_bytes() == before

    @needs("learns")
    def test_episode_when_judged_by_gold_answers_is_refused_unless_declared(
        self, make: Make, new_store: NewStore
    ) -> None:
        """What no agent would know is not learned from in silence."""
        store = new_store()
        memory = make(store)
        told = judged_by(self.episode(1), "oracle")
        before = memory.content().digest
        with pytest.raises(InputError, match="feedback='oracle'"):
            memory.file(told)
        assert memory.content().digest == before
        assert self.with_settings(memory, store, feedback="oracle").file(told)

    @needs("learns")
    def test_items_when_success_is_not_the_environments_word_say_whose_it_is(
        self, make: Make, new_store: NewStore
    ) -> None:
        """Gold answers and the agent's own judgment are stamped on every item."""
        for feedback in ("environment", "self", "oracle"):
            store = new_store()
            memory = self.with_settings(make(store), store, feedback="oracle")
            listed = [judged_by(episode, feedback) for episode in self.stream()]
            stamps = [
                metadata.get("feedback")
                for delta in self.learn(memory, listed)
                for metadata in added(delta)
            ]
            assert set(stamps) == {None if feedback == "environment" else feedback}
