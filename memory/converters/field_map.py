"""Files of one JSON object a line that others wrote, as items: a field map says what comes from where."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import BankFormatError, InputError, SettingsError
from langgraft.memory.bank_format import BUNDLE_START, open_lines, parse_line
from langgraft.memory.model import MemoryItem, Scalar

_ALWAYS: Final = ("id", "text", "type", "source_domain", "episode_id")
_SOMETIMES: Final = ("success", "task_id", "key")


class FieldSource(BaseModel):
    """Where a value comes from: the first of `paths` that holds one, or else `constant`.

    A path names a field, `content`, or one within others, `metadata.author`. A field that is
    `null` holds no value. Where a whole source is written as one text or a list of texts, these
    are its paths.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    paths: tuple[str, ...] = ()
    """Where to look, in order: alternatives for what is spelled in several ways."""
    constant: Scalar | None = None
    """The value where no path holds one; `None`: there is none."""
    required: bool = False
    """Refuse a row without a value, also where an item could do without."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        if isinstance(value, str):
            return {"paths": (value,)}
        return {"paths": tuple(value)} if isinstance(value, list | tuple) else value

    @model_validator(mode="after")
    def _possible(self) -> "FieldSource":
        canonical_json(self.constant)  # refuses NaN and lone surrogates
        if not self.paths and self.constant is None:
            msg = "a source has paths, a constant, or both"
            raise ValueError(msg)
        if any(not part for path in self.paths for part in path.split(".")):
            msg = f"a path is names joined by periods, got {list(self.paths)}"
            raise ValueError(msg)
        return self

    def find(self, row: Mapping[str, JSON]) -> tuple[str, JSON]:
        """Return the path that holds a value, and the value; `None` where there is none."""
        for path in self.paths:
            value = _at(row, path)
            if value is not None:
                return path, value
        return "constant", self.constant

    def __str__(self) -> str:
        return " or ".join(map(repr, self.paths)) or "a constant"


class FieldMap(BaseModel):
    """Which field of a `MemoryItem` comes from where; `order_index` is the row's, from 0.

    `id`, `text`, `type`, `source_domain`, `episode_id`, `task_id` and `key` are the item's fields.

    ```yaml
    id: [memory_id, experience_id]      # the first of the two that is there
    text: content
    key: {paths: [when_to_use], required: true}
    type: {constant: strategic}
    source_domain: {paths: [workspace_id], constant: unknown}
    episode_id: {constant: ""}
    metadata:
      author: metadata.author
    ```

    Values are taken as they are: a text stays the text, a number does not become one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: FieldSource
    text: FieldSource
    type: FieldSource
    source_domain: FieldSource
    episode_id: FieldSource
    success: FieldSource | None = None
    """Without it, or where a row has no value, nobody knows how the episode went."""
    task_id: FieldSource | None = None
    key: FieldSource | None = None
    metadata: Mapping[str, FieldSource] = Field(default_factory=dict)
    """Name → source. Written as a list of paths, each is named by its last part. What a row
    does not hold is left out, and a list or an object is refused: metadata is flat."""

    @field_validator("metadata", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            return value
        named = {path.rpartition(".")[2]: path for path in value}
        if len(named) != len(value):
            msg = "two paths end in the same name; give a mapping of names to paths"
            raise ValueError(msg)
        return named

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "FieldMap":
        """Read a field map from plain settings, such as a YAML file's.

        Raises:
            SettingsError: It is none; one line says what is wrong with which field.
        """
        with validation_as(SettingsError, "field map: "):
            return cls.model_validate(dict(settings))

    def item(self, row: Mapping[str, JSON], number: int) -> MemoryItem:
        """Make an item of a row.

        Args:
            row: The row's fields.
            number: Its place in the file, from 0.

        Raises:
            InputError: A field is missing, or of a kind that an item's is not.
        """
        values: dict[str, JSON] = {"order_index": number, "success": None}
        for name in (*_ALWAYS, *_SOMETIMES):
            source: FieldSource | None = getattr(self, name)
            if source is not None:
                value = _value(name, source, row, required=name in _ALWAYS)
                if value is not None:
                    values[name] = value
        values["metadata"] = self._metadata(row)
        try:
            return MemoryItem.from_json(values)
        except InputError as error:  # what only an item knows: its types, encodable texts
            sources = [f"{name} comes from {getattr(self, name)}" for name in _named(error, self)]
            raise InputError("; ".join([str(error), *sources])) from error

    def row(self, item: MemoryItem) -> dict[str, JSON]:
        """Return the row of an item: what of it the map reads, where it looks first.

        A field that a row must have and an item need not is what stands in for it: its key is
        then its text.
        """
        row: dict[str, JSON] = {}
        values = item.to_json()
        held = values.pop("metadata", {})
        for name, source in self._sources().items():
            inner = name.removeprefix("metadata.")
            value = values.get(name) if inner == name else held.get(inner)  # type: ignore[union-attr]
            if value is None and source.required and name == "key":
                value = item.retrieval_key
            if value is None or not source.paths or value == source.constant:
                continue
            place = row
            *outer, last = source.paths[0].split(".")
            for part in outer:
                place = place.setdefault(part, {})  # type: ignore[assignment]
            place[last] = value
        return row

    def lost(self, row: Mapping[str, JSON]) -> list[str]:
        """List the fields of a row that an item of it does not hold, by their paths."""
        read: dict[str, JSON] = {}
        kept: set[str] = set()
        for source in self._sources().values():
            path, value = source.find(row)
            kept.add(path)
            read |= dict.fromkeys(source.paths, value)
        return [
            path
            for path, value in _leaves(row)
            if path not in kept and not (path in read and read[path] == value)
        ]

    def _sources(self) -> dict[str, FieldSource]:
        named = {name: getattr(self, name) for name in (*_ALWAYS, *_SOMETIMES)}
        named |= {f"metadata.{name}": source for name, source in self.metadata.items()}
        return {name: source for name, source in named.items() if source is not None}

    def _metadata(self, row: Mapping[str, JSON]) -> dict[str, JSON]:
        values: dict[str, JSON] = {}
        for name, source in self.metadata.items():
            value = _value(f"metadata.{name}", source, row, required=False)
            if value is not None:
                values[name] = value
        return values


def _value(name: str, source: FieldSource, row: Mapping[str, JSON], *, required: bool) -> JSON:
    path, value = source.find(row)
    if value is None and (required or source.required):
        msg = f"field {source} is missing, which {name} comes from"
        raise InputError(msg)
    expected = _KINDS.get(name, (str, bool, int, float))
    if value is not None and not isinstance(value, expected):
        kinds = " or ".join(dict.fromkeys(_WORDS[kind] for kind in expected))
        msg = f"field {path!r} must be {kinds} to be {name} (got {value!r:.80})"
        raise InputError(msg)
    return value


_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys((*_ALWAYS, *_SOMETIMES), (str,)),
    "success": (bool,),
}
_WORDS: Final[Mapping[type, str]] = {
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


def _named(error: InputError, fields: FieldMap) -> Sequence[str]:
    return [
        name
        for name in (*_ALWAYS, *_SOMETIMES)
        if str(error).startswith(f"{name}:") and getattr(fields, name) is not None
    ]


def _leaves(row: Mapping[str, JSON], prefix: str = "") -> Iterator[tuple[str, JSON]]:
    """Yield path and value of all that a row holds and that is not made of fields itself."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        elif value not in (None, "", []):
            yield f"{prefix}{name}", value


def _at(row: Mapping[str, JSON], path: str) -> JSON:
    value: JSON = dict(row)
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


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
    return convert_lines(open_lines(path), path, field_map, Counter())


def convert_lines(
    lines: Iterable[tuple[int, bytes]],
    path: Path,
    field_map: FieldMap | Mapping[str, FieldMap],
    lost: Counter[str],
) -> list[MemoryItem]:
    """Do as `convert_jsonl` does with lines that are open already, and count what is not kept.

    Args:
        lines: Each with its number, from 1.
        path: The file, for messages.
        field_map: Which field comes from where.
        lost: Counts, by the path of a field, rows of which it is not kept.

    Raises:
        BankFormatError: As `convert_jsonl`.
    """
    items: list[MemoryItem] = []
    rows: dict[str, int] = {}
    for row, line in lines:
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
        lost.update(fields.lost(value))
    return items


def row_lines(items: Iterable[MemoryItem], fields: FieldMap) -> bytes:
    """Return items as the lines that a field map reads."""
    return b"".join(f"{canonical_json(fields.row(item))}\n".encode() for item in items)


def _form(row: Mapping[str, JSON], forms: Mapping[str, FieldMap]) -> FieldMap:
    for name, fields in forms.items():
        if name in row:
            return fields
    known, found = ", ".join(map(repr, forms)), ", ".join(map(repr, islice(row, 8)))
    msg = f"not in a form that is known: none of {known} is among its fields ({found:.200})"
    raise InputError(msg)
