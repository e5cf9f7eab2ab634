"""Erasure: nothing of what was erased is left in any byte, and everything else is as it was."""

import json
import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item
from postgres_server import GIVEN, HOW_TO_GET_IT, available, running_server
from provider_variants import REGISTERED, SETTINGS
from warm_python import ran_script

from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft.memory.banks import Banks, LayeredMemory, open_memory
from langgraft.memory.embedders import SQLiteVectors, make_embedder
from langgraft.memory.embedders.cached import MemoryVectors
from langgraft.memory.erasure import (
    CheckpointPlace,
    ErasureReceipt,
    Ledger,
    Looked,
    VectorPlace,
    Wanted,
    aerase,
    erase,
    resume,
)
from langgraft.memory.erasure.places import BLANK, found_in
from langgraft.memory.erasure.receipts import Pending
from langgraft.memory.model import Episode, MemoryDelta
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider, provider_class
from langgraft.memory.rankers import BM25, Dense, Hybrid
from langgraft.memory.stores.named import open_store
from langgraft.memory.stores.ranked import RankedStore
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.testing.providers.base import with_every_text

CANARY = 'zanzibar-7431 \u00fc\n"quoted" word'
"""A line break, a quote and a letter that JSON escapes."""
TERM = "zanzibar"

STORES = ("memory", "sqlite", "chroma")


def spec_of(kind: str, folder: Path) -> str:
    """Name a store in a folder."""
    return kind if kind == "memory" else f"{kind}:{folder / 'bank'}"


def told_episode(name: str = "told") -> Episode:
    """Make an episode that says the canary in every text."""
    return with_every_text(make_episode(name), CANARY)


def others(count: int = 8) -> list[Episode]:
    """Make episodes that have nothing to do with it."""
    return [make_episode(f"e{n}", task=f"task number {n} of many") for n in range(count)]


def files_with(folder: Path, word: str = TERM) -> list[str]:
    """Return the files below a folder that hold a word, in any form in which one is written."""
    wanted = Wanted(phrases=(word,))
    return [str(path.relative_to(folder)) for path in found_in([folder], wanted)]


def test_item_erased_from_a_file_is_in_no_byte_of_it_and_others_stay(tmp_path: Path) -> None:
    """Bank, index and ledger are searched; what is left is what it was."""
    with open_memory(tmp_path / "bank.sqlite", "trajectory") as memory:
        for episode in (*others(), told_episode()):
            memory.file(episode)
        memory.provide("open", asking())
        before = memory.content()
    assert files_with(tmp_path)
    with open_memory(tmp_path / "bank.sqlite", "trajectory") as memory:
        receipt = erase(memory, item="told/trajectory", ledger=Ledger(tmp_path / "ledger"))
        after = memory.content()
        memory.provide("open", asking())
        assert not files_with(tmp_path)
    assert not files_with(tmp_path)
    assert receipt.complete, receipt.places
    assert receipt.covers("told/trajectory")
    del before.items["told/trajectory"]
    assert after.to_bytes() == before.to_bytes()


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in PROVIDERS if name != "none"},
    "insight_adaptive": ("insight", {"granularity": "adaptive", "top_k": 2, "attempts": 3}),
    "insight_fused": (
        "insight",
        {"granularity": "individual", "ranker": Hybrid((BM25(), Dense("hashing:32")))},
    ),
    "expel_votes": ("expel", {"votes": {}}),
    "credited": ("trajectory", {"credit": True}),
}
"""Providers, and settings that have them keep more."""

WRITTEN_OTHERWISE = (
    *("insight", "insight_fused", "expel_votes", "facts", "coding", "lightweight", "credited"),
)
"""Those whose records are not alike: with an index, rules, notes, facts, keys, tiers, and votes on items.

What is left in a store's files is the store's doing: it is held to all of them in SQLite.
"""


def filed(memory: MemoryProvider[Any], name: str) -> tuple[Episode, list[Episode]]:
    """File what a provider learns of, with one episode that says the canary in every text."""
    part = {**REGISTERED, **SETTINGS}.get(name, REGISTERED[memory.name])()
    listed = [part.episode(number) for number in range(6)]
    told = replace(with_every_text(listed[2], CANARY), id="told-7431")
    stream = [told if number == 2 else episode for number, episode in enumerate(listed)]
    for episode in stream:
        query, context = part.asks(episode)
        recall = memory.provide(query, context)
        judged = part.judged(memory, replace(episode, recalls=(recall.receipt,)))
        memory.file(judged)
    return told, stream


