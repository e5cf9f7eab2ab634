"""What `langgraft memory export`, `import` and `convert` do, and `forget`, `edit` and `clear`."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON
from langgraft._core.errors import BankFormatError, InputError
from langgraft.cli.memory_banks import (
    Address,
    Bank,
    kept_provider,
    mapping,
    of_items,
    provider_at,
    read_file,
)
from langgraft.cli.printing import say, write_json
from langgraft.memory.bank import bank_namespace
from langgraft.memory.bank_format import open_lines, write_items
from langgraft.memory.bundle import Provenance, read_bank_file, write_bundle
from langgraft.memory.converters.field_map import FieldMap, convert_lines
from langgraft.memory.converters.foreign import (
    FORMS,
    Loss,
    detect_form,
    form_called,
    losses_of,
    read_foreign,
    write_foreign,
)
from langgraft.memory.importing import REPLACED, ImportChoices
from langgraft.memory.model import Add, MemoryDelta, Remove
from langgraft.memory.provider import MemoryProvider

_LISTED: Final = 10
JOURNAL: Final = "journal"
"""The format of a tree search's journal, AIDE's or ours: its errors and fixes become entries."""


def provenance_of(text: str, *, bundle: bool) -> Provenance:
    """Read what a bundle is to say of its origin.

    Raises:
        InputError: It says what a bundle has no place for, or there is no bundle.
    """
    if text and not bundle:
        msg = "--provenance is written into a bundle: give --bundle, too"
        raise InputError(msg)
    with validation_as(InputError, "--provenance: "):
        return Provenance.model_validate(mapping("--provenance", text))


def check_free(target: Path, *, force: bool) -> None:
    """See that nothing is overwritten.

    Raises:
        InputError: There is a file, and it may not be replaced.
    """
    if target.exists() and not force:
        msg = f"{target} is there already; --force replaces it"
        raise InputError(msg)


def check_form(to: str | None, *, bundle: bool) -> None:
    """See that a form that is to be written is one, and the only one.

    Raises:
        InputError: It is none, or a bundle is asked for as well.
    """
    if to is not None and bundle:
        msg = "--to and --bundle both say what to write; give one of them"
        raise InputError(msg)
    if to is not None:
        form_called(to)


def write(
    bank: Bank,
    target: Path,
    *,
    bundle: bool,
    provenance: Provenance,
    as_json: bool,
    to: str | None = None,
    losses: Sequence[Loss] = (),
) -> None:
    """Write a bank as a file, of ours or in the form `to`, and say what was lost on the way.

    Raises:
        InputError: It cannot be written.
    """
    not_written: Sequence[Loss] = ()
    if to is not None:
        not_written = write_foreign(target, bank.items, to)
    elif bundle:
        write_bundle(target, bank.content, architecture=bank.architecture, provenance=provenance)
    else:
        write_items(target, bank.items)
    if as_json:
        told: dict[str, JSON] = {"file": str(target), "items": len(bank.items), "bundle": bundle}
        for name, report in (("not_read", losses), ("not_written", not_written)):
            if report:
                told[name] = [each.to_json() for each in report]
        write_json(told)
        return
    say(f"{target}: {len(bank.items)} items{', as a bundle' if bundle else ''}")
    for where, report in ((bank.name, losses), (target, not_written)):
        for each in report:
            say(f"  {where}: {each}")


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


def change(
    address: Address, how: Callable[[MemoryProvider[Any]], MemoryDelta], *, as_json: bool
) -> None:
    """Change a bank by hand, and show what that changed.

    Raises:
        InputError: The bank or the change is not possible; nothing is changed.
    """
    with kept_provider(address) as memory:
        delta = how(memory)
    edited = [each.item.id for each in delta if isinstance(each, Add)]
    gone = [each.id for each in delta if isinstance(each, Remove) and each.id not in edited]
    if as_json:
        forgotten: list[JSON] = [*gone]
        write_json({"forgotten": forgotten, "edited": [*edited], "delta": delta.to_json()})
        return
    say(f"{len(gone)} forgotten, {len(edited)} edited")
    for identity in (*gone, *edited):
        say(f"{'~' if identity in edited else '-'} {identity}")


def clear(address: Address, *, yes: bool, as_json: bool) -> None:
    """Empty a bank.

    Raises:
        InputError: Nobody said yes, or the bank is not possible; nothing is changed.
    """
    with kept_provider(address) as memory:
        if not yes:
            held = len(memory.content().items)
            where = "/".join(bank_namespace(memory.namespace))
            msg = f"this would forget all {held:,} items of {where!r}: give --yes to do so"
            raise InputError(msg)
        delta = memory.clear()
    gone = sum(isinstance(each, Remove) for each in delta)
    if as_json:
        write_json({"forgotten": gone})
    else:
        say(f"{gone} forgotten; the bank is empty")


def read_source(
    source: Path,
    *,
    kind: str | None,
    field_map: Path | None,
    task: str | None,
    becomes: Literal["bare", "bundle", "foreign"],
) -> tuple[Bank, tuple[Loss, ...]]:
    """Read what is to be converted, and say what of it is not kept.

    Raises:
        InputError: It cannot be read, its form cannot be told, or it is already what it is to
            become.
    """
    if task is not None and kind != JOURNAL:
        msg = f"--task names the competition of a journal: it goes with --from {JOURNAL}"
        raise InputError(msg)
    if kind is not None and field_map is not None:
        msg = "--from and --map both say how to read the file; give one of them"
        raise InputError(msg)
    if field_map is not None:
        fields = FieldMap.from_settings(mapping("--map", str(field_map)))
        lost: Counter[str] = Counter()
        items = convert_lines(open_lines(source), source, fields, lost)
        return Bank(str(source), of_items(items)), losses_of(lost)
    if kind == JOURNAL:
        from langgraft.benchmarks.mle.coding_memory import journal_items  # noqa: PLC0415
        from langgraft.benchmarks.mle.journals import read_journal  # noqa: PLC0415

        return Bank(str(source), of_items(journal_items([read_journal(source, task=task)]))), ()
    if kind is None:
        bank, detected = _ours_or_form(source)
        if bank is not None:
            if becomes == ("bare" if bank.manifest is None else "bundle"):
                already = (
                    "a bundle" if bank.manifest else "bare content; --bundle makes a bundle of it"
                )
                msg = f"{source} is already {already}"
                raise InputError(msg)
            return bank, ()
        kind = detected
    if kind not in FORMS:
        msg = (
            f"no format is called {kind!r:.80}; there are {', '.join((*FORMS, JOURNAL))}, or --map"
        )
        raise InputError(msg)
    read = read_foreign(source, kind)
    return Bank(str(source), of_items(read.items)), read.losses


def _ours_or_form(source: Path) -> tuple[Bank | None, str]:
    """Read a file of ours, or tell what other form it is in; the first complaint says more."""
    try:
        return read_file(source), ""
    except BankFormatError:
        with suppress(BankFormatError):
            return None, detect_form(source)
        raise
