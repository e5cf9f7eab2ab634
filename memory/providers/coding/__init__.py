"""`CodingMemory`: errors and their fixes, by task and package.

provider     the memory system: what can be set, presets by name, what is recalled and filed
entries      what is kept of an error and its fix, and what filing an episode changes
tracebacks   reading errors, and the one form in which they are kept
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.providers.coding.provider import (
        CODING_PRESETS,
        CodingMemory,
        CodingSettings,
        coding_preset,
    )

__all__ = ["CODING_PRESETS", "CodingMemory", "CodingSettings", "coding_preset"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "CODING_PRESETS": "langgraft.memory.providers.coding.provider",
        "coding_preset": "langgraft.memory.providers.coding.provider",
        "CodingMemory": "langgraft.memory.providers.coding.provider",
        "CodingSettings": "langgraft.memory.providers.coding.provider",
    },
)
