"""A process that writes to a ranked store with an index directory until it is killed.

`python durable_worker.py FOLDER SEED` writes a line for each batch once it is written.
"""

import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path

from langgraph.store.base import Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore, index_directory

NAMESPACE = ("bank", "one")
WORDS = ("red", "blue", "green", "ball", "box", "key", "door", "1", "2", "3")


class LogStore(InMemoryStore):
    """A store that survives its process: every write is a line in a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        for line in lines:
            if line.endswith("\n"):
                namespace, key, value = json.loads(line)
                super().batch([PutOp(tuple(namespace), key, value)])
        self._file = path.open("a")

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Write to the file first."""
        listed = list(ops)
        for op in listed:
            if isinstance(op, PutOp):
                self._file.write(json.dumps([op.namespace, op.key, op.value]) + "\n")
        self._file.flush()
        return super().batch(listed)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def opened(folder: Path) -> tuple[LogStore, RankedStore]:
    """Open the store in a folder with its index directory."""
    store = LogStore(folder / "log")
    return store, RankedStore(store, BM25(), directory=folder / "index")


def main(folder: Path, seed: int) -> None:
    """Write, delete and search without end."""
    index_directory.LEAST_UNSAVED = 20
    draw = random.Random(seed)
    _, ranked = opened(folder)
    while True:
        key = f"k{draw.randrange(200)}"
        text = " ".join(draw.choices(WORDS, k=draw.randrange(1, 9)))
        value = None if draw.random() < 0.2 else {"text": text}
        ranked.batch([PutOp(NAMESPACE, key, value)])
        sys.stdout.write(json.dumps([key, value]) + "\n")
        sys.stdout.flush()
        if draw.random() < 0.3:
            ranked.search(NAMESPACE, query=text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