@contextmanager
def reopened(spec: str, store: Any) -> Iterator[Any]:
    """Open a store again; one in memory is still open."""
    if spec == "memory":
        yield store
    else:
        with open_store(spec) as again:
            yield again


def erased_everywhere(kind: str, variant: str, folder: Path) -> None:
    """File, erase one episode, and hold all bytes and all other items to what they were."""
    name, changes = VARIANTS[variant]
    spec = spec_of(kind, folder)
    with open_store(spec) as store:
        told, stream = filed(provider_class(name)(store, settings=set_of(name, changes)), variant)
    with reopened(spec, store) as store:
        memory = provider_class(name)(store, settings=set_of(name, changes))
        before = memory.content()
        assert TERM in before.to_bytes().decode()
        receipt = erase(memory, episode=told, ledger=Ledger(folder / "ledger"))
        after = memory.content()
        left = after.to_bytes().decode()
        assert TERM not in left
        assert told.id not in left
        kept = {i: x for i, x in before.items.items() if x.episode_id != told.id}
        assert kept == after.items
        assert after.notes == {i: notes for i, notes in before.notes.items() if i in kept}
        memory.provide(stream[0].task, asking(domain=stream[0].domain))
        assert not files_with(folder)
    assert receipt.complete, receipt.places
    assert not files_with(folder)
    assert not files_with(folder, told.id)
    assert not Ledger(folder / "ledger").verify()


def set_of(name: str, changes: dict[str, Any]) -> Any:
    """Return a provider's settings."""
    return provider_class(name).settings_model(**changes)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_episode_when_erased_leaves_no_byte(kind: str, variant: str, tmp_path: Path) -> None:
    """Of any provider, in any store; the other items are what they were."""
    erased_everywhere(kind, variant, tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("variant", WRITTEN_OTHERWISE)
def test_episode_when_erased_from_chroma_leaves_no_byte(variant: str, tmp_path: Path) -> None:
    """Neither in free pages nor in the log of what was written."""
    erased_everywhere("chroma", variant, tmp_path)


# What follows from it --------------------------------------------------------------------------


def test_item_that_is_not_there_when_erased_is_an_error_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    """It names a near one."""
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    memory.file(make_episode("e0"))
    ledger = Ledger(tmp_path / "ledger")
    with pytest.raises(InputError, match=r"no item 'e0/trajectry'.*e0/trajectory"):
        erase(memory, item="e0/trajectry", ledger=ledger)
    assert ledger.pending is None
    assert not list(ledger.receipts())


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"item": "a", "episode": "b"},
        {"item": ""},
        {"source": "nobody"},
        {"user": "ada"},
        {"before": datetime(2026, 1, 1)},  # noqa: DTZ001  (that is what is refused)
        {"item": "e0/trajectory", "mentions": ["ab"]},
    ],
)
def test_request_that_is_not_one_thing_is_refused(tmp_path: Path, asked: dict[str, Any]) -> None:
    """Nothing is changed."""
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    memory.file(make_episode("e0"))
    before = memory.content().to_bytes()
    with pytest.raises(InputError):
        erase(memory, ledger=Ledger(tmp_path / "ledger"), **asked)
    assert memory.content().to_bytes() == before


def test_bank_that_is_frozen_is_not_erased_from(tmp_path: Path) -> None:
    """The store says so."""
    store = InMemoryStore()
    make_provider("trajectory", store, settings={}).file(make_episode("e0"))
    frozen = make_provider("trajectory", ReadOnlyStore(store), settings={})
    with pytest.raises(ReadOnlyStoreError):
        erase(frozen, item="e0/trajectory", ledger=Ledger(tmp_path / "ledger"))


