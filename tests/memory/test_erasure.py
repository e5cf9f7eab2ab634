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
from langgraft.memory.providers import make_provider, open_provider
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
