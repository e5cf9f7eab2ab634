"""Converters: memory that other systems wrote, as items of ours.

field_map   any file of one JSON object a line, by which field of an item comes from where
reme        the field maps of ReMe's memory libraries and vector stores
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.converters.field_map import FieldMap, FieldSource, convert_jsonl
    from langgraft.memory.converters.reme import REME, REME_FORMS

__all__ = ["REME", "REME_FORMS", "FieldMap", "FieldSource", "convert_jsonl"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "FieldMap": "langgraft.memory.converters.field_map",
        "FieldSource": "langgraft.memory.converters.field_map",
        "convert_jsonl": "langgraft.memory.converters.field_map",
        "REME": "langgraft.memory.converters.reme",
        "REME_FORMS": "langgraft.memory.converters.reme",
    },
)
