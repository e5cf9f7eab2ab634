"""Erasure: nothing of what was erased is left in any byte, and everything else is as it was."""

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item
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
    erase,
    resume,
)
from langgraft.memory.erasure.places import found_in
from langgraft.memory.model import Episode, Lesson, MemoryDelta, Outcome, Step, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider, open_provider, provider_class
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
    assert receipt.complete
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
