"""`random-own`: random items of the bank, of the domain that asks alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.controls import RandomOwn, RandomRetrieval
from langgraft.memory.providers import TrajectoryMemory, TrajectorySettings
from langgraft.memory.recall import Budget


def filled(**episodes: int) -> TrajectoryMemory:
    """Make a memory of so many episodes of each domain, all of them much alike."""
    memory = TrajectoryMemory(InMemoryStore(), settings=TrajectorySettings(top_k=3))
    for domain, count in episodes.items():
        for number in range(count):
            name = f"{domain}-{number}"
            memory.file(make_episode(name, domain=domain, task=f"open door {number}"))
    return memory


@given(own=st.integers(0, 6), others=st.integers(0, 6), seed=st.integers(0, 9))
def test_random_own_when_asked_then_recalls_items_of_the_asking_domain_alone(
    own: int, others: int, seed: int
) -> None:
    """As many as were delivered, while the bank has so many of them; else all it has."""
    memory = filled(ours=own, theirs=others)
    real = memory.provide("open door 1", asking(domain="ours"))
    found = RandomOwn(memory, seed=seed).provide("open door 1", asking(domain="ours"))
    assert {item.source_domain for item in found.items} <= {"ours"}
    assert len(found.items) == min(len(real.items), own)
    assert len({item.id for item in found.items}) == len(found.items)


def test_random_own_when_the_bank_is_of_another_domain_then_recalls_nothing() -> None:
    """What another domain left is nothing of one's own: the agent is shown no notes at all."""
    memory = filled(theirs=5)
    assert memory.provide("open door 1", asking(domain="ours"))
    assert not RandomOwn(memory).provide("open door 1", asking(domain="ours"))


@pytest.mark.parametrize("tokens", [0, 40, 80])
def test_random_own_when_room_is_short_then_keeps_to_it(tokens: int) -> None:
    """The budget is never exceeded."""
    memory = filled(ours=6, theirs=6)
    found = RandomOwn(memory).provide("open door 1", asking(domain="ours"), Budget(tokens))
    assert found.tokens <= tokens


def test_random_own_when_the_bank_has_one_domain_then_is_the_random_control() -> None:
    """Nothing but the choice of items tells the two apart."""
    memory, context = filled(ours=8), asking(domain="ours")
    own, any_ = (kind(memory, seed=3) for kind in (RandomOwn, RandomRetrieval))
    assert own.provide("open door 1", context) == any_.provide("open door 1", context)


async def test_random_own_when_asked_async_then_recalls_the_same() -> None:
    """Both ways are one logic."""
    control, context = RandomOwn(filled(ours=8, theirs=8)), asking(domain="ours")
    assert await control.aprovide("open door 1", context) == control.provide("open door 1", context)
