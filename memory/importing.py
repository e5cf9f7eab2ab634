"""What an import makes of a file: which items come in, as what, and under which number.

A transplant makes no choices: it reads bare content, all of it, as it is. Elsewhere
`ImportChoices` say what is to be taken, under which domain and task, and what happens where an
id is already in the bank.

`order_index` follows one rule. A bank that never held an item takes the numbers of the file,
gaps included, so that export, import and export again give the same bytes, and an item is as
old in the new bank as it was in the old one. Any other bank has numbers of its own: what comes
in is numbered after its last, in the order of the file's numbers. So is a file whose numbers
are not numbers of one bank, because one stands twice (files that were joined) or is beyond what
every store keeps exactly.
"""

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field, field_validator

from langgraft._core.arguments import Settings
from langgraft._core.canonical import canonical_json
from langgraft._core.errors import BankFormatError
from langgraft.memory.bank_format import read_items
from langgraft.memory.bundle import Bundle, read_bank_file
from langgraft.memory.model import Add, Change, MemoryItem, Remove, Scalar
from langgraft.memory.sources import combined, refusals_as_values, source

OnConflict: TypeAlias = Literal["refuse", "skip", "replace", "rename"]
"""What happens to an item whose id is already in the bank."""

REPLACED: Final = "replaced by an import"
"""Reason of a removal."""
METADATA: Final = "metadata."
"""Prefix of fields that are looked for in an item's metadata."""

_FILTERED: Final = ("type", "source_domain", "success", "task_id")
_LAST_NUMBER: Final = 2**53
"""Up to here every store and every reader of JSON keeps whole numbers exactly."""


class ImportChoices(Settings):
    """What to take from a file and how; the defaults take everything as it is.

    ```python
    ImportChoices(
        where={"type": ("strategic", "operational"), "success": True},
        remap={"source_domain": {"babyai": "gridworld"}},
        on_conflict="skip",
    )
    ```
    """

    where: Mapping[str, Scalar | tuple[Scalar, ...]] = Field(default_factory=dict)
    """Field → the value an item must have, or those of which it must have one: `type`,
    `source_domain`, `success`, `task_id`, or `metadata.` and a name. All fields must fit. An
    item without the field does not; the number 1, the text "1" and `True` are three values."""
    remap: Mapping[Literal["source_domain", "task_id"], str | Mapping[str, str]] = Field(
        default_factory=dict
    )
    """Field → a new value for all items, or old values → new ones, where others stay. Filters
    see the old ones."""
    on_conflict: OnConflict = "refuse"
    """`refuse` the file; `skip` the item; `replace` the bank's item, whose notes go with it; or
    `rename` the item that comes in: `rule` becomes `rule~2`."""
    source: str | None = Field(default=None, min_length=1)
    """A name for what comes in: each item gets the source `import:NAME`, by which all of it, and
    what is learned from it, can be revoked again. `None` leaves sources as they are."""

    @field_validator("where", mode="before")
    @classmethod
    def _known_fields(cls, where: object) -> object:
        for field in where if isinstance(where, Mapping) else ():
            if field not in _FILTERED and not (
                isinstance(field, str) and field.removeprefix(METADATA) not in ("", field)
            ):
                known = f"{', '.join(_FILTERED)} or {METADATA}NAME"
                msg = f"cannot filter by {field!r:.80}; give {known}"
                raise ValueError(msg)
        return where

    @field_validator("remap")
    @classmethod
    def _possible_values(
        cls, remap: Mapping[str, str | Mapping[str, str]]
    ) -> Mapping[str, str | Mapping[str, str]]:
        for field, new in remap.items():
            for value in [new] if isinstance(new, str) else new.values():
                canonical_json(value)  # refuses lone surrogates
                if not value and field == "source_domain":
                    msg = "a domain cannot be empty"
                    raise ValueError(msg)
        return remap

    @field_validator("source")
    @classmethod
    def _possible_source(cls, name: str | None) -> str | None:
        if name is not None:
            with refusals_as_values():
                source("import", name)
        return name

    def takes(self, item: MemoryItem) -> bool:
        """Say whether an item passes the filter."""
        return all(_is_among(_value(item, field), wanted) for field, wanted in self.where.items())

    def remapped(self, item: MemoryItem) -> MemoryItem:
        """Return an item under its new domain and task, and with what it came from."""
        update: dict[str, Any] = {}
        for field, new in self.remap.items():
            old = getattr(item, field)
            value = new if isinstance(new, str) else new.get(old, old)
            if value != old:
                update[field] = value
        if self.source is not None:
            update["sources"] = combined(item.sources, [source("import", self.source)])
        return item.model_copy(update=update) if update else item


