"""Transplants: items verbatim, all else made anew, and an account of what came."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import make_episode

from langgraft._core.errors import InputError
from langgraft.memory.model import Outcome, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.transplanting import in_place_of, transplant, transplant_items

DONORS = ("simple_rag", "lightweight", "agent_kb", "expel")


def donor(name: str, episodes: int = 8) -> MemoryProvider[Any]:
    """Make a provider with a bank, its uses counted."""
    memory = make_provider(name, InMemoryStore(), settings={"credit": True})
    for number in range(episodes):
        memory.file(make_episode(f"e{number}", outcome=Outcome(success=number % 2 == 0)))
    return memory


@pytest.mark.parametrize("recipient", DONORS)
@pytest.mark.parametrize("name", DONORS)
def test_items_when_transplanted_are_the_donors_word_for_word(name: str, recipient: str) -> None:
    """Into any architecture; the log that goes on from the donor's bank gives the recipient's."""
    giver = donor(name)
    given = giver.content()
    taker = make_provider(recipient, InMemoryStore(), settings={})
    done = transplant(giver, taker)
    assert giver.content() == given
    held = taker.content()
    assert held.items == given.items
    assert (done.exported, done.kept, done.dropped) == (len(given.items), len(given.items), ())
    assert not [notes for notes in held.notes.values() if "uses" in notes]
    assert fold([in_place_of(given, done)], given) == held == fold([done.delta])


def test_items_when_the_recipient_has_less_room_are_dropped_with_the_reason() -> None:
    """The first in is the first out, as its upkeep has it."""
    given = donor("simple_rag").content()
    small = make_provider("simple_rag", InMemoryStore(), settings={"max_items": 3})
    done = transplant_items(given.items.values(), small)
    assert (done.kept, [name for name, _ in done.dropped]) == (3, [f"e{n}/note" for n in range(5)])
    assert {reason for _, reason in done.dropped} == {"over the capacity of 3"}
    other = make_provider("expel", InMemoryStore(), settings={})
    assert transplant_items(given.items.values(), other).digest == done.digest


def test_transplant_when_the_recipient_holds_something_is_refused() -> None:
    """Nothing is changed."""
    taker = donor("expel", 1)
    before = taker.content()
    with pytest.raises(InputError, match="needs an empty bank"):
        transplant_items([], taker)
    assert taker.content() == before
