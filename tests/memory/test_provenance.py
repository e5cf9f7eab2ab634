"""Where items come from, and taking back what a source has led to."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from langgraft import Episode, InsightMemory, Lesson, Outcome, SimpleRAG
from langgraft._core.errors import InputError
from langgraft.memory import ImportChoices, MemoryProvider, RecallContext, fold
from langgraft.memory.provenance import FOLLOWS, following
from langgraft.memory.providers import make_provider
from langgraft.memory.testing.providers.base import sample_episode

EXACT: dict[str, dict[str, Any]] = {
    "simple_rag": {},
    "lightweight": {},
    "agent_kb": {},
    "expel": {},
    "trajectory": {},
    "insight": {"granularity": "adaptive"},
    "reasoning_bank": {},
    "full_history": {},
    "self_examples": {},
}
"""Providers that promise exactness, with their settings."""
INEXACT: dict[str, dict[str, Any]] = {
    "coding": {},
    "memrl": {},
    "insight": {"attempts": 2},
    "expel": {"votes": {}},
    "simple_rag": {"max_items": 2},
    "trajectory": {"credit": True},
}
"""Those that keep more of an episode than its items, or let items go."""

SOURCES = ("user:ada", "web:good.example", "tool:search")
EVIL = "web:evil.example"


def memory_of(name: str, **values: Any) -> MemoryProvider[Any]:
    """Return a provider over a bank of its own."""
    return make_provider(name, InMemoryStore(), settings=values)


def asking(episode: Episode) -> RecallContext:
    """Return where an agent stands that begins an episode."""
    return RecallContext(domain=episode.domain, task_id=episode.task_id, episode_id=episode.id)


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[int, tuple[str, ...], bool]]:
    """Draw a stream: which episode, what it was learned from, and whether memory is asked."""
    numbers = draw(st.lists(st.integers(0, 30), min_size=1, max_size=7, unique=True))
    sources = st.sets(st.sampled_from([*SOURCES, EVIL]), max_size=2).map(tuple)
    return [(number, draw(sources), draw(st.booleans())) for number in numbers]


def played(
    memory: MemoryProvider[Any], stream: Sequence[tuple[int, tuple[str, ...], bool]]
) -> list[Episode]:
    """File a stream, with real recalls where memory is asked."""
    filed: list[Episode] = []
    for number, sources, asks in stream:
        episode = replace(sample_episode(number), sources=sources)
        if asks:
            recall = memory.provide(episode.task, asking(episode))
            episode = replace(episode, recalls=(recall.receipt,))
        memory.file(episode)
        filed.append(episode)
    return filed


def clean(episodes: Sequence[Episode]) -> list[Episode]:
    """Return the episodes that never saw the evil source: told neither of it nor what it led to.

    Worked out from the episodes alone, by what each says and by whose items it was given.
    """
    tainted: set[str] = set()
    for episode in episodes:
        given_ = {name for receipt in episode.recalls for name in receipt.item_ids}
        if EVIL in episode.sources or any(
            name.startswith(f"{other}/") for name in given_ for other in tainted
        ):
            tainted.add(episode.id)
    return [episode for episode in episodes if episode.id not in tainted]


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=8)
@given(stream=streams())
def test_bank_when_a_source_is_revoked_is_one_that_never_saw_it(
    name: str, stream: list[tuple[int, tuple[str, ...], bool]]
) -> None:
    """Byte for byte: items, notes, numbers, queues, counters and marks."""
    memory = memory_of(name, **EXACT[name])
    episodes = played(memory, stream)
    before = memory.content()
    planned = memory.revoke(EVIL, dry_run=True)
    assert memory.content().to_bytes() == before.to_bytes()
    done = memory.revoke(EVIL)
    assert planned == done
    assert done.exact
    never = memory_of(name, **EXACT[name])
    for episode in clean(episodes):
        never.file(episode)
    assert memory.content().to_bytes() == never.content().to_bytes()
    assert fold([done.delta], before).to_bytes() == never.content().to_bytes()
    assert not memory.revoke(EVIL).delta
    for bank in (memory, never):
        bank.file(sample_episode(99))
    assert memory.content().to_bytes() == never.content().to_bytes()


@pytest.mark.parametrize("name", INEXACT)
@settings(max_examples=8)
@given(stream=streams())
def test_bank_when_it_cannot_be_exact_says_so_and_holds_no_item_of_the_source(
    name: str, stream: list[tuple[int, tuple[str, ...], bool]]
) -> None:
    """What is said to remain is the only way to differ; filing the others anew leaves nothing."""
    memory = memory_of(name, **INEXACT[name])
    episodes = played(memory, stream)
    again = memory_of(name, **INEXACT[name])
    again.restore(memory.content())
    done = memory.revoke(EVIL)
    never = memory_of(name, **INEXACT[name])
    for episode in clean(episodes):
        never.file(episode)
    held = memory.content()
    assert not [item for item in held.items.values() if EVIL in item.sources]
    assert not following(held, [EVIL]).episodes
    if done.exact:
        assert held.to_bytes() == never.content().to_bytes()
    again.rederive(episodes, without=EVIL)
    assert again.content().to_bytes() == never.content().to_bytes()


def taught(identity: str, text: str, **fields: Any) -> Episode:
    """Return an episode with one lesson."""
    lesson = Lesson(text, when_to_use=fields.pop("when", "you look for keys"))
    return Episode(identity, "d", identity, "find keys", (), Outcome(True), (lesson,), **fields)


def test_sources_when_an_item_was_recalled_travel_with_what_was_learned_then() -> None:
    """Over two episodes, and through an item that is gone meanwhile."""
    memory = InsightMemory(InMemoryStore())
    memory.file(taught("e1", "look under the mat", sources=("user:eve",)))
    recall = memory.provide("find keys", asking(taught("e2", "")))
    memory.file(taught("e2", "mats hide keys", recalls=(recall.receipt,)))
    item = memory.content().items["e2/lessons"]
    assert item.sources == ("episode:e1", "item:e1/lessons", "user:eve")
    memory.forget("e1/lessons")
    recall = memory.provide("find keys", asking(taught("e3", "")))
    memory.file(taught("e3", "keys lie low", recalls=(recall.receipt,)))
    gone = memory.revoke("episode:e1", dry_run=True)
    assert gone.episodes == ("e1", "e2", "e3")
    assert gone.items == ("e2/lessons", "e3/lessons")
    assert any("not known" in each for each in gone.remains)


def test_episode_when_nobody_names_a_source_leaves_the_bank_as_it_was() -> None:
    """No mark, no field, no receipt speaks of sources."""
    memory = InsightMemory(InMemoryStore())
    memory.file(taught("e1", "look under the mat"))
    recall = memory.provide("find keys", asking(taught("e2", "")))
    memory.file(taught("e2", "mats hide keys", recalls=(recall.receipt,)))
    assert "sources" not in recall.receipt.to_json()
    assert b"sources" not in memory.content().to_bytes()
    assert FOLLOWS.encode() not in memory.content().to_bytes()


def test_why_tells_sources_parents_recalls_and_what_followed() -> None:
    """The whole story of one item."""
    memory = InsightMemory(InMemoryStore())
    memory.file(taught("e1", "look under the mat", sources=("user:eve",)))
    recall = memory.provide("find keys", asking(taught("e2", "")))
    memory.file(taught("e2", "mats hide keys", recalls=(recall.receipt,)))
    told = memory.why("e1/lessons", [recall.receipt])
    assert told.sources == ("episode:e1", "user:eve")
    assert told.recalled == (recall.receipt,)
    assert told.followed.items == ("e2/lessons",)
    assert [item.id for item in memory.why("e2/lessons").parents] == ["e1/lessons"]
    with pytest.raises(InputError, match="no item 'e9'"):
        memory.why("e9")


def test_import_when_it_is_revoked_goes_with_what_was_learned_from_it(tmp_path: Path) -> None:
    """A bank that came in leaves no trace, in the numbers either."""
    donor = SimpleRAG(InMemoryStore())
    for number in range(3):
        donor.file(sample_episode(number))
    donor.export_items(tmp_path / "donor.jsonl")
    memory, never = SimpleRAG(InMemoryStore()), SimpleRAG(InMemoryStore())
    for bank in (memory, never):
        bank.file(sample_episode(10))
    memory.import_items(tmp_path / "donor.jsonl", ImportChoices(source="donor"))
    for bank in (memory, never):
        bank.file(sample_episode(11))
    assert memory.revoke("import:donor").exact
    assert memory.content().to_bytes() == never.content().to_bytes()


def test_rederive_when_an_episode_is_missing_changes_nothing() -> None:
    """A log that is not whole would forget what it does not hold."""
    memory = SimpleRAG(InMemoryStore())
    episodes = played(memory, [(0, (), False), (1, (EVIL,), False)])
    before = memory.content()
    with pytest.raises(InputError, match="has filed episode 'episode-1'"):
        memory.rederive(episodes[:1], without=EVIL)
    with pytest.raises(InputError, match="kind:name"):
        memory.revoke("evil")
    assert memory.content() == before


async def test_revoke_when_asynchronous_does_the_same() -> None:
    """One logic, two ways to run it."""
    memory, other = SimpleRAG(InMemoryStore()), SimpleRAG(InMemoryStore())
    stream = [(0, (), False), (1, (EVIL,), False), (2, (), True)]
    episodes = played(memory, stream)
    for episode in episodes:
        await other.afile(episode)
    assert (await other.arevoke(EVIL)).delta == memory.revoke(EVIL).delta
    assert (await other.awhy("episode-0/note")).item.id == "episode-0/note"
    await other.arederive(episodes, without=EVIL)
    assert other.content() == memory.content()
