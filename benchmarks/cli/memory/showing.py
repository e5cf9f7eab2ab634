"""`langgraft memory show`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft._core.printable import in_a_line
from langgraft.benchmarks.cli.memory.banks import Bank
from langgraft.benchmarks.cli.printing import say, show_table, write_json
from langgraft.memory.bundle import Manifest
from langgraft.memory.items import MemoryItem

_WIDTH: Final = 60


def show_bank(bank: Bank, *, first: int, as_json: bool) -> None:
    """Show how many items of which kinds a bank holds, and the first of them."""
    counts = _counts(bank)
    listed = bank.items[:first]
    manifest: JSON = None if bank.manifest is None else bank.manifest.model_dump(mode="json")
    if as_json:
        write_json(
            {
                "bank": bank.name,
                "items": len(bank.content.items),
                "counts": {name: dict(values) for name, values in counts.items()},
                "manifest": manifest,
                "first": [item.to_json() for item in listed],
            }
        )
        return
    rows = [(name, value, count) for name, values in counts.items() for value, count in values]
    show_table(f"{bank.name}: {len(bank.content.items)} items", ("", "value", "items"), rows)
    if bank.manifest is not None:
        _show_manifest(bank.manifest)
    if listed:
        say(f"the first {len(listed)}, by order_index:")
    show_items(listed, [item.order_index for item in listed])


def show_items(items: Iterable[MemoryItem], figures: Iterable[object]) -> None:
    """List items, each in a line that starts with a figure about it."""
    for item, figure in zip(items, figures, strict=True):
        identity, text = in_a_line(item.id, _WIDTH), in_a_line(item.text, _WIDTH)
        say(f"{figure!s:>8}  {item.type:<11}  {identity}  {text}")


def show_item(bank: Bank, identity: str, *, as_json: bool) -> None:
    """Show one item in full, with the notes on it.

    Raises:
        InputError: The bank has none of this id.
    """
    item = bank.content.items.get(identity)
    if item is None:
        msg = f"{bank.name}: there is no item {identity!r:.80}"
        raise InputError(msg)
    notes = bank.content.notes.get(identity, {})
    if as_json:
        write_json({"item": item.to_json(), "notes": notes})
        return
    fields = {**item.to_json(), "notes": notes or ""}
    text = fields.pop("text")
    for name, value in fields.items():
        if value != "":
            say(f"{name}: {value if isinstance(value, str) else canonical_json(value)}")
    say("")
    for line in str(text).split("\n"):
        say(line)


def _counts(bank: Bank) -> dict[str, list[tuple[str, int]]]:
    """Count items by what they are and by which notes they have, most frequent first."""
    counters: Mapping[str, Counter[str]] = {
        "type": Counter(item.type for item in bank.items),
        "domain": Counter(item.source_domain for item in bank.items),
        "success": Counter(canonical_json(item.success) for item in bank.items),
        "note": Counter(name for notes in bank.content.notes.values() for name in notes),
    }
    return {
        name: sorted(counter.items(), key=lambda each: (-each[1], each[0]))
        for name, counter in counters.items()
    }


def _show_manifest(manifest: Manifest) -> None:
    say(f"bundle of langgraft {manifest.langgraft}")
    told: dict[str, JSON] = {
        "architecture": dict(manifest.architecture),
        **manifest.provenance.model_dump(mode="json"),
    }
    for name, value in told.items():
        if value:
            say(f"{name}: {value if isinstance(value, str) else canonical_json(value)}")
