"""What a process does that writes records to a `ChromaStore` and says which are written.

Step `i` writes two records in one batch: a new one, and one of five that are written again and
again; then it prints `i`. Each record holds texts, a digest of them, and one vector a text, so
that half a record shows. Where the store cannot be opened, the process says why and ends with 2.
"""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from langgraph.store.base import IndexConfig, PutOp

from langgraft._core.canonical import digest
from langgraft._core.errors import LanggraftError
from langgraft.memory.stores import ChromaStore

NAMESPACE: Final = ("acceptance", "chroma")

REWRITTEN: Final = 5
"""Records that are written again and again."""


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Make a vector of a text's digest: other texts, other vectors."""
    return [[byte / 255 for byte in hashlib.sha256(t.encode()).digest()[:8]] for t in texts]


INDEX: Final = IndexConfig(dims=8, embed=embed, fields=["texts[*]"])


def new_key(step: int) -> str:
    """Return the key of the record that only this step writes."""
    return f"new-{step:06}"


def rewritten_key(step: int) -> str:
    """Return the key of the record that this step writes again."""
    return f"again-{step % REWRITTEN}"


def value(step: int) -> dict[str, Any]:
    """Return what a step writes: of other lengths and with other vectors each time."""
    texts = [f"text {n} of step {step} " + "x" * (step * 37 % 2000) for n in range(step % 4)]
    return {"step": step, "texts": texts, "digest": digest([step, *texts])}


def write(store: ChromaStore, step: int) -> None:
    """Carry out one step."""
    store.batch([PutOp(NAMESPACE, key(step), value(step)) for key in (new_key, rewritten_key)])


def write_steps(folder: str, first: int, last: int) -> int:
    """Write the steps from `first` to `last`, and acknowledge each."""
    try:
        with ChromaStore.open(Path(folder), index=INDEX) as store:
            for step in range(first, last + 1):
                write(store, step)
                sys.stdout.write(f"{step}\n")
                sys.stdout.flush()
    except LanggraftError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0