def test_items_that_follow_from_a_source_are_erased_with_what_follows_from_them(
    tmp_path: Path,
) -> None:
    """Through items that name items; others stay, and so does whoever names another source."""
    store = InMemoryStore()
    memory = make_provider("simple_rag", store, settings={})
    content = memory.content()
    chain = {
        "told": ("web:example.org",),
        "derived": ("item:told",),
        "twice": ("episode:derived episode", "tool:search"),
        "tool's": ("tool:search",),
        "other": ("web:example.com",),
        "plain": (),
    }
    for number, (name, sources) in enumerate(chain.items()):
        item = make_item(name, order_index=number, episode_id=f"{name} episode", sources=sources)
        content.items[name] = item
    memory.restore(content)
    receipt = erase(memory, source="web:example.org", ledger=Ledger(tmp_path / "ledger"))
    assert set(memory.content().items) == {"other", "plain", "tool's", "twice"}
    assert receipt.covers("derived")
    erase(memory, source="tool:search", ledger=Ledger(tmp_path / "ledger"))
    assert set(memory.content().items) == {"other", "plain"}


def test_episodes_that_recalled_what_is_erased_go_with_it(tmp_path: Path) -> None:
    """Where the source was named; the marks of both go, and an episode that did not recall it stays."""
    with open_memory(tmp_path / "bank.sqlite", "insight") as memory:
        memory.file(make_episode("plain", task="water the plants"))
        memory.file(replace(told_episode(), sources=("tool:search",)))
        recall = memory.provide(told_episode().task, asking())
        assert recall.receipt.item_ids[0].startswith("told/")
        memory.file(make_episode("repeats", recalls=(recall.receipt,)))
        receipt = erase(memory, source="tool:search", ledger=Ledger(tmp_path / "ledger"))
        assert receipt.complete, receipt.places
        assert receipt.covers("repeats")
        left = memory.content()
        assert {item.episode_id for item in left.items.values()} == {"plain"}
        assert "repeats" not in left.to_bytes().decode()
        assert not files_with(tmp_path)


def test_user_when_erased_leaves_nothing_in_the_file_and_others_keep_their_banks(
    tmp_path: Path,
) -> None:
    """Nor in banks of others, where items name the user."""
    label, other = "ada.lovelace@example.org", "bob"
    with Banks(tmp_path / "banks.sqlite", "trajectory") as banks:
        for n, episode in enumerate(others()):
            banks[label].file(with_every_text(replace(episode, id=f"a{n}"), CANARY))
            banks[other].file(episode)
            banks[other].provide("open", asking())
            banks[label].provide("open", asking())
        before = banks[other].content()
        about = make_item("about", text="zanzibar-7431", order_index=99, sources=(f"user:{label}",))
        before.items["about"] = about
        banks[other].restore(before)
        receipt = erase(banks, user=label, ledger=Ledger(tmp_path / "ledger"))
        assert receipt.complete, receipt.places
        assert receipt.covers(label)
        assert banks.users() == [other]
        del before.items["about"]
        assert banks[other].content().items == before.items
        for word in (TERM, "lovelace"):
            assert not files_with(tmp_path, word)
        with pytest.raises(InputError, match="no user"):
            erase(banks, user=label, ledger=Ledger(tmp_path / "ledger"))
    for word in (TERM, "lovelace"):
        assert not files_with(tmp_path, word)


def test_user_whose_label_is_part_of_anothers_when_erased_takes_nothing_from_that_one(
    tmp_path: Path,
) -> None:
    """Their threads stay, though they tell the shorter label; the receipt says what was not looked for."""
    banks, saver = Banks(InMemoryStore(), "trajectory"), InMemorySaver()
    labels = ("customer-1234", "customer-12345")
    for label, text in zip(labels, (CANARY, "water the plants"), strict=True):
        banks[label].file(with_every_text(make_episode("e0"), text))
        talk(saver, f"of {label}", f"{label} says {text}")
    ledger, places = Ledger(tmp_path / "ledger"), [CheckpointPlace(saver)]
    receipt = erase(banks, user=labels[0], ledger=ledger, places=places)
    assert receipt.complete, receipt.places
    assert any("part of another's" in each for each in receipt.not_reached)
    threads = {each.config["configurable"]["thread_id"] for each in saver.list(None)}
    assert threads == {f"of {labels[1]}"}
    assert banks.users() == [labels[1]]
    receipt = erase(banks, user=labels[1], ledger=ledger, places=places)
    assert receipt.complete
    assert not list(saver.list(None))


def test_layers_are_all_erased_from(tmp_path: Path) -> None:
    """The user's own bank, and those that are recalled after it."""
    banks = Banks(InMemoryStore(), "trajectory")
    for label in ("ada", "team"):
        banks[label].file(told_episode())
        banks[label].file(make_episode("e0"))
    both = banks.layered("ada", "team")
    assert isinstance(both, LayeredMemory)
    erase(both, episode="told", ledger=Ledger(tmp_path / "ledger"))
    for label in ("ada", "team"):
        assert set(banks[label].content().items) == {"e0/trajectory"}


