"""What `langgraft memory show`, `search` and `diff` do, and what tells where items come from and takes it back."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.effects import drive
from langgraft._core.errors import InputError, LanggraftError
from langgraft._core.texts import in_a_line
from langgraft.cli.memory_banks import Address, Bank, kept_provider, mapping, told_banks
from langgraft.cli.printing import say, show_table, write_json
from langgraft.memory.bank import INDEXED_FIELD, ORDER_FIELD, records_namespace, replace_content
from langgraft.memory.bundle import Manifest
from langgraft.memory.model import MemoryItem, Receipt
from langgraft.memory.provenance import why
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.recall import item_of
from langgraft.memory.scanning import scan
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
        _say_with_banks(bank, "no items")
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


def _say_with_banks(bank: Bank, said: str) -> None:
    """Say something of a bank, and where it is empty, which banks its store holds."""
    others = told_banks(bank.others)
    say(f"{bank.name}: {said}" + (f"; {others}" if others else ""))


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
        _say_with_banks(bank, f"nothing found among {len(bank.content.items)} items")
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


_TEXT_WIDTH = 100


def show_why(bank: Bank, identity: str, log: Path | None, *, as_json: bool) -> None:
    """Show what an item was learned from, when it was recalled, and what followed from it.

    Raises:
        InputError: The bank has no such item, or the log cannot be read.
    """
    told = why(bank.content, identity, list(_receipts(log)) if log else ())
    if as_json:
        write_json(told.to_json())
        return
    show_items([told.item], [told.item.order_index])
    say(f"learned from: {in_a_line(', '.join(told.sources), 10 * _TEXT_WIDTH) or 'nobody said'}")
    for item in told.parents:
        say(f"  {in_a_line(item.id, _TEXT_WIDTH)}: {in_a_line(item.text, _TEXT_WIDTH)}")
    if told.uses is not None:
        say(f"recalled: in {told.uses} episodes that count")
    if log is not None:
        say(f"recalled: {len(told.recalled)} times in {log}")
        for receipt in told.recalled:
            say(f"  at step {receipt.step}: {in_a_line(receipt.query, _TEXT_WIDTH)}")
    followed = told.followed
    say(f"followed: {len(followed.items)} items and {len(followed.episodes)} episodes")
    show_items(
        [bank.content.items[name] for name in followed.items],
        [bank.content.items[name].order_index for name in followed.items],
    )


def show_findings(bank: Bank, *, as_json: bool) -> bool:
    """Show what in a bank a reader should look at, and say whether there is anything."""
    found = scan(bank.content.items.values())
    if as_json:
        write_json({"bank": bank.name, "findings": [each.to_json() for each in found]})
        return bool(found)
    say(f"{bank.name}: {len(bank.content.items)} items, {len(found)} findings")
    for each in found:
        where = f"{in_a_line(each.item_id, _TEXT_WIDTH)} ({in_a_line(each.field, _TEXT_WIDTH)})"
        say(f"{each.kind:<12} {where}: {in_a_line(each.excerpt, _TEXT_WIDTH)}")
    return bool(found)


def revoke(address: Address, source: str, *, dry_run: bool, as_json: bool) -> None:
    """Take back a source in a bank in a store, and show what that changed and what remains.

    Raises:
        InputError: It is no source, or the bank is not possible; nothing is changed.
    """
    with kept_provider(address) as memory:
        done = memory.revoke(source, dry_run=dry_run)
    if as_json:
        write_json(
            {
                "dry_run": dry_run,
                "items": list(done.items),
                "episodes": list(done.episodes),
                "exact": done.exact,
                "remains": list(done.remains),
                "delta": done.delta.to_json(),
            }
        )
        return
    verb = "would go" if dry_run else "gone"
    say(f"{len(done.items)} items and {len(done.episodes)} episodes {verb}")
    for name in done.items:
        say(f"- {in_a_line(name, _TEXT_WIDTH)}")
    if done.exact:
        say(f"the bank is one that never saw {in_a_line(source, _TEXT_WIDTH)}, byte for byte")
    for each in done.remains:
        say(f"remains: {each}")


def _receipts(log: Path) -> Iterator[Receipt]:
    """Read the receipts of a log: a run directory, its `items.jsonl`, or episodes, one a line."""
    path = log / "items.jsonl" if log.is_dir() else log
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield from _receipts_in(json.loads(line))
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}"
        raise InputError(msg) from error
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"{path}: not a log of JSON lines: {error}"
        raise InputError(msg) from error


def _receipts_in(value: Any) -> Iterator[Receipt]:
    """Find receipts wherever a study keeps them in its results."""
    if isinstance(value, list):
        for each in value:
            yield from _receipts_in(each)
    elif isinstance(value, dict):
        if {"id", "query", "item_ids", "scores"} <= value.keys():
            yield Receipt(**value)
        else:
            yield from _receipts_in(list(value.values()))
