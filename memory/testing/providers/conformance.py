"""The whole suite in one class."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from langgraft.memory.deltas import Add, MemoryDelta, SetState, fold
from langgraft.memory.provider import EPISODES, MemoryProvider
from langgraft.memory.testing.providers.asking import AskingCases, BudgetCases
from langgraft.memory.testing.providers.filing import FilingCases, FoldingCases
from langgraft.memory.testing.providers.judging import JudgingCases, ReceiptCases
from langgraft.memory.testing.providers.moving import MovingCases, SamenessCases
from langgraft.memory.testing.providers.suite import Make, NewStore, ProviderSuite
from langgraft.memory.testing.suite import needs

WORKERS = 16


class ConcurrencyCases(ProviderSuite):
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


class ProviderConformance(
    FilingCases,
    FoldingCases,
    AskingCases,
    BudgetCases,
    JudgingCases,
    ReceiptCases,
    ConcurrencyCases,
    MovingCases,
    SamenessCases,
):
    """What a `MemoryProvider` must do; each test says its property in a sentence.

    ```python
    class TestMyMemory(ProviderConformance):
        @pytest.fixture
        def make(self):
            return MyMemory
    ```

    `make` is called with a store. Stores are LangGraph's `InMemoryStore` unless a fixture
    `new_store` returns what makes others; `reopen` then opens one again. While a case runs, every
    call of a LangChain model fails it.

    The cases file a stream of episodes that hold something of everything. A provider that learns
    from something else overrides `episode`; one that learns from a judge's answers, `answers`;
    one that is asked otherwise, `asks`. What a provider does not do at all is said by class
    attributes (`learns`, `imports`, `recalls`); `departures` names the cases that it fails and
    why: they must fail. Less is tried with smaller `examples`, `episodes`, `at_once`
    and `many`.
    """