def import_changes(
    path: Path,
    choices: ImportChoices | None,
    present: Mapping[str, MemoryItem],
    next_number: int,
) -> list[Change]:
    """Read a file and say what it adds to a bank, and what it replaces there.

    Args:
        path: Bare canonical JSONL or, where there are choices, also a bundle.
        choices: What to take and how; `None` is a transplant: bare content, as it is.
        present: The bank's items by id.
        next_number: The `order_index` that the bank would give its next item.

    Raises:
        BankFormatError: The file cannot be taken, or an id is already in the bank.
    """
    items = _chosen(path, choices, present)
    numbers = iter(_numbers(items, fresh=not present and next_number == 0, start=next_number))
    names = set(present).union(item.id for item in items)
    changes: list[Change] = []
    renamed: dict[str, str] = {}
    for item in items:
        identity = item.id
        if identity in present:
            match choices.on_conflict if choices else "refuse":
                case "replace":
                    changes.append(Remove(identity, REPLACED))
                case "rename":
                    identity = _free_name(identity, names)
                    names.add(identity)
                    renamed[source("item", item.id)] = source("item", identity)
        update = {"id": identity, "order_index": next(numbers)}
        same = identity == item.id and update["order_index"] == item.order_index
        changes.append(Add(item if same else item.model_copy(update=update)))
    return [_following(change, renamed) for change in changes] if renamed else changes


def _following(change: Change, renamed: Mapping[str, str]) -> Change:
    """Have an item go on naming those of its own file that it follows from."""
    if not isinstance(change, Add) or renamed.keys().isdisjoint(change.item.sources):
        return change
    sources = combined(renamed.get(each, each) for each in change.item.sources)
    return Add(change.item.model_copy(update={"sources": sources}))


def _chosen(path: Path, choices: ImportChoices | None, present: Container[str]) -> list[MemoryItem]:
    """Return the items that come in, in the order of their numbers."""
    if choices is None:
        return sorted(read_items(path, taken=present), key=_order)
    found = read_bank_file(path)
    items = found.items if isinstance(found, Bundle) else found
    chosen = [choices.remapped(item) for item in sorted(items, key=_order) if choices.takes(item)]
    conflicts = [item.id for item in chosen if item.id in present]
    if conflicts and choices.on_conflict == "refuse":
        more = f", and {len(conflicts) - 1:,} more" if len(conflicts) > 1 else ""
        msg = (
            f"id {conflicts[0]!r:.80} is already in the bank{more}; choose to skip, replace or"
            " rename on a conflict"
        )
        raise BankFormatError(msg, path=path)
    if choices.on_conflict == "skip":
        return [item for item in chosen if item.id not in present]
    return chosen


def _numbers(items: Sequence[MemoryItem], *, fresh: bool, start: int) -> Iterable[int]:
    own = [item.order_index for item in items]
    if fresh and len(set(own)) == len(own) and all(number < _LAST_NUMBER for number in own):
        return own
    return itertools.count(start)


def _free_name(identity: str, names: Container[str]) -> str:
    candidates = (f"{identity}~{number}" for number in itertools.count(2))
    return next(candidate for candidate in candidates if candidate not in names)


def _order(item: MemoryItem) -> tuple[int, str]:
    return item.order_index, item.id


def _value(item: MemoryItem, field: str) -> Scalar | None:
    if field.startswith(METADATA):
        return item.metadata.get(field.removeprefix(METADATA))
    value: Scalar | None = getattr(item, field)
    return value


def _is_among(value: Scalar | None, wanted: Scalar | tuple[Scalar, ...]) -> bool:
    allowed: tuple[Any, ...] = wanted if isinstance(wanted, tuple) else (wanted,)
    # By type as well: to Python, `True`, 1 and 1.0 are equal.
    return any(type(value) is type(each) and value == each for each in allowed)
