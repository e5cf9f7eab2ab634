"""A LangGraph store on Chroma: durable records, exact search, nothing downloaded.

`ChromaStore` (`store.py`) carries out batches, each checked before anything is changed; `rows.py`
writes a record and its vectors as one Chroma row; `table.py` reads and writes rows of one
collection, and knows which there are; `client.py` opens Chroma and holds the lock.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.stores.chroma.store import ChromaStore

__all__ = ["ChromaStore"]

__getattr__, __dir__ = lazy_exports(
    __name__, {"ChromaStore": "langgraft.memory.stores.chroma.store"}
)
