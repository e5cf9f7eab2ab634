"""Filing: an episode is filed once and whole, and the log of deltas is the memory."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import strategies as st

from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft.memory.bank_format import write_items
from langgraft.memory.model import (
    BLOCK_START,
    Add,
    Episode,
    Feedback,
    MemoryDelta,
    MemoryItem,
    Outcome,
    SetState,
    fold,
)
from langgraft.memory.provider import EPISODES, MemoryProvider
from langgraft.memory.recall import Budget, render_block
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.testing.base import needs
from langgraft.memory.testing.providers import base
from langgraft.memory.testing.providers.base import (
    HOSTILE,
    Make,
    NewStore,
    ProviderSuite,
    with_every_text,
)

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


Library = list[MemoryItem]


class FoldingCases(ProviderSuite):
    """Folding all deltas over an empty bank gives the bank, byte for byte."""

    def test_stream_when_its_deltas_are_folded_is_the_bank(
        self, make: Make, new_store: NewStore
    ) -> None:
        """A log that was written and read again holds the bank, at every point of the stream."""
        memory = make(new_store())
        log: list[MemoryDelta] = []
        for episode in self.stream():
            log += self.learn(memory, [episode])
            logged = [MemoryDelta.from_json(delta.to_json()) for delta in log]
            assert fold(logged).to_bytes() == memory.content().to_bytes()

    @needs("learns")
    def test_history_when_drawn_at_random_folds_and_asking_leaves_no_trace(
        self, make: Make, new_store: NewStore, tmp_path: Path
    ) -> None:
        """Whatever is filed, answered, recalled, credited, imported and forgotten, in any order.

        Asking, filing again and dry runs come in between, and change nothing.
        """
        path = tmp_path / "library.jsonl"
        libraries = st.lists(base.items(), max_size=3, unique_by=lambda item: item.id)
        histories = st.lists(base.episodes() | libraries, min_size=1, max_size=5)

        def test(history: list[Episode | Library], data: st.DataObject) -> None:
            store = new_store()
            memory = self.with_settings(make(store), store, credit=True)
            log: list[MemoryDelta] = []
            for event in history:
                if isinstance(event, Episode):
                    log.append(_live(memory, event, data.draw))
                elif self.imports:
                    log += _import(memory, event, path)
                assert fold(log).to_bytes() == memory.content().to_bytes()

        self.check(test, history=histories, data=st.data())


def _live(memory: MemoryProvider[Any], episode: Episode, draw: Callable[[Any], Any]) -> MemoryDelta:
    """Play an episode: recall, judge, file, and file again; then no upkeep is due."""
    context = base.context_of(episode)
    recall = memory.provide(episode.task, context, Budget(tokens=99))
    asked = memory.questions(episode)
    given = draw(base.verdicts(asked, memory.content()))
    episode = replace(episode, verdicts=(*episode.verdicts, *given), recalls=(recall.receipt,))
    delta = memory.file(episode)
    before = memory.content().to_bytes()
    assert not memory.file(episode)
    memory.questions(episode)
    memory.draft_questions(episode.task, context)
    assert not memory.manage(dry_run=True)
    assert not memory.manage()
    assert memory.content().to_bytes() == before
    return delta


def _import(memory: MemoryProvider[Any], library: Library, path: Path) -> list[MemoryDelta]:
    """Import those items of a library whose ids are free."""
    taken = memory.content().items
    write_items(path, [item for item in library if item.id not in taken])
    return [memory.import_items(path)]


WORKERS = 16


class SharingCases(ProviderSuite):
    """A provider may be shared by 16 threads, or by 16 tasks of one event loop."""

    @needs("learns")
    def test_episodes_when_filed_by_sixteen_threads_at_once_are_all_kept(
        self, make: Make, new_store: NewStore
    ) -> None:
        """Each is filed once, though each is handed in twice, and others ask meanwhile."""
        memory = make(new_store())
        listed = [self.episode(number) for number in range(self.at_once)]

        def work(number: int) -> MemoryDelta:
            episode = listed[number % len(listed)]
            delta = memory.file(episode)
            self.ask(memory, episode)
            return delta

        with ThreadPoolExecutor(WORKERS) as pool:
            deltas = list(pool.map(work, range(2 * len(listed))))
        _check(memory, deltas, len(listed))

    @needs("learns")
    def test_episodes_when_filed_by_sixteen_tasks_at_once_are_all_kept(
        self, make: Make, new_store: NewStore, runner: asyncio.Runner
    ) -> None:
        """So it is in one event loop."""
        memory = make(new_store())
        listed = [self.episode(number) for number in range(WORKERS)]

        async def live() -> list[MemoryDelta]:
            tasks = (memory.afile(episode) for episode in (*listed, *listed))
            return await asyncio.gather(*tasks)

        _check(memory, runner.run(live()), len(listed))

    def test_memory_when_asked_by_sixteen_threads_at_once_gives_each_its_answer(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """Recalls do not mix."""
        memory = self.filled(make, make_writer, new_store())
        asked = self.contexts()
        expected = [memory.provide(*each) for each in asked]
        with ThreadPoolExecutor(WORKERS) as pool:
            assert list(pool.map(lambda each: memory.provide(*each), asked)) == expected


def _check(memory: MemoryProvider[Any], deltas: Sequence[MemoryDelta], filed: int) -> None:
    """Check that each episode was filed once, in an order in which the deltas fold."""
    content = memory.content()
    made = [delta for delta in deltas if delta]
    assert len(made) == filed == content.state[EPISODES]
    orders = [
        change.item.order_index for delta in made for change in delta if isinstance(change, Add)
    ]
    assert sorted(orders) == list(range(len(orders)))
    assert fold(sorted(made, key=_position)).to_bytes() == content.to_bytes()


def _position(delta: MemoryDelta) -> int:
    """Return which one of the episodes a delta files."""
    (count,) = (c.value for c in delta if isinstance(c, SetState) and c.key == EPISODES)
    return cast("int", count)
