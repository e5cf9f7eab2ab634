"""Erasure: nothing of what was erased is left in any byte, and everything else is as it was."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item
from postgres_server import GIVEN, HOW_TO_GET_IT, available, running_server
from provider_variants import REGISTERED, SETTINGS

from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft.memory.banks import Banks, LayeredMemory, open_memory
from langgraft.memory.embedders import SQLiteVectors, make_embedder
from langgraft.memory.erasure import (
    CheckpointPlace,
    ErasureReceipt,
    Ledger,
    VectorPlace,
    Wanted,
    aerase,
    erase,
    resume,
)
from langgraft.memory.erasure.places import found_in
from langgraft.memory.model import Episode, MemoryDelta
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider, provider_class
from langgraft.memory.rankers import BM25, Dense, Hybrid
from langgraft.memory.stores.named import open_store
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
@pytest.mark.parametrize("variant", VARIANTS)
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


# Crashes and company -----------------------------------------------------------------------------


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
@pytest.mark.parametrize(("kind", "stride"), [("sqlite", 5), ("chroma", 12)])
def test_erasure_that_is_killed_at_any_step_is_ended_by_the_next(
    kind: str, stride: int, tmp_path: Path
) -> None:
    """Nothing is left then, everything else is there, and there is one receipt, which verifies."""
    program = [sys.executable, str(WORKER), kind, str(tmp_path), str(stride)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
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

    class Dying(VectorPlace):
        def erase(self, wanted: Wanted, receipt: int) -> Any:
            raise KeyboardInterrupt

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