def test_items_that_are_older_are_erased_and_younger_ones_stay(tmp_path: Path) -> None:
    """By when their records were written, which the store knows, and no provider."""
    with open_memory(tmp_path / "bank.sqlite", "trajectory") as memory:
        memory.file(told_episode())
        moment = datetime.now(UTC) + timedelta(microseconds=1)
        while datetime.now(UTC) <= moment:
            pass
        memory.file(make_episode("young"))
        receipt = erase(memory, before=moment, ledger=Ledger(tmp_path / "ledger"))
        assert receipt.complete, receipt.places
        assert set(memory.content().items) == {"young/trajectory"}
        assert not files_with(tmp_path)
        assert memory.file(told_episode())  # its mark went too


def test_item_of_an_episode_that_is_erased_alone_is_not_learned_again(tmp_path: Path) -> None:
    """The mark of the episode stays; where the whole episode is erased, it goes."""
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    memory.file(make_episode("e0"))
    erase(memory, item="e0/trajectory", ledger=Ledger(tmp_path / "ledger"))
    assert not memory.file(make_episode("e0"))
    erase(memory, episode="e0", ledger=Ledger(tmp_path / "ledger"))
    assert memory.file(make_episode("e0"))


# Copies outside of banks -----------------------------------------------------------------------


def test_vectors_and_indexes_of_it_are_gone(tmp_path: Path) -> None:
    """Those that the provider's ranker cached, in a file of their own, and an index directory."""
    vectors = SQLiteVectors(tmp_path / "vectors.sqlite")
    ranker = Dense(make_embedder("hashing:8", cache=vectors))
    store = InMemoryStore()
    kind = provider_class("insight")
    made = set_of("insight", {"granularity": "individual", "ranker": ranker})
    memory = kind(store, settings=made, index_directory=tmp_path / "index")
    for episode in (*others(), told_episode()):
        memory.file(episode)
    memory.provide("open", asking())
    memory.close()
    memory = kind(store, settings=made, index_directory=tmp_path / "index")
    keys = [item.retrieval_key for item in memory.content().items.values() if TERM in item.text]
    assert files_with(tmp_path / "index")
    receipt = erase(memory, episode="told", ledger=Ledger(tmp_path / "ledger"))
    assert receipt.complete, receipt.places
    assert vectors.forget(keys) == 0
    assert not files_with(tmp_path)
    memory.provide("open", asking())
    memory.close()
    assert not files_with(tmp_path)


def talk(saver: Any, thread: str, text: str) -> None:
    """Have a graph keep a checkpoint that says something."""
    graph = StateGraph(MessagesState)
    graph.add_node("say", lambda _: {"messages": [("ai", f"you said {text}")]})
    graph.add_edge(START, "say")
    graph.add_edge("say", END)
    config: Any = {"configurable": {"thread_id": thread}}
    told: Any = {"messages": [("user", text)]}
    graph.compile(checkpointer=saver).invoke(told, config)


def test_checkpoints_that_say_it_are_deleted_thread_by_thread(tmp_path: Path) -> None:
    """In a file no byte is left; other threads go on."""
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    memory.file(told_episode())
    path = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as file:
        for saver in (InMemorySaver(), file):
            ledger = Ledger(tmp_path / "ledger")
            talk(saver, "tells", f"remember zanzibar-7431 {'x' * 5000}")
            talk(saver, "other", "hello")
            talk(saver, "named", "hello")
            place = CheckpointPlace(saver, threads=("named",))
            memory.file(told_episode())
            receipt = erase(memory, episode="told", ledger=ledger, places=[place])
            assert receipt.complete, receipt.places
            threads = {each.config["configurable"]["thread_id"] for each in saver.list(None)}
            assert threads == {"other"}
        assert not files_with(tmp_path)


