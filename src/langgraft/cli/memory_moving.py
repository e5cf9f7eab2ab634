"""What `langgraft memory export`, `import`, `convert` and `transplant` do, and `forget`, `edit` and `clear`."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from langgraph.store.memory import InMemoryStore

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON
from langgraft._core.errors import BankFormatError, InputError
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.harness.plans import look_here
from langgraft.benchmarks.reporting.words import DASH, number, plain, signed
from langgraft.benchmarks.transplant.trial import NONE, TransplantTrial, ameasure_transplant
from langgraft.cli.memory_banks import (
    Address,
    Bank,
    kept_provider,
    mapping,
    of_items,
    provider_at,
    read,
    read_file,
)
from langgraft.cli.printing import complain, say, show_table, write_json
from langgraft.environments.problems.domain import AnswerDomain, Problem
from langgraft.environments.problems.math_problems import read_math
from langgraft.graphs.solver import build_solver
from langgraft.memory.bank import bank_namespace
from langgraft.memory.bank_format import open_lines, read_items, write_items
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
from langgraft.memory.model import Add, MemoryDelta, MemoryItem, Remove
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import Budget
from langgraft.memory.stores.named import shown
from langgraft.memory.transplanting import copy_of, transplant_items

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


_DOMAIN: Final = "math"


@dataclass(frozen=True)
class Measuring:
    """What is to be measured on, and how."""

    problems: Path
    model: str
    base_url: str | None
    runs: int
    limit: int | None
    tokens: int
    seed: int
    workers: int


@dataclass(frozen=True)
class Transplanting:
    """What a user asked for."""

    donor: Address
    recipient: Address
    """Its `store` is where it is written to; its `file`, where it is a file."""
    measuring: Measuring | None
    dry_run: bool
    force: bool


def measuring_of(problems: Path | None, model: str | None, **options: Any) -> Measuring | None:
    """Read what is to be measured.

    Raises:
        InputError: One of problems and model is given without the other.
    """
    if problems is None or model is None:
        if problems is not None or model is not None:
            msg = "--measure PROBLEMS.jsonl and --model go together: give both, or neither"
            raise InputError(msg)
        return None
    return Measuring(problems, model, **options)


def recipient_of(
    to: str | None, provider: str | None, settings: str, namespace: str | None
) -> Address:
    """Read where the recipient's bank is to be: what names no store is a file."""
    is_store = to is not None and (to == "memory" or ":" in to)
    file = None if to is None or is_store else Path(to)
    return Address(file, to if is_store else None, provider, settings, namespace)


def move(asked: Transplanting, *, as_json: bool) -> None:
    """Transplant, measure it where that is asked, write the bank, and say what came of it.

    Raises:
        InputError: A bank, the recipient, the problems or the model is not usable; nothing is written.
    """
    items = _donated(asked.donor)
    target, store = asked.recipient.file, asked.recipient.store
    if target is not None:
        check_free(target, force=asked.force)
    writes = not asked.dry_run and not (target is None and store is None)
    with _recipient(asked.recipient, dry_run=not writes) as recipient:
        # What is not to be written yet may be measured beside the bank that is there.
        beside = asked.measuring is not None and not writes
        rehearsed = copy_of(recipient, None if beside else recipient.content())
        done = transplant_items(items, rehearsed)
        trial = None
        if asked.measuring is not None:
            trial = asyncio.run(_measured(items, recipient, asked.measuring))
        if writes and target is not None:
            rehearsed.export_items(target)
        elif writes:
            transplant_items(items, recipient)
    if as_json:
        measured = None if trial is None else trial.to_json()
        write_json({"written": writes, "transplant": done.to_json(), "trial": measured})
        return
    for line in [str(done)] if trial is None else trial.lines():
        (complain if line.startswith("WARNING") else say)(line)
    for identity, reason in done.dropped[:_LISTED]:
        say(f"- {identity} ({reason})")
    if len(done.dropped) > _LISTED:
        say(f"  … and {len(done.dropped) - _LISTED:,} more")
    if trial is not None:
        _show(trial)
    where = target or (None if store is None else shown(store))
    say(f"written to {where}" if writes else "nothing was written")


def _donated(donor: Address) -> list[MemoryItem]:
    if donor.file is None or donor.store or donor.provider or donor.namespace:
        items = read(donor).items  # a bank in a store, or the refusal of two at once
    else:
        items = read_items(donor.file)
    if not items:
        msg = f"{donor.file or 'the bank'} holds no items: there is nothing to transplant"
        raise InputError(msg)
    return items


@contextmanager
def _recipient(recipient: Address, *, dry_run: bool) -> Iterator[MemoryProvider[Any]]:
    if recipient.provider is None:
        msg = "which recipient? Give its architecture: --provider NAME, and --settings"
        raise InputError(msg)
    if recipient.store is not None:
        with provider_at(recipient, dry_run=dry_run) as memory:
            yield memory
        return
    if recipient.namespace is not None:
        msg = "--to-namespace is a place in a store: give --to a store, too"
        raise InputError(msg)
    look_here()
    settings = mapping("--settings", recipient.settings)
    yield make_provider(recipient.provider, InMemoryStore(), settings=settings)


async def _measured(
    items: list[MemoryItem], recipient: MemoryProvider[Any], measuring: Measuring
) -> TransplantTrial:
    problems = read_math(measuring.problems)[: measuring.limit]
    domain = AnswerDomain(_DOMAIN, map(Problem.of_math, problems))
    budget = Budget(measuring.tokens)
    with (
        closing(domain),
        tempfile.TemporaryDirectory(prefix="langgraft-trial-") as folder,
        ResponseCache(Path(folder) / "responses.sqlite") as responses,
    ):
        model = make_model(
            measuring.model, base_url=measuring.base_url, temperature=0, responses=responses
        )
        return await ameasure_transplant(
            items,
            recipient,
            lambda memory: build_solver(
                model, domain=domain, memory=memory, learn=False, budget=budget
            ),
            [*domain.problems],
            runs=measuring.runs,
            seed=measuring.seed,
            max_concurrency=measuring.workers,
        )


def _show(trial: TransplantTrial) -> None:
    rows = []
    for arm in trial.arms:
        contrast = None if arm.name == NONE else trial.comparison[arm.name]
        estimate = None if contrast is None else contrast.estimate
        rows.append(
            (
                arm.name,
                plain(arm.success),
                DASH if estimate is None else signed(estimate.value),
                DASH if contrast is None else trial.verdict_of(arm.name),
                number(arm.tokens, 0),
                f"{arm.attempts - arm.recalled:,} of {arm.attempts:,}",
            )
        )
    columns = ("arm", "solved, %", "pp", "verdict", "tokens", "nothing recalled")
    show_table(f"{len(trial.outcomes):,} attempts", columns, rows)
