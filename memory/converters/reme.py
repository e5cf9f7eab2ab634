"""ReMe's memory (arXiv:2512.10696): the libraries that its releases ship, and its vector stores.

Two spellings are in use: `memory_id` and `memory_type` with dates and author at the top, and
`experience_id` and `experience_type` with these in `metadata` only. An entry says when it helps
(`when_to_use`), which is what it is retrieved by, and what to do (`content`), which is recalled
word for word, in whatever language it is. In the file of a vector store, `unique_id` names an
entry, `content` is when it helps, for that is embedded, and all else is in `metadata`.

===============  ==========================================================================
not in ReMe      what an item says instead
===============  ==========================================================================
success          `None`: no entry tells how the attempts went that it was distilled from
episode_id       empty: not told
source_domain    the workspace; `ImportChoices(remap=…)` puts it to a domain of yours
===============  ==========================================================================

Of an entry's extra information, what is a single value is kept; lists (`tags`, `tools_used`)
are not, for an item's metadata is flat.
"""

from collections.abc import Mapping
from typing import Final

from langgraft.memory.converters.field_map import FieldMap, FieldSource


def _first(*paths: str, required: bool = False) -> FieldSource:
    return FieldSource(paths=paths, required=required)


def _map(inside: str, *, named: FieldSource, text: FieldSource, key: str) -> FieldMap:
    """Return the map of a form that has what an entry is about `inside` a field."""
    return FieldMap(
        id=named,
        text=text,
        key=_first(key, required=True),
        type=FieldSource(constant="strategic"),
        source_domain=_first("workspace_id"),
        episode_id=FieldSource(constant=""),
        metadata={
            "memory_type": _first(f"{inside}memory_type", f"{inside}experience_type"),
            "score": _first(f"{inside}score"),
            "author": _first(f"{inside}author", f"{inside}metadata.author"),
            "created": _first(
                f"{inside}time_created",
                f"{inside}created_time",
                f"{inside}metadata.created_time",
            ),
            "modified": _first(
                f"{inside}time_modified",
                f"{inside}modified_time",
                f"{inside}metadata.modified_time",
            ),
            "confidence": _first(f"{inside}metadata.extra_info.confidence"),
            "step_type": _first(f"{inside}metadata.extra_info.step_type"),
        },
    )


REME: Final = _map(
    "", named=_first("memory_id", "experience_id"), text=_first("content"), key="when_to_use"
)
"""Field map of ReMe's libraries."""
REME_VECTORS: Final = _map(
    "metadata.",
    named=_first("unique_id"),
    text=_first("metadata.content", "metadata.experience_content"),
    key="content",
)
"""Field map of the files of ReMe's vector stores."""
REME_FORMS: Final[Mapping[str, FieldMap]] = {
    "memory_id": REME,
    "experience_id": REME,
    "unique_id": REME_VECTORS,
}
"""Field that tells a form → its map."""
