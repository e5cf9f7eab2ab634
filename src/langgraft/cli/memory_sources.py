"""Where a bank's items come from, for a terminal: why one is there, what a file may hide, what is taken back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langgraft._core.errors import InputError
from langgraft._core.texts import in_a_line
from langgraft.cli.memory_banks import Address, Bank, kept_provider
from langgraft.cli.memory_showing import show_items
from langgraft.cli.printing import say, write_json
from langgraft.memory.model import Receipt
from langgraft.memory.provenance import why
from langgraft.memory.scanning import scan

_WIDTH = 100


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
    say(f"learned from: {in_a_line(', '.join(told.sources), 10 * _WIDTH) or 'nobody said'}")
    for item in told.parents:
        say(f"  {in_a_line(item.id, _WIDTH)}: {in_a_line(item.text, _WIDTH)}")
    if told.uses is not None:
        say(f"recalled: in {told.uses} episodes that count")
    if log is not None:
        say(f"recalled: {len(told.recalled)} times in {log}")
        for receipt in told.recalled:
            say(f"  at step {receipt.step}: {in_a_line(receipt.query, _WIDTH)}")
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
        where = f"{in_a_line(each.item_id, _WIDTH)} ({in_a_line(each.field, _WIDTH)})"
        say(f"{each.kind:<12} {where}: {in_a_line(each.excerpt, _WIDTH)}")
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
        say(f"- {in_a_line(name, _WIDTH)}")
    if done.exact:
        say(f"the bank is one that never saw {in_a_line(source, _WIDTH)}, byte for byte")
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
