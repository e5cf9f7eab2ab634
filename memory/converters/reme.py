"""ReMe's memory libraries (arXiv:2512.10696), as its releases ship them.

Two spellings are in use: `memory_id` and `memory_type` with dates and author at the top, and
`experience_id` and `experience_type` with these in `metadata` only. An entry says when it helps
(`when_to_use`), which is what it is retrieved by, and what to do (`content`), which is recalled
word for word, in whatever language it is.

===============  ==========================================================================
not in ReMe      what an item says instead
===============  ==========================================================================
success          `False`: no entry tells how the attempts went that it was distilled from,
                 and nothing here claims a success that nobody has seen
episode_id       empty: not told
source_domain    the workspace; `ImportChoices(remap=…)` puts it to a domain of yours
===============  ==========================================================================

Of an entry's extra information, what is a single value is kept; lists (`tags`, `tools_used`)
are not, for an item's metadata is flat.
"""

from typing import Final

from langgraft.memory.converters.field_map import FieldMap, FieldSource


def _first(*paths: str, required: bool = False) -> FieldSource:
    return FieldSource(paths=paths, required=required)


REME: Final = FieldMap(
    id=_first("memory_id", "experience_id"),
    text=_first("content"),
    key=_first("when_to_use", required=True),
    type=FieldSource(constant="strategic"),
    source_domain=_first("workspace_id"),
    episode_id=FieldSource(constant=""),
    success=FieldSource(constant=False),
    metadata={
        "memory_type": _first("memory_type", "experience_type"),
        "score": _first("score"),
        "author": _first("author", "metadata.author"),
        "created": _first("time_created", "metadata.created_time"),
        "modified": _first("time_modified", "metadata.modified_time"),
        "confidence": _first("metadata.extra_info.confidence"),
        "step_type": _first("metadata.extra_info.step_type"),
    },
)
"""Field map of ReMe's libraries."""