def test_checkpoints_that_are_encrypted_are_found_and_a_file_is_rewritten_under_the_savers_lock(
    tmp_path: Path,
) -> None:
    """What a graph has begun to write meanwhile is not cut in two."""

    class Flipped:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "flipped", bytes(each ^ 7 for each in plaintext)

        def decrypt(self, _: str, ciphertext: bytes) -> bytes:
            return self.encrypt(ciphertext)[1]

    rewritten: list[bool] = []

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *args: Any) -> sqlite3.Cursor:
            if statement == "VACUUM":
                rewritten.append(saver.lock.locked())
            return super().execute(statement, *args)

    path = tmp_path / "checkpoints.sqlite"
    with closing(sqlite3.connect(path, check_same_thread=False, factory=Connection)) as connection:
        saver = SqliteSaver(connection, serde=EncryptedSerializer(Flipped()))
        for thread, text in (("tells", "zanzibar-7431"), ("other", "hello")):
            talk(saver, thread, text)
        ledger, said = Ledger(tmp_path / "ledger"), ["zanzibar-7431"]
        receipt = erase(
            [], item="any item", ledger=ledger, mentions=said, places=[CheckpointPlace(saver)]
        )
        threads = {each.config["configurable"]["thread_id"] for each in saver.list(None)}
    assert receipt.complete
    assert threads == {"other"}
    assert rewritten == [True]


def test_index_of_other_settings_or_of_the_applications_own_search_is_deleted(
    tmp_path: Path,
) -> None:
    """Whatever ranks in a directory of its own, and though nobody asked it since it was opened."""
    kind = provider_class("insight")
    plain = set_of("insight", {"granularity": "individual"})
    other = set_of("insight", {"granularity": "individual", "ranker": BM25(k1=1.1)})
    where, records = f"sqlite:{tmp_path / 'bank'}", InMemoryStore()
    with open_store(where) as store:
        memory = kind(store, settings=plain, index_directory=tmp_path / "index")
        own = RankedStore(records, BM25(), directory=tmp_path / "own", heed_index=False)
        both = [memory, kind(own, settings=plain)]
        for each in both:
            for episode in (*others(), told_episode()):
                each.file(episode)
            each.provide("open", asking())
        assert own.search(both[1].namespace, query="open")
        for opened in (memory, own):
            opened.close()
    assert files_with(tmp_path / "index")
    assert files_with(tmp_path / "own")
    with (
        open_store(where) as store,
        RankedStore(records, BM25(), directory=tmp_path / "own", heed_index=False) as own,
    ):
        both = [
            kind(store, settings=other, index_directory=tmp_path / "index"),
            kind(own, settings=plain),
        ]
        for number, each in enumerate(both, 1):  # they have one name, in stores of their own
            receipt = erase(each, episode="told", ledger=Ledger(tmp_path / "ledger"))
            assert (receipt.number, receipt.complete) == (number, True)
        assert not files_with(tmp_path)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("kind", ["sqlite", "chroma"])
def test_index_that_an_application_has_open_is_not_saved_with_it(
    kind: str, depth: int, tmp_path: Path
) -> None:
    """Of the bank, or of more than it: after the receipt neither, when the store is closed."""
    insight = provider_class("insight")
    made = set_of("insight", {"granularity": "individual"})
    for erasing in (False, True):  # what one opening kept, and what the next holds in memory
        with open_store(spec_of(kind, tmp_path)) as store:
            memory = insight(store, settings=made)
            own = RankedStore(store, BM25(), heed_index=False)
            for episode in (*others(), told_episode()):
                memory.file(episode)
            assert own.search(memory.namespace[:depth], query=f"task {TERM}")
            if erasing:
                receipt = erase(memory, episode="told", ledger=Ledger(tmp_path / "ledger"))
                assert receipt.complete, receipt.places
                assert not files_with(tmp_path)
        assert bool(files_with(tmp_path)) != erasing


def test_bank_that_was_opened_by_a_link_has_no_other_index(tmp_path: Path) -> None:
    """Two names of one file are one bank, with one folder of indexes."""
    (tmp_path / "link").symlink_to(tmp_path / "bank")
    for name in ("bank", "link"):
        with open_store(f"sqlite:{tmp_path / name}") as store:
            memory = make_provider("insight", store, settings={"granularity": "individual"})
            for episode in (*others(), told_episode()):
                memory.file(episode)
            memory.provide("open", asking())
    with open_store(f"sqlite:{tmp_path / 'bank'}") as store:
        memory = make_provider("insight", store, settings={"granularity": "individual"})
        assert erase(memory, episode="told", ledger=Ledger(tmp_path / "ledger")).complete
    assert not files_with(tmp_path)


