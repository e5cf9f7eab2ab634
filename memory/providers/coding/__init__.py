"""`CodingMemory`: errors and their fixes, by task and package.

provider, settings   the memory system
entries, filing      what is kept of an error, and what filing an episode changes
tracebacks, masks    reading errors, and the one form in which they are kept
fixes                which fixes are left out
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.providers.coding.provider import CodingMemory
    from langgraft.memory.providers.coding.settings import CodingSettings

__all__ = ["CodingMemory", "CodingSettings"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "CodingMemory": "langgraft.memory.providers.coding.provider",
        "CodingSettings": "langgraft.memory.providers.coding.settings",
    },
)
