"""What the parts of the suite share: how a provider says what it does, and how it is tried."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import hypothesis
import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import SettingsError
from langgraft.memory.bank_format import read_items
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.items import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Question, Verdict
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.testing.providers.samples import (
    HOSTILE,
    models_refused,
    sample_episode,
    sample_items,
)
from langgraft.memory.testing.suite import Suite

Make: TypeAlias = Callable[[BaseStore], MemoryProvider[Any]]
"""Makes a provider over a store."""

NewStore: TypeAlias = Callable[[], BaseStore]
"""Makes an empty store."""

Reopen: TypeAlias = Callable[[BaseStore], BaseStore]
"""Opens what a store has kept, as a process would that comes later."""


class ProviderSuite(Suite):
    """Base of the suite's parts."""

    learns: ClassVar[bool] = True
    """`file` keeps something of an episode."""
    imports: ClassVar[bool] = True
    """`import_items` brings items in; if not, it is refused."""
    recalls: ClassVar[bool] = True
    """What the bank holds is recalled."""
    examples: ClassVar[int] = 20
    """Random histories to try, and random budgets."""
    episodes: ClassVar[int] = 9
    """Episodes in the stream that most cases file."""
    at_once: ClassVar[int] = 32
    """Episodes that 16 threads file at once, each of them twice."""
    many: ClassVar[int] = 300
    """Items of equal text that one case imports: more than a bank should have room for."""

    # What a provider says of itself -----------------------------------------------------------

    @pytest.fixture
    def make(self) -> Make:
        """Return what makes the provider over a store: yours to write."""
        msg = f"{type(self).__name__} needs a fixture `make` that returns what takes a store"
        raise SettingsError(msg)

    @pytest.fixture
    def make_writer(self, make: Make) -> Make:
        """Return what makes the provider that fills the bank, where it is another one."""
        return make

    @pytest.fixture
    def new_store(self) -> NewStore:
        """Return what makes empty stores."""
        return InMemoryStore

    @pytest.fixture
    def reopen(self) -> Reopen:
        """Return what opens again what a store has kept; one in memory is its own."""
        return lambda store: store

    def episode(self, number: int) -> Episode:
        """Return an episode of which the provider keeps something; ids differ by number."""
        return sample_episode(number)

    def answers(self, question: Question) -> Sequence[Verdict]:  # noqa: ARG002 - for subclasses
        """Answer a question as a judge would, where the provider needs one to learn."""
        return ()

    def asks(self, episode: Episode) -> tuple[str, RecallContext]:
        """Return a question to which what was learned from `episode` is an answer."""
        return episode.task, RecallContext(
            domain=episode.domain,
            task_id="another task",
            episode_id="asking",
            episode_index=0,
            observation=episode.steps[-1].observation if episode.steps else "",
        )

    def with_settings(
        self, memory: MemoryProvider[Any], store: BaseStore, **changes: Any
    ) -> MemoryProvider[Any]:
        """Return the provider with some settings changed, over a store."""
        held = {name: getattr(memory.settings, name) for name in type(memory.settings).model_fields}
        settings = type(memory.settings).model_validate({**held, **changes})
        return type(memory)(store, namespace=memory.namespace[:-1], settings=settings)

    # What the cases do with it ----------------------------------------------------------------

    @pytest.fixture(autouse=True)
    def _no_model(self) -> Iterator[None]:
        with models_refused():
            yield

    def stream(self) -> list[Episode]:
        """Return the episodes that most cases file."""
        return [self.episode(number) for number in range(self.episodes)]

    def judged(self, memory: MemoryProvider[Any], episode: Episode) -> Episode:
        """Return an episode with the answers to all that memory asks about it."""
        given = [answer for asked in memory.questions(episode) for answer in self.answers(asked)]
        return replace(episode, verdicts=(*episode.verdicts, *given))

    def learn(
        self, memory: MemoryProvider[Any], listed: Sequence[Episode] | None = None
    ) -> list[MemoryDelta]:
        """File episodes, or else the stream, and return the deltas."""
        chosen = self.stream() if listed is None else listed
        return [memory.file(self.judged(memory, episode)) for episode in chosen]

    def filled(self, make: Make, make_writer: Make, store: BaseStore) -> MemoryProvider[Any]:
        """Return the provider over a bank that holds what there was to learn from the stream."""
        self.learn(make_writer(store))
        return make(store)

    def ask(
        self, memory: MemoryProvider[Any], episode: Episode, budget: Budget | None = None
    ) -> Recall:
        """Ask for what was learned from an episode."""
        query, context = self.asks(episode)
        return memory.provide(query, context, budget)

    def contexts(self) -> list[tuple[str, RecallContext]]:
        """List questions of all kinds: sense and nonsense, at the start and later on."""
        asked = [self.asks(episode) for episode in self.stream()[:4]]
        query, context = asked[0]
        asked += [
            (query, replace(context, step=4, stage="debug", observation="it is open")),
            (query, replace(context, episode_index=None, type="error_trace", draft="try it")),
            (query, replace(context, domain="elsewhere", task_id=self.episode(0).task_id)),
        ]
        return asked + [(text, context) for text in (*HOSTILE, "the", "find something else")]

    def recalls_of(self, memory: MemoryProvider[Any]) -> list[Recall]:
        """Ask all questions, those that make sense also with a limit."""
        short = Budget(tokens=80)
        recalls = [memory.provide(*each) for each in self.contexts()]
        return recalls + [self.ask(memory, episode, short) for episode in self.stream()[:4]]

    def items(self, make_writer: Make, store: BaseStore, path: Path) -> list[MemoryItem]:
        """Return items of the provider's own making, by an export to `path`, or else any items."""
        writer = make_writer(store)
        self.learn(writer)
        writer.export_items(path)
        return read_items(path) or sample_items(self.episodes)

    def check(self, test: Callable[..., None], **given: Any) -> None:
        """Run a property on random examples."""
        settings = hypothesis.settings(
            max_examples=self.examples,
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        settings(hypothesis.given(**given)(test))()
