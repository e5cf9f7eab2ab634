"""`langgraft memory convert`: what it reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from langgraft._core.errors import InputError
from langgraft.benchmarks.cli.memory.arguments import mapping
from langgraft.benchmarks.cli.memory.banks import Bank, of_items, read_file
from langgraft.memory.converters.field_map import FieldMap
from langgraft.memory.converters.jsonl import convert_jsonl
from langgraft.memory.converters.reme import REME_FORMS

FORMATS: Final[Mapping[str, Mapping[str, FieldMap]]] = {"reme": REME_FORMS}
"""Name → field that tells a form → its field map."""
JOURNAL: Final = "journal"
"""The format of a tree search's journal, AIDE's or ours: its errors and fixes become entries."""


def read(
    source: Path,
    *,
    kind: str | None,
    field_map: Path | None,
    bundle: bool,
    task: str | None = None,
) -> Bank:
    """Read what is to be converted.

    Raises:
        InputError: It cannot be read, or is already what it is to become.
    """
    if task is not None and kind != JOURNAL:
        msg = f"--task names the competition of a journal: it goes with --from {JOURNAL}"
        raise InputError(msg)
    if kind == JOURNAL and field_map is None:
        from langgraft.benchmarks.mle.coding_memory import journal_items  # noqa: PLC0415
        from langgraft.benchmarks.mle.journals import read_journal  # noqa: PLC0415

        return Bank(str(source), of_items(journal_items([read_journal(source, task=task)])))
    fields = _fields(kind, field_map)
    if fields is not None:
        return Bank(str(source), of_items(convert_jsonl(source, fields)))
    bank = read_file(source)
    if bundle == (bank.manifest is not None):
        already = "a bundle" if bundle else "bare content; --bundle makes a bundle of it"
        msg = f"{source} is already {already}"
        raise InputError(msg)
    return bank


def _fields(kind: str | None, field_map: Path | None) -> FieldMap | Mapping[str, FieldMap] | None:
    if kind is not None and field_map is not None:
        msg = "--from and --map both say how to read the file; give one of them"
        raise InputError(msg)
    if kind is not None and kind not in FORMATS:
        msg = f"no format is called {kind!r:.80}; there are {', '.join((*FORMATS, JOURNAL))}, or --map"
        raise InputError(msg)
    if field_map is None:
        return None if kind is None else FORMATS[kind]
    return FieldMap.from_settings(mapping("--map", str(field_map)))
