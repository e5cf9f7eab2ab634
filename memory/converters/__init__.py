"""Converters: memory that other systems wrote, as items of ours.

foreign     files of other systems, read and written, with a report of what was lost; ReMe's field maps
field_map   any file of one JSON object a line, by which field of an item comes from where
systems     langmem, mem0, Letta and ReasoningBank, as tables that `forms` reads and writes by
forms       what reads and writes by a table; AGENTS.md, MEMORY.md and the like
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.converters.field_map import FieldMap, FieldSource, convert_jsonl
    from langgraft.memory.converters.foreign import (
        FORMS,
        REME,
        REME_FORMS,
        Converted,
        Loss,
        detect_form,
        read_foreign,
        write_foreign,
    )

__all__ = [
    "FORMS",
    "REME",
    "REME_FORMS",
    "Converted",
    "FieldMap",
    "FieldSource",
    "Loss",
    "convert_jsonl",
    "detect_form",
    "read_foreign",
    "write_foreign",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "FieldMap": "langgraft.memory.converters.field_map",
        "FieldSource": "langgraft.memory.converters.field_map",
        "convert_jsonl": "langgraft.memory.converters.field_map",
        **dict.fromkeys(
            ("FORMS", "Converted", "Loss", "detect_form", "read_foreign", "write_foreign"),
            "langgraft.memory.converters.foreign",
        ),
        "REME": "langgraft.memory.converters.foreign",
        "REME_FORMS": "langgraft.memory.converters.foreign",
    },
)
