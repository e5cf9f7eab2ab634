"""What a write into Chroma costs: a batch of our store, over Chroma's own `upsert`.

`alone(write_over_chroma, records)` is how figures are meant.
"""

import itertools
import json
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any

import chromadb
from chromadb.config import Settings
from langgraph.store.base import PutOp

from langgraft.benchmarks.performance.texts import documents
from langgraft.benchmarks.performance.timing import Compared, compared
from langgraft.memory.stores import ChromaStore

_NAMESPACE = ("bank",)
_WRITES = 6


def write_over_chroma(size: int, *, rounds: int = 3) -> Compared:
    """Compare a batch of new records over an `upsert` of as many rows.

    A row of Chroma's has what the record needs and no more: its id, its text as metadata, and a
    vector of one number. Both are persistent, in a temporary directory each.

    Args:
        size: Records of a batch; a provider writes a handful when it files an episode.
        rounds: How often each of 6 batches is written, under new keys each time.
    """
    numbers = itertools.count()
    texts = documents(size)
    with (
        TemporaryDirectory() as mine,
        TemporaryDirectory() as theirs,
        ChromaStore.open(mine) as store,
        closing(_client(theirs)) as client,
    ):
        collection = client.create_collection("floor", embedding_function=None)

        def ours(_: int) -> None:
            store.batch([PutOp(_NAMESPACE, str(next(numbers)), {"text": t}) for t in texts])

        def floor(_: int) -> None:
            collection.upsert(
                ids=[str(next(numbers)) for _ in texts],
                embeddings=[[1.0]] * size,
                metadatas=[{"value": json.dumps({"text": text})} for text in texts],
            )

        return compared(ours, floor, range(_WRITES), rounds=rounds)


def _client(folder: str) -> Any:
    # Its type hides that it can be closed.
    return chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))
