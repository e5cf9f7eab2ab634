"""Any file of one JSON object a line, by a field map."""

from pathlib import Path

from langgraft._core.errors import BankFormatError, InputError
from langgraft.memory.converters.field_map import FieldMap
from langgraft.memory.items import MemoryItem
from langgraft.memory.json_lines import open_lines, parse_line


def convert_jsonl(path: Path | str, field_map: FieldMap) -> list[MemoryItem]:
    """Make items of a whole file that others wrote, or of nothing of it.

    Lines may end in CR LF and the last one in nothing, if it is complete. An id that stands
    twice is refused, as in canonical JSONL: which of the two is meant is not ours to say.

    Args:
        path: The file.
        field_map: Which field comes from where.

    Raises:
        BankFormatError: A row is torn, is no JSON object, or lacks what the map asks for; the
            message names the row and the field.
    """
    path = Path(path)
    items: list[MemoryItem] = []
    rows: dict[str, int] = {}
    for row, line in open_lines(path):
        value = parse_line(path, row, line, foreign=True)
        try:
            item = field_map.item(value, row - 1)
        except InputError as error:
            raise BankFormatError(str(error), path=path, row=row) from error
        if item.id in rows:
            msg = f"id {item.id!r:.80} ({field_map.id}) is already used in row {rows[item.id]}"
            raise BankFormatError(msg, path=path, row=row)
        rows[item.id] = row
        items.append(item)
    return items
