"""`langgraft memory diff`."""

from collections.abc import Mapping

from langgraft._core.canonical import JSON, canonical_json
from langgraft.benchmarks.cli.memory.banks import Bank
from langgraft.benchmarks.cli.printing import say, write_json
from langgraft.memory.items import MemoryItem


def compare(old: Bank, new: Bank, *, as_json: bool) -> bool:
    """Show how the items of two banks differ, and say whether they do.

    Items are told apart by their ids; notes are derived and not compared.
    """
    before, after = old.content.items, new.content.items
    added = [item.id for item in new.items if item.id not in before]
    removed = [item.id for item in old.items if item.id not in after]
    changed = {
        item.id: fields
        for item in old.items
        if item.id in after and (fields := _differing(item, after[item.id]))
    }
    if as_json:
        changes: Mapping[str, JSON] = {name: list(fields) for name, fields in changed.items()}
        write_json({"added": added, "removed": removed, "changed": changes})
    else:
        _show(added, removed, changed, same=len(before) - len(removed) - len(changed))
    return bool(added or removed or changed)


def _differing(old: MemoryItem, new: MemoryItem) -> list[str]:
    one, other = old.to_json(), new.to_json()
    return [
        name
        for name in sorted(one.keys() | other.keys())
        # As JSON: to Python, `True`, 1 and 1.0 are equal.
        if canonical_json(one.get(name)) != canonical_json(other.get(name))
    ]


def _show(
    added: list[str], removed: list[str], changed: Mapping[str, list[str]], *, same: int
) -> None:
    for identity in removed:
        say(f"- {identity}")
    for identity in added:
        say(f"+ {identity}")
    for identity, fields in changed.items():
        say(f"~ {identity} ({', '.join(fields)})")
    say(f"{len(added)} added, {len(removed)} removed, {len(changed)} changed, {same} the same")