def test_search_of_bytes_reads_files_alone_and_finds_phrases_of_any_length(tmp_path: Path) -> None:
    """Pipes and links in a folder that others write to neither end the search nor lead it astray."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    long = "one word " * 20_000
    (tmp_path / "file").write_text(f"before {long} after")
    assert found_in([tmp_path], Wanted(phrases=(long,))) == [tmp_path / "file"]
    assert found_in([tmp_path], Wanted(phrases=(long + "more",))) == []


def test_caches_and_places_of_one_name_each_count(tmp_path: Path) -> None:
    """All are erased from, what is left in the first is told, and a receipt gives nothing away."""

    class Kept(MemoryVectors):
        forget = property()  # as a cache without it

    rankers = [Dense(make_embedder(f"hashing:{length}")) for length in (8, 16)]
    memory = provider_class("insight")(
        InMemoryStore(),
        settings=set_of("insight", {"granularity": "individual", "ranker": Hybrid((*rankers,))}),
    )
    for episode in (*others(), told_episode()):
        memory.file(episode)
    memory.provide("open", asking())
    items = memory.content().items.values()
    keys = [item.retrieval_key for item in items if TERM in item.text]
    telling = f"zanzibar-7431 in {tmp_path}"

    class Telling(VectorPlace):
        def erase(self, wanted: Wanted, receipt: int) -> Looked:
            return Looked(place=self.name, left=(f"{telling}, by receipt {receipt}",))

    places = [VectorPlace(Kept()), Telling(MemoryVectors()), VectorPlace(MemoryVectors())]
    receipt = erase(memory, episode="told", ledger=Ledger(tmp_path / "ledger"), places=places)
    caches = [ranker.embedder.cache for ranker in rankers]
    assert [cache.forget(keys) for cache in caches if isinstance(cache, MemoryVectors)] == [0, 0]
    (vectors,) = (each for each in receipt.places if each.place == "vectors in memory")
    assert vectors.left[0].startswith("a Kept cannot")
    assert vectors.left[1] == f"{BLANK} in {tmp_path}, by receipt 1"
    assert not receipt.complete


# Receipts ---------------------------------------------------------------------------------------


def erased_twice(folder: Path) -> Ledger:
    """Return a ledger with two receipts."""
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    ledger = Ledger(folder)
    for name in ("told", "e0"):
        memory.file(with_every_text(make_episode(name), CANARY))
        erase(memory, episode=name, ledger=ledger)
    return ledger


def test_receipts_verify_and_say_nothing_of_what_was_erased(tmp_path: Path) -> None:
    """Who knows an id can ask for it; nobody can read it."""
    ledger = erased_twice(tmp_path)
    assert ledger.verify() == []
    first, second = ledger.receipts()
    assert ledger.vouches_for(first)
    assert first.covers("told")
    assert first.covers("told/trajectory")
    assert not first.covers("e0")
    assert second.covers("e0")
    told = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"told/" not in told
    assert not files_with(tmp_path)
    assert first.not_reached


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_receipt_that_is_changed_anywhere_does_not_verify(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nor does one by another key, out of its place, or a ledger with one taken out."""
    ledger = erased_twice(tmp_path_factory.mktemp("ledger"))
    first, second = ledger.receipts()
    fields = st.sampled_from(sorted(set(ErasureReceipt.model_fields) - {"format", "version"}))
    name = data.draw(fields)
    old = getattr(second, name)
    new: Any = {
        int: old + 1 if isinstance(old, int) else 0,
        str: "age" if name == "kind" else f"{old}0",
        tuple: old[:-1] if isinstance(old, tuple) else (),
    }[type(old)]
    forged = second.model_copy(update={name: new})
    assert not ledger.vouches_for(forged)
    path = ledger.path / "receipts.jsonl"
    path.write_bytes(first.line() + forged.line())
    assert ledger.verify()
    path.write_bytes(second.line())
    assert ledger.verify()
    path.write_bytes(first.line() + second.line())
    assert ledger.verify() == []
    assert len(Ledger(ledger.path, key=b"another key of 32 bytes, or so..").verify()) == 2


