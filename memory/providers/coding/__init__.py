"""`CodingMemory`: errors and their fixes, by task and package.

provider, settings   the memory system
presets              its settings by name, for tree searches
entries, filing      what is kept of an error, and what filing an episode changes
tracebacks, masks    reading errors, and the one form in which they are kept
fixes                which fixes are left out
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.providers.coding.presets import CODING_PRESETS, coding_preset
    from langgraft.memory.providers.coding.provider import CodingMemory
    from langgraft.memory.providers.coding.settings import CodingSettings

__all__ = ["CODING_PRESETS", "CodingMemory", "CodingSettings", "coding_preset"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "CODING_PRESETS": "langgraft.memory.providers.coding.presets",
        "coding_preset": "langgraft.memory.providers.coding.presets",
        "CodingMemory": "langgraft.memory.providers.coding.provider",
        "CodingSettings": "langgraft.memory.providers.coding.settings",
    },
)
