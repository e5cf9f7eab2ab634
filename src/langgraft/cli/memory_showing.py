"""What `langgraft memory show`, `search` and `diff` do: they change nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.effects import drive
from langgraft._core.errors import InputError, LanggraftError
from langgraft._core.texts import in_a_line
from langgraft.cli.memory_banks import Bank, mapping, told_banks
from langgraft.cli.printing import say, show_table, write_json
from langgraft.memory.bank import INDEXED_FIELD, ORDER_FIELD, records_namespace, replace_content
from langgraft.memory.bundle import Manifest
from langgraft.memory.model import MemoryItem
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.recall import item_of
from langgraft.memory.settings import make_ranker
from langgraft.memory.stores.programs import Namespace
from langgraft.memory.stores.ranked import RankedStore
from langgraft.memory.stores.read_only import ReadOnlyStore

_WIDTH: Final = 60
_HERE: Final[Namespace] = records_namespace(("search",))


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
    if not bank.items:
        said = told_banks(bank.others)
        say(f"{bank.name}: no items" + (f"; {said}" if said else ""))
        if bank.manifest is not None:
            _show_manifest(bank.manifest)
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


def search(bank: Bank, query: str, *, ranker: str, top_k: int, as_json: bool) -> None:
    """Show the items that fit a query best, with their scores.

    Raises:
        InputError: There is no such ranker, or nothing to look for.
        LanggraftError: The ranker's embedder fails.
    """
    if not query.strip():
        msg = "there is nothing to look for: the query is empty"
        raise InputError(msg)
    found = _found(bank, query, _ranker(ranker), top_k)
    if as_json:
        hits: list[JSON] = [{"score": score, "item": item.to_json()} for item, score in found]
        write_json({"bank": bank.name, "query": query, "found": hits})
        return
    if not found:
        say(f"{bank.name}: nothing found among {len(bank.content.items)} items")
        return
    say(f"{bank.name}: best of {len(bank.content.items)} items for {query!r}")
    show_items([item for item, _ in found], [f"{score:.4f}" for _, score in found])


def _ranker(text: str) -> Ranker:
    settings = mapping("--ranker", text) if text.lstrip().startswith("{") else {"ranker": text}
    return make_ranker(settings)


def _found(bank: Bank, query: str, ranker: Ranker, top_k: int) -> list[tuple[MemoryItem, float]]:
    store = InMemoryStore()
    drive(replace_content(_HERE, bank.content), store)
    ranked = RankedStore(
        ReadOnlyStore(store),
        ranker,
        field=INDEXED_FIELD,
        heed_index=False,
        order_field=ORDER_FIELD,
    )
    try:
        hits = ranked.search(_HERE, query=query, limit=top_k)
    except LanggraftError:
        raise
    except Exception as error:  # an embedder may be a service, with errors of any class
        msg = f"the ranker cannot search: {type(error).__name__}: {error}"
        raise LanggraftError(msg) from error
    return [(item_of(hit), hit.score or 0.0) for hit in hits]


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
        _show_changes(added, removed, changed, same=len(before) - len(removed) - len(changed))
    return bool(added or removed or changed)


def _differing(old: MemoryItem, new: MemoryItem) -> list[str]:
    one, other = old.to_json(), new.to_json()
    return [
        name
        for name in sorted(one.keys() | other.keys())
        # As JSON: to Python, `True`, 1 and 1.0 are equal.
        if canonical_json(one.get(name)) != canonical_json(other.get(name))
    ]


def _show_changes(
    added: list[str], removed: list[str], changed: Mapping[str, list[str]], *, same: int
) -> None:
    for identity in removed:
        say(f"- {identity}")
    for identity in added:
        say(f"+ {identity}")
    for identity, fields in changed.items():
        say(f"~ {identity} ({', '.join(fields)})")
    say(f"{len(added)} added, {len(removed)} removed, {len(changed)} changed, {same} the same")