@pytest.mark.parametrize("changed", [{"signature": "\u00e9" * 64}, {"salt": "no salt"}])
def test_receipt_of_another_hand_is_told_as_such(changed: dict[str, str], tmp_path: Path) -> None:
    """It verifies by no key, and covers nothing."""
    ledger = erased_twice(tmp_path)
    forged = next(ledger.receipts()).model_copy(update=changed)
    read = ErasureReceipt.read(forged.line(), "a file")
    assert not ledger.vouches_for(read)
    assert read.covers("told") == ("salt" not in changed)


def test_ledger_when_somebody_erases_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who only asks for receipts does not wait."""
    monkeypatch.setattr("langgraft.memory.erasure.receipts._PATIENCE_SECONDS", 0.1)
    ledger = erased_twice(tmp_path)
    with ledger.held():
        assert Ledger(tmp_path).verify() == []


# Crashes and company -----------------------------------------------------------------------------


def test_what_is_under_way_is_read_however_large_it_is(tmp_path: Path) -> None:
    """As large as what is erased; damaged, it is an error that names the file."""
    ledger = Ledger(tmp_path)
    texts = ["[{:,}]" * 3_000_000]
    pending = Pending("item", "x", "00" * 16, "now", {**Wanted().to_json(), "texts": texts})
    ledger.begin(pending)
    found = ledger.pending
    assert found is not None
    assert found.wanted == pending.wanted
    (tmp_path / "pending.json").write_bytes(b"{")
    with pytest.raises(InputError, match=r"pending\.json: what is under way cannot be read"):
        ledger.pending  # noqa: B018


def test_what_was_overwritten_in_part_is_overwritten_whole_by_the_next(tmp_path: Path) -> None:
    """A kill came while the system was at it: the receipt is there, and some of what was looked for."""
    ledger = erased_twice(tmp_path)
    (tmp_path / "pending.json").write_bytes(bytes(4096) + b"zanzibar-7431 and more")
    assert ledger.pending is None
    assert resume(make_provider("trajectory", InMemoryStore(), settings={}), ledger=ledger) is None
    assert not files_with(tmp_path)
    assert len(list(ledger.receipts())) == 2


def test_ledger_in_a_folder_that_others_look_into_is_read_by_its_owner_alone(
    tmp_path: Path,
) -> None:
    """What is under way says what has to go, and who has the key can sign."""
    tmp_path.chmod(0o755)
    ledger = erased_twice(tmp_path)
    ledger.begin(Pending("item", "x", "00" * 16, "now", Wanted().to_json()))
    for name in ("key", "pending.json", "receipts.jsonl"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_each_version_of_what_is_under_way_is_overwritten(tmp_path: Path) -> None:
    """Also those that another took the place of."""
    ledger = Ledger(tmp_path)
    ledger.begin(Pending("item", "zanzibar-7431", "00" * 16, "now", Wanted().to_json()))
    with (tmp_path / "pending.json").open("rb") as before:
        ledger.begin(Pending("item", "other", "00" * 16, "now", Wanted().to_json()))
        assert not before.read().strip(b"\0")
    found = ledger.pending
    assert found is not None
    assert found.name == "other"


class Dying(VectorPlace):
    """Does not come to an end."""

    def erase(self, wanted: Wanted, receipt: int) -> Looked:
        """Raise what ends a process."""
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("asked", "more", "count"),
    [
        ({"item": "told/trajectory"}, [], 1),
        ({"episode": "told"}, [], 1),
        ({"episode": "told"}, ["another phrase"], 2),
        ({"episode": "other"}, [], 2),
    ],
)
def test_erasure_that_was_cut_short_when_asked_for_again_has_one_receipt(
    asked: dict[str, Any], more: list[str], count: int, tmp_path: Path
) -> None:
    """Though what it was of is gone by then; who asks for anything else gets one for that as well."""
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    memory.file(told_episode())
    ledger, vectors = Ledger(tmp_path / "ledger"), SQLiteVectors(tmp_path / "vectors.sqlite")
    first: dict[str, Any] = asked if "item" in asked else {"episode": "told"}
    with pytest.raises(KeyboardInterrupt):
        erase(memory, ledger=ledger, places=[Dying(vectors)], **first)
    places = [VectorPlace(vectors)]
    receipt = erase(memory, ledger=ledger, places=places, mentions=more, **asked)
    receipts = list(ledger.receipts())
    assert receipts[-1] == receipt
    assert len(receipts) == count
    assert receipts[0].covers("told/trajectory")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_threads_that_file_meanwhile_lose_nothing(kind: str, tmp_path: Path) -> None:
    """Sixteen of them; the bank is the fold of what they and the erasure returned, but for its order."""
    with open_store(spec_of(kind, tmp_path)) as store:
        memory = provider_class("insight")(store, settings=set_of("insight", {}))
        memory.file(told_episode())
        listed = [make_episode(f"w{n}", task=f"task {n} of many") for n in range(96)]

        def file(episode: Episode) -> MemoryDelta:
            delta = memory.file(episode)
            memory.provide(episode.task, asking())
            return delta

        with ThreadPoolExecutor(16) as pool:
            filed = [pool.submit(file, episode) for episode in listed]
            receipt = erase(memory, episode="told", ledger=Ledger(tmp_path / "ledger"))
            for each in filed:
                each.result()
        assert receipt.complete, receipt.places
        quiet = provider_class("insight")(InMemoryStore(), settings=set_of("insight", {}))
        for episode in listed:
            quiet.file(episode)
        assert bare(memory) == bare(quiet)
        assert not files_with(tmp_path)
    assert not files_with(tmp_path)


def bare(memory: MemoryProvider[Any]) -> dict[str, Any]:
    """Return what items say, without their place among those of others."""
    items = memory.content().items.values()
    return {item.id: {**item.to_json(), "order_index": 0} for item in items}


@pytest.mark.kill
@pytest.mark.parametrize(("kind", "stride"), [("sqlite", 13), ("chroma", 17), ("run", 11)])
def test_erasure_that_is_killed_at_any_step_is_ended_by_the_next(
    kind: str, stride: int, tmp_path: Path
) -> None:
    """Nothing is left then, everything else is there, and there is one receipt, which verifies."""
    done = ran_script(WORKER, kind, tmp_path, stride)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["killed"] >= 10
    assert told["wrong"] == []


WORKER = Path(__file__).parents[1] / "support" / "erasure_crashes.py"


async def test_erasure_when_awaited_does_the_same(tmp_path: Path) -> None:
    """In a thread, so that the event loop goes on."""
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    await memory.afile(told_episode())
    receipt = await aerase(memory, episode="told", ledger=Ledger(tmp_path / "ledger"))
    assert receipt.complete
    assert not (await memory.acontent()).items


def test_erasure_left_by_a_crash_is_resumed_with_the_same_places(tmp_path: Path) -> None:
    """Without them it is refused, so that no receipt is signed for less than was asked."""
    memory = make_provider("trajectory", InMemoryStore(), settings={})
    memory.file(told_episode())
    vectors = SQLiteVectors(tmp_path / "vectors.sqlite")
    ledger = Ledger(tmp_path / "ledger")

    with pytest.raises(KeyboardInterrupt):
        erase(memory, episode="told", ledger=ledger, places=[Dying(vectors)])
    assert ledger.pending is not None
    with pytest.raises(InputError, match=r"also looks into vectors in .*give the same places"):
        resume(memory, ledger=ledger)
    receipt = resume(memory, ledger=ledger, places=[VectorPlace(vectors)])
    assert receipt is not None
    assert receipt.complete
    assert resume(memory, ledger=ledger) is None
    assert not files_with(tmp_path)
    assert ledger.verify() == []


@pytest.mark.matrix
@pytest.mark.skipif(not available(), reason=HOW_TO_GET_IT)
def test_files_of_postgresql_when_erased_from_hold_nothing_but_its_log(tmp_path: Path) -> None:
    """The log is what the receipt says is not reached."""
    if GIVEN in os.environ:
        pytest.skip("a server's disk is its own")
    with running_server() as uri:
        with psycopg.connect(uri, autocommit=True) as own:
            row = own.execute("SHOW data_directory").fetchone()
        assert row is not None
        data = Path(str(row[0]))
        with open_store(uri) as store:
            memory = make_provider("insight", store, settings={})
            for episode in (*others(), told_episode()):
                memory.file(episode)
            receipt = erase(memory, episode="told", ledger=Ledger(tmp_path / "ledger"))
        with psycopg.connect(uri, autocommit=True) as own:
            own.execute("CHECKPOINT")
        assert receipt.complete
        assert "write-ahead log" in receipt.not_reached[0]
        assert {name.partition("/")[0] for name in files_with(data)} <= {"pg_wal"}
