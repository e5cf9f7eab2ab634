"""What `langgraft memory transplant` does: move items into another architecture, and measure what that does."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.harness.plans import look_here
from langgraft.benchmarks.reporting.words import DASH, number, plain, signed
from langgraft.benchmarks.transplant.trial import NONE, TransplantTrial, ameasure_transplant
from langgraft.cli.memory_banks import Address, mapping, provider_at, read
from langgraft.cli.memory_moving import check_free
from langgraft.cli.printing import complain, say, show_table, write_json
from langgraft.environments.problems.domain import AnswerDomain, Problem
from langgraft.environments.problems.math_problems import read_math
from langgraft.graphs.solver import build_solver
from langgraft.memory.bank_format import read_items
from langgraft.memory.model import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import Budget
from langgraft.memory.stores.named import shown
from langgraft.memory.transplanting import copy_of, transplant_items

_LISTED: Final = 10
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
