"""Stores: LangGraph `BaseStore`s around a `BaseStore`, and how to write logic over one once.

A store keeps records; it does not decide what is relevant. `RankedStore` puts a ranker in front
of any store and is a `BaseStore` again; `ReadOnlyStore` refuses writes, for evaluation on frozen
memory; `ChromaStore` keeps records in Chroma, `SQLiteFileStore` in a file that processes share.
Logic that must run both synchronously and asynchronously is a `Program`, driven by `drive` and `adrive` of
`langgraft._core.effects`.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.stores.chroma import ChromaStore
    from langgraft.memory.stores.named import open_store
    from langgraft.memory.stores.programs import Program
    from langgraft.memory.stores.ranked import RankedItem, RankedStore
    from langgraft.memory.stores.read_only import ReadOnlyStore
    from langgraft.memory.stores.sqlite import SQLiteFileStore

__all__ = [
    "ChromaStore",
    "Program",
    "RankedItem",
    "RankedStore",
    "ReadOnlyStore",
    "SQLiteFileStore",
    "open_store",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ChromaStore": "langgraft.memory.stores.chroma",
        "Program": "langgraft.memory.stores.programs",
        "RankedItem": "langgraft.memory.stores.ranked",
        "RankedStore": "langgraft.memory.stores.ranked",
        "ReadOnlyStore": "langgraft.memory.stores.read_only",
        "SQLiteFileStore": "langgraft.memory.stores.sqlite",
        "open_store": "langgraft.memory.stores.named",
    },
)
