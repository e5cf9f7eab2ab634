"""A process that files episodes in banks, as it is told on its standard input.

    python -m acceptance.bank_worker STORE

STORE is `sqlite:PATH` or a name that `open_store` knows. Each line names a bank and episodes; each
is filed by a provider of its own. Where another process came in between and nothing could keep it
out, that is counted, and the episode filed again after `refresh`. The answer is one line: the
deltas, and how often the process was told.
"""

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore

from acceptance.fold import plain_store, random_episode
from langgraft._core.canonical import JSON
from langgraft._core.errors import BankConflictError
from langgraft.memory.model import MemoryDelta
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.stores import open_store

SMALL: dict[str, tuple[str, dict[str, JSON]]] = {
    "simple_rag": ("simple_rag", {"max_items": 5}),
    "lightweight": ("lightweight", {"max_short_term": 3, "max_long_term": 3}),
    "expel": ("expel", {"max_insights": 3, "max_trajectories": 4}),
    "coding": ("coding", {"forgetting": [{"policy": "capacity", "limit": 6}]}),
}
"""Providers with so little room that upkeep has something to do in most filings."""


def provider(store: BaseStore, bank: str, name: str) -> MemoryProvider[Any]:
    """Make one of the providers anew, as a request would."""
    known, settings = SMALL[name]
    return make_provider(known, store, namespace=("acceptance", bank), settings=settings)


def file_all(
    store: BaseStore, bank: str, name: str, episodes: Sequence[str]
) -> tuple[list[MemoryDelta], int]:
    """File episodes, each by a provider of its own; return the deltas and how often it was told."""
    deltas: list[MemoryDelta] = []
    told = 0
    for identity in episodes:
        memory = provider(store, bank, name)
        while True:
            try:
                deltas.append(memory.file(random_episode(identity)))
                break
            except BankConflictError:
                told += 1
                memory.refresh()
    return deltas, told


def opened(spec: str) -> AbstractContextManager[BaseStore]:
    """Open a store by its name."""
    kind, _, path = spec.partition(":")
    return plain_store(Path(path)) if kind == "sqlite" else open_store(spec)


def main(spec: str) -> None:
    """Do what each line says."""
    with opened(spec) as store:
        _say("ready")
        for line in sys.stdin:
            job = json.loads(line)
            deltas, told = file_all(store, job["bank"], job["provider"], job["episodes"])
            _say(json.dumps([[delta.to_json() for delta in deltas], told]))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
