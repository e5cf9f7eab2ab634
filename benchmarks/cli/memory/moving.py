"""`langgraft memory export`, `import`, and what `convert` writes."""

from collections import Counter
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft._core.settings import describe_validation
from langgraft.benchmarks.cli.memory.arguments import mapping
from langgraft.benchmarks.cli.memory.banks import Address, Bank, provider_at
from langgraft.benchmarks.cli.printing import say, write_json
from langgraft.memory.bank_format import write_items
from langgraft.memory.bundle import Provenance, read_bank_file, write_bundle
from langgraft.memory.deltas import Add, MemoryDelta, Remove
from langgraft.memory.importing import REPLACED, ImportChoices

_LISTED: Final = 10


def provenance_of(text: str, *, bundle: bool) -> Provenance:
    """Read what a bundle is to say of its origin.

    Raises:
        InputError: It says what a bundle has no place for, or there is no bundle.
    """
    if text and not bundle:
        msg = "--provenance is written into a bundle: give --bundle, too"
        raise InputError(msg)
    try:
        return Provenance.model_validate(mapping("--provenance", text))
    except ValidationError as error:
        msg = f"--provenance: {describe_validation(error)}"
        raise InputError(msg) from error


def check_free(target: Path, *, force: bool) -> None:
    """See that nothing is overwritten.

    Raises:
        InputError: There is a file, and it may not be replaced.
    """
    if target.exists() and not force:
        msg = f"{target} is there already; --force replaces it"
        raise InputError(msg)


def write(bank: Bank, target: Path, *, bundle: bool, provenance: Provenance, as_json: bool) -> None:
    """Write a bank as a file.

    Raises:
        InputError: It cannot be written.
    """
    if bundle:
        write_bundle(target, bank.content, architecture=bank.architecture, provenance=provenance)
    else:
        write_items(target, bank.items)
    if as_json:
        write_json({"file": str(target), "items": len(bank.items), "bundle": bundle})
    else:
        say(f"{target}: {len(bank.items)} items{', as a bundle' if bundle else ''}")


def bring_in(
    source: Path, address: Address, choices: ImportChoices, *, dry_run: bool, as_json: bool
) -> None:
    """Import a file, and show what that changed.

    Raises:
        InputError: The file, the bank or a choice is not possible; nothing is changed.
    """
    read_bank_file(source)  # before a store is opened, which may make it
    with provider_at(address, dry_run=dry_run) as memory:
        delta = memory.import_items(source, choices, dry_run=dry_run)
    replaced = [change.id for change in _removals(delta) if change.reason == REPLACED]
    gone = set(replaced)
    came = [change.item.id for change in delta if isinstance(change, Add)]
    added = [identity for identity in came if identity not in gone]
    pruned = [change for change in _removals(delta) if change.reason != REPLACED]
    if as_json:
        removals: list[JSON] = [{"id": each.id, "reason": each.reason} for each in pruned]
        write_json(
            {
                "dry_run": dry_run,
                "added": added,
                "replaced": replaced,
                "pruned": removals,
                "delta": delta.to_json(),
            }
        )
        return
    done = "would be added" if dry_run else "added"
    say(f"{len(added)} {done}, {len(replaced)} replaced, {len(pruned)} pruned")
    for change in pruned[:_LISTED]:
        say(f"- {change.id} ({change.reason})")
    if len(pruned) > _LISTED:
        reasons = Counter(change.reason for change in pruned)
        told = ", ".join(f"{reason}: {count}" for reason, count in reasons.items())
        say(f"  … and {len(pruned) - _LISTED} more; in all {told}")


def _removals(delta: MemoryDelta) -> list[Remove]:
    return [change for change in delta if isinstance(change, Remove)]
