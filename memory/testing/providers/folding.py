"""Folding: the log of deltas is the memory, whatever happens to it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from langgraft.memory.bank_format import write_items
from langgraft.memory.deltas import MemoryDelta, fold
from langgraft.memory.episodes import Episode
from langgraft.memory.items import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget
from langgraft.memory.testing.providers import samples
from langgraft.memory.testing.providers.suite import Make, NewStore, ProviderSuite
from langgraft.memory.testing.suite import needs

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
        libraries = st.lists(samples.items(), max_size=3, unique_by=lambda item: item.id)
        histories = st.lists(samples.episodes() | libraries, min_size=1, max_size=5)

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
    context = samples.context_of(episode)
    recall = memory.provide(episode.task, context, Budget(tokens=99))
    asked = memory.questions(episode)
    given = draw(samples.verdicts(asked, memory.content()))
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
