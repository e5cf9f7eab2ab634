"""Any file of one JSON object a line, by a field map."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from langgraft._core.canonical import JSON
from langgraft._core.errors import BankFormatError, InputError
from langgraft.memory.bank_format import BUNDLE_START
from langgraft.memory.converters.field_map import FieldMap
from langgraft.memory.items import MemoryItem
from langgraft.memory.json_lines import open_lines, parse_line


def convert_jsonl(
    path: Path | str, field_map: FieldMap | Mapping[str, FieldMap]
) -> list[MemoryItem]:
    """Make items of a whole file that others wrote, or of nothing of it.

    Lines may end in CR LF and the last one in nothing, if it is complete. An id that stands
    twice is refused, as in canonical JSONL: which of the two is meant is not ours to say.

    Args:
        path: The file.
        field_map: Which field comes from where. Where rows come in several forms: the field
            that tells a form → its map.

    Raises:
        BankFormatError: The file is a bundle, or a row is torn, is no JSON object, is in none of
            the forms, or lacks what the map asks for; the message names the row and the field.
    """
    path = Path(path)
    items: list[MemoryItem] = []
    rows: dict[str, int] = {}
    for row, line in open_lines(path):
        if row == 1 and line.startswith(BUNDLE_START):
            msg = "this is a bundle of langgraft's; convert it without a format or a field map"
            raise BankFormatError(msg, path=path)
        value = parse_line(path, row, line, foreign=True)
        try:
            fields = field_map if isinstance(field_map, FieldMap) else _form(value, field_map)
            item = fields.item(value, row - 1)
        except InputError as error:
            raise BankFormatError(str(error), path=path, row=row) from error
        if item.id in rows:
            msg = f"id {item.id!r:.80} ({fields.id}) is already used in row {rows[item.id]}"
            raise BankFormatError(msg, path=path, row=row)
        rows[item.id] = row
        items.append(item)
    return items


def _form(row: Mapping[str, JSON], forms: Mapping[str, FieldMap]) -> FieldMap:
    for name, fields in forms.items():
        if name in row:
            return fields
    known, found = ", ".join(map(repr, forms)), ", ".join(map(repr, islice(row, 8)))
    msg = f"not in a form that is known: none of {known} is among its fields ({found:.200})"
    raise InputError(msg)
